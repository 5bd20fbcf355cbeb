"""The settings of everything that has some: values, what is allowed,
what they mean, and how they are set.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from ostraka.core import settings
from ostraka.core.net import net_options
from ostraka.core.values import allowed
from ostraka.display.tables import Table
from ostraka.errors import ConfigError, did_you_mean
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
)
from ostraka.runs.config import Config, build_method

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
        title = (
            "settings of a run" if self.kind == RUN else f"settings of the {self.kind} {self.name}"
        )
        return Table(
            COLUMNS,
            rows,
            title,
            (self.usage,) if rows else (f"the {self.kind} {self.name} has none",),
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
        found.append(
            Owner(
                RUN,
                RUN,
                Config(),
                "set in a file, by ostraka run's options, or in ostraka.run(...)",
            )
        )
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
