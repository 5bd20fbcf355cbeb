"""How a broken contract is said: what was expected, what the plug-in did, and what to do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, TypeAlias

from torch import Tensor

from ostraka.core.method import Method
from ostraka.store import codec

AnyMethod: TypeAlias = Method[Any, Any, Any]


class ContractBroken(AssertionError):
    """A method, or another plug-in, that does not keep the contract of its kind."""


@contextmanager
def hoped(subject: object, what: str, advice: str) -> Iterator[None]:
    """Turn any error into a ContractBroken that says what should have worked."""
    try:
        yield
    except ContractBroken:
        raise
    except Exception as error:
        done = f"it raised {type(error).__name__}: {error}"
        raise ContractBroken(_sentence(subject, what, done, advice)) from error


def fail(subject: object, expected: str, done: str, advice: str) -> NoReturn:
    """Say that the contract is broken."""
    raise ContractBroken(_sentence(subject, expected, done, advice))


def _sentence(subject: object, expected: str, done: str, advice: str) -> str:
    """`subject` is what is checked, or its name."""
    name = subject if isinstance(subject, str) else type(subject).__name__
    return f"{name}: expected that {expected}; {done}. What to do: {advice}"


def difference(a: Any, b: Any, name: str) -> str | None:
    """Where two values differ, in words; None where they are equal
    to the bit, structure included.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return (
            None
            if codec.encode(a) == codec.encode(b)
            else f"{name} differs: {_brief(a)} and {_brief(b)}"
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"{name} has the keys {sorted(a)} and {sorted(b)}"
        return _first(difference(a[key], b[key], f"{name}[{key!r}]") for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        if len(a) != len(b):
            return f"{name} has {len(a)} and {len(b)} items"
        return _first(
            difference(x, y, f"{name}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))
        )
    if is_dataclass(a) and type(a) is type(b):
        return _first(
            difference(getattr(a, f.name), getattr(b, f.name), f"{name}.{f.name}")
            for f in fields(a)
        )
    plain = isinstance(a, bool | int | float | str | None) and isinstance(
        b, bool | int | float | str | None
    )
    if plain and (a == b or (a != a and b != b)):
        return None
    return f"{name} was {type(a).__name__} {_brief(a)} and is {type(b).__name__} {_brief(b)}"


def _first(found: Iterator[str | None]) -> str | None:
    return next((text for text in found if text), None)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        start = ", ".join(f"{v:.6g}" for v in value.flatten()[:3].tolist())
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} ({start}, ...)"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
