"""From downloaded archives to the files that the readers take.

Nothing is unpacked by the names or sizes that an archive gives: only files that are wanted are
taken, by their full name, and no more bytes of each than it may have.
"""

import bz2
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ostraka.data.dataset import Array
from ostraka.data.sources.cifar import NAMES, PIXELS, batches
from ostraka.errors import DataError, writing

PIECE = 2**20
BATCH = 10_000 * (PIXELS + 1)
"""Bytes of one of CIFAR-10's files."""
CIFAR = "cifar-10-batches-bin"
EMNIST = "emnist"
SPLITS = ("letters", "digits", "balanced")
"""The parts of EMNIST that are kept; the other three hold the same images in other classes."""
LARGEST = 200_000_000
"""No file in an archive of these sets has as many bytes."""
MANY = 100
"""Nor has one as many files."""
TEXT = 100_000_000
"""Bytes that USPS may have as text; it has 20 million."""
SIDE = 16
"""Pixels of a row or column of USPS."""


def unpack_cifar(archives: Sequence[Path], folder: Path) -> Path:
    """CIFAR-10's batches from its tar.gz."""
    [archive] = archives
    out = folder / CIFAR
    wanted = {f"{CIFAR}/{file.name}": BATCH for file in batches(out, "cifar10")}
    wanted[f"{CIFAR}/{NAMES['cifar10']}"] = 1000
    left = set(wanted)
    with _damage_of(archive), tarfile.open(archive, "r|gz") as tar:
        for number, entry in enumerate(tar):
            if number >= MANY or entry.size > LARGEST:
                raise DataError(
                    f"{archive} holds {entry.name!r:.80} of {entry.size:,} bytes as file "
                    f"{number + 1}; CIFAR-10's has no such thing: fetch it again"
                )
            if entry.name not in left or not entry.isfile():
                continue
            stream = tar.extractfile(entry)
            assert stream is not None, "it is a file"
            _store(stream, out / entry.name.rpartition("/")[2], wanted[entry.name])
            left.remove(entry.name)
    _check_left(archive, left)
    return out


def unpack_emnist(archives: Sequence[Path], folder: Path) -> Path:
    """The IDX files of some of EMNIST's splits from its zip; they stay compressed by gzip."""
    [archive] = archives
    out = folder / EMNIST
    wanted = {
        f"gzip/emnist-{split}-{part}-{what}-ubyte.gz"
        for split in SPLITS
        for part in ("train", "test")
        for what in ("images-idx3", "labels-idx1")
    }
    left = set(wanted)
    with _damage_of(archive), zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            if entry.filename in left:
                with packed.open(entry) as stream:
                    _store(stream, out / entry.filename.rpartition("/")[2], LARGEST)
                left.remove(entry.filename)
    _check_left(archive, left)
    return out


def unpack_usps(archives: Sequence[Path], folder: Path) -> Path:
    """`usps.npz` from the two bz2 files of text: label 1 to 10, then 256 numbers from -1 to 1."""
    (x_train, y_train), (x_test, y_test) = (_libsvm(archive) for archive in archives)
    path = folder / "usps.npz"
    with writing(path), _replacing(path) as new, new.open("wb") as out:
        np.savez_compressed(out, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    beside = path.with_suffix(".json")
    told = {"source": "USPS, from LIBSVM's data sets", "class_names": [str(c) for c in range(10)]}
    with writing(beside), _replacing(beside) as new:
        new.write_text(json.dumps(told))
    return path


def _libsvm(path: Path) -> tuple[Array, Array]:
    """(images uint8 [N, 16, 16], labels [N]) of lines such as `7 1:-1 2:-0.813 ... 256:-1`."""
    with _damage_of(path), bz2.open(path) as stream:
        text = stream.read(TEXT + 1)
    if len(text) > TEXT:
        raise DataError(f"{path} holds more than {TEXT:,} bytes of text; fetch it again")
    lines = text.decode("ascii", "replace").splitlines()
    pixels, labels = np.empty((len(lines), SIDE * SIDE), np.float32), np.empty(len(lines), np.int64)
    for row, line in enumerate(lines):
        label, *pairs = line.split()
        try:
            places, values = zip(*(pair.split(":") for pair in pairs), strict=True)
            if [int(place) for place in places] != list(range(1, SIDE * SIDE + 1)):
                raise ValueError
            pixels[row], labels[row] = [float(value) for value in values], int(label) - 1
        except ValueError:
            raise DataError(
                f"{path}: line {row + 1} is not a label and the numbers 1 to {SIDE * SIDE}: "
                f"{line[:60]!r}; fetch it again"
            ) from None
    if len(lines) == 0 or np.abs(pixels).max() > 1 or labels.min() < 0 or labels.max() > 9:
        raise DataError(
            f"{path}: labels go from 1 to 10 and values from -1 to 1 in USPS; fetch it again"
        )
    images = np.floor((pixels + 1) / 2 * 255).astype(np.uint8)
    return images.reshape(-1, SIDE, SIDE), labels


def _store(stream: IO[bytes], path: Path, most: int) -> None:
    """Write a stream to a file, in one step, if it has no more than `most` bytes."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(path) as new, new.open("wb") as out:
            written = 0
            while piece := stream.read(PIECE):
                written += len(piece)
                if written > most:
                    raise DataError(
                        f"{path.name} in the archive has more than {most:,} bytes; it is not what "
                        "it should be: fetch the archive again"
                    )
                out.write(piece)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of `path` once it is written."""
    new = path.with_name(path.name + ".new")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _check_left(archive: Path, left: set[str]) -> None:
    if left:
        raise DataError(f"{archive} has no {', '.join(sorted(left)[:3])}; fetch it again")


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """Turn what a damaged archive leads to into a DataError."""
    try:
        yield
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError,
        NotImplementedError, RuntimeError, ValueError, OSError,
    ) as error:  # fmt: skip
        raise DataError(f"{path} cannot be unpacked ({error}); fetch it again") from error
