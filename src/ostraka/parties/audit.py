"""What a member reveals, measured: can one tell from its file whether a sample was trained on?

The attack is the loss threshold of Yeom, Giacomelli, Fredrikson & Jha (CSF 2018): a network is
surer of what it was trained on, so call everything with a low loss a member. Two figures say how
far it gets: the area under its ROC curve (0.5: a coin does as well) and the share of true members
it names while it wrongly names 1 % of the others (Carlini et al., S&P 2022: an attack that is sure
of a few does more harm than one that is a little better than a coin on all). It is the simplest
attack there is; stronger ones exist, so its failure proves nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from ostraka.core.member import Member
from ostraka.core.names import normal
from ostraka.core.samples import Samples
from ostraka.core.seeds import numpy_rng
from ostraka.data.own import Collection, Form, in_both, read
from ostraka.errors import DataError

FALSE = 0.01
"""Share of the others that may be called members by mistake."""
RESAMPLES = 1000
FEWEST = 10
"""Samples of either side below which nothing is said."""
Losses = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Range:
    """A figure and where it lies in 95 of 100 resamples."""

    value: float
    low: float
    high: float

    def record(self) -> dict[str, float]:
        """For JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


@final
@dataclass(frozen=True)
class Audit:
    """What the attack found, and what the last layer says of the party's classes."""

    auc: Range
    caught: Range
    """Share of the trained-on samples that are named at `FALSE` false ones."""
    members: int
    others: int
    loss_members: float
    """Mean loss of the samples that were trained on."""
    loss_others: float
    shares: Mapping[str, float]
    """Share of each class, guessed from the last layer alone."""
    told: Mapping[str, float] | None
    """Shares of the told class counts."""
    claimed: Mapping[str, float]
    """Epsilon and delta, where the card claims them."""
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "auc": self.auc.record(),
            "caught_at_1_percent": self.caught.record(),
            "members": self.members,
            "non_members": self.others,
            "loss_members": self.loss_members,
            "loss_non_members": self.loss_others,
            "guessed_shares": dict(self.shares),
            "told_shares": None if self.told is None else dict(self.told),
            "claimed": dict(self.claimed),
            "verdict": self.verdict(),
            "notes": list(self.notes),
        }

    def verdict(self) -> str:
        """What the figures mean, in words."""
        if self.auc.low <= 0.5 and self.caught.low <= FALSE:
            return (
                "this attack does no better than a coin on these samples; stronger attacks exist, "
                "so that is no proof"
            )
        times = self.caught.value / FALSE
        sure = (
            f"; of the trained-on samples it names {self.caught.value:.1%} while it is wrong on "
            f"1 % of the others, {times:.0f} times what a coin gives"
            if self.caught.low > FALSE
            else ""
        )
        right = (1 + 2 * abs(self.auc.value - 0.5)) / 2
        return (
            "the file tells who was trained on: of two samples, one trained on and one not, its "
            f"loss picks the right one {right:.0%} of the time{sure}"
        )


def audit(member: Member, members: Samples, others: Samples, seed: int = 0) -> Audit:
    """The attack on samples that `member` was trained on (or some of them) and on `others` like
    them, both labelled by its classes.

    A network is surer of some classes than of others, and of classes that it never saw not at all.
    So that the attack is not credited with that, both sides get the same share of each class:
    what is too much on one side is left out at random.
    """
    notes: list[str] = []
    twice = in_both(others, members)
    if len(twice):
        notes.append(f"{len(twice):,} of the others are among the members too and were left out")
        others = others.take(_rest(len(others), twice))
    kept, against = matched(members.labels.numpy(), others.labels.numpy(), seed)
    lost = len(members) - len(kept), len(others) - len(against)
    if any(lost):
        notes.append(
            f"{lost[0]:,} trained-on samples and {lost[1]:,} others were left out, so that both "
            "sides have the same classes in the same shares"
        )
    if min(len(kept), len(against)) < FEWEST:
        raise DataError(
            f"{len(kept)} trained-on samples and {len(against)} others of the same classes are "
            f"left to compare; give at least {FEWEST} of each, of classes that the member was "
            "trained on"
        )
    inside = losses(member, members.take(torch.from_numpy(kept)))
    outside = losses(member, others.take(torch.from_numpy(against)))
    if len(outside) * FALSE < 1:
        notes.append(
            f"with {len(outside)} others, {FALSE:.0%} of them is less than one: the share caught "
            "is the one without any false alarm"
        )
    auc, caught = ranges(inside, outside, seed)
    card = member.card
    return Audit(
        auc=auc,
        caught=caught,
        members=len(inside),
        others=len(outside),
        loss_members=float(inside.mean()),
        loss_others=float(outside.mean()),
        shares=guessed_shares(member),
        told=_told(member),
        claimed={key: card.scores[key] for key in ("epsilon", "delta") if key in card.scores},
        notes=tuple(notes),
    )


def losses(member: Member, samples: Samples) -> Losses:
    """The loss of each sample's true class: minus its log probability in the member's answer."""
    scores = member.predictor().scores(samples.stored())
    votes = scores.known if scores.threshold == float("inf") else scores.logits()
    found = F.cross_entropy(votes.double(), samples.labels, reduction="none")
    return found.numpy()


def matched(one: NDArray[Any], other: NDArray[Any], seed: int) -> tuple[NDArray[Any], ...]:
    """Positions in two lists of labels, as many as can be, so that both have each class in the same
    share; which of a class is left to chance."""
    size = 1 + int(max(one.max(initial=0), other.max(initial=0)))
    counts = [np.bincount(labels, minlength=size) for labels in (one, other)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if not both.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ratio = counts[1][both] / counts[0][both]
    # as many others for each trained-on sample as most classes allow, the same for all classes
    each = float(np.median(ratio))
    rng = numpy_rng(seed, "audit", "match")
    chosen: tuple[list[NDArray[Any]], list[NDArray[Any]]] = ([], [])
    for label in np.flatnonzero(both):
        mine = min(counts[0][label], round(counts[1][label] / each))
        theirs = min(counts[1][label], round(mine * each))
        for labels, take, kept in ((one, mine, chosen[0]), (other, theirs, chosen[1])):
            kept.append(rng.permutation(np.flatnonzero(labels == label))[: max(1, take)])
    return tuple(np.sort(np.concatenate(kept)) for kept in chosen)


def ranges(inside: Losses, outside: Losses, seed: int) -> tuple[Range, Range]:
    """Both figures of the attack, with the middle 95 % of resamples of either side."""
    rng, drawn = numpy_rng(seed, "audit", "resample"), []
    for _ in range(RESAMPLES):
        one, other = (rng.choice(values, len(values)) for values in (inside, outside))
        drawn.append((auc_of(one, other), caught_of(one, other)))
    low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
    found = auc_of(inside, outside), caught_of(inside, outside)
    auc, caught = (
        Range(float(v), float(a), float(b)) for v, a, b in zip(found, low, high, strict=True)
    )
    return auc, caught


def auc_of(inside: Losses, outside: Losses) -> float:
    """The chance that a trained-on sample has a lower loss than another; equal ones count half."""
    ordered = np.sort(outside)
    above = len(ordered) - np.searchsorted(ordered, inside, side="right")
    equal = len(ordered) - np.searchsorted(ordered, inside, side="left") - above
    return float((above + 0.5 * equal).mean() / len(ordered))


def caught_of(inside: Losses, outside: Losses) -> float:
    """The share of trained-on samples with a loss below that of all but `FALSE` of the others."""
    allowed = int(FALSE * len(outside))
    return float((inside < np.sort(outside)[allowed]).mean())


def guessed_shares(member: Member) -> dict[str, float]:
    """The share of each class in the party's samples, guessed from the last layer alone.

    A sample that is learnt raises the weights and the bias of its class by the values that the last
    layer sees, which most networks keep above 0, and lowers those of all other classes. So the sum
    of a class's weights and its bias, the layer's answer to an embedding of ones, ends up high
    where samples are many.
    """
    net = member.predictor().net.eval()
    with torch.no_grad():
        width = net.embed(torch.zeros(1, *member.model.shape)).shape[1]
        sums = net.head(torch.ones(1, width))[0, : len(member.model.classes)]
    return dict(zip(member.model.classes, sums.double().softmax(0).tolist(), strict=True))


def _told(member: Member) -> dict[str, float] | None:
    counts = member.card.counts
    if counts is None:
        return None
    total = max(1, sum(counts))
    return {c: n / total for c, n in zip(member.model.classes, counts, strict=True)}


def _rest(count: int, without: torch.Tensor) -> torch.Tensor:
    kept = torch.ones(count, dtype=torch.bool)
    kept[without] = False
    return kept.nonzero().squeeze(1)


def samples_for(member: Member, path: str | Path, label: str | None = None) -> Samples:
    """The labelled samples at a path, as the member takes them; classes that it does not have are
    left out."""
    model = member.model
    held = read(path, Form(kind=model.view.kind, shape=model.shape, label=label), labelled=True)
    return _known(held, model.classes, model.view.unit)


def _known(held: Collection, classes: tuple[str, ...], unit: float) -> Samples:
    """The samples whose class is among `classes`, labelled by these, their values in `unit`."""
    place = {normal(name): i for i, name in enumerate(classes)}
    number = torch.tensor([place.get(name, -1) for name in held.classes])
    y = number[held.samples.labels]
    kept = (y >= 0).nonzero().squeeze(1)
    if not len(kept):
        raise DataError(
            f"{held.name} has no sample of the member's classes ({', '.join(classes[:10])}); its "
            f"own are {', '.join(held.classes[:10])}"
        )
    return held.samples.with_labels(y).in_unit(unit).take(kept)
