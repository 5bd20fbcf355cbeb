"""`ostraka list`: everything that has a name."""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ostraka.display.tables import Table
from ostraka.errors import ConfigError, choices, did_you_mean
from ostraka.registry import PRESETS, Registry, all_registries, summary_of

if TYPE_CHECKING:
    from ostraka.data.sources import Found
    from ostraka.data.sources.source import Summary

NAME = "list"

EXAMPLE = """\
examples:
  ostraka list methods
  ostraka list settings fedov-paper
  ostraka list settings simple-cnn
  ostraka list data --data-dir ~/datasets --json
settings takes a method, preset, objective, ballot, selector, filter or net, or
run for those of a run itself.
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="show methods, presets, nets, data sets, partitions, engines, settings",
        description="Show what can be chosen by name.",
        epilog=EXAMPLE,
    )
    parser.add_argument("what", metavar="WHAT", help=", ".join(sorted(SHELVES)))
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="for settings: whose (default: fedavg)"
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Print one list."""
    if options.what not in SHELVES:
        hint = did_you_mean(options.what, SHELVES)
        raise ConfigError(f"there is no list of {options.what!r}.{hint} Lists: {choices(SHELVES)}")
    if options.name is not None and options.what != "settings":
        raise ConfigError(f"the list of {options.what} takes no name; {options.name!r} was given")
    if options.what == "settings":
        return _settings(options)
    columns, rows = SHELVES[options.what](options)
    if options.json:
        keys = [column.replace(" ", "_") for column in columns]
        print(json.dumps({options.what: [dict(zip(keys, row, strict=True)) for row in rows]}))
    elif rows:
        Console().print(Table(columns, rows, title=options.what).rich())
    else:
        print(f"There are no {options.what} yet.")
    return 0


def _settings(options: argparse.Namespace) -> int:
    from ostraka.cli.listing_settings import find_settings

    found = find_settings(options.name or "fedavg")
    if options.json:
        print(json.dumps({"settings": [one.record() for one in found]}))
        return 0
    for one in found:
        Console().print(one.table().rich())
    if len(found) > 1:
        print(
            f"{options.name} is the name of several things: "
            f"{', '.join(one.kind for one in found)}. All are shown."
        )
    return 0


Listing = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]


def _registry(registry: Registry[Any]) -> Callable[[argparse.Namespace], Listing]:
    def rows(options: argparse.Namespace) -> Listing:
        return ("name", "summary"), [
            (name, summary_of(item)) for name, item in registry.working().items()
        ]

    return rows


def _presets(options: argparse.Namespace) -> Listing:
    rows = [(name, preset.method, preset.summary) for name, preset in PRESETS.working().items()]
    return ("name", "method", "summary"), rows


def _data(options: argparse.Namespace) -> Listing:
    from ostraka.data.sources import data_dirs
    from ostraka.data.sources.catalogue import summaries
    from ostraka.data.sources.domains import USAGE

    rows = [
        (found.name, *_sizes(found, summary))
        for found, summary in summaries(data_dirs(options.data_dir))
    ]
    joined = (USAGE.partition("[")[0], "", "", "", "sets of images with the same classes, joined")
    return ("name", "sample", "classes", "train + test", "where"), [*rows, joined]


def _sizes(found: "Found", summary: "Summary | str") -> tuple[str, str, str, str]:
    """Shape of a sample, classes, training and test samples,
    and where they lie or why nothing is known of them.
    """
    where = " + ".join(found.parts) or str(found.path or PLACES.get(found.kind, "built in"))
    if isinstance(summary, str):
        return "?", "?", "?", f"{where}: {summary}"
    shape = "x".join(map(str, summary.shape))
    return shape, str(summary.classes), f"{summary.train:,} + {summary.test:,}", where


def _partitions(options: argparse.Namespace) -> Listing:
    from ostraka.data.partitions.spec import describe

    return ("partition", "rule"), describe()


PLACES = {"bundled": "comes with ostraka", "library": "comes with scikit-learn"}
"""Where data without a path of its own lies."""

SHELVES: dict[str, Callable[[argparse.Namespace], Any]] = {
    **{f"{kind.kind}s": _registry(kind) for kind in all_registries()},
    "presets": _presets,
    "data": _data,
    "partitions": _partitions,
    "settings": _settings,
}
