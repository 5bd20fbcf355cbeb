"""Partitions that somebody else has made: by a column of the data, by domain, or from a file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ostraka.data.partitions.rule import Ints, Pool, Rule, Shares, division_digest, party_names
from ostraka.errors import PartitionError, choices, did_you_mean
from ostraka.registry import PARTITIONS


@PARTITIONS.add("by")
@dataclass(frozen=True)
class By(Rule):
    """One party for each value of a column: the data already says whose row it is."""

    argument: ClassVar[str] = "COLUMN"
    whole_argument: ClassVar[bool] = True
    counts_parties: ClassVar[bool] = True
    column: str

    def divide(self, pool: Pool) -> Shares:
        """Rows grouped by the column's value, values in sorted order."""
        if self.column not in pool.columns:
            raise PartitionError(
                "the training data has no column "
                f"{self.column!r}.{did_you_mean(self.column, pool.columns)} "
                f"Its columns: {choices(pool.columns)}; bring one as the array {self.column}_train "
                "in the .npz file"
            )
        values = np.asarray(pool.columns[self.column])[pool.rows]
        gaps = {"f": np.isnan, "M": np.isnat}.get(values.dtype.kind)
        if gaps is not None and gaps(values).any():
            bad = int(pool.rows[gaps(values)][0])
            raise PartitionError(
                f"column {self.column!r} has no value for row {bad}; every row needs its party"
            )
        names, index = np.unique(values, return_inverse=True)
        if pool.parties not in (0, len(names)):
            raise PartitionError(
                f"column {self.column!r} has {len(names)} values, {pool.parties} parties were "
                f"asked for; ask for {len(names)} parties, or leave the number out"
            )
        ordered = pool.rows[np.argsort(index, kind="stable")]
        return Shares(
            np.split(ordered, np.cumsum(np.bincount(index))[:-1]),
            tuple(str(name) for name in names),
        )


@PARTITIONS.add("domain")
@dataclass(frozen=True)
class Domain(Rule):
    """One domain (original dataset) per party, the same classes for all (FedPD): the column
    "domain"."""

    counts_parties: ClassVar[bool] = True

    def divide(self, pool: Pool) -> Shares:
        """As `by:domain`."""
        return By("domain").divide(pool)


@PARTITIONS.add("file")
@dataclass(frozen=True)
class FromFile(Rule):
    """Your own partition, JSON {"parties": [[training rows], ...]}; with "partial": true it may
    leave rows out."""

    argument: ClassVar[str] = "PATH"
    whole_argument: ClassVar[bool] = True
    counts_parties: ClassVar[bool] = True
    path: str

    def divide(self, pool: Pool) -> Shares:
        """The parties of the file, checked against the rows to divide."""
        content = self._content()
        parties = [self._rows(i, rows) for i, rows in enumerate(content["parties"])]
        if pool.parties not in (0, len(parties)):
            raise PartitionError(
                f"{self.path} has {len(parties)} parties, {pool.parties} were asked for; ask for "
                f"{len(parties)}, or leave the number out"
            )
        partial = content.get("partial", False) is True
        self._check(parties, pool, partial)
        return Shares(parties, self._names(content, len(parties)), partial)

    def digest(self) -> str:
        """The hash of the division in the file as it is now, as `Partition.digest` has it."""
        content = self._content()
        parties = [self._rows(i, rows) for i, rows in enumerate(content["parties"])]
        return division_digest(
            self._names(content, len(parties)) or party_names(len(parties)), parties
        )

    def _names(self, content: Mapping[str, Any], parties: int) -> tuple[str, ...]:
        names = content.get("names", [])
        # bool is an int in Python, but true is not a name.
        plain = isinstance(names, list) and all(
            isinstance(n, str | int) and not isinstance(n, bool) for n in names
        )
        if not plain or len(names) not in (0, parties):
            raise PartitionError(
                f'{self.path}: "names" must be a list of {parties} names, or be left out'
            )
        return tuple(str(name) for name in names)

    def _content(self) -> dict[str, Any]:
        try:
            content = json.loads(Path(self.path).expanduser().read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise PartitionError(
                f"{self.path} cannot be read: {error.strerror or error}; give a JSON file, such as "
                "ostraka partition --save writes"
            ) from error
        except (ValueError, RecursionError) as error:
            raise PartitionError(
                f'{self.path} is not JSON ({error}); write {{"parties": [[0, 1], [2, 3]]}}'
            ) from error
        parties = content.get("parties") if isinstance(content, dict) else None
        if not isinstance(parties, list) or not parties:
            raise PartitionError(
                f'{self.path} has no list "parties"; write {{"parties": [[0, 1], [2, 3]]}}'
            )
        return dict(content)

    def _rows(self, i: int, rows: Any) -> Ints:
        if not isinstance(rows, list) or not rows:
            raise PartitionError(
                f"{self.path}: party {i} is {str(rows)[:40]}; give a list of at least one training "
                "row"
            )
        for row in rows:
            # bool is an int in Python, but true is not a row.
            if not isinstance(row, int) or isinstance(row, bool):
                raise PartitionError(
                    f"{self.path}: party {i} lists {row!r}; training rows are whole numbers from 0"
                )
        if min(rows) < 0 or max(rows) >= 2**62:
            raise PartitionError(
                f"{self.path}: party {i} lists a row out of range; training rows are numbers from 0"
            )
        return np.array(rows, np.int64)

    def _check(self, parties: list[Ints], pool: Pool, partial: bool) -> None:
        seen = np.full(len(pool.labels), -1)
        for i, rows in enumerate(parties):
            strange = rows[(rows >= len(pool.labels))]
            if len(strange):
                raise PartitionError(
                    f"{self.path}: party {i} lists row {strange[0]}; the training set has rows 0 "
                    f"to {len(pool.labels) - 1}"
                )
            again = rows[seen[rows] >= 0]
            if len(again):
                raise PartitionError(
                    f"{self.path}: row {again[0]} belongs to parties {seen[again[0]]} and {i}; "
                    "give it to one"
                )
            seen[rows] = i
            if len(np.unique(rows)) != len(rows):
                twice = int(np.sort(rows)[:-1][np.diff(np.sort(rows)) == 0][0])
                raise PartitionError(
                    f"{self.path}: party {i} lists row {twice} twice; list every row once"
                )
        outside = np.setdiff1d(np.flatnonzero(seen >= 0), pool.rows)
        if len(outside):
            raise PartitionError(
                f"{self.path}: party {seen[outside[0]]} lists row {outside[0]}, which this run "
                "does not train on (an unknown class, or outside the training subset); remove it "
                "or widen the run's classes or subset"
            )
        absent = pool.rows[seen[pool.rows] < 0]
        if len(absent) and not partial:
            raise PartitionError(
                f"{self.path}: {len(absent)} training rows belong to no party (first: "
                f"{absent[0]}); add them, or add "
                '"partial": true to the file to leave them out'
            )
