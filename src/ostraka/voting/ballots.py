"""Ballots: how members' votes are counted.

A vote is a member's K + 1 logits, the last of which means *unknown*.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.predictor import Scores
from ostraka.core.seeds import derive
from ostraka.core.settings import Settings, setting
from ostraka.registry import BALLOTS
from ostraka.voting.assessment import Assessment


@dataclass(frozen=True)
class Votes:
    """All members' votes on B samples, and what the ballot may know of the members."""

    logits: Tensor
    """[M, B, K + 1]; the unknown logit of a closed-set member is minus infinity."""
    cards: Sequence[Card]
    typicality: Tensor | None = None
    """[M, B, K]: how usual each sample is for each member's classes,
    where the ballot asked for it.
    """
    tuned: Sequence[float] = ()
    """One number per member that the ballot found on public samples."""
    junk: Sequence[float] = ()
    """Probability of a known class that each member gives to junk (`voting.probes`), where the
    ballot asked for it.
    """
    assessment: Assessment | None = None
    """What the ballot found by looking at unlabelled samples; None:
    it knows only the votes on each sample.
    """

    @property
    def closed(self) -> bool:
        """Whether no member can answer unknown."""
        return bool(self.logits[..., -1].isneginf().all())


@dataclass(frozen=True)
class Ballot(Settings, ABC):
    """A rule that turns all members' votes into one answer."""

    @abstractmethod
    def count(self, votes: Votes) -> Scores:
        """The answer."""

    def shares(self, scores: Scores) -> Tensor:
        """The known scores as shares that sum to 1 [B, K]: what a student learns."""
        known = scores.known.clamp(min=1e-12)
        return known / known.sum(dim=1, keepdim=True)

    def say(self, votes: Votes) -> Tensor:
        """Each member's share of the say in each class [M, B, K]: what an answer is explained by.

        They sum to 1 over the members, or to 0 for a class in which nobody has any. A ballot that
        does not hear all alike who know a class says so here; `count` does not use it.
        """
        return shared_say(knowing(votes))

    def wants_typicality(self, cards: Sequence[Card]) -> bool:
        """Whether `count` needs to know how usual a sample is for each member."""
        return False

    def notes(self, cards: Sequence[Card]) -> tuple[str, ...]:
        """What has to be said of counting the votes of members with these cards."""
        return ()

    @property
    def wants_public(self) -> bool:
        """Whether `tune` needs votes on public samples."""
        return False

    @property
    def wants_junk(self) -> bool:
        """Whether `count` wants to know what the members make of junk."""
        return False

    @property
    def looks(self) -> bool:
        """Whether `assess` finds anything: the answers then depend, without labels,
        on the samples it looked at.
        """
        return False

    def assess(self, votes: Votes) -> Assessment | None:
        """What the votes on many unlabelled samples tell of the members; None: nothing.

        With it in `Votes.assessment`, `count` again depends on the votes on each sample alone.
        """
        return None

    def tune(self, public: Votes) -> tuple[float, ...]:
        """One number per member, found from the members' votes on public, unlabelled samples."""
        return ()


def knowing(votes: Votes) -> Tensor:
    """1 where a member knows a class, 0 where it does not [M, B, K]."""
    return (votes.logits[..., :-1] > float("-inf")).to(votes.logits)


def shared_say(weights: Tensor) -> Tensor:
    """Weights [M, ...] as shares of what the members have together; 0 where nobody has any."""
    total = weights.sum(dim=0)
    return weights / torch.where(total > 0, total, torch.ones_like(total))


Doubt = Literal["min", "mean", "product"]


def ensemble_doubt(unknown: Tensor, kept: Tensor, how: Doubt) -> Tensor:
    """The ensemble's doubt [B] from the probabilities of unknown [M,
    B] of the members that are kept [M, B].
    """
    if how == "min":
        return torch.where(kept.bool(), unknown, torch.ones_like(unknown)).min(dim=0).values
    if how == "mean":
        return (unknown * kept).sum(dim=0) / kept.sum(dim=0)
    return torch.where(kept.bool(), unknown, torch.ones_like(unknown)).prod(dim=0)


@final
@BALLOTS.add("sum")
@dataclass(frozen=True)
class Sum(Ballot):
    """Sum of the known classes' probabilities (FedOV, Algorithm 1)."""

    doubt: Doubt = setting(
        "min", "the ensemble's unknown score: the least, the mean or the product of the members'"
    )

    def count(self, votes: Votes) -> Scores:
        """Probabilities over K + 1 outputs, summed over members."""
        shares = votes.logits.softmax(dim=2)
        return summed(shares, torch.ones_like(shares[:, :, 0]), self.doubt, votes.closed)


@final
@BALLOTS.add("top-k", "topk")
@dataclass(frozen=True)
class TopK(Ballot):
    """As sum, over the k members that are least unsure of a sample (FedOV, section 4.6)."""

    k: int = setting(3, "members that count for a sample", span="[1, inf)")
    doubt: Doubt = setting(
        "min", "the ensemble's unknown score: the least, the mean or the product of the members'"
    )

    def count(self, votes: Votes) -> Scores:
        """Sum over the k members with the lowest probability of unknown;
        closed-set members: the most confident.
        """
        shares = votes.logits.softmax(dim=2)
        return summed(shares, self._kept(shares, votes.closed), self.doubt, votes.closed)

    def say(self, votes: Votes) -> Tensor:
        """Only those that count for a sample have any."""
        kept = self._kept(votes.logits.softmax(dim=2), votes.closed)
        return shared_say(kept.unsqueeze(2) * knowing(votes))

    def _kept(self, shares: Tensor, closed: bool) -> Tensor:
        """1 for the members that count for a sample, 0 for the others [M, B]."""
        unsure = -shares[:, :, :-1].max(dim=2).values if closed else shares[:, :, -1]
        chosen = unsure.topk(min(self.k, len(unsure)), dim=0, largest=False).indices
        return torch.zeros_like(unsure).scatter_(0, chosen, 1.0)


@final
@BALLOTS.add("plurality")
@dataclass(frozen=True)
class Plurality(Ballot):
    """One voice per member, or as many as it has samples; who answers unknown abstains.

    Of classes with equally many voices the one with more summed probability wins, or one drawn by
    lot. Sizes are the parties' own word: with `voice=size` who tells a large one has most to say.
    """

    voice: Literal["member", "size"] = setting(
        "member", "what a member counts: one, or its party's samples"
    )
    ties: Literal["probability", "lot"] = setting(
        "probability", "equally many voices: the class with more summed probability, or a lot"
    )
    lot: int = setting(0, "seed of the lots", span="[0, inf)")

    def count(self, votes: Votes) -> Scores:
        """Voices, with a tie-breaker that is always below one voice."""
        shares = votes.logits.softmax(dim=2)
        answers = torch.nn.functional.one_hot(shares.argmax(dim=2), shares.shape[2])
        if self.voice == "member":
            voices, least = answers.sum(dim=0), 1.0 / len(shares)
            known = voices[:, :-1] + self._ties(votes.logits, shares)
        else:
            sizes = torch.tensor([max(1, card.size) for card in votes.cards], dtype=torch.float64)
            sizes, answers = sizes.to(shares.device), answers.double()
            voices, least = (answers * sizes.view(-1, 1, 1)).sum(dim=0), 1.0 / float(sizes.sum())
            known = ((voices[:, :-1] + self._ties(votes.logits, shares)) * least * len(shares)).to(
                shares
            )
            voices = (voices * least * len(shares)).to(shares)
        abstained = voices[:, -1] / len(shares)
        # unknown where every member abstained; a closed-set panel never does
        return Scores(known, abstained, float("inf") if votes.closed else 1 - 0.5 * least)

    def say(self, votes: Votes) -> Tensor:
        """All alike, or by size."""
        if self.voice == "member":
            return super().say(votes)
        sizes = torch.tensor([float(max(1, card.size)) for card in votes.cards])
        return shared_say(sizes.to(votes.logits).view(-1, 1, 1) * knowing(votes))

    def _ties(self, logits: Tensor, shares: Tensor) -> Tensor:
        """What is added to the voices [B, K]: below one, and different for every class.

        A lot is drawn by the seed and by the sample's own votes (the far digits of a class's
        summed probability), so a sample's answer depends neither on the others of its batch, nor
        on the numbers of classes and members.
        """
        if self.ties == "probability":
            return shares[:, :, :-1].sum(dim=0) / (len(shares) + 1)
        # in double precision: another order of classes must not change a far digit
        mass = logits.double().softmax(dim=2)[:, :, :-1].sort(dim=0).values.sum(dim=0)
        factor = 1e5 * (1.0 + derive(self.lot, "lots") / 2**63)
        return 0.5 * (mass * factor).frac().to(logits)


def summed(shares: Tensor, kept: Tensor, doubt: Doubt, closed: bool) -> Scores:
    """Scores of probabilities [M, B, K + 1] summed over the members that are kept [M, B]."""
    known = (shares[:, :, :-1] * kept.unsqueeze(2)).sum(dim=0)
    if closed:  # no member doubts: rank samples by the winner's share of the vote
        return Scores(known, -known.max(dim=1).values / kept.sum(dim=0), float("inf"))
    return Scores(known, ensemble_doubt(shares[:, :, -1], kept, doubt), 0.5)
