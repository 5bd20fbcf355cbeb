"""Members and the ensembles they form."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.learner import NetPredictor, load_predictor
from ostraka.core.method import Card
from ostraka.core.net import Params
from ostraka.core.objective import Objective
from ostraka.core.predictor import Placed, Predictor, Promise, Scores, join, threshold_for
from ostraka.core.samples import Samples
from ostraka.core.task import Task
from ostraka.core.wire import wire
from ostraka.errors import DataError
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Ballot, Votes
from ostraka.voting.calibration import typicality
from ostraka.voting.electorate import draws, hardly_trained, unkept
from ostraka.voting.probes import junk_probes, known_mass
from ostraka.voting.trust import trust

VOTES = 20_000_000
"""Votes (members x samples x outputs) that are held at once; more samples go in several chunks."""


@wire("member/1", "Member")
@dataclass(frozen=True)
class Member:
    """One uploaded model with its card."""

    card: Card
    params: Params


@wire("panel/1", "Panel")
@dataclass(frozen=True)
class Panel:
    """The members of an ensemble, in the order of their parties."""

    members: tuple[Member, ...] = ()
    tuned: tuple[float, ...] = ()
    """What the ballot found on public samples, one number per member."""
    seed: int = 0
    student: Params | None = None
    """One network distilled from the vote; it then answers in the members' place."""
    junk: tuple[float, ...] = ()
    """What the members make of junk probes, one number per member, where the ballot asked for it."""


@final
@dataclass(frozen=True)
class Ensemble(Predictor):
    """Members that vote by a ballot."""

    voters: Sequence[NetPredictor]
    cards: Sequence[Card]
    ballot: Ballot
    tuned: Sequence[float] = ()
    junk: Sequence[float] = ()
    assessment: Assessment | None = None
    """What the ballot found on the samples that it was shown (`seeing`)."""

    @classmethod
    def of(cls, task: Task, objective: Objective, panel: Panel, ballot: Ballot) -> "Ensemble":
        """The ensemble of a panel whose members were trained for `objective`."""
        voters = [load_predictor(task, objective, member.params) for member in panel.members]
        return cls(
            voters, [member.card for member in panel.members], ballot, panel.tuned, panel.junk
        )

    @property
    def looks(self) -> bool:
        """Whether the ballot learns from unlabelled samples, and has not yet seen any."""
        return self.ballot.looks and self.assessment is None

    def seeing(self, x: Tensor) -> "Ensemble":
        """The ensemble with the ballot's assessment of its votes on `x`."""
        return (
            replace(self, assessment=self.ballot.assess(self.votes(x)))
            if self.ballot.looks
            else self
        )

    @property
    def seen(self) -> Assessment | None:
        """The assessment; `dataclasses.replace(ensemble, assessment=...)` with it repeats the answers."""
        return self.assessment

    def remembering(self, seen: Assessment | None) -> "Ensemble":
        """The ensemble with an assessment that was stored."""
        return replace(self, assessment=seen)

    def trust(self) -> dict[str, Any]:
        """Agreement, claims, copies and junk of every member (`voting.trust`); empty before `seeing`."""
        return {} if self.assessment is None else trust(self.cards, self.assessment, self.junk)

    @torch.no_grad()
    def known_junk(self, shape: Sequence[int]) -> tuple[float, ...]:
        """Each member's mean probability of a known class on junk probes of samples of this shape."""
        return known_mass(self._logits(junk_probes(shape)))

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """The counted votes, in chunks of bounded memory."""
        return join([self.ballot.count(self.votes(part)) for part in x.split(self._chunk())])

    @torch.no_grad()
    def keeping(self, rate: float) -> tuple[Predictor, Promise]:
        """The threshold at which a simulated electorate (`voting.electorate`) calls the share `rate` unknown.

        Members that have hardly learnt get the threshold but no promise.
        """
        why = unkept(self.cards, rate)
        if why:
            return self, Promise(why=why)
        unknown, weights = [], []
        for draw in draws(self.cards, self.ballot.wants_typicality(self.cards)):
            scores = self.ballot.count(self._votes(draw.logits, draw.typicality))
            unknown.append(scores.unknown)
            weights.append(torch.full_like(scores.unknown, draw.share / len(scores.unknown)))
        threshold = threshold_for(rate, torch.cat(unknown), torch.cat(weights))
        why = hardly_trained(self.cards)
        return Placed(self, threshold), Promise(None if why else rate, "told", threshold, why)

    @torch.no_grad()
    def votes(self, x: Tensor) -> Votes:
        """All members' votes on `x`, with what the ballot asks for."""
        logits = self._logits(x)
        usual = None
        if self.ballot.wants_typicality(self.cards):
            places = [card.calibration["typicality"] for card in self.cards]
            usual = torch.stack(
                [typicality(v.net.embed(x), p) for v, p in zip(self.voters, places, strict=True)]
            )
        return self._votes(logits, usual)

    @torch.no_grad()
    def votes_on(self, samples: Samples) -> Votes:
        """The members' votes on all of `samples`, without typicality: what a ballot tunes itself on."""
        parts = [
            samples.inputs(slice(i, i + self._chunk()))
            for i in range(0, len(samples), self._chunk())
        ]
        return Votes(torch.cat([self._logits(x) for x in parts], dim=1), self.cards, junk=self.junk)

    def _votes(self, logits: Tensor, usual: Tensor | None) -> Votes:
        return Votes(logits, self.cards, usual, self.tuned, self.junk, self.assessment)

    def _logits(self, x: Tensor) -> Tensor:
        """[M, B, K + 1]: every member's answers, which must be numbers."""
        answers = [voter.scores(x) for voter in self.voters]
        for card, scores in zip(self.cards, answers, strict=True):
            if not (scores.known.isfinite().all() and scores.unknown.isfinite().all()):
                raise DataError(
                    f"the member of {card.name or f'party {card.party}'} answers with NaN or infinity; leave it out"
                )
        return torch.stack([scores.logits() for scores in answers])

    def _chunk(self) -> int:
        return max(1, VOTES // (len(self.voters) * (self.voters[0].net.classes + 1)))
