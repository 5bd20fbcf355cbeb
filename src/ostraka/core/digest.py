"""One digest of plain values: equal values have the same one,
in whatever order their tables were written.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any


def digest_of(value: Any, size: int = 16) -> str:
    """A hash of `size` bytes, in hexadecimal, of tables, lists, text,
    numbers, truth values and None.

    The order of a table's keys does not matter,
    nor whether a list is a tuple or a whole number is written as 1.0.
    """
    text = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=size).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        strange = [key for key in value if not isinstance(key, str)]
        if strange:  # JSON would take 1 and "1" for the same key
            raise TypeError(
                f"a digest is of tables with text keys; {strange[0]!r} is a "
                f"{type(strange[0]).__name__}"
            )
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a digest is of plain values; a {type(value).__name__} was given")
