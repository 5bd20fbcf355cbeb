"""Ensembles: members that vote."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.learner import NetPredictor
from ostraka.core.member import Member
from ostraka.core.predictor import Placed, Predictor, Promise, Scores, join, threshold_for
from ostraka.core.samples import Samples, View, stored_values
from ostraka.errors import DataError
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Ballot, Votes
from ostraka.voting.calibration import typicality
from ostraka.voting.electorate import draws, hardly_trained, unkept
from ostraka.voting.probes import junk_probes, known_mass
from ostraka.voting.trust import flagged, trust
from ostraka.voting.union import Standing, all_classes, few

VOTES = 20_000_000
"""Votes (members x samples x outputs) that are held at once; more samples go in several chunks."""


class NoAnswer(DataError):
    """A member whose answers to some samples are no numbers."""

    def __init__(self, card: Card) -> None:
        super().__init__(f"the member of {card} answers with NaN or infinity; leave it out")
        self.card = card


@final
@dataclass(frozen=True)
class Voter:
    """A member at the vote: its model, its card,
    and where its classes stand among the ensemble's.
    """

    model: NetPredictor
    card: Card
    """Its counts are in the order of the ensemble's classes."""
    standing: Standing

    def votes(self, inputs: Tensor) -> Tensor:
        """Its votes [B, K + 1] on what its network sees, which must be numbers."""
        scores = self.model.answers(inputs)
        if not (scores.known.isfinite().all() and scores.unknown.isfinite().all()):
            raise NoAnswer(self.card)
        return self.standing.votes(scores.logits())

    def typicality(self, inputs: Tensor) -> Tensor:
        """How usual samples are for each of its classes [B, K];
        average for classes it does not know.
        """
        places = self.card.calibration["typicality"]
        return self.standing.spread(typicality(self.model.net.embed(inputs), places), 0.0)


@final
@dataclass(frozen=True)
class Ensemble(Predictor):
    """Members that vote by a ballot.

    They may be of different networks, objectives, views and classes.
    """

    voters: Sequence[Voter]
    classes: tuple[str, ...]
    ballot: Ballot
    tuned: Sequence[float] = ()
    junk: Sequence[float] = ()
    assessment: Assessment | None = None
    """What the ballot found on the samples that it was shown (`seeing`)."""

    @classmethod
    def of(
        cls,
        members: Sequence[Member],
        ballot: Ballot,
        classes: Sequence[str] | None = None,
        tuned: Sequence[float] = (),
        junk: Sequence[float] = (),
    ) -> "Ensemble":
        """The members as one; `classes`: what they are asked about (none:
        all that any of them knows).
        """
        if not members:
            raise DataError("no member was given; a vote needs at least one")
        shapes = {member.model.shape: member.card for member in members}
        if len(shapes) > 1:
            each = "; ".join(f"{card}: {list(shape)}" for shape, card in shapes.items())
            raise DataError(
                "members that vote together take samples of one shape, "
                f"and these do not ({each}); leave some out"
            )
        asked = all_classes([m.model.classes for m in members]) if classes is None else classes
        voters = []
        for member in members:
            standing = Standing.of(member.model.classes, asked)
            voters.append(Voter(member.predictor(), standing.card(member.card), standing))
        return cls(voters, tuple(asked), ballot, tuned, junk)

    def without(self, card: Card) -> "Ensemble":
        """The others, as if that member had never been there; they have not looked yet."""
        left = [i for i, voter in enumerate(self.voters) if voter.card is not card]
        if not left:
            raise NoAnswer(card)

        def rest(values: Sequence[float]) -> Sequence[float]:
            return [values[i] for i in left] if values else ()

        voters, tuned, junk = [self.voters[i] for i in left], rest(self.tuned), rest(self.junk)
        return replace(self, voters=voters, tuned=tuned, junk=junk, assessment=None)

    @property
    def cards(self) -> list[Card]:
        """The members' cards, counts in the order of the ensemble's classes."""
        return [voter.card for voter in self.voters]

    @property
    def looks(self) -> bool:
        """Whether the ballot learns from unlabelled samples, and has not yet seen any."""
        return self.ballot.looks and self.assessment is None

    def seeing(self, x: Tensor) -> "Ensemble":
        """The ensemble with the ballot's assessment of its votes on `x`."""
        if not self.ballot.looks:
            return self
        return replace(self, assessment=self.ballot.assess(self.votes(x)))

    @property
    def seen(self) -> Assessment | None:
        """The assessment; `remembering` it repeats the answers."""
        return self.assessment

    def remembering(self, seen: Assessment | None) -> "Ensemble":
        """The ensemble with an assessment that was stored."""
        return replace(self, assessment=seen)

    def trust(self) -> dict[str, Any]:
        """Agreement, claims, copies and junk of every member (`voting.trust`).

        Empty before `seeing`.
        """
        return {} if self.assessment is None else trust(self.cards, self.assessment, self.junk)

    @torch.no_grad()
    def known_junk(self) -> tuple[float, ...]:
        """Each member's mean probability of a known class on junk probes of the samples' shape."""
        probes = junk_probes(self.voters[0].model.net.shape)
        return known_mass(torch.stack([voter.votes(probes) for voter in self.voters]))

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """The counted votes on stored values, in chunks of bounded memory."""
        parts = stored_values(x).split(self._chunk())
        return join([self.ballot.count(self.votes(part)) for part in parts])

    @torch.no_grad()
    def keeping(self, rate: float) -> tuple[Predictor, Promise]:
        """The threshold at which a simulated electorate (`voting.electorate`)
        calls the share `rate` unknown.

        Members that have hardly learnt, that cannot answer unknown, or that disclose what the vote
        contradicts get the threshold but no promise.
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
        why = self._contradicted() or hardly_trained(self.cards)
        return Placed(self, threshold), Promise(None if why else rate, "told", threshold, why)

    def _contradicted(self) -> str:
        """Why the vote is not what the members' cards let expect; empty: nothing is known."""
        closed = [str(v.card) for v in self.voters if not v.model.objective.refuses]
        if closed:
            count = f"{len(closed)} of {len(self.voters)} members cannot answer unknown"
            return f"{count} ({few(closed)}) and claim samples of unknown classes"
        silent = [str(card) for card in self.cards if card.counts is None]
        if silent:
            count = f"{len(silent)} of {len(self.voters)} members disclose"
            return f"{count} no class counts ({few(silent)})"
        if self.assessment is None:
            return ""
        odd = flagged(self.cards, self.assessment, self.junk).any(dim=1).tolist()
        names = few([str(card) for card, is_odd in zip(self.cards, odd, strict=True) if is_odd])
        return f"the vote contradicts what {names} disclosed; leave them out" if names else ""

    @torch.no_grad()
    def votes(self, x: Tensor) -> Votes:
        """All members' votes on stored values, with what the ballot asks for."""
        inputs, usual = self._inputs(x), None
        logits = self._logits(inputs)
        if self.ballot.wants_typicality(self.cards):
            pairs = zip(self.voters, inputs, strict=True)
            usual = torch.stack([voter.typicality(seen) for voter, seen in pairs])
        return self._votes(logits, usual)

    @torch.no_grad()
    def votes_on(self, samples: Samples) -> Votes:
        """As `votes`, on all of `samples`, in chunks of bounded memory."""
        parts = [self.votes(x) for x in samples.stored().split(self._chunk())]
        usual = [part.typicality for part in parts if part.typicality is not None]
        logits = torch.cat([part.logits for part in parts], dim=1)
        return self._votes(logits, torch.cat(usual, dim=1) if usual else None)

    def _votes(self, logits: Tensor, usual: Tensor | None) -> Votes:
        return Votes(logits, self.cards, usual, self.tuned, self.junk, self.assessment)

    def _inputs(self, x: Tensor) -> list[Tensor]:
        """What each member's network sees of stored values; made once for all that see alike."""
        made: list[tuple[View, Tensor]] = []
        inputs = []
        for voter in self.voters:
            view = voter.model.view
            seen = next((part for other, part in made if other is view or other == view), None)
            if seen is None:
                seen = voter.model.inputs(x)
                made.append((view, seen))
            inputs.append(seen)
        return inputs

    def _logits(self, inputs: Sequence[Tensor]) -> Tensor:
        """[M, B, K + 1]: every member's votes."""
        return torch.stack([v.votes(seen) for v, seen in zip(self.voters, inputs, strict=True)])

    def _chunk(self) -> int:
        return max(1, VOTES // (len(self.voters) * (len(self.classes) + 1)))
