"""`ostraka list`: everything that has a name, and the settings of what has some."""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from rich.console import Console

from ostraka.cli.options import DATA_DIR, JSON, option
from ostraka.core import settings
from ostraka.core.values import allowed
from ostraka.display.tables import Table
from ostraka.errors import ConfigError, choices, did_you_mean
from ostraka.registry import (
    BALLOTS,
    ENGINES,
    FILTERS,
    METHODS,
    NETS,
    OBJECTIVES,
    PRESETS,
    SELECTORS,
    Registry,
    all_registries,
    summary_of,
)
from ostraka.runs.config import Config, build_method

if TYPE_CHECKING:
    from ostraka.data.sources import Found
    from ostraka.data.sources.source import Summary

NAME = "list"
HELP = "show methods, presets, nets, data sets, partitions, engines, settings"
DESCRIPTION = "Show what can be chosen by name."
EXAMPLE = """\
examples:
  ostraka list methods
  ostraka list settings fedov-paper
  ostraka list settings simple-cnn
  ostraka list data --data-dir ~/datasets --json
settings takes a method, preset, objective, ballot, selector, filter or net, or
run for those of a run itself.
"""


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


RUN = "run"
"""The name under which the settings of a run itself are listed."""

COLUMNS = ("setting", "value", "allowed", "meaning")


@dataclass(frozen=True)
class Owner:
    """What has settings: a method, a preset, an objective, a ballot, a net, an engine, or a run."""

    kind: str
    name: str
    instance: Any
    usage: str
    """How a setting of it is given."""

    def rows(self) -> Iterator[tuple[str, Any, str, str]]:
        """Name, value, what is allowed and meaning of every setting."""
        for name, spec, value in settings.walk(self.instance):
            registry: Registry[Any] | None = spec.metadata.get("registry")
            doc = str(spec.metadata.get("doc", ""))
            if registry is not None:
                shown = None if value is None else registry.name_of(type(value))
                yield name, shown, f"ostraka list {registry.kind}s", doc
            elif is_dataclass(value):
                yield name, "", "", doc
            else:
                yield name, _plain(value), allowed(self._hint(name), spec.metadata.get("span")), doc

    def _hint(self, dotted: str) -> Any:
        owner, (*path, last) = self.instance, dotted.split(".")
        for name in path:
            owner = getattr(owner, name)
        return get_type_hints(type(owner))[last]

    def table(self) -> Table:
        """For the terminal."""
        rows = [(name, _text(value), may, doc) for name, value, may, doc in self.rows()]
        called = "a run" if self.kind == RUN else f"the {self.kind} {self.name}"
        return Table(
            COLUMNS, rows, f"settings of {called}", (self.usage if rows else f"{called} has none",)
        )

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "usage": self.usage,
            "settings": [dict(zip(COLUMNS, row, strict=True)) for row in self.rows()],
        }


def find_settings(name: str) -> list[Owner]:
    """Everything called `name` that has settings.

    A preset's are those that it gives to its method.
    """
    every = (_method(name), *(_listed(registry, name) for registry in HOW))
    found = [owner for owner in every if owner is not None]
    if name == RUN:
        usage = "set in a file, by ostraka run's options, or in ostraka.run(...)"
        found.append(Owner(RUN, RUN, Config(), usage))
    if not found:
        kinds: tuple[Registry[Any], ...] = (METHODS, PRESETS, *HOW)
        known = [n for registry in kinds for n in (*registry, *registry.aliases())]
        raise ConfigError(
            f"nothing with settings is called {name!r}.{did_you_mean(name, [*known, RUN])} Give a "
            "method, preset, objective, ballot, selector, filter, net or engine (ostraka list "
            "methods, ...), or "
            f"{RUN} for the settings of a run"
        )
    return found


def _method(name: str) -> Owner | None:
    registry: Registry[Any] = PRESETS if name in PRESETS else METHODS
    if name not in registry:
        return None
    usage = "set with --set NAME=VALUE, or in a file under [set]"
    return Owner(registry.kind, registry.canonical(name), build_method(Config(method=name)), usage)


HOW = {
    OBJECTIVES: ("--objective", "objective", "set.objective"),
    BALLOTS: ("--set ballot=", "ballot", "set.ballot"),
    SELECTORS: ("--set select=", "select", "set.select"),
    FILTERS: ("--set select.filter=", "select.filter", "set.select.filter"),
    NETS: ("--net", "net", "net.options"),
    ENGINES: ("--engine", "engine", "engine.options"),
}
"""How one is chosen, what its settings are called behind, and their section in a file."""


def _listed(registry: Registry[Any], name: str) -> Owner | None:
    """What `registry` has under the name, with its own settings as they are."""
    if name not in registry:
        return None
    from ostraka.core.net import net_options

    own, (choice, setting, section) = registry.canonical(name), HOW[registry]
    made = (net_options(own) if registry is NETS else registry.get(own))()
    first = next((spec.name for spec in fields(made)), "NAME") if registry is NETS else "NAME"
    chosen = f"{choice}{'' if choice.endswith('=') else ' '}{own}"
    usage = (
        f"chosen with {chosen}, set with --set {setting}.{first}=VALUE, "
        f"or in a file under [{section}]"
    )
    return Owner(registry.kind, own, made, usage)


def _plain(value: Any) -> Any:
    """A value as JSON has it; infinity has no number there."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    """A value as it is written in TOML and on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _settings(options: argparse.Namespace) -> int:
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


PLACES = {"bundled": "comes with ostraka", "library": "comes with scikit-learn"}
"""Where data without a path of its own lies."""

SHELVES: dict[str, Callable[[argparse.Namespace], Any]] = {
    **{f"{kind.kind}s": _registry(kind) for kind in all_registries()},
    "presets": _presets,
    "data": _data,
    "partitions": _partitions,
    "settings": _settings,
}

OPTIONS = (
    option("what WHAT", ", ".join(sorted(SHELVES))),
    option("name NAME", "for settings: whose (default: fedavg)", nargs="?"),
    DATA_DIR,
    JSON,
)
