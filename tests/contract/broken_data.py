"""Sound toy sources and partition rules, and ones broken in each way
that `ostraka.testing` looks for.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ostraka.core.samples import View
from ostraka.data.dataset import Arrays, Dataset, assemble
from ostraka.data.partitions.rule import Pool, Rule, Shares
from ostraka.data.sources.source import Source
from ostraka.errors import DataError, PartitionError

END = ".points.json"
POINTS: dict[str, Any] = {
    "x": [[float(i), float(i % 3)] for i in range(12)],
    "y": [i % 3 for i in range(12)],
}


def write_points(folder: Path) -> Path:
    path = folder / f"toy{END}"
    path.write_text(json.dumps(POINTS))
    return path


def find(path: Path) -> list[str]:
    return [path.name.removesuffix(END)] if path.name.endswith(END) and path.is_file() else []


def read(path: Path, name: str) -> Dataset:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    x, y = np.array(content["x"], np.float32), np.array(content["y"])
    return assemble(name, Arrays(x[:9], y[:9], x[9:], y[9:]))


SOUND = Source("points", f"NAME{END}", read, find)


def _changed(change: Callable[[Dataset], Dataset]) -> Callable[[Path, str], Dataset]:
    return lambda path, name: change(read(path, name))


def _reads_to_find(path: Path) -> list[str]:
    return (
        [path.name.removesuffix(END)] if find(path) and "x" in json.loads(path.read_text()) else []
    )


def _leaves_a_mark(path: Path) -> list[str]:
    if find(path):
        path.write_text(path.read_text() + " ")
    return find(path)


def _trusting(path: Path, name: str) -> Dataset:
    content = json.loads(path.read_text())
    x, y = np.array(content["x"], np.float32), np.array(content["y"])
    return assemble(name, Arrays(x[:9], y[:9], x[9:], y[9:]))


def _fills_up(path: Path, name: str) -> Dataset:
    """What is missing of a file becomes zero."""
    if not path.is_file():
        raise DataError(f"{path} does not exist")
    raw = path.read_bytes().ljust(len(json.dumps(POINTS)), b"0")[: len(json.dumps(POINTS))]
    x = np.frombuffer(raw, np.uint8).reshape(-1, 1)
    y = np.arange(len(x)) % 2
    return assemble(name, Arrays(x, y, x, y))


def _shuffled(data: Dataset) -> Dataset:
    return replace(data, train=data.train.take(torch.randperm(len(data.train))))


def _half_labels(data: Dataset) -> Dataset:
    return replace(data, classes=(*data.classes, "nobody"))


def _augmented_test(data: Dataset) -> Dataset:
    return replace(
        data, test=replace(data.test, view=View(augment="pad-crop-flip", kind=data.kind))
    )


BROKEN_SOURCES: dict[str, Source] = {
    "finds everything": replace(SOUND, find=lambda path: [path.name.removesuffix(END)]),
    "finds nothing": replace(SOUND, find=lambda path: []),
    "reads to find": replace(SOUND, find=_reads_to_find),
    "leaves a mark": replace(SOUND, find=_leaves_a_mark),
    "a class without samples": replace(SOUND, read=_changed(_half_labels)),
    "augmented test": replace(SOUND, read=_changed(_augmented_test)),
    "its own name": replace(SOUND, read=_changed(lambda data: replace(data, name="points"))),
    "odd info": replace(SOUND, read=_changed(lambda data: replace(data, info={"path": Path()}))),
    "shuffles": replace(SOUND, read=_changed(_shuffled)),
    "trusts its files": replace(SOUND, read=_trusting),
    "fills up": replace(SOUND, read=_fills_up),
    "not listed, but reads": replace(SOUND, listed=False),
}


@dataclass(frozen=True)
class Deal(Rule):
    """Rows are shuffled and dealt like cards."""

    start: int = 0

    def divide(self, pool: Pool) -> Shares:
        rows = pool.rng.permutation(pool.rows)
        return Shares([rows[i :: pool.parties] for i in range(pool.parties)])


@dataclass(frozen=True)
class ManySettings(Deal):
    """Has a setting that is a list."""

    shares: list[int] = field(default_factory=lambda: [1, 2])


@dataclass(frozen=True)
class LosesARow(Deal):
    """Rows that do not divide are forgotten."""

    def divide(self, pool: Pool) -> Shares:
        size = len(pool.rows) // 7
        rows = pool.rng.permutation(pool.rows)
        return Shares([rows[i * size : (i + 1) * size] for i in range(pool.parties)])


@dataclass(frozen=True)
class TakesAllRows(Deal):
    """Divides rows that are not to be divided, too."""

    def divide(self, pool: Pool) -> Shares:
        rows = pool.rng.permutation(len(pool.labels))
        return Shares([rows[i :: pool.parties] for i in range(pool.parties)])


@dataclass(frozen=True)
class OneName(Deal):
    """All parties are called the same."""

    def divide(self, pool: Pool) -> Shares:
        return replace(super().divide(pool), names=("ward",) * pool.parties)


@dataclass(frozen=True)
class GlobalRandomness(Deal):
    """Shuffles by numpy's global generator."""

    def divide(self, pool: Pool) -> Shares:
        rows = np.random.permutation(pool.rows)
        return Shares([rows[i :: pool.parties] for i in range(pool.parties)])


@dataclass(frozen=True)
class ShufflesInPlace(Deal):
    """Changes what it was given."""

    def divide(self, pool: Pool) -> Shares:
        pool.rng.shuffle(pool.rows)
        return Shares([pool.rows[i :: pool.parties] for i in range(pool.parties)])


@dataclass(frozen=True)
class NeedsEveryClass(Deal):
    """The first party gets one row of every class first."""

    def divide(self, pool: Pool) -> Shares:
        for rows in pool.by_class():
            assert len(rows) > 0
        return super().divide(pool)


@dataclass(frozen=True)
class RefusesInWords(Deal):
    """The same, done right."""

    def divide(self, pool: Pool) -> Shares:
        if (pool.counts() == 0).any():
            raise PartitionError("every class must have a sample; train on more of them")
        return super().divide(pool)
