"""Options that several verbs share, and how they lie over a configuration file."""

import argparse
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ostraka.core import settings
from ostraka.errors import ConfigError
from ostraka.runs.config import SHORT, build_method, flat, make, parse_assignments, read_toml
from ostraka.runs.variant import as_values

RUN_OPTIONS = (
    "parties",
    "known",
    "public",
    "start_from",
    "train_per_class",
    "standardise",
    "shared",
    "validation",
    "unknown_rate",
    "rate_from",
    "threshold",
    "engine",
    "workers",
    "device",
    "data_dir",
    "eval_every",
    "on_failure",
)
"""Options that carry over to the configuration under their own name."""


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """What a run can be told beside its method, data, partition and seed."""
    add_data_options(parser)
    group = parser.add_argument_group("training")
    group.add_argument(
        "--standardise",
        metavar="WHAT",
        help="inputs with mean 0 and deviation 1 by the training data: auto (default: float data, not bytes), on, off",
    )
    group.add_argument("--net", metavar="NAME", help="network (ostraka list nets); default: auto")
    group.add_argument(
        "--objective", metavar="NAME", help="what the parties minimise; default: the method's own"
    )
    group.add_argument(
        "--start-from",
        metavar="DIR",
        help="a finished run (or grid) whose model is the first; default: a random one",
    )
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
        help="a setting of the method (local.epochs=20) or of the net (net.padding=same); repeatable",
    )
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file with the same names; options override it",
    )
    group = parser.add_argument_group("the answer unknown")
    group.add_argument(
        "--unknown-rate",
        type=share,
        metavar="RATE",
        help="share of samples of known classes that may be called unknown, as 0.05 or 5%% (default)",
    )
    group.add_argument(
        "--rate-from",
        metavar="WHAT",
        help="what places the threshold for it: told (what parties tell of held-out samples), validation, public "
        "(samples of known classes only), own (the method's own threshold); default: validation if any, else told",
    )
    group.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="unknown score above which the answer is unknown, by hand",
    )
    group = parser.add_argument_group("running")
    group.add_argument(
        "--engine", metavar="E", help="pool (default: one process per core) or serial"
    )
    group.add_argument(
        "--workers", type=int, metavar="N", help="processes of the pool; default: one per core"
    )
    group.add_argument("--device", metavar="D", help="auto (default), cpu, cuda or mps")
    group.add_argument(
        "--eval-every",
        type=int,
        metavar="N",
        help="evaluate every N-th round, and the last (default 1)",
    )
    group.add_argument(
        "--on-failure",
        metavar="WHAT",
        help="when a party fails: stop (default), or drop it and go on",
    )


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Which data, and which of it."""
    group = parser.add_argument_group("data")
    group.add_argument("--parties", type=int, metavar="N", help="number of parties (default 10)")
    group.add_argument(
        "--known", type=int, metavar="N", help="open-set test: the first N classes are known"
    )
    group.add_argument(
        "--known-classes",
        type=class_list,
        metavar="A,B,...",
        help="open-set test: these classes are known",
    )
    group.add_argument(
        "--train-per-class",
        type=int,
        metavar="N",
        help="the first N training samples of each class (and domain)",
    )
    group.add_argument(
        "--public",
        metavar="P",
        help="unlabelled samples that all may see: half-test (half of the test set; figures are then from the other "
        "half), or the name or path of a data set",
    )
    group.add_argument(
        "--validation",
        type=float,
        metavar="SHARE",
        help="share of the training data kept by the server",
    )
    group.add_argument(
        "--shared",
        type=float,
        metavar="SHARE",
        help="share of the training data that all parties may use, labelled",
    )
    group.add_argument(
        "--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)"
    )


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


def values_from(options: argparse.Namespace, names: Sequence[str] = ()) -> dict[str, Any]:
    """The configuration file, with the options that were given laid over it."""
    values: dict[str, Any] = _read_file(options) if options.config else {}
    for name in (*RUN_OPTIONS, *names):
        given = getattr(options, name, None)
        if given is not None:
            values[name] = given
    if options.known_classes is not None:
        values["known_classes"] = options.known_classes
    if options.net is not None:
        values = settings.merge(values, {"net": {"name": options.net}})
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
                f"the method {name!r} has no settings local.*, so {', '.join(given)} cannot be given; see ostraka list "
                f"settings {name}"
            )


def _read_file(options: argparse.Namespace) -> dict[str, Any]:
    """The values of --config; a file that is meant for the other verb is refused with the command to type."""
    values, file = read_toml(options.config), options.config
    grid = [key for key in values if key in ("methods", "seeds")]
    grid += [key for key in ("data", "partition") if isinstance(values.get(key), list)]
    if options.verb == "run" and (grid or isinstance(values.get("method"), dict)):
        raise ConfigError(
            f"{file} describes a grid ({', '.join(grid) or '[method.NAME]'}), not one run; use: ostraka compare "
            f"--config {shlex.quote(str(file))}"
        )
    if options.verb == "compare" and isinstance(values.get("method"), str):
        raise ConfigError(
            f"{file} describes one run (method = {values['method']!r}), not a grid; use: ostraka run --config "
            f"{shlex.quote(str(file))}. A grid has methods = [{values['method']!r}, ...] instead"
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
