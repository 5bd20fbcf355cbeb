"""What answers samples with classes or unknown, and can say why: an ensemble, or a finished run."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import isinf
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.learner import NetPredictor
from ostraka.core.predictor import UNKNOWN, Placed, Predictor, Promise, Scores, join
from ostraka.core.samples import Samples, View, stored_values
from ostraka.errors import ConfigError, DataError
from ostraka.evaluation.evaluate import Evaluation, evaluate
from ostraka.evaluation.placing import placed_on
from ostraka.evaluation.sight import after_looking
from ostraka.parties.answers import UNKNOWN_NAME, Answers, Explanation, Said, join_answers
from ostraka.runs.promise import NEVER
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Ballot
from ostraka.voting.ensemble import Ensemble as Vote
from ostraka.voting.trust import trust

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
        self, predictor: Predictor, classes: Sequence[str], names: Sequence[str], rate: float
    ) -> None:
        reserved = [name for name in classes if name.casefold() == UNKNOWN_NAME]
        if reserved:
            raise DataError(
                f"a member knows a class called {reserved[0]!r}, which is the answer to samples of "
                "no class; leave it out, or train it with another name for that class"
            )
        self.classes = tuple(classes)
        self.names = tuple(names)
        """What the members are called; empty where one model answers."""
        self._predictor, self._rate = predictor, _share(rate)
        self._line: float | None = None
        self._of = ""
        self._known: Samples | None = None

    @property
    @abstractmethod
    def files(self) -> tuple[str, ...]:
        """Where the members lie; empty where they do not lie in files of their own."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What was found while they were read."""

    @property
    @abstractmethod
    def selection(self) -> Mapping[str, Any]:
        """Who was chosen and why (`voting.choice`); empty where everybody votes."""

    @property
    def ballot(self) -> Ballot | None:
        """How votes are counted; None: nobody votes."""
        return self._predictor.ballot if isinstance(self._predictor, Vote) else None

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
        return self._predictor.seen if isinstance(self._predictor, Vote) else None

    def seeing(self, x: Any, of: str = "given") -> Self:
        """The same with member trust estimated from unlabelled samples like those that will be
        asked, by a ballot that does so (guarded). Nothing else estimates it: not `predict`, not
        `evaluate`. `of` is what `looked` calls the samples.
        """
        if not self.looks:
            return self
        samples = x if isinstance(x, Samples) else Samples(self.stored(x))
        return self._with(_predictor=after_looking(self._predictor, samples), _of=of)

    def keeping(self, rate: float, known: Any = None) -> Self:
        """The same with its threshold where the share `rate` of samples of known classes will be
        called unknown: by the held-out samples `known`, or by what the members tell of theirs.
        """
        if known is not None and not isinstance(known, Samples):
            known = Samples(self.stored(known))
        return self._with(_rate=_share(rate), _known=known, _line=None)

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

    @torch.no_grad()
    def answer(self, x: Any) -> Answers:
        """The answers to samples [B, ...] as arrays."""
        line, values = self.threshold, self.stored(x)
        limit = float("inf") if line is None else line
        return join_answers([self._answers(part, limit) for part in _blocks(values)], len(values))

    def evaluate(self, x: Any, y: Sequence[str] | NDArray[Any]) -> Evaluation:
        """Figures on samples whose classes `y` are given by name; a class that nobody knows is
        unknown.
        """
        where = {name: number for number, name in enumerate(self.classes)}
        labels = torch.tensor([where.get(str(name), UNKNOWN) for name in y], dtype=torch.int64)
        return self.judged_on(Samples(self.stored(x), labels))

    def judged_on(self, samples: Samples) -> Evaluation:
        """Figures on labelled samples, UNKNOWN where they are of no class."""
        return evaluate(self._placing[0], samples, self.classes)

    def trust(self) -> dict[str, Any]:
        """What the ballot found of its members when it looked (`voting.trust`); else empty."""
        vote = self._predictor
        if not isinstance(vote, Vote) or vote.assessment is None:
            return {}
        return trust(vote.cards, vote.assessment, vote.junk, self.classes)

    def shares(self, scores: Scores) -> Tensor:
        """Known scores as shares of the vote that sum to 1 [B, K]."""
        ballot = self.ballot
        return scores.known.softmax(dim=1) if ballot is None else ballot.shares(scores)

    def scores(self, x: Any) -> Scores:
        """The counted votes on samples, with the threshold where it was placed."""
        values = self.stored(x)
        found = join([self._placing[0].scores(part) for part in _blocks(values)])
        known, unknown = found.known[: len(values)], found.unknown[: len(values)]
        return replace(found, known=known, unknown=unknown)

    def asking(self, predictor: Predictor) -> Self:
        """The same with another predictor of the same classes."""
        return self._with(_predictor=predictor)

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
    def view(self) -> View:
        """How stored values become inputs; of a vote, that of its first member."""
        return self._first.view

    @property
    def _first(self) -> NetPredictor:
        """The one network, or the first of those that vote."""
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

    def _answers(self, x: Tensor, limit: float) -> Answers:
        vote = self._predictor
        if not isinstance(vote, Vote):
            scores, none = vote.scores(x), torch.empty(0, len(x))
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
