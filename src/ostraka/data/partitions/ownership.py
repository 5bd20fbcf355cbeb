"""Who owns which class, where random draws alone do not find it: an assignment by augmenting paths.

Every party owns `k` classes, every class has at least one owner and no more owners than samples. A
party or class whose places are all taken gives one of them up for another, as in bipartite
matching: whatever can be assigned is assigned.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from ostraka.data.partitions.rule import Ints

Owned = NDArray[np.bool_]


def firsts(parties: int, classes: int, cycle: bool) -> Owned:
    """[parties, classes]: what is fixed before anything is drawn; party i's class i mod C, or
    nothing."""
    fixed = np.zeros((parties, classes), bool)
    if cycle:
        fixed[np.arange(parties), np.arange(parties) % classes] = True
    return fixed


def obstacle(k: int, counts: Ints, fixed: Owned) -> str:
    """Why no assignment can exist; empty where one does.

    Counting is enough: any party may take any class, except for the one it has, and first classes
    are spread evenly.
    """
    parties, classes = fixed.shape
    each = f"{parties} parties with {k} classes each"
    if parties * k < classes:
        return f"{each} own at most {parties * k} of {classes} classes"
    short = np.flatnonzero(counts < np.maximum(fixed.sum(axis=0), 1))
    if len(short):
        c = int(short[0])
        return f"class {c} has {counts[c]} samples for {max(int(fixed[:, c].sum()), 1)} owners"
    places = int(np.minimum(counts, parties).sum())
    if places < parties * k:
        return f"{each} need {parties * k} parts of a class, the samples give {places}"
    return ""


def assign(k: int, counts: Ints, fixed: Owned, rng: np.random.Generator) -> Owned:
    """A random assignment that holds what is `fixed`; there must be no `obstacle`."""
    owned = fixed.copy()
    most = np.minimum(counts, len(fixed))
    for c in rng.permutation(np.flatnonzero(~fixed.any(axis=0))):
        _give(owned.T, fixed.T, int(c), owned.sum(axis=1) < k, rng)
    # each party as often as it lacks a class, in random order
    for i in rng.permutation(np.repeat(np.arange(len(owned)), k - owned.sum(axis=1))).tolist():
        _give(owned, fixed, i, owned.sum(axis=0) < most, rng)
    return owned


def _give(
    owned: Owned, fixed: Owned, start: int, free: NDArray[np.bool_], rng: np.random.Generator
) -> None:
    """Give row `start` one more column: a free one if it can have one, else along the shortest
    chain of exchanges.

    In a chain, every row on the way takes a column and gives up one that it had, but never one that
    is fixed.
    """
    # row -> (row before it, the column that it gives up to that one)
    came: dict[int, tuple[int, int]] = {}
    waiting, seen = deque([start]), np.zeros(owned.shape[1], bool)
    while waiting:
        row = waiting.popleft()
        open_to = np.flatnonzero(~owned[row] & ~seen)
        ends = open_to[free[open_to]]
        if len(ends):
            column = int(rng.choice(ends))
            while row != start:
                before, given_up = came[row]
                owned[row, column], owned[row, given_up] = True, False
                row, column = before, given_up
            owned[start, column] = True
            return
        for column in rng.permutation(open_to).tolist():
            seen[column] = True
            for other in np.flatnonzero(owned[:, column] & ~fixed[:, column]).tolist():
                if other != start and other not in came:
                    came[other] = (row, column)
                    waiting.append(other)
    raise AssertionError("counting has missed an obstacle")
