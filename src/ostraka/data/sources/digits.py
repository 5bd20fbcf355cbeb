"""The handwritten digits that come with scikit-learn: 1,797 grey images of 8 x 8 pixels with 17
levels.

The split is fixed, as that of all sets of the library: of every class, in the library's order, each
fifth sample is a test sample (355 of 1,797).
"""

from pathlib import Path

import numpy as np

from ostraka.core.samples import View
from ostraka.data.dataset import Dataset, assemble
from ostraka.data.sources.library import TABLES, rows_of, split
from ostraka.data.sources.source import Source, Summary
from ostraka.registry import SOURCES

LEVELS = 16
ROWS = TABLES["digits-rows"]


def read(path: Path, name: str) -> Dataset:
    """Scikit-learn's digits; inputs are in [0, 1]."""
    classes, x, y = rows_of(ROWS.file)
    images = x.reshape(-1, 8, 8).astype(np.uint8)
    return assemble(name, split(images, y, classes, ROWS.origin), View(scale=1 / LEVELS))


def peek(path: Path, name: str) -> Summary:
    """The set is fixed, and known without the library."""
    return Summary((1, 8, 8), ROWS.summary.classes, ROWS.summary.train, ROWS.summary.test)


SOURCES.add("digits")(
    Source("library", "scikit-learn's 8x8 digits", read, builtin=("digits",), peek=peek)
)
