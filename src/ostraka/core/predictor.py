"""How anything that predicts answers: known scores, an unknown score,
and a threshold between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.samples import stored_values

UNKNOWN = -1
"""The open answer for a sample that belongs to no known class."""


@dataclass(frozen=True)
class Scores:
    """`known` [B, K]: higher = likelier.

    `unknown` [B]: higher = more unknown. Unknown where `unknown > threshold`. A
    closed-set predictor never answers unknown: its threshold is infinite, its
    unknown score still ranks samples.
    """

    known: Tensor
    unknown: Tensor
    threshold: float = 0.0

    @property
    def closed(self) -> Tensor:
        """The most likely known class of each sample [B]."""
        return self.known.argmax(dim=1)

    @property
    def open(self) -> Tensor:
        """As `closed`, with UNKNOWN where the unknown score exceeds the threshold."""
        return torch.where(self.unknown > self.threshold, UNKNOWN, self.closed)

    def logits(self) -> Tensor:
        """[B, K + 1]: known scores and the unknown one on the same scale (minus infinity for
        closed-set answers).
        """
        unknown = self.unknown - self.threshold + self.known.max(dim=1).values
        return torch.cat([self.known, unknown.unsqueeze(1)], dim=1)


def open_scores(logits: Tensor) -> Scores:
    """Scores of K + 1 outputs, the last of which is unknown:
    its logit minus the largest known one, threshold 0.
    """
    known = logits[:, :-1]
    return Scores(known, logits[:, -1] - known.max(dim=1).values, 0.0)


def closed_scores(logits: Tensor) -> Scores:
    """Scores of K outputs: the unknown score is minus the largest softmax probability.

    It never answers unknown.
    """
    return Scores(logits, -logits.softmax(dim=1).max(dim=1).values, float("inf"))


def join(parts: list[Scores]) -> Scores:
    """Scores of consecutive chunks as one."""
    return Scores(
        torch.cat([p.known for p in parts]),
        torch.cat([p.unknown for p in parts]),
        parts[0].threshold if parts else 0.0,
    )


@dataclass(frozen=True)
class Promise:
    """How often a sample of a known class will be called unknown,
    and what that rests on; or why nobody can say.
    """

    rate: float | None = None
    """The promised share of known samples that are called unknown; None: nothing is promised."""
    basis: str = "none"
    """What placed the threshold: told, validation, public, hand; none:
    it is the predictor's own.
    """
    threshold: float | None = None
    """Where it lies; None: the predictor's own, or one for each model that stands alone."""
    why: str = ""
    """Why nothing is promised."""

    def as_dict(self) -> dict[str, float | str | None]:
        """Plain values for JSON."""
        return dict(vars(self))


SILENT = Promise(
    why=(
        "the parties tell nothing of held-out samples; "
        "--validation 0.05 would give the server some to measure on"
    )
)


def threshold_for(rate: float, unknown: Tensor, weights: Tensor | None = None) -> float:
    """The least of the unknown scores [N] that no more than `rate`
    of them, by weight, lie above.
    """
    values, place = unknown.unique(return_inverse=True)
    weights = torch.ones(len(unknown)) if weights is None else weights
    mass = torch.zeros(len(values), dtype=torch.float64).index_add_(
        0, place.cpu(), weights.double().cpu()
    )
    above = mass.sum() - mass.cumsum(0)
    # sums of thirds and tenths are a hair off: without the margin 5 of 100 would not be 5 %
    return float(values[int((above <= (rate + 1e-9) * mass.sum()).nonzero()[0])])


class Predictor(ABC):
    """Whatever a method produced: one network, K networks or a voted ensemble.

    It is asked with samples as they are stored (bytes of images, raw rows) and sees to the rest
    itself: members that were trained on different views of a sample can answer together.
    """

    @abstractmethod
    def scores(self, x: Tensor) -> Scores:
        """Scores of stored values `x` [B, ...]."""

    def predict(self, x: Any) -> Tensor:
        """The open answer [B] to stored values, a tensor or an array: class numbers, or UNKNOWN."""
        with torch.no_grad():
            return self.scores(stored_values(x)).open

    def keeping(self, rate: float) -> tuple["Predictor", Promise]:
        """This predictor with its threshold where the share `rate` of
        known samples will be called unknown.

        The line is placed by what parties told of held-out samples; where they told nothing, it
        stays, and nothing is promised.
        """
        return self, SILENT

    @property
    def binary(self) -> bool:
        """Whether each known score is a yes-or-no answer of its own: yes above 0."""
        return False

    @property
    def looks(self) -> bool:
        """Whether `seeing` changes anything."""
        return False

    def seeing(self, x: Tensor) -> "Predictor":
        """This predictor with member trust estimated from unlabelled samples like those it will
        predict.

        The estimate is fixed then, and nothing else estimates it: without this call none is made.
        """
        return self

    @property
    def seen(self) -> Any:
        """What looking found, as a value that can be stored; None: nothing."""
        return None

    def remembering(self, seen: Any) -> "Predictor":
        """This predictor as it was when `seen` was what it had found."""
        return self

    def trust(self) -> dict[str, Any]:
        """Whom not to trust, in plain values; empty where there is nobody to say anything of."""
        return {}


@final
@dataclass(frozen=True)
class Placed(Predictor):
    """A predictor with its threshold elsewhere: the ranking of samples stays,
    the line between them moves.
    """

    inner: Predictor
    threshold: float

    @property
    def binary(self) -> bool:
        """As before: the known scores are the same."""
        return self.inner.binary

    def scores(self, x: Tensor) -> Scores:
        """The same scores, another threshold."""
        return replace(self.inner.scores(x), threshold=self.threshold)


@final
@dataclass(frozen=True)
class Solo(Predictor):
    """Models that are used alone, each by its own party: evaluation reports the mean of their
    figures, and each one.

    They are kept by the number of their party, which no other has; names are for messages, and may
    be the same. Asked as one predictor, it gives the mean of their probabilities.
    """

    alone: Mapping[int, Predictor]
    names: Mapping[int, str] = field(default_factory=dict)

    def name(self, party: int) -> str:
        """What messages call the party."""
        return self.names.get(party) or f"party {party}"

    def keeping(self, rate: float) -> tuple[Predictor, Promise]:
        """Each model with a threshold of its own; a promise only if every one can be kept."""
        kept = {party: model.keeping(rate) for party, model in self.alone.items()}
        broken = [(party, promise) for party, (_, promise) in kept.items() if promise.rate is None]
        placed = replace(self, alone={party: model for party, (model, _) in kept.items()})
        if not broken:
            return placed, Promise(rate, "told")
        party, first = broken[0]
        rest = f"; so it is with {len(broken)} of {len(kept)} models" if len(kept) > 1 else ""
        return placed, replace(first, threshold=None, why=f"{self.name(party)}: {first.why}{rest}")

    def scores(self, x: Tensor) -> Scores:
        """Mean probability of the models that stand alone."""
        total = torch.stack(
            [p.scores(x).logits().softmax(dim=1) for p in self.alone.values()]
        ).mean(dim=0)
        return Scores(total[:, :-1], -total[:, :-1].max(dim=1).values, float("inf"))
