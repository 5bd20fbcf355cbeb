"""Options that several verbs share, and how they lie over a configuration file."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, fields
from functools import partial
from math import inf
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
    with_dots,
)
from ostraka.runs.variant import as_values

Adding = Callable[["argparse._ActionsContainer"], object]
"""What adds one or more options to a parser, or to a group in it: an entry of a verb's OPTIONS."""


def option(words: str, help: str, read: Callable[[str], Any] | None = None, **more: Any) -> Adding:
    """An option as its help shows it, such as `--out FILE`; one without a value is a switch."""
    *flags, last = words.split()
    if last.startswith("-") or not flags:
        flags.append(last)
    else:
        more["metavar"] = last
    if read is not None:
        more["type"] = read
    if flags[0].startswith("-") and not more:
        more["action"] = "store_true"
    return lambda group: group.add_argument(*flags, help=help, **more)


def together(*options: Adding) -> Adding:
    """Several, one after the other."""
    return lambda group: [add(group) for add in options]


def titled(title: str, *options: Adding) -> Adding:
    """A group of options, with a title in the help."""
    return lambda parser: together(*options)(parser.add_argument_group(title))


def either(*options: Adding) -> Adding:
    """Options of which one at most can be given."""
    return lambda group: together(*options)(group.add_mutually_exclusive_group())


def place(text: str) -> Path:
    """A path that names something; an empty one would mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "the path is empty; give a folder or file, such as runs/mine"
        )
    return Path(text)


def share(text: str) -> float:
    """`5%` or `0.05` as a number."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 5% or 0.05") from None


def numbers(wrong: str, between: str = ",", least: float = -inf) -> Callable[[str], list[int]]:
    """What reads `0,3,7` as numbers, or says that it is `wrong`."""

    def read(text: str) -> list[int]:
        with suppress(ValueError):
            found = [int(part) for part in re.split(between, text)]
            if min(found) >= least:
                return found
        raise argparse.ArgumentTypeError(f"{text!r} is {wrong}")

    return read


READERS: dict[str, Callable[[str], Any]] = {
    "unknown_rate": share,
    "known_classes": numbers("not a list of class numbers such as 0,3,7"),
}
"""Settings whose words are more than a number or a text."""

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

TRAINING = {"standardise": "WHAT", "augment": "WHAT"}
START = {"start_from": "DIR"}
UNKNOWN = {"unknown_rate": "RATE", "rate_from": "WHAT", "threshold": "T", "look": "WHAT"}
RUNNING = {
    "workers": "N",
    "device": "D",
    "eval_every": "N",
    "on_failure": "WHAT",
    "min_parties": "N",
}

RUN_OPTIONS = (*DATA, *TRAINING, *START, *UNKNOWN, *RUNNING)
"""Options that carry over to the configuration under their own name."""


def flag_of(name: str) -> str:
    """The option that gives a setting."""
    return "--" + name.replace("_", "-")


def given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those of these options that were given, by their names."""
    values = vars(options)
    return {name: values[name] for name in names if values.get(name) is not None}


def add_settings(group: "argparse._ActionsContainer", metavars: Mapping[str, str]) -> None:
    """An option for each of these settings of a run: type, default and help are `Config`'s."""
    hints = get_type_hints(Config)
    specs = {spec.name: spec for spec in fields(Config)}
    for name, metavar in metavars.items():
        read = READERS.get(name) or _reader(hints[name])
        group.add_argument(flag_of(name), type=read, metavar=metavar, help=help_of(specs[name]))


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


SETTING = option(
    "--set NAME=VALUE",
    "a setting of the method (local.epochs=20) or of the net (net.padding=same); repeatable",
    action="append",
    default=[],
)
NET = option("--net NAME", "network (ostraka list nets); default: auto")
DATA_DIR = option("--data-dir DIR", "folders with data sets (also: OSTRAKA_DATA)")
JSON = option("--json", "print one JSON object instead of tables")
NO_PROGRESS = option("-q --quiet", "no progress: results and errors only")
SEED = partial(add_settings, metavars={"seed": "S"})

add_data_options = titled("data", partial(add_settings, metavars=DATA))

add_run_options = together(
    add_data_options,
    titled(
        "training",
        partial(add_settings, metavars=TRAINING),
        NET,
        option("--objective NAME", "what the parties minimise; default: the method's own"),
        partial(add_settings, metavars=START),
        option("--rounds R", "exchanges between server and parties", int),
        option("--epochs E", "the parties' passes over their data (local.epochs)", int),
        option("--lr L", "the parties' learning rate (local.lr)", float),
        option("--batch B", "the parties' samples per step (local.batch)", int),
        SETTING,
        option("--config FILE", "TOML file with the same names; options override it", Path),
    ),
    titled("the answer unknown", partial(add_settings, metavars=UNKNOWN)),
    titled("running", partial(add_settings, metavars={"engine": "E", **RUNNING})),
)
"""What a run can be told beside its method, data, partition and seed."""

add_loudness = together(
    JSON,
    either(NO_PROGRESS, option("-v --verbose", "more progress: every party, with the time of day")),
)
"""How results and progress are shown."""

add_outcome_options = titled(
    "showing",
    option("--dry-run", "train and write nothing; show parties, steps, memory and time needed"),
    add_loudness,
)
"""What verbs that train show, and whether they train at all."""


def values_from(options: argparse.Namespace, names: Iterable[str] = ()) -> dict[str, Any]:
    """The configuration file, with the options that were given laid over it."""
    values = _in_set(_read_file(options), options.config) if options.config else {}
    values |= given(options, (*RUN_OPTIONS, *names))
    _check_threshold(options, values)
    for key, name in given(options, ("net", "engine")).items():
        values = settings.merge(values, {key: {"name": name}})
    return _with_settings(values, options)


OWN_OPTIONS = {"rounds": "rounds", **SHORT, "objective": "objective"}
"""Settings of the method that have an option of their own, and their names after --set."""


def _in_set(values: dict[str, Any], file: Path) -> dict[str, Any]:
    """The values of a file; what it gives under the name of an option (`epochs`) is in `set`."""
    own = {name: values.pop(short) for short, name in OWN_OPTIONS.items() if short in values}
    inner = values.get("set", {})
    for name, value in own.items() if isinstance(inner, Mapping) else ():
        twice = {key: held for key, held in flat(with_dots(inner)) if key == name}
        if twice:
            raise ConfigError(
                f"{file} has {name.rpartition('.')[2]} = {value} and {name} = {twice[name]} under "
                "[set]; give one of them"
            )
        values["set"] = inner = settings.merge(inner, settings.nested(name, value))
    return values


def _with_settings(values: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """`--set`, and what has an option of its own, in their places; net.* are the net's options."""
    assigned = parse_assignments(options.set)
    told, own = dict(flat(assigned)), {"rounds": "rounds", **SHORT}
    for short, value in given(options, own).items():
        if own[short] in told:
            raise ConfigError(
                f"--{short} is {value} and --set {own[short]} is {told[own[short]]}; give one of "
                "them"
            )
        assigned = settings.merge(assigned, settings.nested(own[short], value))
    if options.objective is not None:
        twice = {"objective", "objective.name"} & told.keys()
        if twice:
            raise ConfigError(
                f"--objective is {options.objective} and --set {min(twice)} is "
                f"{told[min(twice)]}; give one of them"
            )
        assigned = settings.merge({"objective": {"name": options.objective}}, assigned)
    return settings.merge(values, as_values(assigned))


def _check_threshold(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """Refuse a threshold that is set by hand beside what would place it."""
    told = given(options, ("unknown_rate", "rate_from"))
    rates = {flag_of(name): value for name, value in told.items()}
    if rates and values.get("threshold") is not None:
        shown = " and ".join(f"{flag} is {value}" for flag, value in rates.items())
        raise ConfigError(
            f"the threshold is {values['threshold']}, set by hand, and {shown}, which would place "
            f"it. Give either --threshold or {' and '.join(rates)}"
        )


def check_local(options: argparse.Namespace, methods: Iterable[str]) -> None:
    """Refuse --epochs and the like for a method that has no local training to set."""
    told = [flag_of(name) for name in given(options, SHORT)]
    for name in methods if told else ():
        if not hasattr(build_method(make({"method": name})), "local"):
            raise ConfigError(
                f"the method {name!r} has no settings local.*, so {', '.join(told)} cannot be "
                f"given; see ostraka list settings {name}"
            )


def _read_file(options: argparse.Namespace) -> dict[str, Any]:
    """The values of --config; one for the other verb is refused with the command to type."""
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


def loudness(options: argparse.Namespace) -> int:
    """How much to tell; with --json nothing, unless --verbose asks for it."""
    from ostraka.display.progress import NORMAL, QUIET, VERBOSE

    if options.verbose:
        return VERBOSE
    return QUIET if options.quiet or options.json else NORMAL
