"""SVHN, cropped digits: train_32x32.mat and test_32x32.mat. The label 10 stands for the digit 0."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ostraka.data.dataset import Array, Arrays, Dataset, assemble
from ostraka.data.sources.files import file_info
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError
from ostraka.registry import SOURCES

TRAIN, TEST = "train_32x32.mat", "test_32x32.mat"


def read(path: Path, name: str) -> Dataset:
    """SVHN from the folder of its two files."""
    for file in (TRAIN, TEST):
        if not (path / file).is_file():
            raise DataError(f"{path} has no {file}; put {TRAIN} and {TEST} there")
    (x_train, y_train), (x_test, y_test) = _mat(path / TRAIN), _mat(path / TEST)
    digits = tuple(str(c) for c in range(10))
    info = file_info("svhn", path / TRAIN, path / TEST)
    return assemble(name, Arrays(x_train, y_train, x_test, y_test, digits, info=info))


def find(path: Path) -> list[str]:
    """SVHN has one name, whatever its folder is called."""
    return ["svhn"] if (path / TRAIN).is_file() else []


def _mat(path: Path) -> tuple[Array, Array]:
    """(images [N, 32, 32, 3], labels [N])."""
    with _damage_of(path):
        from scipy.io import loadmat

        stored = loadmat(path, variable_names=["X", "y"])
    if "X" not in stored or "y" not in stored:
        raise DataError(
            f"{path} has no arrays X and y; it is not one of SVHN's cropped-digit files"
        )
    x, y = stored["X"], stored["y"].reshape(-1)
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[:3] != (32, 32, 3):
        raise DataError(f"{path}: X is {x.dtype} {list(x.shape)}; SVHN's is uint8 [32, 32, 3, N]")
    return x.transpose(3, 0, 1, 2), np.where(y == 10, 0, y).astype(np.int64)


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """Turn whatever the damaged bytes lead scipy to raise into a DataError."""
    try:
        yield
    except Exception as error:
        raise DataError(
            f"{path} cannot be read ({error}); it is truncated or damaged: fetch it again"
        ) from error


def files(path: Path, name: str) -> list[Path]:
    """Its two files."""
    return [path / TRAIN, path / TEST]


def peek(path: Path, name: str) -> Summary:
    """The shapes that the two files list."""
    train, test = (_listed(path / file)[3] for file in (TRAIN, TEST))
    return Summary((3, 32, 32), 10, train, test)


def _listed(path: Path) -> tuple[int, ...]:
    """The shape of X, [32, 32, 3, N]."""
    with _damage_of(path):
        from scipy.io import whosmat

        shapes = {name: shape for name, shape, _ in whosmat(path)}
    if len(shapes.get("X", ())) != 4:
        raise DataError(f"{path} has no images X; it is not one of SVHN's cropped-digit files")
    return tuple(shapes["X"])


SOURCES.add("svhn")(
    Source("svhn", f"a folder with {TRAIN} and {TEST}", read, find, files=files, peek=peek)
)
