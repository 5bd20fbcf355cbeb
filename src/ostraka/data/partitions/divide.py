"""Divide a training set among parties: `partition("labels:2", labels, parties=10, seed=0,
classes=10)`.

A spec is `rule:argument,option=value,...`; the rules are in `rules` and `given`. Whatever the rule,
the parties' index sets are disjoint, together they are the rows to divide, and the same seed gives
the same sets.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ostraka.core.seeds import numpy_rng
from ostraka.data.names import flaw
from ostraka.data.partitions.rule import Pool, Rule, Shares, division_digest, party_names
from ostraka.data.partitions.spec import format_spec, parse
from ostraka.errors import PartitionError, writing


@dataclass(frozen=True, eq=False)
class Partition:
    """Which training rows each party holds; row numbers are those of the full training set."""

    spec: str
    parties: tuple[NDArray[np.int64], ...]
    names: tuple[str, ...]
    seed: int
    partial: bool = False
    """Whether rows are left out on purpose."""
    tests: tuple[NDArray[np.int64], ...] = ()
    """Rows that each party was given and does not train on: its part of the test."""

    def __len__(self) -> int:
        return len(self.parties)

    def table(self, labels: NDArray[Any], classes: int) -> NDArray[np.int64]:
        """[parties, classes]: how many samples of each class each party holds."""
        return np.stack([np.bincount(labels[rows], minlength=classes) for rows in self.parties])

    @property
    def given(self) -> tuple[NDArray[np.int64], ...]:
        """What each party was given, before a part of it became the test."""
        if not self.tests:
            return self.parties
        pairs = zip(self.parties, self.tests, strict=True)
        return tuple(np.sort(np.concatenate(pair)) for pair in pairs)

    @property
    def digest(self) -> str:
        """A hash of who was given what."""
        return division_digest(self.names, self.given)

    def save(self, path: str | Path) -> None:
        """Write the partition as JSON that `file:PATH` reads."""
        content: dict[str, Any] = {
            "spec": self.spec,
            "seed": self.seed,
            "names": list(self.names),
            "parties": [rows.tolist() for rows in self.given],
            **({"partial": True} if self.partial else {}),
        }
        with writing(path):
            Path(path).write_text(json.dumps(content) + "\n", encoding="utf-8")


def partition(
    spec: str,
    labels: NDArray[Any],
    parties: int,
    seed: int,
    *,
    rows: NDArray[Any] | None = None,
    columns: Mapping[str, NDArray[Any]] | None = None,
    classes: int,
) -> Partition:
    """Divide `rows` (default: all) of a training set with these `labels`.

    `labels` and `columns` have one value for each row of the full set. `parties` may be 0 for the
    rules that take the number of parties from the data (`by`, `domain`, `file`).
    """
    rule = parse(spec)
    pool = make_pool(labels, parties, seed, rows, columns or {}, classes)
    if not rule.counts_parties:
        pool.need_parties()
    shares = rule.divide(pool)
    _verify(rule, pool, shares)
    names = shares.names or party_names(len(shares.rows))
    _verify_names(rule, names, len(shares.rows))
    found = tuple(np.sort(rows).astype(np.int64) for rows in shares.rows)
    return Partition(format_spec(rule), found, names, seed, shares.partial)


def make_pool(
    labels: NDArray[Any],
    parties: int,
    seed: int,
    rows: NDArray[Any] | None,
    columns: Mapping[str, NDArray[Any]],
    classes: int,
) -> Pool:
    """The checked input of a rule."""
    labels = np.asarray(labels)
    rows = np.arange(len(labels)) if rows is None else np.sort(np.asarray(rows))
    if rows.size == 0:
        raise PartitionError(
            "there are no training samples to divide; check the known classes and the training "
            "subset"
        )
    outside = rows.dtype.kind not in "iu" or rows[0] < 0 or rows[-1] >= len(labels)
    if outside or (np.diff(rows) == 0).any():
        raise PartitionError(
            f"the rows to divide must be distinct whole numbers from 0 to {len(labels) - 1}"
        )
    held = labels[rows]
    if held.dtype.kind not in "iu" or held.min() < 0 or held.max() >= classes:
        raise PartitionError(
            f"labels of the rows to divide must be whole numbers from 0 to {classes - 1}"
        )
    whole, rng = labels.astype(np.int64), numpy_rng(seed, "partition")
    return Pool(whole, rows.astype(np.int64), parties, classes, columns, rng)


def _verify(rule: Rule, pool: Pool, shares: Shares) -> None:
    """The promise of this module, checked for every rule, plug-ins included."""
    if not len(shares.rows):
        raise PartitionError(f"{format_spec(rule)} made no party; it must make at least one")
    for i, rows in enumerate(shares.rows):
        if len(rows) == 0:
            raise PartitionError(
                f"{format_spec(rule)}: party {i} would hold no sample of the {len(pool.rows)}; use "
                "fewer parties"
            )
    held = np.sort(np.concatenate(shares.rows))
    if (np.diff(held) == 0).any():
        raise PartitionError(
            f"{format_spec(rule)} gave row {held[:-1][np.diff(held) == 0][0]} to two parties"
        )
    if shares.partial and not np.isin(held, pool.rows).all():
        raise PartitionError(
            f"{format_spec(rule)} gave out row {np.setdiff1d(held, pool.rows)[0]}, which is not "
            "one to divide"
        )
    if not shares.partial and not np.array_equal(held, pool.rows):
        raise PartitionError(
            f"{format_spec(rule)} gave out {len(held)} rows, not exactly the {len(pool.rows)} to "
            "divide"
        )


def _verify_names(rule: Rule, names: tuple[str, ...], parties: int) -> None:
    """Figures and files are told apart by the parties' names."""
    if len(names) != parties:
        raise PartitionError(
            f"{format_spec(rule)} gave {len(names)} names to {parties} parties; give one to each"
        )
    wrong = flaw(names, "party")
    if wrong:
        raise PartitionError(
            f"{format_spec(rule)}: {wrong}; give every party a name of its own, on one line"
        )
