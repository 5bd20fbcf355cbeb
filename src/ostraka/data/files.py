"""Reading files that may be missing, compressed or damaged: every failure is a DataError that names the file."""

import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from ostraka.errors import DataError


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed when its name ends in .gz."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is truncated or not a gzip file ({error}); download it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file as hexadecimal text."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def file_info(kind: str, *paths: Path) -> dict[str, Any]:
    """What `Dataset.info` says about the files a dataset was read from."""
    return {"kind": kind, "sha256": {path.name: sha256_of(path) for path in paths}}


def sidecar(path: Path) -> dict[str, Any]:
    """The JSON beside a .npz file (source, licence, class names, checksum); empty when there is none."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return {}
    try:
        found = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{beside} is not readable as JSON ({error}); mend or remove it") from error
    if not isinstance(found, dict):
        raise DataError(
            f'{beside} holds a {type(found).__name__}; it must be a JSON object such as {{"class_names": [...]}}'
        )
    return found
