"""Ballots: how members' votes are counted. A vote is a member's K + 1 logits, the last of which means *unknown*."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from ostraka.core.method import Card
from ostraka.core.predictor import Scores
from ostraka.registry import BALLOTS


@dataclass(frozen=True)
class Ballot(ABC):
    """A rule that turns all members' votes into one answer."""

    @abstractmethod
    def count(self, votes: Tensor, cards: Sequence[Card]) -> Scores:
        """The answer to votes [M, B, K + 1] of M members on B samples."""


@final
@BALLOTS.add("sum")
@dataclass(frozen=True)
class Sum(Ballot):
    """Sum of probabilities without the unknown one (FedOV, Algorithm 1); unknown = the least unsure member's doubt."""

    def count(self, votes: Tensor, cards: Sequence[Card]) -> Scores:
        """Probabilities over K + 1 outputs, summed over members."""
        shares = votes.softmax(dim=2)
        known = shares[:, :, :-1].sum(dim=0)
        if votes[:, :, -1].isneginf().all():  # closed-set members have no unknown vote: rank by the winner's share
            return Scores(known, -known.max(dim=1).values / len(votes), float("inf"))
        return Scores(known, shares[:, :, -1].min(dim=0).values, 0.5)
