"""A start from another run: the one model of a finished run is the first model of the next.

What may follow what is checked before anything trains. The following run must not be scored on
samples that the start has learnt from: public halves of a test set and the server's validation
samples stay what they were.
"""

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ostraka.core.method import Method
from ostraka.core.net import Params
from ostraka.core.samples import View
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.runs.config import Config, build_method
from ostraka.runs.record import RunDir, load_model
from ostraka.runs.results import StartFigures, Summary
from ostraka.store import codec, jsonfile
from ostraka.store.task import task_from

HALF_TEST = "half-test"
"""The public samples that are a part of the test set."""


@dataclass(frozen=True)
class Start:
    """The model of a finished run, and what that run was and cost."""

    folder: Path
    config: Config
    params: Params
    digest: str
    summary: Summary
    view: View
    """How its samples were seen."""

    def figures(self, accuracy: float | None) -> StartFigures:
        """What the summary of the following run says of its start,
        which has this accuracy there.
        """
        own, before = self.summary, self.summary.start
        return StartFigures(
            method=own.method,
            digest=self.digest,
            out=str(self.folder),
            bytes_up=own.bytes_up + (before.bytes_up if before else 0),
            bytes_down=own.bytes_down + (before.bytes_down if before else 0),
            cpu_seconds=own.cpu_seconds + (before.cpu_seconds if before else 0),
            accuracy=accuracy,
        )


def find_start(config: Config) -> Start | None:
    """The start that a configuration names; None if it names none."""
    if config.start_from is None:
        return None
    folder = _folder(Path(config.start_from), config)
    was, model = load_model(folder)
    params = build_method(was).single_model(model["state"])
    if params is None:
        raise ConfigError(
            f"{folder} is a run of {was.method}, whose result is not one network; start from a run "
            "that has one: an averaging method, centralised, feddf, fedkt, or a vote distilled "
            "into a student (fedov-distilled); fedova starts from fedova"
        )
    digest = blake2b(codec.encode(params), digest_size=8).hexdigest()
    if config.start_digest not in (None, digest):
        raise ConfigError(
            f"the model in {folder} has the hash {digest}, but start_digest is "
            f"{config.start_digest}: it is not the model that this run was begun with. Give its "
            "folder with --start-from, or begin a new run"
        )
    path = RunDir(folder).summary
    summary = Summary.from_json(jsonfile.read_json(path), str(path))
    return Start(folder, was, params, digest, summary, task_from(model["task"]).view)


def pinned(config: Config, start: Start | None) -> Config:
    """The configuration with the start's folder and hash written out,
    so that it names one model for good.
    """
    if start is None:
        return config
    return replace(config, start_from=str(start.folder.resolve()), start_digest=start.digest)


def check_start(start: Start, config: Config, method: Method[Any, Any, Any], task: Task) -> None:
    """Refuse a start that the method cannot use, or that has seen what the run is scored on."""
    if not method.takes_start:
        raise ConfigError(
            f"{config.method} makes its models itself and takes no start; leave --start-from out, "
            "or use an averaging method such as fedavg or fedprox"
        )
    _check_scored_apart(start, config)
    if start.config.standardise != config.standardise:
        raise ConfigError(
            f"the start in {start.folder} was trained with standardise "
            f"{start.config.standardise!r}, this run has {config.standardise!r}: its network would "
            "see other inputs than those it has learnt; give both the same"
        )
    classes = tuple(start.summary.per_class)
    fewer = method.adds_classes and set(classes) <= set(task.classes)
    if classes != task.classes and not fewer:
        raise ConfigError(
            f"the start in {start.folder} knows the classes {_few(classes)}, this run "
            f"{_few(task.classes)}; start from a run with the same data and known classes"
        )
    _check_same_network(start, method, task)


def _check_scored_apart(start: Start, config: Config) -> None:
    was = start.config
    if was.public == HALF_TEST != config.public:
        raise ConfigError(
            f"the start in {start.folder} has learnt from half of the test set (--public "
            f"{HALF_TEST}); this run would be scored on that half too. Add --public {HALF_TEST}: "
            "both are then scored on the other half"
        )
    held = ("data", "seed", "validation", "train_per_class", "known", "known_classes")
    if was.local_test or config.local_test:
        _check_same_test(start, config, (*held, "partition", "parties", "shared", "local_test"))
    different = [name for name in held if getattr(was, name) != getattr(config, name)]
    if config.validation and different:
        raise ConfigError(
            f"the start in {start.folder} may have learnt from this run's "
            f"validation samples, since it differs in {', '.join(different)}; give "
            "both runs the same, or no --validation"
        )


def _check_same_test(start: Start, config: Config, names: tuple[str, ...]) -> None:
    """Which samples are the test then depends on all that decides who holds what."""
    different = [name for name in names if getattr(start.config, name) != getattr(config, name)]
    if different:
        raise ConfigError(
            f"the start in {start.folder} may have learnt from this run's test samples: with "
            f"local_test they are a part of what was divided, and it differs in "
            f"{', '.join(different)}; give both runs the same"
        )


def _check_same_network(start: Start, method: Method[Any, Any, Any], task: Task) -> None:
    own = method.single_model(method.init(task.without_commons(), 0))
    assert own is not None, "a method that takes a start has one model"
    shapes = [
        {name: tuple(tensor.shape) for name, tensor in params.items()}
        for params in (start.params, own)
    ]
    given, wanted = shapes
    compared = given if method.adds_classes else {*given, *wanted}
    names = sorted(name for name in compared if given.get(name) != wanted.get(name))
    if names:
        first = names[0]
        raise ConfigError(
            f"the start in {start.folder} is another network than this run's: {first} is "
            f"{given.get(first, 'missing')} there and {wanted.get(first, 'missing')} here "
            f"({len(names)} tensors differ). Give both runs the same --net and an --objective with "
            "the same outputs: a distilled student, fedkt and cross-entropy have one output for "
            "each class, open-set objectives have one more"
        )


def _folder(given: Path, config: Config) -> Path:
    """The run itself, or the cell of a grid that has this run's data, division and seed."""
    if not given.is_dir():
        raise ConfigError(
            f"there is no folder {given} to start from; give the folder of a finished run or grid"
        )
    cells = given / "cells"
    if RunDir(given).config.exists() or not cells.is_dir():
        return given
    fitting = [folder for folder in sorted(cells.iterdir()) if _fits(RunDir(folder), config)]
    if len(fitting) != 1:
        found = ", ".join(folder.name for folder in fitting) or "none"
        raise ConfigError(
            f"the grid {given} should have one finished run on {config.data} / {config.partition}, "
            f"seed {config.seed}, to start from; it has: {found}. Give the folder of a run (in "
            f"{cells}), or a grid of one method"
        )
    return fitting[0]


def _fits(home: RunDir, config: Config) -> bool:
    done = home.finished()
    return done is not None and all(
        getattr(done, key) == getattr(config, key) for key in ("data", "partition", "seed")
    )


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (f" ... ({len(names)})" if len(names) > 4 else "")
