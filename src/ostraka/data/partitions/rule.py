"""What a partition rule is, what it divides, and the steps that several rules share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ostraka.core.settings import Settings
from ostraka.errors import PartitionError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Pool:
    """What a rule divides: `rows` of a training set; `labels` and `columns` are those of the full
    set."""

    labels: Ints
    rows: Ints
    parties: int
    classes: int
    columns: Mapping[str, NDArray[Any]]
    rng: np.random.Generator

    def need_parties(self) -> None:
        """Refuse a number of parties that cannot each hold a sample."""
        if self.parties < 1:
            raise PartitionError(f"{self.parties} parties were asked for; give 1 or more")
        if self.parties > len(self.rows):
            raise PartitionError(
                f"{self.parties} parties were asked for, but there are only {len(self.rows)} "
                "samples; use fewer parties"
            )

    def by_class(self) -> list[Ints]:
        """The rows of each class, each list shuffled."""
        held = self.labels[self.rows]
        return [self.rng.permutation(self.rows[held == c]) for c in range(self.classes)]

    def counts(self) -> Ints:
        """Samples of each class."""
        return np.bincount(self.labels[self.rows], minlength=self.classes).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Shares:
    """The rows of each party, their names where the data gives them; `partial`: rows may be left
    out on purpose."""

    rows: Sequence[Ints]
    names: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class Rule(Settings, ABC):
    """A rule's fields are its argument (the first field, shown as `argument`) and its options.

    The first line of a rule's docstring is its summary in lists.
    """

    argument: ClassVar[str] = ""
    whole_argument: ClassVar[bool] = (
        False  # the argument may hold commas: everything after the colon belongs to it
    )
    counts_parties: ClassVar[bool] = False  # the data says how many parties there are

    @abstractmethod
    def divide(self, pool: Pool) -> Shares:
        """The rows of each party."""


def division_digest(names: Sequence[str], parties: Sequence[Ints]) -> str:
    """A hash of who holds what; the order of a party's rows does not matter."""
    digest = blake2b(repr(tuple(names)).encode(), digest_size=16)
    for rows in parties:
        digest.update(np.sort(rows).astype("<i8").tobytes() + b"|")
    return digest.hexdigest()


def party_names(count: int) -> tuple[str, ...]:
    """Names of parties to which nobody gave one."""
    return tuple(f"party-{i}" for i in range(count))


def even(total: int, parts: int) -> Ints:
    """Sizes of `parts` equal parts of `total`; the first ones take what does not divide."""
    return total // parts + (np.arange(parts) < total % parts).astype(np.int64)


def equal_parts(owned: NDArray[np.bool_], pool: Pool) -> list[Ints]:
    """Split each class equally among its owners."""
    given = np.zeros(owned.shape, np.int64)
    for c, count in enumerate(pool.counts()):
        owners = np.flatnonzero(owned[:, c])
        given[owners, c] = even(int(count), len(owners))
    return deal(given, pool)


def deal(given: Ints, pool: Pool) -> list[Ints]:
    """The rows behind a table [parties, classes] of counts: each class is shuffled and cut in party
    order."""
    pieces = [np.split(rows, np.cumsum(given[:, c])[:-1]) for c, rows in enumerate(pool.by_class())]
    return [np.concatenate([piece[i] for piece in pieces]) for i in range(len(given))]


def check_room(rule: str, min_size: int, pool: Pool) -> None:
    """Refuse at once what no draw could give: more parties times `min_size` than samples."""
    if min_size * pool.parties > len(pool.rows):
        raise PartitionError(
            f"{rule}: {pool.parties} parties of at least {min_size} samples need "
            f"{min_size * pool.parties}, there are "
            f"{len(pool.rows)}; use fewer parties or a smaller min_size"
        )
