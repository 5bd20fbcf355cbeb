"""Outlier filters: which members are left out before a choice, by the scores that they tell.

A score is the party's own word. A filter guards against a training that went wrong, not
against a party that lies.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np

from ostraka.core.card import Card
from ostraka.core.settings import Settings, setting
from ostraka.core.told import held
from ostraka.errors import ConfigError
from ostraka.registry import FILTERS


@dataclass(frozen=True)
class OutlierFilter(Settings, ABC):
    """A rule that says below which score a member is left out."""

    @abstractmethod
    def least(self, scores: Sequence[float]) -> float:
        """The score below which a member is an outlier among these (one or more)."""

    def excuses(self, score: float, card: Card, scores: Sequence[float]) -> bool:
        """Whether a score below the least among `scores` rests on so few samples that it may be
        chance.
        """
        return False

    def dismisses(self, card: Card) -> str:
        """Why a member is left out by its own card, whoever else is there; empty: it is not."""
        return ""


@final
@FILTERS.add("none")
@dataclass(frozen=True)
class KeepAll(OutlierFilter):
    """No member is left out."""

    def least(self, scores: Sequence[float]) -> float:
        """Minus infinity."""
        return float("-inf")


@dataclass(frozen=True)
class Quantiles(OutlierFilter, ABC):
    """A rule on two quantiles of the scores."""

    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ConfigError(
                f"low is {self.low:g} and high is {self.high:g}; the lower quantile comes first"
            )


@dataclass(frozen=True)
class BoxPlot(Quantiles):
    """Below q_low - scale * (q_high - q_low): DeDES's supplement, Algorithm 1.

    Quantiles are scores themselves, the next one above: between two scores the least of few
    members would pull the lower quantile down to itself and never be an outlier.
    """

    low: float = setting(0.10, "share of the scores below the lower quantile", span="[0, 1]")
    high: float = setting(0.75, "share of the scores below the upper quantile", span="[0, 1]")
    scale: float = setting(1.5, "by how much of their distance below the lower", span="[0, inf)")
    errors: float = setting(
        2.0,
        "a score that lies within so many standard errors, by its number of held-out samples, of "
        "the lower quantile is no outlier",
        span="[0, inf)",
    )

    def least(self, scores: Sequence[float]) -> float:
        """The lower quantile minus its share of the distance."""
        low, high = np.quantile(scores, [self.low, self.high], method="higher")
        return float(low - self.scale * (high - low))

    def excuses(self, score: float, card: Card, scores: Sequence[float]) -> bool:
        """Whether the lower quantile lies in the score's interval by Agresti and Coull: half of the
        squared errors is added to the right and to the wrong samples, so that 6 of 6 has a width.
        """
        asked = held(card.calibration)
        number = asked + self.errors**2
        if not asked or not number:
            return False
        share = (score * asked + self.errors**2 / 2) / number
        width = self.errors * sqrt(max(0.0, share * (1 - share)) / number)
        return bool(score + width >= np.quantile(scores, self.low, method="higher"))


@final
@FILTERS.add("box")
@dataclass(frozen=True)
class Box(BoxPlot):
    """Below q_low - scale * (q_high - q_low): DeDES's supplement, Algorithm 1."""


@final
@FILTERS.add("learnt")
@dataclass(frozen=True)
class Learnt(BoxPlot):
    """As box, and whoever answers no better than by always naming its largest class, within what
    chance makes of so few held-out samples. Scores of honest parties may lie so far apart that
    none is an outlier among them; a training that went wrong ends at that share.
    """

    chance: float = setting(
        1.0, "standard errors of the largest class's share that count as chance", span="[0, inf)"
    )

    def dismisses(self, card: Card) -> str:
        """Compare its validation score with its largest class, where it tells both and has more
        than one; of bands the share is the least that it can be.
        """
        score, counts = card.scores.get("validation"), card.counts or (0,)
        share = max(counts) / max(1, card.size)
        asked = held(card.calibration)
        error = sqrt(share * max(0.0, 1 - share) / asked) if asked else 0.0
        if score is None or share >= 1 or score > share + self.chance * error:
            return ""
        return f"validation score {score:.4g}, and {share:.4g} of its samples are of one class"


@final
@FILTERS.add("floor")
@dataclass(frozen=True)
class Floor(Quantiles):
    """Below min + scale * (q_high - q_low): DeDES's later revision. Wherever the quantiles
    differ it leaves the least score out.
    """

    low: float = setting(0.25, "share of the scores below the lower quantile", span="[0, 1]")
    high: float = setting(0.75, "share of the scores below the upper quantile", span="[0, 1]")
    scale: float = setting(1.0, "by how much of their distance above the least", span="[0, inf)")

    def least(self, scores: Sequence[float]) -> float:
        """The least score plus its share of the distance."""
        low, high = np.quantile(scores, [self.low, self.high])
        return float(min(scores) + self.scale * (high - low))
