"""The rules by which training samples are divided among parties.

Two different rules are called "Dirichlet" in the literature. `dirichlet:BETA` draws, for every
CLASS, the shares in which its samples go to the parties: sizes differ between parties.
`party-dirichlet:ALPHA` draws, for every PARTY, the mix of classes it holds: all parties have the
same size.
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ostraka.core.settings import setting
from ostraka.data.partitions.ownership import assign, firsts, obstacle
from ostraka.data.partitions.rule import (
    MAX_DRAWS,
    Floats,
    Ints,
    Pool,
    Rule,
    Shares,
    check_room,
    deal,
    equal_parts,
    even,
)
from ostraka.errors import PartitionError
from ostraka.registry import PARTITIONS


@PARTITIONS.add("labels", "#c", "noniid-#label", "noniid-l")
@dataclass(frozen=True)
class Labels(Rule):
    """Every party holds K classes (#C=K of FedOV); a class is shared equally by the parties that
    own it.

    Party i's first class is i mod C, as in the published code; with `first=random` all K are
    random, as in the paper.
    """

    argument: ClassVar[str] = "K"
    k: int = setting(MISSING, "classes of every party", span="[1, inf)")
    first: Literal["cycle", "random"] = setting("cycle", "how a party's first class is chosen")

    def divide(self, pool: Pool) -> Shares:
        """Draw who owns which class, then share each class equally among its owners."""
        if self.k > pool.classes:
            raise PartitionError(
                f"labels:{self.k}: there are only {pool.classes} classes; use a smaller number"
            )
        counts, fixed = pool.counts(), self._fixed(pool.parties, pool.classes)
        why = obstacle(self.k, counts, fixed)
        if why:
            raise self._impossible(pool, why)
        for _ in range(MAX_DRAWS):
            owned = self._draw(pool, fixed)
            owners = owned.sum(axis=0)
            if (owners > 0).all() and (owners <= counts).all():
                return Shares(equal_parts(owned, pool))
        # Random draws do not find what is rare: 5 parties with 2 of 10 classes each must divide
        # them without overlap.
        return Shares(equal_parts(assign(self.k, counts, fixed, pool.rng), pool))

    def _fixed(self, parties: int, classes: int) -> NDArray[np.bool_]:
        return firsts(parties, classes, self.first == "cycle")

    def _draw(self, pool: Pool, fixed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[parties, classes]: who owns what. The k smallest of C random numbers are k distinct
        uniform classes."""
        keys = pool.rng.random((pool.parties, pool.classes))
        keys[fixed] = -1.0
        owned = np.zeros(keys.shape, bool)
        np.put_along_axis(owned, np.argsort(keys, axis=1)[:, : self.k], True, axis=1)
        return owned

    def _impossible(self, pool: Pool, why: str) -> PartitionError:
        """The error, with the nearest numbers of parties and of classes per party that work."""

        def possible(k: int, parties: int) -> bool:
            return not obstacle(k, pool.counts(), self._fixed(parties, pool.classes))

        k, parties, classes = self.k, pool.parties, pool.classes
        nearest = {
            "parties": _nearest(parties, k, classes, lambda n: possible(k, n)),
            "classes per party": _nearest(k, parties, classes, lambda n: possible(n, parties)),
        }
        works = " or ".join(
            f"{number} {name}" for name, number in nearest.items() if number is not None
        )
        remedy = (
            f"what works: {works}"
            if works
            else "no number of parties works: every class needs samples to divide"
        )
        return PartitionError(
            f"labels:{self.k} with {pool.parties} parties is not possible: {why}; {remedy}"
        )


def _nearest(given: int, other: int, classes: int, possible: Callable[[int], bool]) -> int | None:
    """More where classes lack owners, fewer where they lack samples; None where no number works."""
    enough = -(-classes // other)
    tried = [enough] if given < enough else range(given - 1, enough - 1, -1)
    return next((number for number in tried if possible(number)), None)


@PARTITIONS.add("dirichlet", "noniid-labeldir", "noniid-lds")
@dataclass(frozen=True)
class Dirichlet(Rule):
    """Each CLASS is shared out by p ~ Dir(BETA) over the parties (FedOV, NIID-Bench, DeDES); sizes
    differ.

    With `balance` (as in the published code, not in the paper) a party that already holds total/N
    samples gets nothing from the classes that follow. Everything is redrawn until the smallest
    party has `min_size` samples.
    """

    argument: ClassVar[str] = "BETA"
    beta: float = setting(MISSING, "concentration: small is skewed, large is even", span="(0, inf)")
    balance: bool = setting(True, "whether a party that has its fair share gets no more")
    min_size: int = setting(10, "samples that every party has at least", span="[1, inf)")

    def divide(self, pool: Pool) -> Shares:
        """Draw until the smallest party is large enough."""
        check_room("dirichlet", self.min_size, pool)
        counts, best = pool.counts(), (-1, 0)
        for _ in range(MAX_DRAWS):
            given = self.draw(counts, pool.parties, pool.rng)
            sizes = given.sum(axis=1)
            if sizes.min() >= self.min_size:
                return Shares(deal(given, pool))
            best = max(best, (int(sizes.min()), int(sizes.argmin())))
        raise PartitionError(
            f"dirichlet:{self.beta:g} with {pool.parties} parties is not possible in {MAX_DRAWS} "
            f"draws: min_size is {self.min_size}, the best draw left party {best[1]} with "
            f"{best[0]} samples; use a larger BETA, fewer parties or a smaller min_size"
        )

    def draw(self, counts: Ints, parties: int, rng: np.random.Generator) -> Ints:
        """[parties, classes]: one draw of how many samples of each class each party gets."""
        given = np.zeros((parties, len(counts)), np.int64)
        held, fair = np.zeros(parties, np.int64), counts.sum() / parties
        for c, count in enumerate(counts):
            if count == 0:
                continue
            p = rng.dirichlet(np.full(parties, self.beta))
            if self.balance:
                p = self._without_full(p, held < fair, rng)
            cuts = np.minimum((np.cumsum(p)[:-1] * count).astype(np.int64), count)
            given[:, c] = np.diff(cuts, prepend=0, append=count)
            held += given[:, c]
        return given

    def _without_full(
        self, p: Floats, is_open: NDArray[np.bool_], rng: np.random.Generator
    ) -> Floats:
        p = p * is_open
        if p.sum() <= 0:
            # A tiny BETA gave everything to full parties. The rest of a Dirichlet draw is itself
            # Dirichlet: draw that.
            p[is_open] = rng.dirichlet(np.full(int(is_open.sum()), self.beta))
        share: Floats = p / p.sum()
        return share


@PARTITIONS.add("party-dirichlet")
@dataclass(frozen=True)
class PartyDirichlet(Rule):
    """Each PARTY draws its class mix q ~ Dir(ALPHA * remaining class shares) (Hsu et al., FedOS);
    equal sizes.

    0 means one class per party, as far as the classes' sizes allow. When a class runs out, the
    party's other classes fill its place; when those are gone too it draws a new mix.
    """

    argument: ClassVar[str] = "ALPHA"
    alpha: float = setting(MISSING, "concentration; 0: one class each", span="[0, inf)")

    def divide(self, pool: Pool) -> Shares:
        """Let the parties, in random order, each draw from what is left."""
        left = pool.counts()
        given = np.zeros((pool.parties, pool.classes), np.int64)
        sizes = even(len(pool.rows), pool.parties)
        for i in pool.rng.permutation(pool.parties):
            mix = np.zeros(pool.classes)
            while (need := int(sizes[i] - given[i].sum())) > 0:
                mix = mix * (left > 0)
                if mix.sum() <= 0:
                    mix = self._mix(left, pool.rng)
                take = np.minimum(pool.rng.multinomial(need, mix / mix.sum()), left)
                given[i] += take
                left = left - take
        return Shares(deal(given, pool))

    def _mix(self, left: Ints, rng: np.random.Generator) -> Floats:
        prior, mix = left / left.sum(), np.zeros(len(left))
        some = np.flatnonzero(left)
        if self.alpha > 0:
            mix[some] = rng.dirichlet(self.alpha * prior[some])
        if not np.isfinite(mix).all() or mix.sum() <= 0:
            # the limit for ALPHA -> 0, and what a number near it underflows to
            mix = np.zeros(len(left))
        if mix.sum() <= 0:
            mix[rng.choice(len(left), p=prior)] = 1.0
        return mix


@PARTITIONS.add("shards", "noniid-shards")
@dataclass(frozen=True)
class Shards(Rule):
    """Every class is cut into L * parties / classes equal parts; a party gets L parts of distinct
    classes (FedOVA)."""

    argument: ClassVar[str] = "L"
    parts: int = setting(MISSING, "parts of every party, of distinct classes", span="[1, inf)")

    def divide(self, pool: Pool) -> Shares:
        """Assign the parts of every class to parties."""
        total, here = self.parts * pool.parties, f"shards:{self.parts} with {pool.parties} parties"
        if not 1 <= self.parts <= pool.classes:
            raise PartitionError(
                f"{here}: a party's parts have distinct classes, so L goes from 1 to {pool.classes}"
            )
        if total % pool.classes:
            step = pool.classes // math.gcd(pool.classes, self.parts)
            raise PartitionError(
                f"{here}: {self.parts} * {pool.parties} = {total} parts cannot be cut equally from "
                f"{pool.classes} classes; the number of parties must be a multiple of {step}"
            )
        per_class, counts = total // pool.classes, pool.counts()
        if counts.min() < per_class:
            c = int(counts.argmin())
            raise PartitionError(
                f"{here}: class {c} has {counts[c]} samples for {per_class} parts; use fewer "
                "parties"
            )
        return Shares(equal_parts(self._assign(pool, per_class), pool))

    def _assign(self, pool: Pool, per_class: int) -> NDArray[np.bool_]:
        """[parties, classes]: a class with as many parts left as parties must be taken; the rest is
        random."""
        left = np.full(pool.classes, per_class)
        owned = np.zeros((pool.parties, pool.classes), bool)
        for waiting, i in zip(
            range(pool.parties, 0, -1), pool.rng.permutation(pool.parties), strict=True
        ):
            forced = left == waiting
            weights = np.where(forced, 0, left)
            free = self.parts - int(forced.sum())
            owned[i] = forced
            if free:
                p = weights / weights.sum()
                owned[i, pool.rng.choice(pool.classes, free, replace=False, p=p)] = True
            left = left - owned[i]
        return owned


@PARTITIONS.add("iid", "homo")
@dataclass(frozen=True)
class Iid(Rule):
    """Equal sizes and the same class shares for every party."""

    def divide(self, pool: Pool) -> Shares:
        """Deal every class evenly."""
        # Dealing the sorted classes like cards: sizes and every class's counts differ by at most
        # one.
        cards = np.concatenate(pool.by_class())
        return Shares([cards[i :: pool.parties] for i in pool.rng.permutation(pool.parties)])


@PARTITIONS.add("iid-quantity", "iid-dq", "iid-diff-quantity")
@dataclass(frozen=True)
class IidQuantity(Rule):
    """The same class shares for every party, sizes ~ Dir(BETA), raised to `min_size` where smaller
    (DeDES)."""

    argument: ClassVar[str] = "BETA"
    beta: float = setting(MISSING, "concentration of the sizes: large is even", span="(0, inf)")
    min_size: int = setting(10, "samples that every party has at least", span="[1, inf)")

    def divide(self, pool: Pool) -> Shares:
        """Draw the sizes, then cut an evenly mixed line of all rows."""
        check_room("iid-quantity", self.min_size, pool)
        shares = pool.rng.dirichlet(np.full(pool.parties, self.beta))
        sizes = floored_sizes(shares, len(pool.rows), self.min_size)
        # Every class is spread evenly over the whole line, so any stretch of it has the same class
        # shares.
        rows = pool.by_class()
        place = np.concatenate(
            [(np.arange(len(r)) + pool.rng.random()) / max(len(r), 1) for r in rows]
        )
        line = np.concatenate(rows)[np.argsort(place, kind="stable")]
        return Shares(np.split(line, np.cumsum(sizes)[:-1]))


def floored_sizes(shares: Floats, total: int, floor: int) -> Ints:
    """Whole sizes that sum to `total` in proportion to `shares`, none below `floor`; the others pay
    for it."""
    low = np.zeros(len(shares), bool)
    while True:
        rest = total - floor * int(low.sum())
        weight = shares[~low].sum()
        open_shares = (
            shares / weight if weight > 0 else np.full(len(shares), 1 / max((~low).sum(), 1))
        )
        sizes = np.where(low, float(floor), open_shares * rest)
        below = ~low & (sizes < floor)
        if not below.any():
            break
        low |= below
    whole = np.floor(sizes).astype(np.int64)
    order = np.argsort(whole - sizes, kind="stable")  # the largest remainders first
    whole[order[: total - int(whole.sum())]] += 1
    return whole
