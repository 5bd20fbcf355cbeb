"""The settings of everything that has some: values, what is allowed,
what they mean, and how they are set.
"""

import math
from collections.abc import Callable, Iterator
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

NAMED: tuple[Registry[Any], ...] = (
    METHODS, PRESETS, OBJECTIVES, BALLOTS, SELECTORS, FILTERS, NETS, ENGINES,
)  # fmt: skip
"""What has settings and a name."""

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
    found = [
        owner
        for kind in (_method, _objective, _ballot, _selector, _filter, _net, _engine)
        if (owner := kind(name)) is not None
    ]
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
        known = [n for registry in NAMED for n in (*registry, *registry.aliases())]
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


def _objective(name: str) -> Owner | None:
    return _listed(OBJECTIVES, name, "--objective {}", "objective.NAME", "set.objective")


def _ballot(name: str) -> Owner | None:
    return _listed(BALLOTS, name, "--set ballot={}", "ballot.NAME", "set.ballot")


def _selector(name: str) -> Owner | None:
    return _listed(SELECTORS, name, "--set select={}", "select.NAME", "set.select")


def _filter(name: str) -> Owner | None:
    return _listed(
        FILTERS, name, "--set select.filter={}", "select.filter.NAME", "set.select.filter"
    )


def _engine(name: str) -> Owner | None:
    return _listed(ENGINES, name, "--engine {}", "engine.NAME", "engine.options")


def _net(name: str) -> Owner | None:
    if name not in NETS:
        return None
    options = net_options(NETS.canonical(name))
    first = next((spec.name for spec in fields(options)), "NAME")
    return _listed(NETS, name, "--net {}", f"net.{first}", "net.options", options)


def _listed(
    registry: Registry[Any],
    name: str,
    choice: str,
    setting: str,
    section: str,
    make: Callable[[], Any] | None = None,
) -> Owner | None:
    """What `registry` has under the name, by default with its own settings as they are."""
    if name not in registry:
        return None
    own = registry.canonical(name)
    usage = (
        f"chosen with {choice.format(own)}, set with --set {setting}=VALUE, "
        f"or in a file under [{section}]"
    )
    return Owner(registry.kind, own, (make or registry.get(own))(), usage)


def _plain(value: Any) -> Any:
    """A value as JSON has it; infinity has no number there."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    """A value as it is written in TOML and on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
