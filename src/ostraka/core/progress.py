"""How long work at a party reports where it is,
and where it keeps what it would lose if it were killed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, final


class Progress(ABC):
    """A place for one party's half-finished work in one round.

    Engines provide it; `fit` uses it.
    """

    every_seconds: float = 60.0
    """How often `save` is called at most; a kill loses about this much."""
    spent_before: float = 0.0
    """CPU-seconds that earlier, interrupted attempts at the same work had spent."""

    @abstractmethod
    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved under `name`, or None."""

    @abstractmethod
    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep tensors and plain values under `name`, atomically."""

    @abstractmethod
    def tell(self, done: float, loss: float | None) -> None:
        """Say which share of the work is done (0 to 1) and the latest loss, for whoever watches."""


@final
class NoProgress(Progress):
    """Keeps nothing and tells nobody."""

    def load(self, name: str) -> Mapping[str, Any] | None:
        """Nothing was saved."""
        return None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Nothing is kept."""

    def tell(self, done: float, loss: float | None) -> None:
        """Nobody watches."""
