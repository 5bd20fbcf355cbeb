"""Which dataclasses may cross a process, a disk or a network.

Only tensors and plain values in dicts, lists, tuples and frozen dataclasses travel. A dataclass travels under a
registered name, and only registered ones are ever rebuilt: reading a file can create no other object.
"""

from dataclasses import is_dataclass
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

WIRE_TYPES: dict[str, type[Any]] = {}


def wire(cls: T) -> T:
    """Class decorator: let this frozen dataclass travel under its own name."""
    if not (is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise TypeError(f"{cls.__name__} must be a frozen dataclass to travel")
    taken = WIRE_TYPES.get(cls.__name__)
    if taken is not None and taken.__module__ != cls.__module__:
        raise TypeError(
            f"{cls.__name__} is already the wire name of {taken.__module__}.{taken.__qualname__}; rename one"
        )
    WIRE_TYPES[cls.__name__] = cls
    return cls
