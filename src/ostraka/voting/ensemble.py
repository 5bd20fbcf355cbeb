"""Members and the ensembles they form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ostraka.core.learner import NetPredictor, load_predictor
from ostraka.core.method import Card
from ostraka.core.net import Params
from ostraka.core.objective import Objective
from ostraka.core.predictor import Predictor, Scores, join
from ostraka.core.task import Task
from ostraka.core.wire import wire
from ostraka.voting.ballots import Ballot

VOTES = 20_000_000
"""Votes (members x samples x outputs) that are held at once; more samples go in several chunks."""


@wire
@dataclass(frozen=True)
class Member:
    """One uploaded model with its card."""

    card: Card
    params: Params


@wire
@dataclass(frozen=True)
class Panel:
    """The members of an ensemble, in the order of their parties."""

    members: tuple[Member, ...] = ()


@final
@dataclass(frozen=True)
class Ensemble(Predictor):
    """Members that vote by a ballot."""

    voters: Sequence[NetPredictor]
    cards: Sequence[Card]
    ballot: Ballot

    @classmethod
    def of(cls, task: Task, objective: Objective, panel: Panel, ballot: Ballot) -> "Ensemble":
        """The ensemble of a panel whose members were trained for `objective`."""
        voters = [load_predictor(task, objective, member.params) for member in panel.members]
        return cls(voters, [member.card for member in panel.members], ballot)

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """The counted votes, in chunks of bounded memory."""
        outputs = self.voters[0].net.outputs + 1
        chunk = max(1, VOTES // (len(self.voters) * outputs))
        return join([self._count(part) for part in x.split(chunk)])

    def _count(self, x: Tensor) -> Scores:
        votes = torch.stack([voter.scores(x).logits() for voter in self.voters])
        return self.ballot.count(votes, self.cards)
