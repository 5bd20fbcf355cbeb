"""What answers samples with classes or unknown, and can say why: an ensemble, or a finished run."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import isinf
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.learner import NetPredictor
from ostraka.core.names import normal
from ostraka.core.predictor import UNKNOWN, Placed, Predictor, Promise, Scores, join
from ostraka.core.samples import Samples, View, stored_values
from ostraka.errors import ConfigError, DataError
from ostraka.evaluation.evaluate import Evaluation, evaluate
from ostraka.evaluation.placing import placed_on
from ostraka.evaluation.sight import after_looking
from ostraka.parties.answers import Answers, Explanation, Said, join_answers
from ostraka.parties.gathering import NO_NUMBERS, Gathered
from ostraka.runs.promise import NEVER
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Ballot
from ostraka.voting.ensemble import Ensemble as Vote
from ostraka.voting.ensemble import NoAnswer
from ostraka.voting.trust import trust

T = TypeVar("T")
NOBODY = Gathered(())
RATE = 0.05
"""Share of samples of known classes that may be called unknown."""
BLOCK = 64
"""Samples that are answered at once, always as many: the last bits of what a network computes
depend on the size of its batch, and an answer must not depend on what is asked with it.
"""


class Answering(ABC):
    """Answers samples as they are stored: pixels as bytes, rows as raw numbers.

    Nothing changes it: `seeing`, `keeping` and `placed` give another one. So an answer depends on
    the sample alone, to the bit, not on what was asked before or with it.
    """

    def __init__(
        self,
        predictor: Predictor,
        classes: Sequence[str],
        names: Sequence[str],
        rate: float,
        voting: Gathered = NOBODY,
    ) -> None:
        self.classes = tuple(classes)
        self.names = tuple(names)
        """What the members are called; empty where one model answers."""
        self.members, self.files = voting.members, voting.files
        """Those that vote, in an order that does not depend on how they were given, and where they
        lie; empty where they do not lie in files of their own."""
        self._notes = voting.notes
        self._predictor, self._rate = predictor, _share(rate)
        self._line: float | None = None
        self._of = ""
        self._known: Samples | None = None
        self._like: Samples | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found while the members were read and asked."""
        return self._notes

    @property
    @abstractmethod
    def selection(self) -> Mapping[str, Any]:
        """Who was chosen and why (`voting.choice`); empty where everybody votes."""

    @property
    def ballot(self) -> Ballot | None:
        """How votes are counted; None: nobody votes."""
        return None if self.vote is None else self.vote.ballot

    @property
    def vote(self) -> Vote | None:
        """The members' vote; None: nobody votes."""
        return self._predictor if isinstance(self._predictor, Vote) else None

    @property
    def looks(self) -> bool:
        """Whether `seeing` would find out anything."""
        return self._predictor.looks

    @property
    def looked(self) -> Mapping[str, Any]:
        """How many unlabelled samples of what (`samples`, `of`) it has looked at; empty: none."""
        return {} if self.seen is None else {"samples": self.seen.size, "of": self._of}

    @property
    def seen(self) -> Assessment | None:
        """What the ballot found when it looked; None: it has not, or finds nothing."""
        return None if self.vote is None else self.vote.seen

    def seeing(self, x: Any, of: str = "given") -> Self:
        """The same with member trust estimated from unlabelled samples like those that will be
        asked, by a ballot that does so (guarded). Nothing else estimates it: not `predict`, not
        `evaluate`. `of` is what `looked` calls the samples.
        """
        if not self.looks:
            return self
        samples = self.taken(x)
        return self._tried(
            lambda g: g._with(
                _predictor=after_looking(g._predictor, samples), _like=samples, _of=of
            )
        )[1]

    def keeping(self, rate: float, known: Any = None) -> Self:
        """The same with its threshold where the share `rate` of samples of known classes will be
        called unknown: by the held-out samples `known`, or by what the members tell of theirs.
        """
        held = None if known is None else self.taken(known)
        group = self if held is None else self.asked(held.stored())[0]
        return group._with(_rate=_share(rate), _known=held, _line=None)

    def placed(self, threshold: float) -> Self:
        """The same with its threshold set by hand: unknown scores above it mean unknown."""
        return self._with(_line=float(threshold))

    @property
    def promise(self) -> Promise:
        """How often a sample of a known class will be called unknown, or why nobody can say."""
        return self._placing[1]

    @property
    def threshold(self) -> float | None:
        """The unknown score above which the answer is unknown; None: it never is."""
        predictor = self._placing[0]
        if isinstance(predictor, Placed):
            return predictor.threshold
        line = self._own_line()
        return None if isinf(line) else line

    def predict(self, x: Any) -> NDArray[np.str_]:
        """The answers to samples [B, ...]: class names, or "unknown"."""
        return self.answer(x).labels

    def explain(self, x: Any) -> list[Explanation]:
        """The answers to samples [B, ...], each with what every member said and its weight."""
        return list(self.answer(x).explanations())

    def answer(self, x: Any) -> Answers:
        """The answers to samples [B, ...] as arrays."""
        group, answers = self.asked(x)
        self.warn_of(group)
        return answers

    @torch.no_grad()
    def asked(self, x: Any) -> tuple[Self, Answers]:
        """The answers to samples [B, ...], and the group that gives them: without members whose
        answers to some of these are no numbers, each of which is named in a note.
        """
        values = self.stored(x)
        return self._tried(lambda g: g._answered(values))

    def evaluate(self, x: Any, y: Sequence[str] | NDArray[Any]) -> Evaluation:
        """Figures on samples whose classes `y` are given by name; a class that nobody knows, or has
        samples of, is unknown.
        """
        where = self.numbers
        labels = [where.get(normal(str(name)), UNKNOWN) for name in y]
        return self.judged_on(replace(self.taken(x), y=torch.tensor(labels, dtype=torch.int64)))

    def judged_on(self, samples: Samples) -> Evaluation:
        """Figures on labelled samples, UNKNOWN where they are of no class."""
        group, found = self._tried(
            lambda g: evaluate(g._placing[0], g.relabelled(samples), g.classes)
        )
        self.warn_of(group)
        return found

    @property
    def owned(self) -> tuple[bool | None, ...]:
        """Of each class, whether a member that votes has samples of it, by what the cards tell;
        None: they do not tell it.
        """
        vote = self.vote
        if vote is None:
            return (True,) * len(self.classes)
        told: list[set[int | None]] = [set() for _ in self.classes]
        for i, voter in enumerate(vote.voters):
            counts, banded = voter.card.counts, any(m.made.banded for m in self.members[i : i + 1])
            for place in voter.standing.places:
                count = None if counts is None else counts[place]
                told[place].add(count or None if banded else count)  # `<10` may be none, or nine
        return tuple(True if any(own) else None if None in own else False for own in told)

    def relabelled(self, samples: Samples) -> Samples:
        """Labelled samples, UNKNOWN where nobody who votes has samples of their class."""
        lost = torch.tensor([has is False for has in self.owned] + [False])
        if not lost.any():
            return samples
        return samples.with_labels(torch.where(lost[samples.labels], UNKNOWN, samples.labels))

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each class by its name as it is compared; UNKNOWN where nobody who votes
        has samples of it.
        """
        pairs = enumerate(zip(self.classes, self.owned, strict=True))
        return {normal(name): UNKNOWN if has is False else i for i, (name, has) in pairs}

    def trust(self) -> dict[str, Any]:
        """What the ballot found of its members when it looked (`voting.trust`); else empty."""
        vote = self.vote
        if vote is None or vote.assessment is None:
            return {}
        return trust(vote.cards, vote.assessment, vote.junk, self.classes)

    def shares(self, scores: Scores) -> Tensor:
        """Known scores as shares of the vote that sum to 1 [B, K]."""
        ballot = self.ballot
        return scores.known.softmax(dim=1) if ballot is None else ballot.shares(scores)

    def scores(self, x: Any) -> Scores:
        """The counted votes on samples, with the threshold where it was placed."""
        values = self.stored(x)
        group, found = self._tried(
            lambda g: join([g._placing[0].scores(part) for part in _blocks(values)])
        )
        self.warn_of(group)
        known, unknown = found.known[: len(values)], found.unknown[: len(values)]
        return replace(found, known=known, unknown=unknown)

    def asking(self, predictor: Predictor) -> Self:
        """The same with another predictor of the same classes."""
        return self._with(_predictor=predictor)

    def _tried(self, act: Callable[[Self], T]) -> tuple[Self, T]:
        """What `act` finds of this group, and the group: without members whose answers are no
        numbers.
        """
        try:
            return self, act(self)
        except NoAnswer as error:
            return self._without(error.card)._tried(act)

    def _without(self, card: Card) -> Self:
        """The group without a member whose answers are no numbers, with a note that names it."""
        vote = self.vote
        assert vote is not None
        at = next(i for i, voter in enumerate(vote.voters) if voter.card is card)

        def rest(values: tuple[T, ...]) -> tuple[T, ...]:
            return values[:at] + values[at + 1 :]

        who = self.files[at] if self.files else self.names[at]
        other = self._with(
            _predictor=vote.without(card),
            names=rest(self.names),
            members=rest(self.members),
            files=rest(self.files),
            _notes=(*self._notes, f"left out: {who} {NO_NUMBERS}"),
        )
        return other if self._like is None else other.seeing(self._like, self._of)

    def warn_of(self, group: "Answering") -> None:
        """Say to callers that are not handed `group` whom it leaves out."""
        for note in group._notes[len(self._notes) :]:
            warnings.warn(note, stacklevel=3)

    def _with(self, **changes: Any) -> Self:
        other = copy(self)
        other.__dict__.pop("_placing", None)
        other.__dict__.update(changes)
        return other

    @cached_property
    def _placing(self) -> tuple[Predictor, Promise]:
        if self._line is not None:
            why = "the threshold was given by hand"
            return Placed(self._predictor, self._line), Promise(None, "hand", self._line, why)
        if isinf(self._own_line()):
            return self._predictor, NEVER
        if self._known is not None:
            return placed_on(self._predictor, self._known, self._rate, "held-out")
        return self._predictor.keeping(self._rate)

    @torch.no_grad()
    def _own_line(self) -> float:
        """The threshold that the predictor itself has, whatever the sample."""
        shape = self.shape
        return self._predictor.scores(torch.zeros(1, *shape)).threshold

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self._first.net.shape

    @property
    def units(self) -> View:
        """The kind of samples and the unit of their values, the same for all who vote; how each
        member sees them is its own.
        """
        return View.of_unit(self._first.view.unit, self._first.view.kind)

    def taken(self, x: Any) -> Samples:
        """Samples in the members' unit: `Samples` are brought to it, arrays have it."""
        if isinstance(x, Samples):
            return replace(x.in_unit(self.units.unit), view=self.units)
        return Samples(self.stored(x), view=self.units)

    @property
    def _first(self) -> NetPredictor:
        """The one network, or the first of those that vote, who take samples of one form."""
        one = self._predictor.voters[0].model if isinstance(self._predictor, Vote) else None
        one = self._predictor if isinstance(self._predictor, NetPredictor) else one
        if one is None:
            raise DataError(
                "this run made neither one network nor one vote (solo and fedova have a network "
                "for each party or class); ask its predictor: load_run(folder).predictor()"
            )
        return one

    def stored(self, x: Any) -> Tensor:
        """Samples as stored values: one at least, numbers, and of the members' shape."""
        values = stored_values(np.asarray(x) if not isinstance(x, Tensor) else x)
        if values.dtype == torch.float64:
            values = values.float()
        if values.dim() and not len(values):
            raise DataError("there are no samples to answer; give at least one")
        if values.is_floating_point() and not bool(values.isfinite().all()):
            raise DataError("the samples hold NaN or infinity; leave such samples out or fill them")
        return values

    def _answered(self, values: Tensor) -> Answers:
        line = self.threshold
        limit = float("inf") if line is None else line
        return join_answers([self._answers(part, limit) for part in _blocks(values)], len(values))

    def _answers(self, x: Tensor, limit: float) -> Answers:
        vote = self.vote
        if vote is None:
            scores, none = self._predictor.scores(x), torch.empty(0, len(x))
            nobody = Said(none.long(), none.long(), none, none)
            return self._counted(scores, limit, nobody)
        votes = vote.votes(x)
        scores = vote.ballot.count(votes)
        sure, own = votes.logits.softmax(dim=2).max(dim=2)
        own = torch.where(own == len(self.classes), UNKNOWN, own)
        leaning = votes.logits[..., :-1].argmax(dim=2)
        nearest = scores.closed.view(1, -1, 1).expand(len(own), -1, 1)
        weight = vote.ballot.say(votes).gather(2, nearest).squeeze(2)
        return self._counted(scores, limit, Said(own, leaning, sure, weight))

    def _counted(self, scores: Scores, limit: float, said: Said) -> Answers:
        nearest = scores.closed
        confidence = self.shares(scores).gather(1, nearest.unsqueeze(1)).squeeze(1)
        return Answers(self.classes, self.names, nearest, confidence, scores.unknown, limit, said)


def _blocks(values: Tensor) -> tuple[Tensor, ...]:
    """The samples in blocks of one size, the last one filled up with zeros."""
    missing = -len(values) % BLOCK
    filled = torch.cat([values, values.new_zeros(missing, *values.shape[1:])])
    return tuple(filled[at : at + BLOCK] for at in range(0, len(filled), BLOCK))


def _share(rate: float) -> float:
    if not 0 < rate < 1:
        raise ConfigError(
            f"the unknown rate is {rate}; it is a share above 0 and below 1, such as 0.05"
        )
    return float(rate)
