"""Which dataclasses may cross a process, a disk or a network.

Only tensors and plain values in dicts, lists, tuples and frozen dataclasses travel. A dataclass
travels under a registered name, and only registered ones are ever rebuilt: reading a file can
create no other object.

The name is not the class's own: `@wire("card/1")` stays what it is when the class is
renamed or moved. When the fields change, count the version up: a file that holds an earlier
one is then refused by that name. A package of your own puts its name before it:
`@wire("my-package.state/1")`.
"""

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

NAME = re.compile(r"[a-z][a-z0-9.-]*/[1-9][0-9]*")


WIRE_TYPES: dict[str, type[Any]] = {}
"""By the names under which they are written and read."""

_NAMES: dict[type[Any], str] = {}
"""The name under which a class is written."""


def wire(name: str) -> Callable[[T], T]:
    """Class decorator: let this frozen dataclass travel as `name`, "what/1"."""
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        given = name if isinstance(name, str) else getattr(name, "__name__", name)
        raise TypeError(
            f"{given!r} is no name to travel under; give one that can stay, with a version: "
            '@wire("my-package.state/1")'
        )

    def register(cls: T) -> T:
        if not (is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} must be a frozen dataclass to travel")
        taken = WIRE_TYPES.get(name)
        if taken is not None and _place(taken) != _place(cls):
            raise TypeError(f"{name!r} is already the wire name of {_place(taken)}; rename one")
        WIRE_TYPES[name] = cls
        _NAMES[cls] = name
        return cls

    return register


def wire_name(cls: type[Any]) -> str | None:
    """The name under which values of this class are written; None: they may not travel."""
    return _NAMES.get(cls)


def _place(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
