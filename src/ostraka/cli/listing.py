"""`ostraka list`: everything that has a name."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ostraka.errors import ConfigError, choices, did_you_mean
from ostraka.registry import BALLOTS, ENGINES, METHODS, NETS, OBJECTIVES, PRESETS, Registry
from ostraka.report.tables import Table

if TYPE_CHECKING:
    from ostraka.data.source import Summary
    from ostraka.data.sources import Found

NAME = "list"

EXAMPLE = """\
examples:
  ostraka list methods
  ostraka list settings fedavg
  ostraka list data --data-dir ~/datasets
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="show methods, presets, nets, data sets, partitions, engines, settings",
        description="Show what can be chosen by name.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="WHAT", help=", ".join(sorted(SHELVES)))
    parser.add_argument("name", nargs="?", metavar="METHOD", help="for settings: the method (default: fedavg)")
    parser.add_argument("--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Print one list."""
    if options.what not in SHELVES:
        hint = did_you_mean(options.what, SHELVES)
        raise ConfigError(f"there is no list of {options.what!r}.{hint} Lists: {choices(SHELVES)}")
    columns, rows = SHELVES[options.what](options)
    if rows:
        Console().print(Table(columns, rows, title=options.what).rich())
    else:
        print(f"There are no {options.what} yet.")
    return 0


Listing = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]


def _registry(registry: Registry[Any]) -> Callable[[argparse.Namespace], Listing]:
    def rows(options: argparse.Namespace) -> Listing:
        return ("name", "what it is"), [(name, first_line(registry.get(name))) for name in registry.names()]

    return rows


def _presets(options: argparse.Namespace) -> Listing:
    return ("name", "method", "what it is"), [(n, PRESETS.get(n).method, PRESETS.get(n).summary) for n in PRESETS]


def _data(options: argparse.Namespace) -> Listing:
    from ostraka.data.catalogue import summaries
    from ostraka.data.domains import USAGE
    from ostraka.data.sources import data_dirs

    rows = [(found.name, *_sizes(found, summary)) for found, summary in summaries(data_dirs(options.data_dir))]
    joined = (USAGE.partition("[")[0], "", "", "", "sets of images with the same classes, joined")
    return ("name", "sample", "classes", "train + test", "where"), [*rows, joined]


def _sizes(found: "Found", summary: "Summary | str") -> tuple[str, str, str, str]:
    """Shape of a sample, classes, training and test samples, and where they lie or why nothing is known of them."""
    where = " + ".join(found.parts) or str(found.path or PLACES.get(found.kind, "built in"))
    if isinstance(summary, str):
        return "?", "?", "?", f"{where}: {summary}"
    shape = "x".join(map(str, summary.shape))
    return shape, str(summary.classes), f"{summary.train:,} + {summary.test:,}", where


def _partitions(options: argparse.Namespace) -> Listing:
    from ostraka.data.partition import describe

    return ("partition", "rule"), describe()


def _settings(options: argparse.Namespace) -> Listing:
    name = options.name or "fedavg"
    if name in PRESETS.names():
        name = PRESETS.get(name).method
    out: list[tuple[str, ...]] = []
    _walk(METHODS.get(name)(), "", out)
    return ("setting", "default", "meaning"), out


def _walk(instance: Any, prefix: str, out: list[tuple[str, ...]]) -> None:
    """Settings of a method, with those of its objective, ballot and training below them."""
    for spec in fields(instance):
        value = getattr(instance, spec.name)
        registry = spec.metadata.get("registry")
        chosen = registry.name_of(type(value)) if registry is not None and value is not None else value
        group = is_dataclass(value) and registry is None
        out.append((prefix + spec.name, "" if group else _default(chosen), str(spec.metadata.get("doc", ""))))
        if is_dataclass(value):
            _walk(value, f"{prefix}{spec.name}.", out)


def _default(value: Any) -> str:
    """A default as it is written in TOML and on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def first_line(item: Any) -> str:
    """The first sentence of an item's docstring."""
    text = inspect.getdoc(item) or ""
    return text.split("\n")[0]


PLACES = {"bundled": "comes with ostraka", "library": "comes with scikit-learn"}
"""Where data without a path of its own lies."""

SHELVES: dict[str, Callable[[argparse.Namespace], Listing]] = {
    "methods": _registry(METHODS),
    "presets": _presets,
    "nets": _registry(NETS),
    "objectives": _registry(OBJECTIVES),
    "ballots": _registry(BALLOTS),
    "engines": _registry(ENGINES),
    "data": _data,
    "partitions": _partitions,
    "settings": _settings,
}
