"""One function for notebooks and scripts: `ostraka.run("fedavg", data="digits", out="runs/first")`."""

from pathlib import Path
from typing import Any

from ostraka.runs.config import make
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch


def run(
    method: str, *, out: str | Path, resume: bool = False, watch: Watch | None = None, **values: Any
) -> dict[str, Any]:
    """Train and evaluate one method in the folder `out`; returns the summary, as `summary.json` holds it.

    `values` are those of a configuration file: data, partition, parties, seed, `set={"local": {"epochs": 2}}`, ...
    The default engine starts processes that import the calling script again, so call this below
    `if __name__ == "__main__":`, or with `engine="serial"`.
    """
    config = make({"method": method, **values})
    return execute(make_plan(config), RunDir(Path(out)), watch, resume)
