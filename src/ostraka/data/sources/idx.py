"""MNIST-style IDX files, plain or .gz: MNIST, Fashion-MNIST, Kuzushiji-MNIST, EMNIST.

EMNIST's original images are transposed; sets whose name starts with `emnist` are turned upright
here. The labels of EMNIST Letters run from 1 to 26 and become 0 to 25.
"""

import gzip
import re
from math import prod
from pathlib import Path
from string import ascii_uppercase

import numpy as np

from ostraka.data.dataset import Array, Arrays, Dataset, assemble
from ostraka.data.sources.files import broken, file_info, read_bytes
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError
from ostraka.registry import SOURCES

IMAGES = re.compile(r"(?:(?P<prefix>.+)-)?train-images[-.]idx3-ubyte(?:\.gz)?")
FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
UBYTE = 8


def read(path: Path, name: str) -> Dataset:
    """The dataset called `name` in a folder of four IDX files."""
    own = files(path, name)
    x_train, y_train, x_test, y_test = (
        _idx(file, dims) for file, dims in zip(own, (3, 1, 3, 1), strict=True)
    )
    classes: tuple[str, ...] = FASHION if name == "fashion-mnist" else ()
    if name.startswith("emnist"):
        x_train, x_test = x_train.transpose(0, 2, 1), x_test.transpose(0, 2, 1)
    if name == "emnist-letters":
        y_train, y_test = (y.astype(np.int64) - 1 for y in (y_train, y_test))
        classes = tuple(ascii_uppercase)
    return assemble(
        name, Arrays(x_train, y_train, x_test, y_test, classes, info=file_info("idx", *own))
    )


def files(path: Path, name: str) -> list[Path]:
    """Training images and labels, test images and labels."""
    prefix = _prefixes(path).get(name, "")
    return [
        _file(path, prefix, part, what)
        for part in ("train", "test")
        for what in ("images-idx3", "labels-idx1")
    ]


def peek(path: Path, name: str) -> Summary:
    """The sizes in the files' headers; of the values only the labels are read."""
    images, labels, _, test_labels = files(path, name)
    count, *sides = _shape(images, _start(images, 3), 3)
    classes = len(np.unique(_idx(labels, 1)))
    return Summary((1, *sides), classes, count, _shape(test_labels, _start(test_labels, 1), 1)[0])


def find(path: Path) -> list[str]:
    """The names of the IDX datasets in a folder: the files' prefix, or else the folder's own
    name."""
    return list(_prefixes(path)) if path.is_dir() else []


def _prefixes(folder: Path) -> dict[str, str]:
    """Dataset name -> prefix of its files."""
    # Download tools put the files into NAME/raw.
    own = folder.parent.name if folder.name == "raw" else folder.name
    found = (IMAGES.fullmatch(entry.name) for entry in sorted(folder.iterdir()))
    return {
        (m["prefix"] or own).lower(): f"{m['prefix']}-" if m["prefix"] else "" for m in found if m
    }


def _file(folder: Path, prefix: str, part: str, what: str) -> Path:
    stems = ("train",) if part == "train" else ("t10k", "test")
    tried = [
        f"{prefix}{stem}-{w}-ubyte{gz}"
        for stem in stems
        for w in (what, what.replace("-", "."))
        for gz in ("", ".gz")
    ]
    for file in tried:
        if (folder / file).is_file():
            return folder / file
    raise DataError(
        f"{folder} has no {tried[0]} (or {tried[1]}); put the set's four IDX files there"
    )


def _idx(path: Path, dimensions: int) -> Array:
    """The array of one IDX file: two zero bytes, type, number of dimensions, sizes (32 bits,
    big-endian), values."""
    raw = read_bytes(path)
    shape, header = _shape(path, raw, dimensions), 4 + 4 * dimensions
    wanted = header + prod(shape)
    if len(raw) != wanted:
        raise DataError(
            f"{path} has {len(raw)} bytes, its header {list(shape)} asks for {wanted}; fetch it "
            "again"
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def _start(path: Path, dimensions: int) -> bytes:
    """The header of an IDX file."""
    with broken(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.read(4 + 4 * dimensions)


def _shape(path: Path, raw: bytes, dimensions: int) -> tuple[int, ...]:
    if len(raw) < 4 + 4 * dimensions or raw[:4] != bytes([0, 0, UBYTE, dimensions]):
        raise DataError(
            f"{path} is not an IDX file of bytes with {dimensions} dimension(s): it starts with "
            f"{raw[:4].hex() or 'nothing'}, not {bytes([0, 0, UBYTE, dimensions]).hex()}; fetch it "
            "again"
        )
    return tuple(int(n) for n in np.frombuffer(raw, ">u4", dimensions, 4))


SOURCES.add("idx")(
    Source(
        "idx",
        "a folder of MNIST-style train-images-idx3-ubyte[.gz] files",
        read,
        find,
        files=files,
        peek=peek,
    )
)
