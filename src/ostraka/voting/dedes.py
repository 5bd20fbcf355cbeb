"""DeDES: a diverse few among many members, chosen without data.

Wang et al., "Data-Free Diversity-Based Ensemble Selection for One-Shot Federated Learning"
(the supplement of 2022, and as the recipe `tmlr` the later revision). Members that tell an
unusually bad score are left out (`voting.outliers`); the others are compared by their weights
(`voting.representation`) and clustered (`voting.clustering`), and one of each cluster votes: of
parties of unequal sizes the largest, of others the one with the best score.

Readings and additions of ours: sizes are compared within a cluster; equal ones go by lot. A server
does not know how data was divided, so `clustering=auto` looks at the told class counts, or where
they are not told, at which clustering separates the rows better. `size=auto` takes the least size
at which the team answers public samples as all do, by the ballot that will count them, or where
there are none, the size whose clusters are separated best; half of the members, where no clusters
are separated. Either way no class may lack a member that has samples of it, as far as is told.
Members of several networks have no weights to compare: their answers are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from ostraka.core.card import Card
from ostraka.core.seeds import derive
from ostraka.core.settings import setting
from ostraka.registry import FILTERS, SELECTORS
from ostraka.voting.choice import NOWHERE, Choice
from ostraka.voting.clustering import (
    Clustering,
    Labels,
    Matrix,
    Reduction,
    Scaling,
    clusters,
    load_libraries,
    narrow,
    reduced,
    scaled,
    silhouette,
)
from ostraka.voting.grouping import Grouping, label_skew
from ostraka.voting.outliers import Box, OutlierFilter
from ostraka.voting.representation import FREE, kinds, rows_of
from ostraka.voting.selectors import Pool, Score, Selector, Size, scores_of
from ostraka.voting.sizing import asked, covering, size_by_votes, sizes_to_try

SKEWED = 0.2
"""Skew of the told class counts above which data counts as skewed by label."""
SEPARATED = 0.25
"""Silhouette below which there is no substantial structure (Kaufman & Rousseeuw 1990)."""


@dataclass(frozen=True)
class Clustered(Selector):
    """One member of each cluster votes."""

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "supplement": {},
        "tmlr": {"filter": "floor", "unbalanced": 1 / 0.9, "clustering": "revised"},
    }

    size: Size = setting(
        "auto", "clusters, and members that vote; auto: see size_by", span="[1, inf)"
    )
    size_by: Literal["auto", "votes", "silhouette"] = setting(
        "auto",
        "how an automatic size is found: by the vote on public samples, or by how well clusters "
        "are separated; auto: votes where there are public samples",
    )
    representation: str = setting(
        "last", "how members are compared: last, first, all, the name of a layer, counts, answers"
    )
    reduction: Reduction = setting("none", "fewer dimensions before clustering")
    components: int = setting(10, "dimensions after a reduction", span="[1, inf)")
    scaling: Literal["auto", "min-max", "standard", "none"] = setting(
        "auto", "of every column; auto: standard for counts, min-max for the rest"
    )
    clustering: Literal["auto", "revised", "kmeans", "spectral", "hierarchical"] = setting(
        "auto",
        "auto: kmeans if data is skewed by label, else spectral; revised: else hierarchical",
    )
    filter: OutlierFilter = setting(Box(), "who is left out before, by its score", registry=FILTERS)
    score: Score = setting("validation", "accuracy on held-out samples, or mean confidence in them")
    unbalanced: float = setting(
        2.0,
        "largest over median size in a cluster above which the largest party's member votes; the "
        "median of an even number is the lower of the two in the middle",
        span="[1, inf)",
    )

    def load(self) -> None:
        """Import scikit-learn."""
        load_libraries()

    def choose(self, pool: Pool) -> Choice:
        """Filter, cluster, and take one of each cluster."""
        kept, least, notes = self._kept(pool.cards)
        inner = replace(pool, members=[pool.members[i] for i in kept])
        grouping = self._grouping(inner, notes)
        labels = grouping.labels(self._size(inner, grouping, notes))
        team, words = self._representatives(inner, labels)
        groups, why = [NOWHERE] * len(pool.members), [""] * len(pool.members)
        for place, i in enumerate(kept):
            groups[i], why[i] = int(labels[place]), words[place]
        for i in sorted({*range(len(why))} - {*kept}):
            own = pool.cards[i].scores.get(self.score)
            low = "" if own is None else f"{self.score} score {own:.4g} is below {least:.4g}"
            why[i] = f"left out: {self.filter.dismisses(pool.cards[i]) or low}"
        return Choice(tuple(kept[i] for i in team), tuple(why), tuple(groups), tuple(notes))

    def _kept(self, cards: Sequence[Card]) -> tuple[list[int], float, list[str]]:
        """Who is not left out (who tells no score stays), the least score,
        and what is to be said.
        """
        scores = scores_of(cards, self.score)
        told = [score for score in scores if score is not None]
        least = self.filter.least(told) if told else float("-inf")
        usual = [
            i
            for i, score in enumerate(scores)
            if score is None or score >= least or self.filter.excuses(score, cards[i], told)
        ]
        notes, silent = [], len(cards) - len(told)
        if not usual:  # somebody must vote all the same
            usual = list(range(len(cards)))
            notes.append(f"all {len(cards)} {self.score} scores are below {least:.4g}: all stay")
        kept = [i for i in usual if not self.filter.dismisses(cards[i])] or usual
        out = len(cards) - len(usual)
        if silent:
            notes.append(f"{silent} of {len(cards)} members tell no {self.score} score")
        if out:
            notes.append(f"{out} left out: {self.score} score below {least:.4g}")
        if len(kept) < len(usual):
            notes.append(f"{len(usual) - len(kept)} left out by their own cards")
        return kept, least, notes

    def _grouping(self, pool: Pool, notes: list[str]) -> Grouping:
        """The rows of the members, and how they are clustered."""
        if self._mixed(pool):
            notes.append(f"members of {len(kinds(pool.members))} networks: compared by answers")
        rows, seed = self.rows(pool), derive(pool.seed, "select", "clusters") % 2**32
        return Grouping(rows, self._clustering(pool, rows, seed, notes), seed)

    def rows(self, pool: Pool) -> Matrix:
        """A row for each member, as they are compared; members of several networks by their
        answers.
        """
        how = "answers" if self._mixed(pool) else self.representation
        seed = derive(pool.seed, "select", "reduction") % 2**32
        rows = reduced(rows_of(pool, how), self.reduction, self.components, seed)
        auto: Scaling = "standard" if how == "counts" else "min-max"
        return narrow(scaled(rows, auto if self.scaling == "auto" else self.scaling))

    def _mixed(self, pool: Pool) -> bool:
        """Whether members would be compared by weights of several networks."""
        return self.representation not in FREE and len(kinds(pool.members)) > 1

    def _clustering(self, pool: Pool, rows: Matrix, seed: int, notes: list[str]) -> Clustering:
        if self.clustering != "auto" and self.clustering != "revised":
            return self.clustering
        even: Clustering = "spectral" if self.clustering == "auto" else "hierarchical"
        skew = label_skew(pool.cards)
        if skew is not None:
            how: Clustering = "kmeans" if skew > SKEWED else even
            notes.append(f"clustering: {how}, as the skew of the told class counts is {skew:.2f}")
            return how
        half = max(2, len(rows) // 2)
        both: tuple[Clustering, ...] = ("kmeans", even)
        how = max(both, key=lambda name: silhouette(rows, clusters(rows, name, half, seed)))
        notes.append(f"clustering: {how}, whose clusters are separated best (no counts are told)")
        return how

    def _size(self, pool: Pool, grouping: Grouping, notes: list[str]) -> int:
        """The number of clusters: as set, or found."""
        count = len(pool.members)
        if self.size != "auto":
            if self.size > count:
                notes.append(f"{self.size} were asked for, {count} are there: all of them vote")
            return min(self.size, count)
        if count == 1:
            return count
        teams: Mapping[int, Sequence[int]] = {
            size: self._representatives(pool, grouping.labels(size))[0]
            for size in sizes_to_try(count)
        }
        teams = covering(pool, teams)
        votes = pool.public is not None if self.size_by == "auto" else self.size_by == "votes"
        if not teams:
            size, words = count, "no smaller team that was tried has samples of every class"
        elif votes:
            size, words = size_by_votes(asked(pool), pool.ballot, teams)
        else:
            size, words = _size_by_silhouette(grouping, list(teams), count)
        notes.append(f"size {size}: {words}")
        return size

    def _representatives(self, pool: Pool, labels: Labels) -> tuple[list[int], list[str]]:
        """The member of each cluster that votes, and for every member why or why not."""
        cards, lots, scores = pool.cards, pool.lots(), scores_of(pool.cards, self.score)
        team, why = [], [""] * len(cards)
        for cluster in range(int(labels.max()) + 1):
            group = np.flatnonzero(labels == cluster).tolist()
            words, ranks = self._ranks(group, [card.size for card in cards], scores, lots)
            best = max(group, key=lambda i, ranks=ranks: ranks[i])  # type: ignore[misc]
            for i in group:
                why[i] = f"cluster {cluster}: {cards[best]} has the {words}"
            alone = f"alone in cluster {cluster}"
            why[best] = f"{words} of {len(group)} in cluster {cluster}" if len(group) > 1 else alone
            team.append(best)
        return sorted(team), why

    def _ranks(
        self,
        group: Sequence[int],
        sizes: Sequence[int],
        scores: Sequence[float | None],
        lots: Sequence[int],
    ) -> tuple[str, dict[int, tuple[float, float, int]]]:
        """By what a cluster's member is chosen, and the rank of each: the highest is chosen."""
        own = sorted((sizes[i] for i in group), reverse=True)
        # as the authors' code: of an even number the lower of the two in the middle
        uneven = own[0] > self.unbalanced * own[len(own) // 2]
        if uneven or any(scores[i] is None for i in group):
            return "most samples", {i: (sizes[i], scores[i] or 0.0, -lots[i]) for i in group}
        by_score = {i: (scores[i] or 0.0, float(sizes[i]), -lots[i]) for i in group}
        return f"best {self.score} score", by_score


@final
@SELECTORS.add("dedes")
@dataclass(frozen=True)
class DeDES(Clustered):
    """One member of each cluster of similar members votes: the largest party's, or the best."""


@final
@SELECTORS.add("ld", "label-counts")
@dataclass(frozen=True)
class LabelCounts(Clustered):
    """As dedes, by the class counts that parties tell (DeDES's ground truth, LD)."""

    representation: str = setting("counts", "how members are compared; see dedes")


def _size_by_silhouette(grouping: Grouping, sizes: Sequence[int], count: int) -> tuple[int, str]:
    """The size whose clusters are separated best; half of the members where none is separated."""
    worth = {size: grouping.separation(size) for size in sizes}
    best = max(worth, key=lambda size: worth[size])
    if worth[best] >= SEPARATED:
        return best, f"its clusters are separated best (silhouette {worth[best]:.3f})"
    best = min((size for size in sizes if 2 * size >= count), default=count)
    return best, "no clusters are separated, so half of the members or more"
