"""CIFAR-10 and CIFAR-100, binary version: records of one or two label bytes and 3,072 pixels, red,
green, blue."""

from pathlib import Path

import numpy as np

from ostraka.data.dataset import Array, Arrays, Dataset, assemble
from ostraka.data.sources.files import file_info, read_bytes
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError
from ostraka.registry import SOURCES

CLASSES10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
PIXELS = 3 * 32 * 32
NAMES = {"cifar10": "batches.meta.txt", "cifar100": "fine_label_names.txt"}
"""Where the class names stand."""


def read(path: Path, name: str) -> Dataset:
    """CIFAR-10 or CIFAR-100 (fine labels) from a folder of .bin files."""
    *train, test = batches(path, name)
    label_bytes, names = (1 if name == "cifar10" else 2), path / NAMES[name]
    for file in (*train, test):
        if not file.is_file():
            raise DataError(
                f"{path} has no {file.name}; unpack the whole binary version of {name} there"
            )
    parts = [_records(file, label_bytes) for file in train]
    x_train, y_train = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    x_test, y_test = _records(test, label_bytes)
    classes = tuple(names.read_text(encoding="utf-8").split()) if names.is_file() else ()
    if not classes:
        classes = CLASSES10 if name == "cifar10" else tuple(str(c) for c in range(100))
    return assemble(
        name,
        Arrays(x_train, y_train, x_test, y_test, classes, info=file_info("cifar", *train, test)),
    )


def batches(path: Path, name: str) -> list[Path]:
    """The files of the training batches, and last that of the test batch."""
    if name == "cifar10":
        return [*(path / f"data_batch_{i}.bin" for i in range(1, 6)), path / "test_batch.bin"]
    return [path / "train.bin", path / "test.bin"]


def files(path: Path, name: str) -> list[Path]:
    """The batches and, if it is there, the list of class names."""
    return [*batches(path, name), *(file for file in [path / NAMES[name]] if file.is_file())]


def peek(path: Path, name: str) -> Summary:
    """The sizes of the files, in records."""
    record = PIXELS + (1 if name == "cifar10" else 2)
    try:
        *train, test = (file.stat().st_size // record for file in batches(path, name))
    except OSError as error:
        raise DataError(
            f"{error.filename} cannot be read: {error.strerror}; unpack all files of {name}"
        ) from error
    return Summary((3, 32, 32), 10 if name == "cifar10" else 100, sum(train), test)


def refuse(path: Path, name: str) -> Dataset:
    """The Python version is never opened."""
    folder = "cifar-10-batches-bin" if name == "cifar10" else "cifar-100-binary"
    raise DataError(
        f"{path} holds the Python version of {name}: its batches are pickles, which can run code "
        f"when opened, and are refused; get the binary version (the folder {folder}) instead"
    )


def find(path: Path) -> list[str]:
    """Which binary CIFAR a folder holds."""
    if (path / "data_batch_1.bin").is_file():
        return ["cifar10"]
    return ["cifar100"] if (path / "train.bin").is_file() and (path / "test.bin").is_file() else []


def find_pickled(path: Path) -> list[str]:
    """Which Python (pickled) CIFAR a folder holds."""
    if (path / "data_batch_1").is_file():
        return ["cifar10"]
    return ["cifar100"] if (path / "train").is_file() and (path / "meta").is_file() else []


def _records(path: Path, label_bytes: int) -> tuple[Array, Array]:
    """(images [N, 3, 32, 32], labels [N]); of CIFAR-100's two labels the second is the fine one."""
    raw, size = read_bytes(path), label_bytes + PIXELS
    if not raw or len(raw) % size:
        raise DataError(
            f"{path} has {len(raw)} bytes, not a multiple of {size}: it is truncated; unpack it "
            "again"
        )
    records = np.frombuffer(raw, np.uint8).reshape(-1, size)
    return records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label_bytes - 1]


SOURCES.add("cifar")(
    Source(
        "cifar",
        "the folder cifar-10-batches-bin or cifar-100-binary",
        read,
        find,
        files=files,
        peek=peek,
    )
)
REFUSED = "recognised only to be refused: Python batches"
SOURCES.add("cifar-pickled")(Source("cifar-pickled", REFUSED, refuse, find_pickled, listed=False))
