"""How anything that predicts answers: known scores, an unknown score, and a threshold between them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import torch
from torch import Tensor

UNKNOWN = -1
"""The open answer for a sample that belongs to no known class."""


@dataclass(frozen=True)
class Scores:
    """`known` [B, K]: higher = likelier. `unknown` [B]: higher = more unknown. Unknown where `unknown > threshold`.

    A closed-set predictor never answers unknown: its threshold is infinite, its unknown score still ranks samples.
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
        """[B, K + 1]: known scores and the unknown one on the same scale (minus infinity for closed-set answers)."""
        unknown = self.unknown - self.threshold + self.known.max(dim=1).values
        return torch.cat([self.known, unknown.unsqueeze(1)], dim=1)


def open_scores(logits: Tensor) -> Scores:
    """Scores of K + 1 outputs, the last of which is unknown: its logit minus the largest known one, threshold 0."""
    known = logits[:, :-1]
    return Scores(known, logits[:, -1] - known.max(dim=1).values, 0.0)


def closed_scores(logits: Tensor) -> Scores:
    """Scores of K outputs: the unknown score is minus the largest softmax probability; it never answers unknown."""
    return Scores(logits, -logits.softmax(dim=1).max(dim=1).values, float("inf"))


def join(parts: list[Scores]) -> Scores:
    """Scores of consecutive chunks as one."""
    return Scores(
        torch.cat([p.known for p in parts]), torch.cat([p.unknown for p in parts]), parts[0].threshold if parts else 0.0
    )


class Predictor(ABC):
    """Whatever a method produced: one network, K networks or a voted ensemble."""

    @abstractmethod
    def scores(self, x: Tensor) -> Scores:
        """Scores of the inputs `x` [B, ...]."""

    @property
    def looks(self) -> bool:
        """Whether `seeing` changes anything."""
        return False

    def seeing(self, x: Tensor) -> "Predictor":
        """This predictor after it has looked, without labels, at samples like those that it will answer.

        What it finds is fixed then: the answer to a sample does not depend on the others it is asked with.
        """
        return self

    @property
    def seen(self) -> Any:
        """What looking found, as a value that can be stored; None: nothing."""
        return None

    def trust(self) -> dict[str, Any]:
        """Whom not to trust, in plain values; empty where there is nobody to say anything of."""
        return {}


@final
@dataclass(frozen=True)
class Solo(Predictor):
    """Models that are used alone, each by its own party: evaluation reports the mean of their figures, and each one.

    They are kept by the number of their party, which no other has; names are for messages, and may be the same.
    Asked as one predictor, it gives the mean of their probabilities.
    """

    alone: Mapping[int, Predictor]
    names: Mapping[int, str] = field(default_factory=dict)

    def name(self, party: int) -> str:
        """What messages call the party."""
        return self.names.get(party) or f"party {party}"

    def scores(self, x: Tensor) -> Scores:
        """Mean probability of the models that stand alone."""
        total = torch.stack([p.scores(x).logits().softmax(dim=1) for p in self.alone.values()]).mean(dim=0)
        return Scores(total[:, :-1], -total[:, :-1].max(dim=1).values, float("inf"))
