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

from ostraka.core.samples import Samples
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
        **{f"{key}_train": hash_of(tensor) for key, tensor in _arrays(data.train).items()},
        **{f"{key}_test": hash_of(tensor) for key, tensor in _arrays(data.test).items()},
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
        if all(_same_stamp(was["files"][key], path) for key, path in files.items()):
            return []
        if all(
            _hashed(path)["sha256"] == was["files"][key]["sha256"] for key, path in files.items()
        ):
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
        found.update(
            {
                f"{place.name}/{file.name}": file
                for file in source.files(place.path or Path(), place.name)
            }
        )
    return found


def _same_stamp(was: Mapping[str, Any], path: Path) -> bool:
    about = path.stat()
    return (about.st_size, about.st_mtime_ns) == (was["size"], was["mtime_ns"])


def _hashed(path: Path) -> dict[str, Any]:
    about = path.stat()
    return {
        "size": about.st_size,
        "mtime_ns": about.st_mtime_ns,
        "sha256": _sha256(path, about.st_size, about.st_mtime_ns),
    }


@lru_cache(maxsize=64)
def _sha256(path: Path, size: int, mtime_ns: int) -> str:
    """The cells of a grid hash a file once, as long as its size and time stay the same."""
    return sha256_of(path)


def _arrays(samples: Samples) -> dict[str, Any]:
    return {"x": samples.x, "y": samples.y}


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
