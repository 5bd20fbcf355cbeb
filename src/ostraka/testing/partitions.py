"""The contract of partition rules, checked on made-up labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import getdoc
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ostraka.data.partitions.divide import make_pool
from ostraka.data.partitions.rule import Pool, Rule, Shares
from ostraka.data.partitions.spec import format_spec, parse
from ostraka.errors import PartitionError
from ostraka.testing.expect import SEED, expect, hoped
from ostraka.testing.stage import twice

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Ground:
    """What is divided: labels and columns of a training set, the rows that count,
    and among how many parties.
    """

    labels: Array
    parties: int
    columns: Mapping[str, Array] = field(default_factory=dict)
    rows: Array | None = None
    classes: int = 0

    def pool(self, seed: int = SEED) -> Pool:
        """As a rule gets it."""
        return make_pool(self.labels, self.parties, seed, self.rows, self.columns, self.classes)


def check_partition(
    rule: Rule,
    parties: int = 6,
    labels: Sequence[int] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Raise a ContractBroken if `rule` fails any of CHECKS; takes a moment.

    The rule must be registered. Six classes of 40 to 90 samples are divided among `parties`, unless
    you give labels and columns that the rule can divide.
    """
    ground = ground_of(parties, labels, columns)
    for check in CHECKS:
        check(rule, ground)


def ground_of(
    parties: int = 6, labels: Sequence[int] | None = None, columns: Mapping[str, Any] | None = None
) -> Ground:
    """The usual labels, in no order, or those that are given."""
    usual = np.random.default_rng(SEED).permutation(np.repeat(np.arange(6), np.arange(40, 100, 10)))
    y = usual if labels is None else np.asarray(labels)
    named = {name: np.asarray(values) for name, values in (columns or {}).items()}
    return Ground(y, parties, named, classes=int(y.max()) + 1)


def check_spec(rule: Rule, ground: Ground) -> None:
    """The rule is written as text, as in a run's files, and read back.

    Its docstring is its line in lists.
    """
    what = "the rule is written as text and read back"
    advice = (
        "make it a frozen dataclass with fields of text, numbers and true or false, and register it"
    )
    with hoped(rule, what, advice):
        text = format_spec(rule)
        again = parse(text)
    change = again != rule and f"{rule} became {again} by way of {text!r}"
    expect(rule, what, change, advice)
    words = (getdoc(type(rule)) or "").strip()
    silent = words in ("", getdoc(Rule)) and "it has none"
    advice = "the first line is shown by ostraka list partitions"
    expect(rule, "its docstring says what it does", silent, advice)


def check_complete(rule: Rule, ground: Ground) -> None:
    """Every row to divide goes to exactly one party, and every party has one.

    The same for a part of the rows.
    """
    some = np.flatnonzero(np.arange(len(ground.labels)) % 5 != 0)
    for case, own in (("all rows", ground), ("a part of the rows", replace(ground, rows=some))):
        advice = "fix the error above, or give other labels or another number"
        with hoped(rule, f"it divides {case}", advice):
            try:
                shares = rule.divide(own.pool())
            except PartitionError:
                if rule.counts_parties and own.rows is not None:
                    continue  # a division that is given for all rows need not fit a part of them
                raise
        expect(rule, f"it divides {case} among all parties", *_problem(rule, own.pool(), shares))


def check_same_seed(rule: Rule, ground: Ground) -> None:
    """The same seed gives the same parties, however numpy's and
    Python's random generators stand.
    """

    def parties() -> list[list[int]]:
        with hoped(rule, "it divides"):
            return [np.sort(rows).tolist() for rows in rule.divide(ground.pool()).rows]

    first, second = twice(parties)
    change = first != second and "the parties of two divisions hold different rows"
    expect(rule, "the same seed gives the same parties", change, "draw everything from pool.rng")


def check_unchanged(rule: Rule, ground: Ground) -> None:
    """Labels, rows and columns are left as they were."""
    pool = ground.pool()
    before = [pool.labels.copy(), pool.rows.copy(), *(v.copy() for v in pool.columns.values())]
    with hoped(rule, "it divides"):
        rule.divide(pool)
    same = all(map(np.array_equal, before, [pool.labels, pool.rows, *pool.columns.values()]))
    change = not same and "the labels, rows or columns that it was given changed"
    expect(rule, "it leaves what it divides unchanged", change, "work on a copy")


def check_refusals(rule: Rule, ground: Ground) -> None:
    """What cannot be divided is refused with a PartitionError.

    What can be is divided completely.
    """
    first = np.flatnonzero(ground.labels == ground.labels[0])
    one_each = np.unique(ground.labels, return_index=True)[1]
    rows = {
        "one class only": first,
        "one sample of each class": np.sort(one_each),
        "one sample": first[:1],
    }
    for (case, some), parties in product(rows.items(), (1, 2, ground.parties, len(first))):
        if parties > len(some) and not rule.counts_parties:
            continue  # refused before any rule is asked
        pool = replace(ground, rows=some, parties=0 if rule.counts_parties else parties).pool()
        what = f"{case} for {parties} parties is divided, or refused with a PartitionError"
        with hoped(rule, what, "raise a PartitionError that says what was asked, and what to do"):
            try:
                shares = rule.divide(pool)
            except PartitionError:
                continue
        expect(rule, what, *_problem(rule, pool, shares))


CHECKS: tuple[Callable[[Rule, Ground], None], ...] = (
    check_spec,
    check_complete,
    check_same_seed,
    check_unchanged,
    check_refusals,
)
"""All checks, those with the plainest message first."""


def _problem(rule: Rule, pool: Pool, shares: Shares) -> tuple[str | None, str]:
    """What is wrong with a division, and what to do."""
    parts = [np.asarray(rows) for rows in shares.rows]
    if not rule.counts_parties and len(parts) != pool.parties:
        advice = "give as many lists of rows as pool.parties"
        return f"it made {len(parts)} parties of {pool.parties}", advice
    if any(len(rows) == 0 for rows in parts):
        advice = "raise a PartitionError, or divide so that every party has one"
        return "a party holds no row", advice
    if any(rows.dtype.kind not in "iu" for rows in parts):
        return "rows are not whole numbers", "give arrays of row numbers from pool.rows"
    held = np.sort(np.concatenate(parts))
    twice_held = held[:-1][np.diff(held) == 0]
    if len(twice_held):
        return f"row {twice_held[0]} belongs to two parties", "give every row to one party"
    strange = np.setdiff1d(held, pool.rows)
    if len(strange):
        advice = "give out pool.rows only, not all of pool.labels"
        return f"row {strange[0]} is not among the rows to divide", advice
    missing = np.setdiff1d(pool.rows, held)
    if len(missing) and not shares.partial:
        advice = (
            "give every row to a party, or Shares(..., partial=True) "
            "if rows are left out on purpose"
        )
        return f"{len(missing)} rows belong to no party", advice
    if shares.names and len(set(shares.names)) != len(parts):
        advice = "give each party a name of its own, or none"
        return f"{len(parts)} parties have the names {list(shares.names)}", advice
    return None, ""
