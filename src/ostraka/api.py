"""What scripts and notebooks call: runs and members in one call each, with progress on standard
error, and errors that speak of Python and not of options of the command line.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from ostraka.core.member import Member
from ostraka.core.private import Private
from ostraka.core.settings import merge, nested
from ostraka.display.progress import NORMAL, QUIET, follow_run, follow_training
from ostraka.errors import ConfigError, OstrakaError, shown
from ostraka.parties.gathering import member_files
from ostraka.parties.samples import OwnData
from ostraka.parties.task_file import TaskFile
from ostraka.parties.train import train_party
from ostraka.runs import api as runs
from ostraka.runs.api import Result
from ostraka.runs.config import SHORT, make, with_dots
from ostraka.runs.folder import free_folder
from ostraka.runs.watch import Watch
from ostraka.store.member import load_member

Choice = str | Mapping[str, Any]
"""A name, or a table with a name and options."""


class RunValues(TypedDict, total=False):
    """What a run can be told (`ostraka list settings run`), and the methods' commonest settings."""

    data: str | Path
    label: str | None
    partition: str
    parties: int | None
    seed: int
    known: int | None
    known_classes: Sequence[int]
    train_per_class: int | None
    public: str | Path | None
    start_from: str | Path | None
    start_digest: str | None
    shared: float
    standardise: Literal["auto", "on", "off", "raw"]
    augment: str
    validation: float
    local_test: float
    unknown_rate: float
    rate_from: Literal["auto", "told", "validation", "public", "own"]
    threshold: float | None
    look: Literal["none", "validation", "public", "test"]
    eval_every: int
    on_failure: Literal["stop", "drop"]
    min_parties: int
    net: Choice
    set: Mapping[str, Any]
    engine: Choice
    workers: int | None
    device: Literal["auto", "cpu", "cuda", "mps"]
    data_dir: str | Path | None
    rounds: int
    epochs: int
    lr: float
    batch: int


def run(
    method: str,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    watch: Watch | None = None,
    **values: Unpack[RunValues],
) -> Result:
    """Train and evaluate one method.

    `values` are those of a configuration file: data, partition, parties, seed, ...; the method's
    own settings go into `set={"local.epochs": 2}`, those that most methods have (`rounds`,
    `epochs`, `lr`, `batch`) also stand alone. Everything lands in the folder `out`, by default a
    new one under `runs/`; `Result.folder` says which. Progress is shown on standard error unless
    `progress=False`; a `watch` of your own replaces it. The default engine may start processes that
    import the calling script again, so call this below `if __name__ == "__main__":`, or with
    `engine="serial"`.
    """
    with for_python():
        config = make({"method": method, **_with_short(values)})
        folder = Path(out) if out is not None else free_folder(config)
        with follow_run(NORMAL if progress else QUIET) as shown:
            return runs.run_config(config, folder, resume, watch or shown)


def add_class(
    folder: str | Path,
    *names: str,
    out: str | Path,
    progress: bool = True,
    watch: Watch | None = None,
    **values: Unpack[RunValues],
) -> Result:
    """Add classes to the finished run in `folder`: one network each is trained by the parties that
    hold it, for as many rounds as that run had, or for `rounds=...`.

    The result is a run of its own in `out`; the other networks are those of the finished run, to
    the last bit. `values` as in `run`; what is not given is as it was there. For methods that have
    a network for each class (fedova).
    """
    given = {key: value for key, value in values.items() if value is not None}
    with for_python(), follow_run(NORMAL if progress else QUIET) as shown:
        return runs.add_class(folder, *names, out=out, watch=watch or shown, **_with_short(given))


def load_run(folder: str | Path) -> Result:
    """What `run` gave, from the folder of a finished run."""
    with for_python():
        if not isinstance(folder, str | Path):
            raise ConfigError(
                f"{shown(folder)} was given; give the folder of a run, as text or as a path"
            )
        return runs.load_run(folder)


def train(
    data: OwnData,
    task: TaskFile | str | Path | None = None,
    out: str | Path | None = None,
    *,
    name: str = "",
    seed: int | None = None,
    keep_rare: bool = False,
    skip_broken: bool = False,
    replace: bool = False,
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    dp: Private | float | None = None,
    progress: bool = True,
) -> Member:
    """Make a party's member from its own data, and write it to the file `out`, if one is given.

    `data` is a folder or file, a `Collection`, or arrays `(x, y)`, whose labels are names of
    classes. `task` is a task or its file; without one, the classes that are found are all. Classes
    with so few samples that they may identify people are left out unless `keep_rare`; files that
    cannot be read are an error, or left out with `skip_broken`. Stopped and called again, it goes
    on where it was; the same data, task and seed make the same file. `dp` promises differential
    privacy, by its epsilon or by all of it (`core.private.Private`).
    """
    promise = dp if dp is None or isinstance(dp, Private) else Private(float(dp))
    with for_python(), follow_training(NORMAL if progress else QUIET) as tell:
        made = train_party(
            data,
            task,
            out,
            name=name,
            seed=seed,
            keep_rare=keep_rare,
            skip_broken=skip_broken,
            replace_file=replace,
            device=device,
            dp=promise,
            tell=tell,
        )
    return made.member


def load_members(paths: str | Path | Iterable[str | Path]) -> list[Member]:
    """The members in one or several files, each read by the strict reader.

    A folder stands for all member files in it (`*.member`, `*.safetensors`), the folder of a run
    for those in its `members/`; names may be patterns (`wards/*.member`).
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    with for_python():
        return [load_member(path) for path in member_files(given)]


def _with_short(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with settings of the method that stand alone in `set`."""
    rest = dict(values)
    if not isinstance(rest.get("set", {}), Mapping):
        return rest  # the configuration says what is wrong with it
    chosen = with_dots(rest.get("set", {}))
    for short, name in {"rounds": "rounds", **SHORT}.items():
        if short in rest:
            chosen = merge(chosen, nested(name, rest.pop(short)))
    return {**rest, "set": chosen} if chosen else rest


@contextmanager
def for_python() -> Iterator[None]:
    """Errors inside speak of arguments, not of options of the command line."""
    try:
        yield
    except OstrakaError as error:
        error.args = tuple(in_python(a) if isinstance(a, str) else a for a in error.args)
        raise


VALUE = (
    r"(?P<value>[-+]?\d+(?:\.\d+)?(?:e-?\d+)?%?"
    r"|half-test|auto|off|on|mlp|none|validation|told|drop)(?!\w)"
)
"""What may follow an option in a message as its value."""
OPTION = re.compile(
    r"--set (?P<setting>[\w.]+)=(?P<to>[\w.-]+\b)|--(?P<name>[a-z][a-z-]*)(?: " + VALUE + ")?"
)
FLAGS = ("resume", "keep_rare", "replace")
"""Options without a value."""


def in_python(message: str) -> str:
    """A message with arguments in place of options; commands to type stay as they are."""
    if "in Python" in message:
        return message
    told, command, rest = message.partition("ostraka ")
    return OPTION.sub(_argument, told) + command + rest


def _argument(found: re.Match[str]) -> str:
    if found["setting"]:
        return f"set={{{found['setting']!r}: {_literal(found['to'])}}}"
    name = found["name"].replace("-", "_")
    if name in FLAGS:
        return f"{name}=True"
    return name if found["value"] is None else f"{name}={_literal(found['value'])}"


def _literal(text: str) -> str:
    """A value as Python writes it."""
    if text.endswith("%"):
        return f"{float(text[:-1]) / 100:g}"
    if text in ("true", "false"):
        return text.capitalize()
    return text if re.fullmatch(r"[-+]?[\d.]+(e-?\d+)?", text) else repr(text)
