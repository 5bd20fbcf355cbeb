"""Which dataclasses may cross a process, a disk or a network.

Only tensors and plain values in dicts, lists, tuples and frozen dataclasses travel. A dataclass
travels under a registered name, and only registered ones are ever rebuilt: reading a file can
create no other object.

The name is not the class's own: `@wire("card/1")` stays what it is when the class is
renamed or moved, and every file that holds one can be read. When the fields change so
that older values no longer fit, count the version up, name the older one behind it, and
say how its fields become the new ones:

    @wire("card/2", "card/1", upgrade=with_a_name)

A package of your own puts its name before it: `@wire("my-package.state/1")`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

Upgrade = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The fields of an older value to those that the class has now."""

NAME = re.compile(r"[a-z][a-z0-9.-]*/[1-9][0-9]*")


@dataclass(frozen=True)
class WireType:
    """How a value is read that was stored under one of its class's names."""

    cls: type[Any]
    upgrade: Upgrade | None = None


WIRE_TYPES: dict[str, WireType] = {}
"""By all names that are read, older ones too."""

_NAMES: dict[type[Any], str] = {}
"""The name under which a class is written."""


def wire(name: str, *older: str, upgrade: Upgrade | None = None) -> Callable[[T], T]:
    """Class decorator: let this frozen dataclass travel as `name`, "what/1",
    and be read under `older` names too.

    `upgrade` turns the fields of a value with an older name into those of this class;
    none: they are the same.
    """
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        given = name if isinstance(name, str) else getattr(name, "__name__", name)
        raise TypeError(
            f"{given!r} is no name to travel under; give one that can stay, with a version: "
            '@wire("my-package.state/1")'
        )

    def register(cls: T) -> T:
        if not (is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} must be a frozen dataclass to travel")
        for read in (name, *older):
            taken = WIRE_TYPES.get(read)
            if taken is not None and _place(taken.cls) != _place(cls):
                raise TypeError(
                    f"{read!r} is already the wire name of {_place(taken.cls)}; rename one"
                )
        WIRE_TYPES.update({read: WireType(cls, upgrade) for read in older})
        WIRE_TYPES[name] = WireType(cls)
        _NAMES[cls] = name
        return cls

    return register


def wire_name(cls: type[Any]) -> str | None:
    """The name under which values of this class are written; None: they may not travel."""
    return _NAMES.get(cls)


def _place(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
