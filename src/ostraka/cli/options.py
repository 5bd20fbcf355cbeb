"""Options that several verbs share, and how they lie over a configuration file."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from ostraka.core import settings
from ostraka.errors import ConfigError
from ostraka.runs.config import (
    SHORT,
    Config,
    EngineChoice,
    build_method,
    flat,
    make,
    parse_assignments,
    read_toml,
)
from ostraka.runs.variant import as_values

DATA = {
    "label": "NAME",
    "parties": "N",
    "known": "N",
    "known_classes": "A,B,...",
    "train_per_class": "N",
    "public": "P",
    "validation": "SHARE",
    "shared": "SHARE",
    "local_test": "SHARE",
    "data_dir": "DIR",
}
"""Settings of a run that say which data, and which of it, and what stands for their values."""

TRAINING = {"standardise": "WHAT", "augment": "WHAT", "start_from": "DIR"}
UNKNOWN = {"unknown_rate": "RATE", "rate_from": "WHAT", "threshold": "T"}
RUNNING = {
    "workers": "N",
    "device": "D",
    "eval_every": "N",
    "on_failure": "WHAT",
    "min_parties": "N",
}

RUN_OPTIONS = (*DATA, *TRAINING, *UNKNOWN, *RUNNING)
"""Options that carry over to the configuration under their own name."""


def add_settings(group: "argparse._ActionsContainer", metavars: Mapping[str, str]) -> None:
    """An option for each of these settings of a run: type,
    default and help are those of `Config`.
    """
    hints = get_type_hints(Config)
    specs = {spec.name: spec for spec in fields(Config)}
    for name, metavar in metavars.items():
        read = READERS.get(name) or _reader(hints[name])
        flag = "--" + name.replace("_", "-")
        group.add_argument(flag, type=read, metavar=metavar, help=help_of(specs[name]))


def help_of(spec: "Field[Any]") -> str:
    """What the setting means, and its default where the words do not tell."""
    doc, default = str(spec.metadata["doc"]), spec.default
    unused = default in (None, (), EngineChoice()) or (isinstance(default, float) and not default)
    told = unused or re.search(rf"\b{re.escape(str(default))}\b", doc)
    return (doc if told else f"{doc} (default {default})").replace("%", "%%")


def _reader(hint: Any) -> Callable[[str], Any]:
    """What makes a value of a setting of this type out of a word."""
    kinds = {kind for kind in (int, float) if kind in (hint, *get_args(hint))}
    return kinds.pop() if kinds else str


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """What a run can be told beside its method, data, partition and seed."""
    add_data_options(parser)
    group = parser.add_argument_group("training")
    add_settings(group, {name: TRAINING[name] for name in ("standardise", "augment")})
    group.add_argument("--net", metavar="NAME", help="network (ostraka list nets); default: auto")
    group.add_argument(
        "--objective", metavar="NAME", help="what the parties minimise; default: the method's own"
    )
    add_settings(group, {"start_from": TRAINING["start_from"]})
    group.add_argument(
        "--rounds", type=int, metavar="R", help="exchanges between server and parties"
    )
    group.add_argument(
        "--epochs", type=int, metavar="E", help="the parties' passes over their data (local.epochs)"
    )
    group.add_argument(
        "--lr", type=float, metavar="L", help="the parties' learning rate (local.lr)"
    )
    group.add_argument(
        "--batch", type=int, metavar="B", help="the parties' samples per step (local.batch)"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the method (local.epochs=20) or of the net (net.padding=same); "
        "repeatable",
    )
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file with the same names; options override it",
    )
    add_settings(parser.add_argument_group("the answer unknown"), UNKNOWN)
    running = parser.add_argument_group("running")
    add_settings(running, {"engine": "E", **RUNNING})


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Which data, and which of it."""
    add_settings(parser.add_argument_group("data"), DATA)


def share(text: str) -> float:
    """`5%` or `0.05` as a number."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 5% or 0.05") from None


def class_list(text: str) -> list[int]:
    """`0,3,7` as numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of class numbers such as 0,3,7"
        ) from None


READERS: dict[str, Callable[[str], Any]] = {"unknown_rate": share, "known_classes": class_list}
"""Settings whose words are more than a number or a text."""


def values_from(options: argparse.Namespace, names: Sequence[str] = ()) -> dict[str, Any]:
    """The configuration file, with the options that were given laid over it."""
    values: dict[str, Any] = _read_file(options) if options.config else {}
    for name in (*RUN_OPTIONS, *names):
        given = getattr(options, name, None)
        if given is not None:
            values[name] = given
    for key in ("net", "engine"):
        if getattr(options, key) is not None:
            values = settings.merge(values, {key: {"name": getattr(options, key)}})
    return _with_settings(values, options)


def _with_settings(values: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """`--set`, and what has an option of its own, in their places; net.* are the net's options."""
    assigned = parse_assignments(options.set)
    given = dict(flat(assigned))
    for option, name in {"rounds": "rounds", **SHORT}.items():
        value = getattr(options, option)
        if value is None:
            continue
        if name in given:
            raise ConfigError(
                f"--{option} is {value} and --set {name} is {given[name]}; give one of them"
            )
        assigned = settings.merge(assigned, settings.nested(name, value))
    if options.objective is not None:
        assigned = settings.merge({"objective": {"name": options.objective}}, assigned)
    return settings.merge(values, as_values(assigned))


def check_local(options: argparse.Namespace, methods: Iterable[str]) -> None:
    """Refuse --epochs and the like for a method that has no local training to set."""
    given = [f"--{option}" for option in SHORT if getattr(options, option) is not None]
    for name in methods if given else ():
        if not hasattr(build_method(make({"method": name})), "local"):
            raise ConfigError(
                f"the method {name!r} has no settings local.*, so {', '.join(given)} cannot be "
                f"given; see ostraka list settings {name}"
            )


def _read_file(options: argparse.Namespace) -> dict[str, Any]:
    """The values of --config; a file that is meant for the other verb is
    refused with the command to type.
    """
    values, file = read_toml(options.config), options.config
    grid = [key for key in values if key in ("methods", "seeds")]
    grid += [key for key in ("data", "partition") if isinstance(values.get(key), list)]
    if options.verb == "run" and (grid or isinstance(values.get("method"), dict)):
        raise ConfigError(
            f"{file} describes a grid ({', '.join(grid) or '[method.NAME]'}), not one run; use: "
            f"ostraka compare --config {shlex.quote(str(file))}"
        )
    if options.verb == "compare" and isinstance(values.get("method"), str):
        raise ConfigError(
            f"{file} describes one run (method = {values['method']!r}), not a grid; use: "
            f"ostraka run --config {shlex.quote(str(file))}. A grid has methods = "
            f"[{values['method']!r}, ...] instead"
        )
    return values


def add_outcome_options(parser: argparse.ArgumentParser) -> None:
    """What verbs that train show, and whether they train at all."""
    group = parser.add_argument_group("showing")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="train and write nothing; show parties, steps, memory and time needed",
    )
    add_loudness(group)


def add_loudness(group: "argparse._ActionsContainer") -> None:
    """How results and progress are shown."""
    group.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    loud = group.add_mutually_exclusive_group()
    loud.add_argument(
        "-q", "--quiet", action="store_true", help="no progress: results and errors only"
    )
    loud.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="more progress: every party, with the time of day",
    )


def loudness(options: argparse.Namespace) -> int:
    """How much to tell; with --json nothing, unless --verbose asks for it."""
    from ostraka.display.progress import NORMAL, QUIET, VERBOSE

    if options.verbose:
        return VERBOSE
    return QUIET if options.quiet or options.json else NORMAL


def place(text: str) -> Path:
    """A path that names something; an empty one would mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "the path is empty; give a folder or file, such as runs/mine"
        )
    return Path(text)
