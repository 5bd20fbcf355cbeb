"""Files of plain values as JSON, some of them with a digest of what they say."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ostraka.errors import StoreError
from ostraka.store.codec import DIGEST, write_atomically
from ostraka.store.strict_json import read_finite


def write_json(path: Path, value: Any) -> None:
    """Write plain values as readable JSON, atomically."""
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The plain values in a JSON file."""
    try:
        return read_finite(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise StoreError(f"{path} is not valid JSON: {error}; make it anew") from None


def write_signed(path: Path, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write plain values as JSON with a digest of them; returns what was written."""
    signed = {**value, DIGEST: _json_digest(value)}
    write_json(path, signed)
    return signed


def read_signed(path: Path) -> dict[str, Any]:
    """What `write_signed` wrote; anything else, or what was changed since, is refused."""
    value = read_json(path)
    if not isinstance(value, dict) or DIGEST not in value:
        raise StoreError(f"{path} is not a file that Ostraka wrote; move it away")
    if value[DIGEST] != _json_digest({key: item for key, item in value.items() if key != DIGEST}):
        raise StoreError(
            f"{path} was changed after it was written: "
            "its content does not fit its digest; move it away"
        )
    return value


def _json_digest(value: Mapping[str, Any]) -> str:
    return blake2b(
        json.dumps(value, sort_keys=True, allow_nan=False).encode(), digest_size=16
    ).hexdigest()
