"""Archives of arrays (.npz): what they declare is compared with what they hold before any memory is
taken for it."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ostraka.data.dataset import Array
from ostraka.data.sources.files import free_memory, in_units
from ostraka.errors import DataError

END = ".npy"
ARRAY = b"\x93NUMPY"
"""How a file of a single array begins."""


@dataclass(frozen=True)
class Header:
    """What an array says of itself."""

    shape: tuple[int, ...]
    dtype: Any
    start: int
    """Where its values begin."""

    @property
    def size(self) -> int:
        """Bytes of its values, as declared."""
        return prod(self.shape) * int(self.dtype.itemsize)

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}, {in_units(self.size)}"


def headers(path: Path) -> dict[str, Header]:
    """The header of every array in the file; one that declares more than the file holds is
    refused."""
    _check_is_archive(path)
    with damage_of(path, "the archive"), zipfile.ZipFile(path) as archive:
        members = {
            info.filename.removesuffix(END): info
            for info in archive.infolist()
            if info.filename.endswith(END)
        }
        found = {}
        for key, info in members.items():
            with damage_of(path, key), archive.open(info) as member:
                found[key] = _header(path, key, member)
            held = info.file_size - found[key].start
            if found[key].size > held and not found[key].dtype.hasobject:
                raise DataError(
                    f"{path}: {key} declares {found[key]}, but the file holds {in_units(held)} of "
                    "it; it is damaged: write or fetch it again"
                )
    return found


def arrays(path: Path) -> dict[str, Array]:
    """Every array of the file; Python objects are refused."""
    declared = headers(path)
    free, wanted = free_memory(), sum(header.size for header in declared.values())
    if wanted > free:
        largest = max(declared, key=lambda key: declared[key].size)
        raise DataError(
            f"{path} declares {in_units(wanted)} of arrays (the largest: {largest}, "
            f"{declared[largest]}), more than the {in_units(free)} of free memory; store fewer "
            "samples (images as uint8, features as float32)"
        )
    # Decompression takes most of the time and releases the interpreter's lock: training and test
    # images in parallel.
    with ThreadPoolExecutor(2) as threads:
        values = list(threads.map(lambda key: array(path, key), declared))
    return dict(zip(declared, values, strict=True))


def array(path: Path, key: str) -> Array:
    """One array of the file."""
    with damage_of(path, key), np.load(path, allow_pickle=False) as archive:
        values: Array = archive[key]
    return values


@contextmanager
def damage_of(path: Path, key: str) -> Iterator[None]:
    """Turn whatever a damaged archive leads numpy and zipfile to raise into a DataError."""
    try:
        yield
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise DataError(
                f"{path}: {key} holds Python objects; these are pickles, which can run code when "
                "opened, and are refused; store plain numbers (uint8 or float32) with numpy.savez"
            ) from error
        raise DataError(
            f"{path}: {key} cannot be read ({error}); the file is damaged: fetch it again"
        ) from error
    except MemoryError as error:
        raise DataError(
            f"{path}: {key} does not fit into memory; store fewer or smaller samples"
        ) from error
    except (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError,
        KeyError, NotImplementedError, OSError, RuntimeError,
    ) as error:  # fmt: skip
        raise DataError(
            f"{path}: {key} cannot be read ({error}); the file is truncated or damaged: fetch it "
            "again"
        ) from error


def _check_is_archive(path: Path) -> None:
    """Say what a file is that only has the name of an archive."""
    try:
        with path.open("rb") as file:
            start = file.read(len(ARRAY))
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; give a file that you may read"
        ) from error
    is_now = (
        "is empty (0 bytes)" if not start
        else "holds a single array (a .npy file under another name)" if start == ARRAY
        else "is a Python pickle under another name, which can run code when opened, and is refused"
        if start[0] == 0x80
        else "" if start.startswith(b"PK")
        else f"is not an .npz file: it begins with {start!r}"
    )  # fmt: skip
    if is_now:
        raise DataError(
            f"{path} {is_now}; write it with numpy.savez(path, x_train=..., y_train=..., "
            "x_test=..., y_test=...)"
        )


def _header(path: Path, key: str, member: Any) -> Header:
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(member)
    if any(length < 0 for length in shape):
        raise DataError(
            f"{path}: {key} declares the shape {list(shape)}; it is damaged: write or fetch it "
            "again"
        )
    return Header(tuple(shape), dtype, member.tell())
