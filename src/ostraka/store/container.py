"""Safetensors files from strangers: everything that a header says is held against limits and
against the length of the file before a byte of a tensor is read.

A header has at most 1 MiB and 4,096 tensors; tensors lie behind each other without holes, and
nothing comes after them. Only plain files are opened: a link, a pipe or a device is refused before
it can lead elsewhere or make its reader wait.
"""

import hashlib
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, final

import torch
from torch import Tensor

from ostraka.errors import DamagedFile, StoreError, choices
from ostraka.store.layout import METADATA, TYPES, bytes_of
from ostraka.store.strict_json import parse

HEADER = 2**20
"""Bytes of a header."""
TENSORS = 4096
LARGEST = 2**30
"""Bytes of a file: 268 million weights."""
AXES = 8
NAME = 256
"""Characters of a tensor's name."""

DTYPES = {name: dtype for dtype, name in TYPES.items()}

_MAGIC = {
    b"PK": "a zip archive, as torch.save writes it",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"\x1f\x8b": "a gzip archive",
    b"\x89H": "an HDF5 file",
}


@final
@dataclass(frozen=True)
class Entry:
    """A tensor as a header describes it; its bytes lie from `start` to `stop` behind the header."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{TYPES[self.dtype]} {list(self.shape)}"


@final
@dataclass(frozen=True)
class Container:
    """An open safetensors file whose header is in order; its tensors have not been read."""

    origin: str
    """How errors call it."""
    notes: Mapping[str, str]
    """Its metadata."""
    header: Mapping[str, Any]
    """The rest of the header, as it stands there."""
    entries: Mapping[str, Entry]
    """Its tensors, in the order of their bytes."""
    file: BinaryIO

    @classmethod
    def of(cls, file: BinaryIO, size: int, origin: str) -> "Container":
        """The file of `size` bytes, from its first one; refused if anything is out of order."""
        header = parse(_header(file, size, origin), f"the header of {origin}", 3, 3 * TENSORS + 2)
        if not isinstance(header, dict):
            raise StoreError(f"the header of {origin} is no JSON object; write the file anew")
        notes = header.pop(METADATA, {})
        if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
            raise StoreError(f"the metadata of {origin} are not texts by name; write the file anew")
        if len(header) > TENSORS:
            raise StoreError(f"{origin} has {len(header):,} tensors; at most {TENSORS:,} are read")
        entries = [_entry(name, said, origin) for name, said in header.items()]
        entries.sort(key=lambda entry: (entry.start, entry.stop))
        _check_places(entries, size - file.tell(), origin)
        return cls(origin, notes, header, {entry.name: entry for entry in entries}, file)

    @property
    def values(self) -> int:
        """The number of values in all tensors."""
        return sum(prod(entry.shape) for entry in self.entries.values())

    def tensors(self, hashed: Callable[[str, memoryview], None]) -> dict[str, Tensor]:
        """All tensors; `hashed` is given the name and the bytes of each, in their order."""
        found = {}
        for entry in self.entries.values():
            tensor = torch.empty(entry.shape, dtype=entry.dtype)
            data = bytes_of(tensor)
            if self.file.readinto(data) != len(data):  # type: ignore[attr-defined]
                raise DamagedFile(f"{self.origin} became shorter while it was read; read it again")
            hashed(entry.name, data)
            if entry.dtype == torch.bool and bool((tensor.view(torch.uint8) > 1).any()):
                raise StoreError(f"{entry.name!r} of {self.origin} is BOOL, but not 0 or 1 alone")
            found[entry.name] = tensor
        return found

    def verified(self, sha256: str, says: str) -> dict[str, Tensor]:
        """All tensors, which must have the hash that somebody `says` they have."""
        digest = TensorHash()
        found = self.tensors(digest.add)
        if digest.hexdigest() != sha256:
            raise DamagedFile(
                f"the tensors of {self.origin} are not those that {says}: their sha256 is "
                f"{digest.hexdigest()}, not {sha256!r:.80}; bring the right file back"
            )
        return found


@final
class TensorHash:
    """The sha256 of tensors: for each, in the order of their bytes in the file, its name in UTF-8,
    a zero byte, and its bytes."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, name: str, data: memoryview) -> None:
        """The next tensor."""
        self._hash.update(name.encode() + b"\0")
        self._hash.update(data)

    def hexdigest(self) -> str:
        """The hash of what was added, in 64 hexadecimal digits."""
        return self._hash.hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[Container]:
    """The safetensors file at `path`, which must be a plain file; open in the `with` block."""
    with plain_file(path) as file:
        yield Container.of(file, os.fstat(file.fileno()).st_size, str(path))


@contextmanager
def plain_file(path: Path) -> Iterator[BinaryIO]:
    """The file at `path`, open to be read; anything that is no plain file is refused."""
    # never waits for the writer of a pipe that took the file's place a moment ago
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        _check_plain(os.lstat(path).st_mode, path)
        with os.fdopen(os.open(path, flags), "rb") as file:
            _check_plain(os.fstat(file.fileno()).st_mode, path)
            yield file
    except OSError as error:  # also while it is read: a disk may fail, and a network
        raise _unreadable(path, error.strerror or error) from None
    except ValueError as error:
        if "null" not in str(error):  # what Python says of a NUL byte in a path
            raise
        raise _unreadable(path, error) from None


def _unreadable(path: Path, reason: object) -> StoreError:
    return StoreError(f"{str(path)!r} cannot be read: {reason}; give another path")


def _check_plain(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        what = next(
            (what for is_it, what in _OTHERS.items() if is_it(mode)), "something that is no file"
        )
        raise StoreError(f"{str(path)!r} is {what}; give the path of the file itself")


_OTHERS: Mapping[Callable[[int], bool], str] = {
    stat.S_ISLNK: "a symbolic link",
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def _header(file: BinaryIO, size: int, origin: str) -> bytes:
    """The bytes of a header that can be one by its length."""
    first = file.read(9)
    magic = _MAGIC.get(first[:2])
    if magic is not None and first[8:] != b"{":  # they can also be the length of a header
        raise StoreError(
            f"{origin} is {magic}; such files can run code or unpack without end when they are "
            "opened and are never read. Store tensors as safetensors"
        )
    if size > LARGEST:
        raise StoreError(f"{origin} has {size:,} bytes; at most {LARGEST:,} are read")
    if size < 10 or len(first) < 9:
        raise DamagedFile(f"{origin} has {size} bytes, which is no safetensors file; send it again")
    (length,) = struct.unpack("<Q", first[:8])
    if first[8:] != b"{":
        raise StoreError(f"{origin} is no safetensors file: byte 8 is {first[8:]!r}, not b'{{'")
    if length > HEADER:
        raise StoreError(
            f"the header of {origin} would have {length:,} bytes; at most {HEADER:,} are read"
        )
    if length > size - 8:
        raise DamagedFile(
            f"{origin} is cut short: its header has {length:,} bytes, and the file {size:,}; "
            "send it again"
        )
    return first[8:] + file.read(length - 1)


def _entry(name: str, said: Any, origin: str) -> Entry:
    where = f"the tensor {name!r:.80} of {origin}"
    if not name or len(name) > NAME or not name.isprintable() or "\\" in name:
        raise StoreError(
            f"{where} has a name that is not allowed; it takes 1 to {NAME} printable characters "
            "without a backslash"
        )
    if ".." in name.split("/"):
        raise StoreError(f"{where} has a name that leads elsewhere; name it as its network does")
    if not isinstance(said, dict) or said.keys() != {"dtype", "shape", "data_offsets"}:
        raise StoreError(f"{where} must have a dtype, a shape and data_offsets, and nothing else")
    dtype, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise StoreError(f"{where} is of the type {dtype!r:.40}; types: {choices(DTYPES)}")
    if not _whole(shape) or len(shape) > AXES:
        raise StoreError(
            f"{where} has the shape {shape!r:.80}; it takes at most {AXES} whole numbers from 0"
        )
    if 0 in shape and prod(filter(None, shape)) > LARGEST:  # torch could not count its places
        raise StoreError(f"{where} is empty, but has the shape {shape!r:.80}; write it as [0]")
    if not _whole(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise StoreError(f"{where} has the offsets {offsets!r:.80}; they are where it begins, ends")
    entry = Entry(name, DTYPES[dtype], tuple(shape), *offsets)
    need = prod(shape) * entry.dtype.itemsize
    if need != entry.stop - entry.start:
        raise StoreError(
            f"{where} is {entry}, which takes {need:,} bytes, but its offsets {offsets} are "
            f"{entry.stop - entry.start:,} apart; write the file anew"
        )
    return entry


def _whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and n >= 0 for n in values)


def _check_places(entries: list[Entry], size: int, origin: str) -> None:
    """Refuse tensors that overlap or leave a hole, and a file that is longer or shorter."""
    end = 0
    for entry in entries:
        if entry.start != end:
            what = "overlaps the one before it" if entry.start < end else "leaves a hole before it"
            raise StoreError(
                f"the tensor {entry.name!r:.80} of {origin} {what}: it begins at {entry.start:,}, "
                f"not at {end:,}; lay tensors one behind the other"
            )
        end = entry.stop
    if end > size:
        raise DamagedFile(
            f"{origin} is cut short: its tensors take {end:,} bytes, and {size:,} are there; "
            "send it again"
        )
    if end < size:
        raise DamagedFile(
            f"{origin} has {size - end:,} bytes behind its last tensor, which nobody reads; "
            "send it again without them"
        )
