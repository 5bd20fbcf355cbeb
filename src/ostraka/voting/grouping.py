"""Members in clusters: rows of members, and how they are clustered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ostraka.core.card import Card
from ostraka.voting.clustering import Clustering, Labels, Matrix, clusters, silhouette


@dataclass(frozen=True)
class Grouping:
    """Rows to be clustered."""

    rows: Matrix
    how: Clustering
    seed: int
    _made: dict[int, Labels] = field(default_factory=dict)

    def labels(self, size: int) -> Labels:
        """The cluster of every member, of so many clusters."""
        if size not in self._made:
            self._made[size] = clusters(self.rows, self.how, size, self.seed)
        return self._made[size]

    def separation(self, size: int) -> float:
        """The mean silhouette of so many clusters."""
        return silhouette(self.rows, self.labels(size))


def label_skew(cards: Sequence[Card]) -> float | None:
    """How far parties' class shares lie from those of all together, 0 to 1,
    less what chance makes of parties of their size; None where not all tell counts.
    """
    if not cards or any(card.counts is None for card in cards):
        return None
    counts = np.array([card.counts for card in cards], dtype=np.float64)
    sizes = counts.sum(axis=1, keepdims=True).clip(min=1.0)
    shares, whole = counts / sizes, counts.sum(axis=0) / max(1.0, counts.sum())
    distance = 0.5 * np.abs(shares - whole).sum(axis=1)
    # the mean absolute deviation of a share of n draws is near sqrt(2 p (1 - p) / (pi n))
    chance = 0.5 * np.sqrt(2 * whole * (1 - whole) / (np.pi * sizes)).sum(axis=1)
    return float(np.clip(distance - chance, 0.0, None).mean())
