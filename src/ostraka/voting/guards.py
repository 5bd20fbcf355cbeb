"""The steps of the guarded ballot, one function each.

`voting.guarded` says in which order and why.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ostraka.core.card import Card

DOUBTING = (-0.5, 0.0)
"""Median told doubt from where, and up to where,
the panel is taken for one that has not learnt to doubt rightly.
"""
CLAIMS_JUNK = (0.3, 0.5)
"""The same for the median known probability on junk."""
ALIKE = (0.8, 0.95)
"""Overlap of two members' answers from where they begin to be,
and from where they are, one member.
"""
CONTRADICTED = (0.2, 0.4)
"""Share of a member's claims that others contradict from where, and up to where,
its budget begins to bind.
"""
OVERCLAIMED = (3.0, 5.0)
"""The same for its mean claim, in multiples of the class's share of all told samples."""
SPREAD, MOST_SCALE = 3.0, 9.0
"""Standard deviation that log odds are scaled up to, and the largest factor."""
VOICE = (0.0, 0.5)
"""Weight of all other owners of a class from where, and up to where, what they say of it is a
measure for a member.
"""
HALF_SURE = 10.0
"""Samples looked at with which what they tell counts by half."""
LEAST_REFERENCE, LEAST_TRUST = 0.3, 0.01
"""Agreement that the best owner of a class has at the least;
what is left of the weight of one that never agrees.
"""


def ramp(value: Tensor, span: tuple[float, float]) -> Tensor:
    """0 below the span, 1 above it, straight between."""
    low, high = span
    return ((value - low) / (high - low)).clamp(0.0, 1.0)


def capped(counts: Tensor) -> Tensor:
    """Told counts [M, K], scaled down where a party tells more
    samples in all than the median party; than the median of those that tell any, where most tell
    bands of fewer than ten.
    """
    totals = counts.sum(dim=1, keepdim=True)
    usual = totals.quantile(0.5)
    if not usual and totals.any():
        usual = totals[totals > 0].quantile(0.5)
    return counts * (usual / totals.clamp(min=1.0)).clamp(max=1.0)


def doubting(cards: Sequence[Card]) -> float:
    """How far the panel doubts its own samples, 0 to 1; 0 if most members tell no doubt."""
    told = [float(card.calibration["doubt"]) for card in cards if "doubt" in card.calibration]
    if 2 * len(told) <= len(cards):
        return 0.0
    return float(ramp(torch.tensor(told).quantile(0.5), DOUBTING))


def claims_junk(junk: Sequence[float]) -> float:
    """How far the panel takes junk for something known, 0 to 1; 0 if nobody looked."""
    return float(ramp(torch.tensor(list(junk)).quantile(0.5), CLAIMS_JUNK)) if junk else 0.0


def taking_junk(junk: Sequence[float]) -> list[int]:
    """Positions of the members that take noise probes for known classes; none if most do."""
    found = [place for place, mass in enumerate(junk) if mass > CLAIMS_JUNK[1]]
    return found if 2 * len(found) <= len(junk) else []


def log_odds_of(claims: Tensor) -> Tensor:
    """Log odds of log probabilities; those of certainty are kept finite."""
    bounded = claims.clamp(-30.0, -1e-6)
    return bounded - torch.log(-torch.expm1(bounded))


def alike(shares: Tensor) -> Tensor:
    """How far two members are one [M, M], from their known probabilities [M, B,
    K]: the overlap of the two.
    """
    flat = shares.flatten(1)
    apart = torch.cdist(flat, flat, p=1.0)
    both = flat.sum(dim=1, keepdim=True) + flat.sum(dim=1)
    found = ramp((both - apart) / (both + apart).clamp(min=1e-9), ALIKE)
    return found.fill_diagonal_(1.0)


def said_by_others(claims: Tensor, weights: Tensor, copies: Tensor) -> tuple[Tensor, Tensor]:
    """Every class's mean log claim without each member [M, B, K],
    and how far those who are left know it [M, K].

    A member's copies are left out with it. A class without another owner gets minus infinity.
    Others know a class as well as one can from a weight of VOICE in all; a party with two samples
    of a class is no judge of its main owner.
    """
    members, samples, classes = claims.shape
    left = 1.0 - copies
    total = left @ weights
    summed = (left @ (claims * weights.unsqueeze(1)).flatten(1)).view(members, samples, classes)
    owned = total > 1e-6
    mean = summed / total.clamp(min=1e-6).unsqueeze(1)
    return torch.where(owned.unsqueeze(1), mean, torch.full_like(mean, -torch.inf)), ramp(
        total, VOICE
    )


def agreement(claims: Tensor, others: Tensor, voice: Tensor) -> Tensor:
    """Correlation [M, K], over the samples, of a member's claims with the share
    that the others give to the class.

    Where nobody else knows the class, with the probability that the others leave unclaimed; between
    the two where they know it a little (`voice`, 0 to 1).
    """
    alone = others.isneginf().all(dim=2, keepdim=True)
    shares = torch.where(
        alone, torch.zeros_like(others), others.masked_fill(alone, 0.0).softmax(dim=2)
    )
    known = voice.unsqueeze(1)
    unclaimed = 1.0 - (known * others.exp()).max(dim=2, keepdim=True).values
    return _correlation(claims.exp(), torch.lerp(unclaimed.expand_as(shares), shares, known))


def _correlation(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's, over the second dimension; 0 where one side does not vary."""
    a, b = a - a.mean(dim=1, keepdim=True), b - b.mean(dim=1, keepdim=True)
    size = ((a * a).sum(dim=1) * (b * b).sum(dim=1)).sqrt()
    # a constant differs from its mean by rounding only, which must not be divided by itself
    return torch.where(
        size > 1e-6 * a.shape[1], (a * b).sum(dim=1) / size.clamp(min=1e-12), torch.zeros_like(size)
    )


def trusted(found: Tensor, owners: Tensor) -> Tensor:
    """What agreement [M, K] leaves of a member's weight:
    all from half of the agreement of the class's best owner.
    """
    best = found.masked_fill(~owners, -1.0).max(dim=0).values.clamp(min=LEAST_REFERENCE)
    return (2.0 * found / best).clamp(LEAST_TRUST, 1.0)


def contradicted(claims: Tensor, others: Tensor) -> Tensor:
    """Share [M, K] of what a member claims for a class that the others,
    who are sure of another one, contradict.
    """
    top = others.topk(min(2, others.shape[2]), dim=2)
    first, second = top.values[..., :1].exp(), top.values[..., -1:].exp()
    first_is = torch.zeros_like(others, dtype=torch.bool).scatter_(2, top.indices[..., :1], True)
    sure = claims.exp()
    return (sure * torch.where(first_is, second, first)).sum(dim=1) / sure.sum(dim=1).clamp(
        min=1e-9
    )


def overclaimed(claims: Tensor, shares: Tensor) -> Tensor:
    """Mean claim [M, K] in multiples of the class's share [K]."""
    return claims.exp().mean(dim=1) / shares.clamp(min=1e-6)


def spread_up(odds: Tensor) -> Tensor:
    """The factor [M, K] that brings the standard deviation of log odds to SPREAD.

    Only up, and within MOST_SCALE.
    """
    return (SPREAD / odds.std(dim=1).clamp(min=1e-6)).clamp(1.0, MOST_SCALE)


def budget_shift(odds: Tensor, target: Tensor) -> Tensor:
    """The shift [P] after which log odds [P, B] claim `target` [P] of the
    samples on average, by bisection.
    """
    goal = target.clamp(1e-4, 1 - 1e-4).logit()
    low, high = goal - odds.max(dim=1).values, goal - odds.min(dim=1).values
    for _ in range(30):
        middle = (low + high) / 2
        short = torch.sigmoid(odds + middle.unsqueeze(1)).mean(dim=1) < goal.sigmoid()
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return (low + high) / 2
