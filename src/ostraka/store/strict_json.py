"""JSON from strangers: looked over before a parser sees it, and read without leniency.

A text may not nest deeply or hold more brackets than its reader can use; a key stands once in an
object; numbers are finite, and whole ones are exact in every language.
"""

import json
import math
import re
from typing import Any

from ostraka.errors import StoreError

EXACT = 2**53
"""Whole numbers beyond this are not exact in programs that have only double precision."""

# to the end of the text where a string has none, so that time stays linear
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def parse(data: bytes, origin: str, deepest: int, most: int) -> Any:
    """The values in a JSON text of at most `most` objects and lists, `deepest` in each other.

    `origin` says in errors what the text is.
    """
    _look_over(data, origin, deepest, most)
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise StoreError(f"{origin} is not proper JSON in UTF-8: {error}; write it anew") from None


def read_finite(data: bytes) -> Any:
    """The values in a JSON text of our own; a ValueError where one is not a finite number."""
    try:
        return json.loads(data, parse_constant=_constant, parse_float=_float)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _look_over(data: bytes, origin: str, deepest: int, most: int) -> None:
    brackets = _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS)
    count = brackets.count(b"{") + brackets.count(b"[")
    if count > most:
        raise StoreError(f"{origin} holds {count:,} objects and lists; at most {most:,} are read")
    depth = 0
    for bracket in brackets:
        depth += _STEP[bracket]
        if depth > deepest:
            raise StoreError(f"{origin} nests more than {deepest} deep, which is not read")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r:.80} stands twice in one object")
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text:.40} is too large")
    return value


def _int(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > EXACT:
        raise ValueError(f"the whole number {text:.40} is beyond 2^53")
    return int(text)
