"""Has the data changed? A hash of its content, part by part, and a quick look at its files.

A fingerprint is plain values, stored with a run: `parts` are hashes of the arrays as they were
read, so the same samples in another file are the same data; `files` are size, time stamp and hash
of what was read. Files of the same size and time need not be opened again, files with the same hash
need not be decoded.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ostraka.data.dataset import Dataset
from ostraka.data.sources.files import sha256_of
from ostraka.data.sources.find import load, locate

Fingerprint = dict[str, dict[str, Any]]

PARTS = {
    "x_train": "training samples",
    "y_train": "training labels",
    "x_test": "test samples",
    "y_test": "test labels",
    "classes": "class names",
    "columns": "columns",
}
"""What a hash is of, in words."""


def fingerprint(data: Dataset, name: str, dirs: Sequence[Path]) -> Fingerprint:
    """The fingerprint of `data`, which was loaded as `name` from these folders."""
    return {
        "parts": parts_of(data),
        "files": {key: _hashed(path) for key, path in _files(name, dirs).items()},
    }


def parts_of(data: Dataset) -> dict[str, str]:
    """A hash of every part of the data."""
    sides = (("train", data.columns), ("test", data.test_columns))
    columns = [
        (side, key, np.asarray(held[key]).tolist()) for side, held in sides for key in sorted(held)
    ]
    return {
        "x_train": hash_of(data.train.x),
        "y_train": hash_of(data.train.y),
        "x_test": hash_of(data.test.x),
        "y_test": hash_of(data.test.y),
        "classes": _hash_bytes(repr(data.classes).encode()),
        "columns": _hash_bytes(repr(columns).encode()),
    }


def values_of_training(data: Dataset) -> str:
    """A hash of the training samples' values."""
    return hash_of(data.train.x)


def changes(
    was: Fingerprint, name: str, dirs: Sequence[Path], label: str | None = None
) -> list[str]:
    """What differs between the data now (`load` takes the same arguments) and a fingerprint of it,
    in words; nothing where it is the same."""
    files = _files(name, dirs)
    if files and files.keys() == was["files"].keys():
        pairs = [(was["files"][key], path) for key, path in files.items()]
        if all(_stamp(path).items() <= known.items() for known, path in pairs):
            return []
        if all(_hashed(path)["sha256"] == known["sha256"] for known, path in pairs):
            return []
    return differing(was, parts_of(load(name, dirs, label)))


def differing(was: Fingerprint, parts: Mapping[str, str]) -> list[str]:
    """The parts that are not the same, in words."""
    return [words for key, words in PARTS.items() if was["parts"].get(key) != parts.get(key)]


def _files(name: str, dirs: Sequence[Path]) -> dict[str, Path]:
    """The files of a data set by name (its own and the file's); none where a source does not tell
    them."""
    found: dict[str, Path] = {}
    for place, source in locate(name, dirs):
        if source.files is None:
            return {}
        own = source.files(place.path or Path(), place.name)
        found.update({f"{place.name}/{file.name}": file for file in own})
    return found


def _stamp(path: Path) -> dict[str, Any]:
    about = path.stat()
    return {"size": about.st_size, "mtime_ns": about.st_mtime_ns}


def _hashed(path: Path) -> dict[str, Any]:
    stamp = _stamp(path)
    return {**stamp, "sha256": _sha256(path, **stamp)}


@lru_cache(maxsize=64)
def _sha256(path: Path, size: int, mtime_ns: int) -> str:
    """The cells of a grid hash a file once, as long as its size and time stay the same."""
    return sha256_of(path)


def hash_of(tensor: Any) -> str:
    """A hash of a tensor's kind, shape and values; empty for none."""
    if tensor is None:
        return ""
    values = np.ascontiguousarray(tensor.numpy())
    return _hash_bytes(repr((str(values.dtype), values.shape)).encode(), values.view(np.uint8).data)


def _hash_bytes(*parts: Any) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
