"""Reading files that may be missing, compressed or damaged: every failure is a DataError that names
the file."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

from ostraka.errors import DataError

PIECE = 2**24
"""Bytes decompressed at once."""


@contextmanager
def broken(path: Path) -> Iterator[None]:
    """Turn what a damaged or unreadable file leads to into a DataError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} is truncated or not a gzip file ({error}); download it again"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed when its name ends in .gz."""
    with broken(path):
        if path.suffix != ".gz":
            return path.read_bytes()
        parts, most = [], free_memory()
        with gzip.open(path) as file:
            while part := file.read(PIECE):
                parts.append(part)
                if len(parts) * PIECE > most:
                    raise DataError(
                        f"{path} holds more than the {in_units(most)} of free memory; fetch it "
                        "again"
                    )
        return b"".join(parts)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file as hexadecimal text."""
    with broken(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_info(kind: str, *paths: Path) -> dict[str, Any]:
    """What `Dataset.info` says about the files a dataset was read from."""
    return {"kind": kind, "sha256": {path.name: sha256_of(path) for path in paths}}


def free_memory() -> int:
    """Bytes of memory that can still be taken; where the system does not say, all that it has."""
    try:
        facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(facts["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return (
            os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            if hasattr(os, "sysconf")
            else 2**40
        )


def check_memory(owner: object, count: int, size: int, remedy: str) -> None:
    """Refuse `count` samples of `size` bytes each if they would not fit into memory."""
    free = free_memory()
    if count * size > free:
        raise DataError(
            f"{owner}: {count:,} samples of {in_units(size)} take {in_units(count * size)}, more "
            f"than the {in_units(free)} of free memory; {remedy}"
        )


def in_units(size: float) -> str:
    """A number of bytes as people read it."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    power = min(int(log(max(size, 1), 1000)), len(units) - 1)
    return f"{size / 1000**power:.3g} {units[power]}"


def with_sidecar(path: Path, *_: str) -> list[Path]:
    """The file and, if there is one, the JSON file beside it."""
    return [file for file in (path, path.with_suffix(".json")) if file.is_file()]


def sidecar(path: Path) -> dict[str, Any]:
    """The JSON beside a .npz file (source, licence, class names, checksum); empty when there is
    none."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return {}
    try:
        found = json.loads(beside.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{beside} is not readable as JSON ({error}); fix or remove it") from error
    if not isinstance(found, dict):
        raise DataError(
            f"{beside} holds a {type(found).__name__}; it must be a JSON object such as "
            f'{{"class_names": [...]}}'
        )
    return found
