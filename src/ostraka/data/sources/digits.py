"""The handwritten digits that come with scikit-learn: 1,797 grey images of 8 x 8 pixels with 17
levels.

The split is fixed: of every class, in the library's order, each fifth sample is a test sample (355
of 1,797).
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ostraka.core.samples import View
from ostraka.data.dataset import Arrays, Dataset, assemble
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError
from ostraka.registry import SOURCES

EACH = 5
LEVELS = 16


def read(path: Path, name: str) -> Dataset:
    """Scikit-learn's digits; inputs are in [0, 1]."""
    rows = np.loadtxt(_file(), delimiter=",", dtype=np.uint8)
    x, y = rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(np.int64)
    test = np.zeros(len(y), bool)
    for digit in range(10):
        test[np.flatnonzero(y == digit)[EACH - 1 :: EACH]] = True
    arrays = Arrays(
        x[~test],
        y[~test],
        x[test],
        y[test],
        tuple(str(c) for c in range(10)),
        info={
            "kind": "library",
            "source": "scikit-learn, load_digits (UCI, Optical Recognition of Handwritten Digits)",
            "licence": "CC BY 4.0",
            "sha256": {"images": hashlib.sha256(x.tobytes()).hexdigest()},
        },
    )
    return assemble(name, arrays, View(scale=1 / LEVELS))


def _file() -> Path:
    """Where the library keeps them; it is not imported, which takes as long as to import torch."""
    library = find_spec("sklearn")
    homes = [] if library is None else library.submodule_search_locations or []
    files = [Path(home) / "datasets" / "data" / "digits.csv.gz" for home in homes]
    found = next((file for file in files if file.exists()), None)
    if found is None:
        raise DataError(
            "the digits come with scikit-learn, which is not installed here as a whole; install it "
            "(pip install scikit-learn), or use other data (ostraka list data)"
        )
    return found


def peek(path: Path, name: str) -> Summary:
    """The set is fixed, and known without the library."""
    return Summary((1, 8, 8), 10, 1442, 355)


SOURCES.add("digits")(
    Source("library", "scikit-learn's 8x8 digits", read, builtin=("digits",), peek=peek)
)
