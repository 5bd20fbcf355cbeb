"""One value of a setting: what its type takes, and how that is told."""

import types
from collections.abc import Mapping, Sequence
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from ostraka.core.span import Span
from ostraka.errors import ConfigError, did_you_mean, shown

KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
PLAIN = (str, bool, int, float, types.NoneType)


def plain(value: Any) -> Any:
    """What a user of Python may give instead of a plain value
    (numpy's numbers and arrays, paths, tuples) as one.
    """
    # its numbers and arrays, without loading it for those who have none
    if type(value).__module__ == "numpy":
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple | range) else value


def convert(value: Any, hint: Any, path: str) -> Any:
    """A plain value as the type `hint` wants it,
    or a ConfigError that says what is allowed at `path`.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None or (value == "none" and type(None) in args and str not in args):
            return None
        if value in words_in(hint):
            return value
        return convert(value, _other(args), path)
    if origin is Literal:
        return _one_of(value, args, path)
    if origin in (tuple, list, Sequence):
        if not isinstance(value, list):
            raise ConfigError(f"{path!r} takes a list, such as [1, 2]; {shown(value)} was given")
        return tuple(convert(item, args[0], path) for item in value)
    if hint is Any or origin in (dict, Mapping):
        return _storable(value, path, table=hint is not Any)
    return _single(value, hint, path)


def words_in(hint: Any) -> tuple[Any, ...]:
    """The words that a type takes: of a Literal, or of one in a union (`Literal["auto"] | int`)."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))


def _other(args: tuple[Any, ...]) -> Any:
    """The type among those of a union that is neither None nor a few words."""
    return next(a for a in args if a is not type(None) and get_origin(a) is not Literal)


def _one_of(value: Any, allowed: tuple[Any, ...], path: str) -> Any:
    if value not in allowed:
        hint = did_you_mean(str(value), map(str, allowed))
        raise ConfigError(
            f"{path!r} is {shown(value)}; allowed: {', '.join(map(str, allowed))}.{hint}"
        )
    return value


def _single(value: Any, hint: Any, path: str) -> Any:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if hint is float and number:
        try:
            return float(value)
        except OverflowError:
            return inf if value > 0 else -inf
    if hint is int and number and (isinstance(value, Integral) or value.is_integer()):
        return int(value)
    if isinstance(hint, type) and (
        not isinstance(value, hint) or (hint is int and isinstance(value, bool))
    ):
        raise ConfigError(
            f"{path!r} takes {KINDS.get(hint, hint.__name__)}; {shown(value)} was given"
        )
    return value


def _storable(value: Any, path: str, table: bool) -> Any:
    """A value of no certain type; it must be one that a file can hold."""
    if isinstance(value, Mapping):
        return {
            str(key): _storable(item, f"{path}.{key}", table=False) for key, item in value.items()
        }
    if table:
        raise ConfigError(
            f"{path!r} is a table of settings; {shown(value)} was given. Use {path}.<name> = value"
        )
    if isinstance(value, list):
        return [_storable(item, path, table=False) for item in value]
    if not isinstance(value, PLAIN):
        raise ConfigError(
            f"{path!r} takes numbers, text, true or false, lists and tables; {shown(value)} was "
            "given"
        )
    return value


def allowed(hint: Any, span: Span | None) -> str:
    """What a setting of the type `hint` takes, in words: `whole number, at least 1`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        words = ", ".join(map(str, words_in(hint)))
        return f"{allowed(_other(args), span)}, or {words or 'none'}"
    if origin is Literal:
        return ", ".join(map(str, args))
    if origin in (tuple, list, Sequence):
        return f"list; each: {allowed(args[0], span)}"
    if hint is bool:
        return "true, false"
    words = span.words() if span else ""
    if hint is int:
        return ", ".join(filter(None, ("whole number", words)))
    if hint is float:
        return words or "any number"
    return "text" if hint is str else ""
