"""One function for notebooks and scripts: `ostraka.run("fedavg", data="digits", out="runs/first")`."""

from pathlib import Path
from typing import Any

from ostraka.runs.answer import finished_answer
from ostraka.runs.config import Config, make
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.results import Summary
from ostraka.runs.watch import Watch


def run(
    method: str, *, out: str | Path, resume: bool = False, watch: Watch | None = None, **values: Any
) -> Summary:
    """Train and evaluate one method in the folder `out`; returns the summary, as `summary.json` holds it.

    `values` are those of a configuration file: data, partition, parties, seed, `set={"local": {"epochs": 2}}`, ...
    The default engine starts processes that import the calling script again, so call this below
    `if __name__ == "__main__":`, or with `engine="serial"`.
    """
    config = make({"method": method, **values})
    home = RunDir(Path(out))
    ready = prepare(config, home, resume)
    return execute(ready, home, watch, resume) if isinstance(ready, Plan) else ready


def prepare(config: Config, home: RunDir, resume: bool) -> Plan | Summary:
    """What is to be run in `home`, or, of a run to resume that is finished, its summary: that needs no data."""
    begun = home if resume and home.marks.exists() else None
    done = finished_answer(home, config) if begun else None
    return done or make_plan(config, begun)
