"""Names of everything a user can choose, built in or from a plug-in.

A plug-in is an installed package with an entry point, for example in its `pyproject.toml`:

    [project.entry-points."ostraka.methods"]
    my-method = "my_package.my_module:MyMethod"

Plug-ins load exactly as built-ins do: on first use, by name. Standard library only.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from ostraka.errors import ConfigError, choices, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Preset:
    """A method plus settings under one name."""

    method: str
    settings: dict[str, Any]
    summary: str


class Registry(Generic[T]):
    """Names of one kind. `package` is imported on first use and registers the built-ins."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.group = f"ostraka.{kind.replace(' ', '_')}s"
        self._package = package
        self._items: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._plugins: dict[str, EntryPoint] | None = None

    def add(self, name: str, *aliases: str) -> Callable[[T], T]:
        """Decorator that registers a class or function under `name` and its aliases."""

        def register(item: T) -> T:
            taken = self._items.get(name)
            if taken is not None and taken is not item:
                raise ConfigError(f"two {self.kind}s are called {name!r}: {taken!r} and {item!r}; rename one of them")
            self._items[name] = item
            self._aliases.update(dict.fromkeys(aliases, name))
            return item

        return register

    def remove(self, name: str) -> None:
        """Forget a name; for tests and notebooks that register throw-away items."""
        self._items.pop(name, None)

    def canonical(self, name: str) -> str:
        """The registered name behind `name` or an alias of it, or a ConfigError that suggests one."""
        self._load()
        name = self._aliases.get(name, name)
        if name in self._items or name in (self._plugins or {}):
            return name
        hint = did_you_mean(name, self.names()) or did_you_mean(name, self._aliases)
        raise ConfigError(f"unknown {self.kind} {name!r}.{hint} Known {self.kind}s: {choices(self.names())}")

    def get(self, name: str) -> T:
        """The item called `name`."""
        name = self.canonical(name)
        if name not in self._items:
            plugin = (self._plugins or {})[name]
            try:
                self._items[name] = plugin.load()
            except Exception as error:
                raise ConfigError(
                    f"the plug-in {self.kind} {name!r} ({plugin.value}) cannot be loaded: {error!r}; mend or remove it"
                ) from error
        return self._items[name]

    def working(self) -> dict[str, T]:
        """Every item that can be loaded, by name; a broken plug-in is passed over with a warning that names it."""
        found: dict[str, T] = {}
        for name in self.names():
            try:
                found[name] = self.get(name)
            except ConfigError as error:
                warnings.warn(str(error), stacklevel=2)
        return found

    def name_of(self, item: T) -> str:
        """The name under which `item` is registered."""
        self._load()
        for name, own in self._items.items():  # what is loaded first: a broken plug-in must not hide it
            if own is item:
                return name
        for name in self.names():
            if self.get(name) is item:
                return name
        raise ConfigError(f"{item!r} is not registered as a {self.kind}; add it with registry.{self.kind.upper()}S.add")

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
            given = {e.name: e for e in entry_points(group=self.group)}
            for name in sorted(given.keys() & {*self._items, *self._aliases}):
                warnings.warn(
                    f"the plug-in {self.kind} {name!r} ({given.pop(name).value}) is not used: {name!r} is built in; "
                    "give the plug-in another name",
                    stacklevel=2,
                )
            self._plugins = given


METHODS: Registry[Any] = Registry("method", "ostraka.methods")
PRESETS: Registry[Preset] = Registry("preset", "ostraka.methods")
OBJECTIVES: Registry[Any] = Registry("objective", "ostraka.objectives")
NETS: Registry[Any] = Registry("net", "ostraka.nets")
SOURCES: Registry[Any] = Registry("source", "ostraka.data")
PARTITIONS: Registry[Any] = Registry("partition", "ostraka.data")
AUGMENTATIONS: Registry[Any] = Registry("augmentation", "ostraka.data")
BALLOTS: Registry[Any] = Registry("ballot", "ostraka.voting")
ENGINES: Registry[Any] = Registry("engine", "ostraka.engines")
