"""A run in one call, and what it gives. `ostraka.api` is the same for notebooks and scripts."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from ostraka.core.member import Member
from ostraka.core.predictor import Predictor
from ostraka.errors import ConfigError, OstrakaError
from ostraka.runs.answer import finished_answer
from ostraka.runs.config import Config, build_method, make
from ostraka.runs.folder import kind_of
from ostraka.runs.growth import grown
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.promise import placed_at
from ostraka.runs.record import RunDir, load_model, nothing_in
from ostraka.runs.results import Summary
from ostraka.runs.watch import Watch
from ostraka.store.member import load_member
from ostraka.store.task import task_from


@final
@dataclass(frozen=True, repr=False)
class Result:
    """A finished run: its figures, where it lies, and what it has made."""

    folder: Path
    summary: Summary
    """The final figures, as `summary.json` holds them."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the known classes, in the order of the numbers
        that a predictor answers with.
        """
        return tuple(self.summary.per_class)

    def predictor(self) -> Predictor:
        """What answers as the run did: with its threshold, and with what its vote has found out.

        The run's own files are enough, its data is not needed.
        """
        config, model = load_model(self.folder)
        predictor = build_method(config).predictor(task_from(model["task"]), model["state"])
        return placed_at(predictor.remembering(model["seen"]), model["thresholds"])

    def members(self) -> tuple[Member, ...]:
        """The run's members, each of which stands on its own; empty where its method has none."""
        files = sorted((self.folder / "members").glob("*.safetensors"))
        return tuple(load_member(path) for path in files)

    def __repr__(self) -> str:
        figure = self.summary.accuracy
        accuracy = "no accuracy" if figure is None else f"accuracy {figure:.2f} %"
        return (
            f"<Result of {self.summary.method} on {self.summary.data}: "
            f"{accuracy}, in {self.folder}>"
        )


def run_config(config: Config, out: Path, resume: bool, watch: Watch | None) -> Result:
    """Train and evaluate as configured, in the folder `out`."""
    home = RunDir(out)
    ready = prepare(config, home, resume)
    summary = execute(ready, home, watch, resume) if isinstance(ready, Plan) else ready
    return Result(home.root, summary)


def add_class(
    folder: str | Path, *names: str, out: str | Path, watch: Watch | None = None, **values: Any
) -> Result:
    """Add classes to the finished run in `folder`, as a run of its own in `out`; `values` are laid
    over those of that run.
    """
    if not names:
        raise ConfigError("no class was named; give at least one: add_class(folder, '9', out=...)")
    return run_config(make(grown(Path(folder), names, values)), Path(out), False, watch)


def load_run(folder: str | Path) -> Result:
    """What `run` gave, from the folder of a finished run."""
    root = Path(folder)
    if root.is_dir() and kind_of(root) == "grid":
        raise ConfigError(
            f"{root} is the folder of a grid; give one of its runs, in {root / 'cells'}"
        )
    summary = RunDir(root).finished()
    if summary is None:
        raise ConfigError(nothing_in(root))
    return Result(root, replace(summary, out=str(root)))  # it may have been moved since


def prepare(config: Config, home: RunDir, resume: bool) -> Plan | Summary:
    """What is to be run in `home`, or, of a run to resume that is finished,
    its summary: that needs no data.
    """
    begun = home if resume and home.marks.exists() else None
    done = finished_answer(home, config) if begun else None
    if done is not None:
        with suppress(OstrakaError, OSError), home.locked():
            pass  # what a kill has left is swept, unless somebody is at work here
    return done or make_plan(config, begun)
