"""Names of everything a user can choose, built in or from a plug-in.

A plug-in is an installed package with an entry point, for example in its `pyproject.toml`:

    [project.entry-points."ostraka.methods"]
    my-method = "my_package.my_module:MyMethod"

Plug-ins load exactly as built-ins do: on first use, by name. One that cannot be loaded is an error
only for who asks for it; everything else goes on without it. Standard library only.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import getdoc
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from ostraka.errors import ConfigError, PluginWarning, choices, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Preset:
    """A method plus settings under one name."""

    method: str
    settings: dict[str, Any]
    summary: str


def summary_of(item: object) -> str:
    """What something is, in one line: the first paragraph of its docstring."""
    return " ".join((getdoc(item) or "").partition("\n\n")[0].split())


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that what they register is there:
    a new one needs no list to stand in.
    """
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")


class Registry(Generic[T]):
    """Names of one kind. `package` is imported on first use and registers the built-ins.

    `base` ("module:Class") is what a plug-in's class must inherit from,
    or its object be an instance of.
    """

    def __init__(self, kind: str, package: str, base: str = "") -> None:
        self.kind = kind
        self.group = f"ostraka.{kind.replace(' ', '_')}s"
        self._package = package
        self._base = base
        self._items: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._plugins: dict[str, EntryPoint] | None = None
        self._beside: Registry[Any] | None = None

    def stands_beside(self, other: "Registry[Any]") -> None:
        """Say that a user chooses from both by one name,
        so that no plug-in may take a built-in name of either.
        """
        self._beside, other._beside = other, self

    def add(self, name: str, *aliases: str) -> Callable[[T], T]:
        """Decorator that registers a class or function under `name` and its aliases."""

        def register(item: T) -> T:
            taken = self._items.get(name)
            if taken is not None and taken is not item:
                raise ConfigError(
                    f"two {self.kind}s are called {name!r}: {taken!r} and "
                    f"{item!r}; rename one of them"
                )
            self._items[name] = item
            self._aliases.update(dict.fromkeys(aliases, name))
            return item

        return register

    def remove(self, name: str) -> None:
        """Forget a name; for tests and notebooks that register throw-away items."""
        self._items.pop(name, None)

    def canonical(self, name: str) -> str:
        """The registered name behind `name` or an alias of it,
        or a ConfigError that suggests one.
        """
        own = self._own(name)
        if own is None:
            raise unknown(name, self)
        return own

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._own(name) is not None

    def _own(self, name: str) -> str | None:
        """The registered name of what is called so; one that differs in case alone is called so
        too, as names of data sets are."""
        names = dict.fromkeys(self.names())
        known = {one: one for one in names} | {a: n for a, n in self._aliases.items() if n in names}
        alike = (own for spelt, own in known.items() if _folded(spelt) == _folded(name))
        return known.get(name) or next(alike, None)

    def get(self, name: str) -> T:
        """The item called `name`; a class that lacks a function of its kind is refused."""
        name = self.canonical(name)
        found = self._items[name] if name in self._items else self._loaded(name)
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        if missing:
            raise ConfigError(
                f"the {self.kind} {name!r} lacks {', '.join(missing)}, which every {self.kind} "
                f"must define. Add {'them' if missing[1:] else 'it'} to its class"
            )
        self._items[name] = found
        return found

    def _loaded(self, name: str) -> T:
        """The plug-in called `name`."""
        plugin = (self._plugins or {})[name]
        try:
            item: T = plugin.load()
            self._check_kind(item)
        except Exception as error:
            raise ConfigError(
                f"the plug-in {self.kind} {name!r} ({_origin(plugin)}) cannot be loaded: "
                f"{error!r}; fix or remove it"
            ) from error
        return item

    def working(self) -> dict[str, T]:
        """Every item that can be loaded, by name.

        A broken plug-in is passed over with a warning that names it.
        """
        for reason in self.broken():
            warnings.warn(reason, PluginWarning, stacklevel=2)
        return {name: self._items[name] for name in self.names() if name in self._items}

    def broken(self) -> list[str]:
        """What is wrong with each plug-in that cannot be loaded."""
        reasons = []
        for name in self.names():
            try:
                self.get(name)
            except ConfigError as error:
                reasons.append(str(error))
        return reasons

    def name_of(self, item: T) -> str:
        """The name under which `item` is registered."""
        self._load()
        for (
            name,
            own,
        ) in self._items.items():  # what is loaded first: a broken plug-in must not hide it
            if own is item:
                return name
        for name, own in self.working().items():
            if own is item:
                return name
        raise ConfigError(
            f"{item!r} is not registered as a {self.kind}; add it with "
            f"registry.{self.kind.upper()}S.add"
        )

    def names(self) -> list[str]:
        """All names, sorted; aliases are left out."""
        self._load()
        return sorted({*self._items, *(self._plugins or {})})

    def aliases(self) -> dict[str, str]:
        """Alias to name."""
        self._load()
        return dict(self._aliases)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _load(self) -> None:
        if self._plugins is None:
            self._plugins = {}  # set first: the package's own modules register while it is imported
            import_module(self._package)
            found: dict[str, EntryPoint] = {}
            for plugin in sorted(entry_points(group=self.group), key=lambda e: (e.name, e.value)):
                name = plugin.name
                taken = (
                    "built in"
                    if name in {*self._items, *self._aliases}
                    else self._taken_beside(name)
                )
                if name in found and found[name].value != plugin.value:
                    taken = f"also {_origin(found[name])}"
                if taken is None:
                    found[name] = plugin
                    continue
                warnings.warn(
                    f"the plug-in {self.kind} {name!r} ({_origin(plugin)}) is not used: {name!r} "
                    f"is {taken}; give the plug-in another name",
                    PluginWarning,
                    stacklevel=2,
                )
            self._plugins = found

    def _taken_beside(self, name: str) -> str | None:
        """What a name is among those that stand beside these; None: nothing that is built in."""
        other = self._beside
        if (
            other is None
            or name in (other._plugins or {})
            or name not in {*other._items, *other._aliases}
        ):
            return None
        return f"a built-in {other.kind}"

    def _check_kind(self, item: Any) -> None:
        """Refuse a plug-in of another kind, before something in the
        middle of a run stumbles over it.
        """
        if not self._base:
            return
        module, _, name = self._base.partition(":")
        base = getattr(import_module(module), name)
        if not (issubclass(item, base) if isinstance(item, type) else isinstance(item, base)):
            raise TypeError(f"{item!r} is no {name} ({module})")


def _folded(name: str) -> str:
    """A name without regard to case, and with hyphens."""
    return name.casefold().replace("_", "-")


def unknown(name: str, *registries: Registry[Any]) -> ConfigError:
    """What to say of a name that none of the registries has, the first of which it should be in."""
    kind = registries[0].kind
    names = [known for registry in registries for known in registry]
    aliases = [alias for registry in registries for alias in registry.aliases()]
    lists = " and ".join(f"ostraka list {registry.kind}s" for registry in registries)
    return ConfigError(
        f"unknown {kind} {name!r}.{did_you_mean(name, [*names, *aliases])} Known {kind}s: "
        f"{choices(names, name)} ({lists})"
    )


def _origin(plugin: EntryPoint) -> str:
    """Where a plug-in comes from: its entry point, and the package if that is known."""
    return (
        f"{plugin.value} of the package {plugin.dist.name}"
        if plugin.dist is not None
        else plugin.value
    )


def all_registries() -> tuple[Registry[Any], ...]:
    """Every registry there is."""
    return (
        METHODS,
        PRESETS,
        OBJECTIVES,
        NETS,
        SOURCES,
        PARTITIONS,
        AUGMENTATIONS,
        BALLOTS,
        SELECTORS,
        FILTERS,
        ENGINES,
    )


METHODS: Registry[Any] = Registry("method", "ostraka.methods", "ostraka.core.method:Method")
PRESETS: Registry[Preset] = Registry("preset", "ostraka.methods", "ostraka.registry:Preset")
OBJECTIVES: Registry[Any] = Registry(
    "objective", "ostraka.objectives", "ostraka.core.objective:Objective"
)
NETS: Registry[Any] = Registry("net", "ostraka.nets", "collections.abc:Callable")
SOURCES: Registry[Any] = Registry(
    "source", "ostraka.data.sources", "ostraka.data.sources.source:Source"
)
PARTITIONS: Registry[Any] = Registry(
    "partition", "ostraka.data.partitions", "ostraka.data.partitions.rule:Rule"
)
AUGMENTATIONS: Registry[Any] = Registry(
    "augmentation", "ostraka.data.augment", "ostraka.core.augmentation:Augmentation"
)
BALLOTS: Registry[Any] = Registry("ballot", "ostraka.voting", "ostraka.voting.ballots:Ballot")
SELECTORS: Registry[Any] = Registry(
    "selector", "ostraka.voting", "ostraka.voting.selectors:Selector"
)
FILTERS: Registry[Any] = Registry(
    "filter", "ostraka.voting", "ostraka.voting.outliers:OutlierFilter"
)
ENGINES: Registry[Any] = Registry("engine", "ostraka.engines", "ostraka.engines.base:Engine")

METHODS.stands_beside(PRESETS)
