"""A simulated electorate: the vote that may be expected on samples of known classes, from what
parties told of theirs.

Nobody but the parties has samples of the known classes, and a party cannot ask the others' members.
But every party tells how sure its member is of held-out samples (`core.told`), and a sample of
class c is decided by the owners of c. So votes are drawn from what the owners told, counted by the
very ballot that will count the real ones, and the threshold is where the promised share of them
would be called unknown. With, for member m, the told quantiles Q_m of the log odds of the true
class against all else, unknown included:

    s_m(u) = log sigmoid(Q_m(u))
    s_m(u) = max(s_m(u), 2 q25(u) - q50(u))
             quartile and median over members: one that tells of extreme doubt cannot move the line
    z_mj   = sqrt(rho) e_j + sqrt(1 - rho) e_mj
             normal; a sample that is hard for one owner is harder for others
    L_mj   = Q_m(Phi(z_mj)) + k_mc
             the log odds that owner m gives to class c on draw j
    k_mc   = 2.5 (h_mc - mean of h_m over its samples), h_mc = log(n_mc / (n_mc + 30))
             what it told is of its own mix of classes, and those of which it has few samples it
             knows less well (measured: docs/results/voting.md)

Draws of a class weigh as much as the class has samples. Who does not own class c says
unknown; a stranger's false claim could only make an answer more certain, so the promise
errs on the side of fewer refusals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median, median_low

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.told import LEVELS, curve, held, read
from ostraka.voting.calibrated import spread_counts

DRAWS = 2000
"""Simulated samples of all classes together, shared out by the classes' sizes."""
FEWEST = 50
"""Simulated samples of a class, however small."""
MIDDLE = LEVELS.index(0.5)
"""Where the median is among the quantiles."""
LOST = -5.0
"""Median log odds of the true class that no trained member discloses; hardly trained ones have
-3.2 at the least (docs/results/voting.md).
"""
ENOUGH = 10
"""Held-out samples below which a member's own quantiles say less
than those of all members together.
"""
TWICE = 2
"""How many of all held-out samples must lie beyond the promised rate."""
GRID = 200
"""Points at which told quantiles are put together."""
LIKENESS = 0.5
"""rho: how much of a sample's difficulty its owners share. Measured, it is 0.65; but strangers'
false claims, which are not simulated, make some answers surer.
"""
FALL, SEEN = 2.5, 30.0
"""How log odds fall with fewer samples of a class,
and the number of samples around which they do.
"""
SURE = 30.0
"""Log odds beyond which a vote is as good as certain."""
HARDLY = -0.5
"""Members whose median log odds of unknown, of their own training samples,
lie above this have hardly learnt.
"""


@dataclass(frozen=True)
class Draw:
    """Simulated votes on samples of one class."""

    share: float
    """The class's share of all samples."""
    logits: Tensor
    """[M, J, K + 1]"""
    typicality: Tensor | None
    """[M, J, K]; None where not all members tell embedding statistics."""


def unkept(cards: Sequence[Card], rate: float) -> str:
    """Why nothing can be promised of a vote of members with these cards;
    empty: a promise can be made.
    """
    if all(card.counts is None for card in cards):
        return "no member tells how many samples of each class it has (tell=counts)"
    if not any(any(card.counts or ()) for card in cards):
        return "the members tell fewer than ten samples of every class (tell=counts tells them)"
    told = [held(card.calibration) if curve(card.calibration, "claims") else 0 for card in cards]
    total = sum(min(held_out, median_low(told)) for held_out in told)
    if total * rate < TWICE:
        return (
            f"the members tell of {total} samples that they were not trained "
            f"on, none counted for more than the median member; {ceil(TWICE / rate)} are needed "
            f"for a rate of {rate:g}: give a larger hold_out, or more data"
        )
    return ""


def hardly_trained(cards: Sequence[Card]) -> str:
    """A warning if most members have hardly learnt:
    what they tell of held-out samples is then no rule for others.
    """
    doubts = [float(card.calibration["doubt"]) for card in cards if "doubt" in card.calibration]
    for card in cards:
        claims = curve(card.calibration, "claims")
        if claims and claims[MIDDLE] < LOST:
            return (
                f"{card} discloses that it does not recognise its own held-out samples (median log "
                f"odds {claims[MIDDLE]:.1f}, below {LOST:g}): leave it out, or train it longer"
            )
    if not doubts or median(doubts) <= HARDLY:
        return ""
    return (
        "most members have hardly learnt to tell their own samples from unknown ones (median log "
        f"odds of unknown {median(doubts):.1f}, above {HARDLY:g}): train longer"
    )


def draws(cards: Sequence[Card], typical: bool) -> Iterator[Draw]:
    """Simulated votes, class by class; `typical`: with typicality, for ballots that use it."""
    classes = max(len(card.counts or ()) for card in cards)
    counts = spread_counts(cards, torch.ones(len(cards), classes, dtype=torch.float64))
    claims = _curves(cards, "claims")
    standing = _curves(cards, "standing") if typical else None
    known = _familiarity(counts)
    shares = counts.sum(dim=0) / counts.sum()
    for label in shares.nonzero().squeeze(1).tolist():
        owners = counts[:, label].nonzero().squeeze(1)
        number = max(FEWEST, round(DRAWS * float(shares[label])))
        levels = _levels(len(owners), number, label)
        logits = torch.full((len(cards), number, counts.shape[1] + 1), -SURE)
        logits[:, :, -1] = 0.0
        odds = read(claims[owners], levels) + known[owners, label].unsqueeze(1)
        logits[owners, :, label] = odds.clamp(min=-SURE).float()
        usual = None
        if standing is not None:
            usual = torch.zeros(len(cards), number, counts.shape[1])
            usual[owners, :, label] = read(standing[owners], levels).float()
        yield Draw(float(shares[label]), logits, usual)


def _familiarity(counts: Tensor) -> Tensor:
    """By how much each member's log odds of each of its classes lie above those
    of its own mix of samples [M, K].
    """
    known = FALL * torch.log(counts.clamp(min=1e-9) / (counts + SEEN))
    usual = (counts * known).sum(dim=1, keepdim=True) / counts.sum(dim=1, keepdim=True).clamp(
        min=1.0
    )
    return known - usual


def _levels(owners: int, number: int, label: int) -> Tensor:
    """At which of its quantiles each owner stands on each draw [owners, number].

    The draws are a Sobol sequence: they fill the space more evenly than chance does,
    so that fewer are needed.
    """
    even = torch.quasirandom.SobolEngine(owners + 1, scramble=True, seed=label).draw(
        number, dtype=torch.float64
    )
    normal: Tensor = torch.special.ndtri(even.clamp(1e-6, 1 - 1e-6)).T
    levels: Tensor = torch.special.ndtr(
        LIKENESS**0.5 * normal[:1] + (1 - LIKENESS) ** 0.5 * normal[1:]
    )
    return levels


def _curves(cards: Sequence[Card], name: str) -> Tensor:
    """The told quantiles of all members [M, LEVELS], those of log odds clipped.

    Who rests on few samples, or none, gets those of all together, each clipped before.
    """
    told = {
        i: found
        for i, card in enumerate(cards)
        if (found := curve(card.calibration, name)) is not None
    }
    known = torch.tensor(list(told.values()), dtype=torch.float64).clamp(-SURE, SURE)
    if name == "claims":
        known = _clipped(known)
    samples = torch.tensor([held(cards[i].calibration) for i in told], dtype=torch.float64)
    curves = _together(known, samples).repeat(len(cards), 1)
    enough = samples >= ENOUGH
    curves[torch.tensor(list(told))[enough]] = known[enough]
    return curves


def _together(curves: Tensor, samples: Tensor) -> Tensor:
    """The quantiles [LEVELS] of all members' held-out samples together.

    Nobody counts for more than the median one.
    """
    grid = (torch.arange(GRID, dtype=torch.float64) + 0.5) / GRID
    values = read(curves, grid.expand(len(curves), GRID)).flatten()
    usual = median_low(samples.tolist())  # of two the smaller: nobody is half of a mean
    weights = samples.clamp(max=usual).repeat_interleave(GRID)
    values, order = values.sort()
    mass = weights[order].cumsum(0) / weights.sum()
    place = torch.searchsorted(mass, torch.tensor(LEVELS, dtype=torch.float64) - 1e-9)
    return values[place.clamp(max=len(values) - 1)]


def _clipped(claims: Tensor) -> Tensor:
    """Quantiles of log odds, none farther below the others than their own spread.

    See the module's formula.
    """
    chances = F.logsigmoid(claims)
    quartile, middle = chances.quantile(torch.tensor([0.25, 0.5], dtype=torch.float64), dim=0)
    chances = torch.maximum(chances, 2 * quartile - middle)
    return torch.clamp(chances - torch.log(-torch.expm1(chances)), -SURE, SURE)
