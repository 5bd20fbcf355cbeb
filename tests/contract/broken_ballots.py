"""A sound toy ballot, and one broken in each way that a check of
`ostraka.testing.ballots` looks for.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.voting.ballots import Ballot, Votes


@dataclass(frozen=True)
class Sound(Ballot):
    """The mean of the members' probabilities."""

    power: float = setting(1.0, "probabilities are raised to it")

    def count(self, votes: Votes) -> Scores:
        shares = (votes.logits.softmax(dim=2) ** self.power).mean(dim=0)
        return Scores(shares[:, :-1], shares[:, -1], float("inf") if votes.closed else 0.5)


@dataclass(frozen=True)
class ForgetsSettings(Sound):
    def __reduce__(self) -> Any:
        return (ForgetsSettings, ())


@dataclass(frozen=True)
class TunesOneNumber(Sound):
    @property
    def wants_public(self) -> bool:
        return True

    def tune(self, public: Votes) -> tuple[float, ...]:
        return (1.0,)


@dataclass(frozen=True)
class LooksAgain(Sound):
    """What it found at first is not enough for it: it looks at every batch."""

    @property
    def looks(self) -> bool:
        return True

    def assess(self, votes: Votes) -> Any:
        return "seen"

    def count(self, votes: Votes) -> Scores:
        scores = super().count(votes)
        return (
            scores
            if votes.assessment is None
            else replace(scores, known=scores.known / scores.known.mean(dim=0))
        )


@dataclass(frozen=True)
class ChangesVotes(Sound):
    def count(self, votes: Votes) -> Scores:
        votes.logits.mul_(self.power + 1)
        return super().count(votes)


@dataclass(frozen=True)
class LogOfZero(Sound):
    def count(self, votes: Votes) -> Scores:
        scores = super().count(votes)
        return replace(scores, known=scores.known.log())


@dataclass(frozen=True)
class DoubtsClosedMembers(Sound):
    def count(self, votes: Votes) -> Scores:
        return replace(super().count(votes), threshold=0.5)


@dataclass(frozen=True)
class LowIsUnknown(Sound):
    def count(self, votes: Votes) -> Scores:
        scores = super().count(votes)
        return replace(scores, unknown=-scores.unknown)


@dataclass(frozen=True)
class FirstMemberCountsTwice(Sound):
    def count(self, votes: Votes) -> Scores:
        doubled = torch.cat([votes.logits[:1], votes.logits])
        return super().count(replace(votes, logits=doubled))


@dataclass(frozen=True)
class CountsByBatch(Sound):
    def count(self, votes: Votes) -> Scores:
        scores = super().count(votes)
        return replace(scores, known=scores.known - 0.1 * scores.known.mean(dim=0))


@dataclass(frozen=True)
class PrefersLateClasses(Sound):
    def count(self, votes: Votes) -> Scores:
        scores = super().count(votes)
        return replace(scores, known=scores.known + 0.01 * torch.arange(scores.known.shape[1]))


@dataclass(frozen=True)
class NegativeScores(Sound):
    """Its known scores are logarithms, and `shares` takes them for probabilities."""

    def count(self, votes: Votes) -> Scores:
        scores = super().count(votes)
        return replace(scores, known=scores.known.clamp(min=1e-9).log())


@dataclass(frozen=True)
class SaysWeights(Sound):
    """What it tells of the members' say are weights, and no shares."""

    def say(self, votes: Votes) -> Tensor:
        return torch.ones_like(votes.logits[..., :-1])


@dataclass(frozen=True)
class TrustsCounts(Sound):
    """Members that do not tell their counts stop it."""

    def count(self, votes: Votes) -> Scores:
        sizes = torch.tensor([float(sum(card.counts)) for card in votes.cards])  # type: ignore[arg-type]
        weights = (sizes / sizes.sum())[:, None, None]
        shares = (votes.logits.softmax(dim=2) * weights).sum(dim=0)
        return Scores(shares[:, :-1], shares[:, -1], float("inf") if votes.closed else 0.5)
