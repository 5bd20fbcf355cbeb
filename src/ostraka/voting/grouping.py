"""Members in clusters: rows of members that can be compared, and how they are clustered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ostraka.core.card import Card
from ostraka.voting.clustering import Clustering, Labels, Matrix, clusters, silhouette


@dataclass(frozen=True)
class Grouping:
    """Rows to be clustered, in groups within which they can be compared."""

    groups: Sequence[Sequence[int]]
    """Positions of the members of each group; every member is in one."""
    rows: Sequence[Matrix]
    how: Clustering
    seed: int
    _made: dict[int, Labels] = field(default_factory=dict)

    def labels(self, size: int) -> Labels:
        """The cluster of every member, of so many clusters in all;
        each group has a share of them, one at least.
        """
        if size not in self._made:
            found = np.zeros(sum(map(len, self.groups)), dtype=np.int64)
            first = 0
            for group, rows, part in zip(self.groups, self.rows, self._parts(size), strict=True):
                own = clusters(rows, self.how, part, self.seed)
                found[list(group)] = first + own
                first += int(own.max()) + 1
            self._made[size] = found
        return self._made[size]

    def separation(self, size: int) -> float:
        """The mean silhouette of so many clusters, groups weighed by their members."""
        labels = self.labels(size)
        each = [
            silhouette(rows, labels[list(group)]) * len(group)
            for group, rows in zip(self.groups, self.rows, strict=True)
        ]
        return sum(each) / len(labels)

    def _parts(self, size: int) -> list[int]:
        """Clusters of each group: one, and the rest by members, to who lacks most."""
        total = sum(map(len, self.groups))
        parts = [1] * len(self.groups)
        while sum(parts) < size:
            lack = {
                i: size * len(group) / total - parts[i]
                for i, group in enumerate(self.groups)
                if parts[i] < len(group)
            }
            parts[max(lack, key=lambda i: lack[i])] += 1
        return parts


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
