"""Data that comes with scikit-learn: small, real, and there wherever it is installed.

`iris` (150 rows of 4 columns), `wine` (178 of 13) and `breast-cancer` (569 of 30) as the library
has them; `digits`, 1,797 grey images of 8 x 8 pixels with 17 levels, and `digits-rows`: the same
pixels as 64 columns. The split is fixed: of every class, in the library's order, each fifth sample
is a test sample.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ostraka.core.samples import View
from ostraka.data.dataset import Array, Arrays, Dataset, assemble
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError
from ostraka.registry import SOURCES

EACH = 5
DIGITS = "digits.csv.gz"
LEVELS = 16
LICENCE = "CC BY 4.0"
"""All of them are from the UCI Machine Learning Repository, which gives them under it."""


@dataclass(frozen=True)
class Table:
    """A file of the library, the name that UCI has for it, and what is in it."""

    file: str
    origin: str
    summary: Summary


TABLES: Mapping[str, Table] = {
    "iris": Table("iris.csv", "Iris", Summary((4,), 3, 120, 30)),
    "wine": Table("wine_data.csv", "Wine", Summary((13,), 3, 144, 34)),
    "breast-cancer": Table(
        "breast_cancer.csv", "Breast Cancer Wisconsin (Diagnostic)", Summary((30,), 2, 456, 113)
    ),
    "digits-rows": Table(
        DIGITS, "Optical Recognition of Handwritten Digits", Summary((64,), 10, 1442, 355)
    ),
}


def read(path: Path, name: str) -> Dataset:
    """One of the tables; `path` is not used."""
    table = TABLES[name]
    classes, x, y = rows_of(table.file)
    return assemble(name, split(x.astype(np.float32), y, classes, table.origin))


def read_digits(path: Path, name: str) -> Dataset:
    """Scikit-learn's digits; inputs are in [0, 1]."""
    classes, x, y = rows_of(DIGITS)
    images = x.reshape(-1, 8, 8).astype(np.uint8)
    found = split(images, y, classes, TABLES["digits-rows"].origin)
    return assemble(name, found, View(scale=1 / LEVELS))


def peek(path: Path, name: str) -> Summary:
    """The sets are fixed, and known without the library."""
    if name == "digits":
        return replace(TABLES["digits-rows"].summary, shape=(1, 8, 8))
    return TABLES[name].summary


def rows_of(file: str) -> tuple[tuple[str, ...], Array, Array]:
    """The names of the classes, the values [N, D] and the labels [N] in a file of the library.

    Its first line says how many rows and columns there are and what the classes are called; the
    digits have no such line.
    """
    path = _path(file)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        named = () if file == DIGITS else tuple(lines.readline().strip().split(",")[2:])
        values = np.loadtxt(lines, delimiter=",")
    y = values[:, -1].astype(np.int64)
    return named or tuple(str(c) for c in range(y.max() + 1)), values[:, :-1], y


def split(x: Array, y: Array, classes: tuple[str, ...], origin: str) -> Arrays:
    """Each fifth sample of a class is for the test."""
    test = np.zeros(len(y), bool)
    for c in range(len(classes)):
        test[np.flatnonzero(y == c)[EACH - 1 :: EACH]] = True
    info = {
        "kind": "library",
        "source": f"scikit-learn (UCI, {origin})",
        "licence": LICENCE,
        "sha256": {"samples": hashlib.sha256(x.tobytes()).hexdigest()},
    }
    return Arrays(x[~test], y[~test], x[test], y[test], classes, info=info)


def _path(file: str) -> Path:
    """Where the library keeps it; it is not imported, which takes as long as to import torch."""
    library = find_spec("sklearn")
    homes = [] if library is None else library.submodule_search_locations or []
    paths = [Path(home) / "datasets" / "data" / file for home in homes]
    found = next((path for path in paths if path.exists()), None)
    if found is None:
        raise DataError(
            f"{file} comes with scikit-learn, which is not installed here as a whole; install it "
            "(pip install scikit-learn), or use other data (ostraka list data)"
        )
    return found


SOURCES.add("library")(
    Source("library", "tables of scikit-learn", read, builtin=tuple(TABLES), peek=peek)
)
SOURCES.add("digits")(
    Source("library", "scikit-learn's 8x8 digits", read_digits, builtin=("digits",), peek=peek)
)
