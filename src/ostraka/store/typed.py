"""Fields of dataclasses out of JSON objects: what is missing or of another type is refused."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ostraka.errors import StoreError

REMEDY = "it was changed, or is not what Ostraka writes there; make it anew"


def read_fields(cls: type, held: Any, origin: str) -> dict[str, Any]:
    """Those values of a JSON object that are fields of `cls`; it must have all without a default.

    None is as good as nothing where there is a default.
    """
    if not isinstance(held, Mapping):
        raise StoreError(f"{origin} is no JSON object; {REMEDY}")
    hints, values = _hints(cls), dict[str, Any]()
    for spec in fields(cls):
        needed = spec.default is MISSING and spec.default_factory is MISSING
        if needed and spec.name not in held:
            raise StoreError(f"{origin} lacks {spec.name!r}; {REMEDY}")
        value = held.get(spec.name)
        if needed or value is not None:
            if not fits(value, hints[spec.name]):
                raise StoreError(f"{spec.name!r} of {origin} is {value!r:.40}; {REMEDY}")
            values[spec.name] = value
    return values


@lru_cache(maxsize=32)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is of the simple type `hint`.

    Those of others are looked at elsewhere.
    """
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if hint in (int, float):
        number = int if hint is int else (int, float)
        return isinstance(value, number) and not isinstance(value, bool)
    if hint in (str, NoneType):
        return isinstance(value, hint)
    holder = {Mapping: Mapping, tuple: list | tuple}.get(get_origin(hint), object)
    return isinstance(value, holder)
