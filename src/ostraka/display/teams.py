"""What a run's members could have been: teams chosen by all selectors, judged on its test set, and
drawn beside a map of the members and the data that their parties have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.member import Member
from ostraka.core.settings import values_of
from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.curves import COLOURS, MARKERS, Curve
from ostraka.display.tables import cut
from ostraka.errors import ConfigError
from ostraka.methods.panel import VotingMethod
from ostraka.registry import SELECTORS
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import load_state
from ostraka.voting.ballots import Votes
from ostraka.voting.choice import NOWHERE, Choice
from ostraka.voting.cover import Cover
from ostraka.voting.dedes import Clustered, DeDES, LabelCounts
from ostraka.voting.diversity import diversity
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.inspection import Inspection, inspect_teams, team_accuracy
from ostraka.voting.panel import Panel
from ostraka.voting.selectors import All, BestValidation, MostData, Pool, Random, Selector

SIZES = 12
"""Sizes of teams that are tried at the most."""
DRAWS = 5
"""Teams that are drawn by lot, and their mean taken."""
FEW = 60
"""Members up to which each is named in the map, and parties that are named below their bars."""
BESIDE = 0.12
"""How far apart marks of teams of one size stand."""
UNCHOSEN = {"all": "*", "best": "h"}
"""Marks, black ones, of teams that no selector chose."""
LISTED = 16
"""Classes that fit into the legend."""


@dataclass(frozen=True)
class Members:
    """A finished run of a voting method: all its members, and its test set."""

    plan: Plan
    method: VotingMethod
    panel: Panel

    @classmethod
    def of(cls, folder: Path) -> "Members":
        """Those of the run in `folder`, whose data must still be there."""
        config, state = load_state(folder)
        plan = make_plan(config)
        if not isinstance(plan.method, VotingMethod) or not isinstance(state, Panel):
            raise ConfigError(
                f"{folder} is a run of {config.method}, whose members do not vote; take one of "
                "dedes, closed-voting or fedov"
            )
        return cls(plan, plan.method, state)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """All members that arrived, chosen or not."""
        return self.method.members(self.plan.task, self.panel)

    @cached_property
    def pool(self) -> Pool:
        """What the run's selector saw."""
        task = self.plan.task
        public, ballot = task.commons.public, self.method.ballot
        return Pool(self.members, task.classes, self.panel.seed, public, ballot)

    @cached_property
    def votes(self) -> Votes:
        """All members' votes on the test set."""
        return self._ensemble.votes_on(self.plan.test.samples)

    @cached_property
    def public(self) -> Votes | None:
        """Their votes on public samples, for a ballot that is tuned on them."""
        public = self.plan.task.commons.public
        if public is None or not self.method.ballot.wants_public:
            return None
        return self._ensemble.votes_on(public)

    @cached_property
    def _ensemble(self) -> Ensemble:
        ensemble = Ensemble.of(self.members, self.method.ballot, self.plan.task.classes)
        if self.method.ballot.wants_junk:
            ensemble = replace(ensemble, junk=ensemble.known_junk())
        return ensemble

    @property
    def labels(self) -> Tensor:
        """The true classes of the test set; UNKNOWN for those that are none."""
        return self.plan.test.samples.labels

    @property
    def choice(self) -> Choice:
        """The run's own choice: everybody, where nobody was left out."""
        return self.panel.choice or All().choose(self.pool)

    def rows(self) -> np.ndarray:
        """The members as the run's selector compares them, or else as dedes does."""
        own = self.method.select
        return (own if isinstance(own, Clustered) else DeDES()).rows(self.pool)

    def accuracy(self, team: Sequence[int]) -> float:
        """The accuracy of a team's vote by the run's ballot, in percent."""
        return 100 * team_accuracy(self.votes, self.labels, self.method.ballot, team, self.public)

    @cached_property
    def right(self) -> Tensor:
        """Which samples of known classes [N] each member answers with their class [M, N]."""
        answers = self.votes.logits[..., :-1].argmax(dim=2)
        return (answers == self.labels)[:, self.labels >= 0]

    def alone(self) -> list[float]:
        """The accuracy of every member alone, in percent."""
        return (100 * self.right.double().mean(dim=1)).tolist()

    def inspect(self) -> Inspection:
        """All teams that can be made of the members."""
        return inspect_teams(self.votes, self.labels, self.method.ballot, self.public)

    def diversity(self, team: Sequence[int]) -> dict[str, float]:
        """How different a team's members are on samples of known classes."""
        return diversity(self.right, team)

    def selectors(self, size: int) -> dict[str, Selector]:
        """Every selector that the members' cards allow, for teams of this size; the run's own with
        its settings.
        """
        named: dict[str, Selector] = {"dedes": DeDES(size)}
        cards = self.pool.cards
        if all(BestValidation().score in card.scores for card in cards):
            named["cv"] = BestValidation(size)
        named["ds"] = MostData(size)
        if all(card.counts is not None for card in cards):
            named |= {"ld": LabelCounts(size), "cover": Cover(size)}
        named["rs"] = Random(size)
        own: Any = self.method.select
        if "size" in values_of(own):
            named[SELECTORS.name_of(type(own))] = replace(own, size=size)
        return named

    def curves(self) -> list[Curve]:
        """Accuracy of every selector's team against its size, and of all members."""
        count = len(self.members)
        sizes = sorted({round(s) for s in np.linspace(1, count, min(count, SIZES)).tolist()})
        curves = []
        for name in self.selectors(1):
            draws = DRAWS if name == "rs" else 1
            curves.append(
                Curve(name, sizes, [[self._at(name, k, d) for k in sizes] for d in range(draws)])
            )
        whole = self.accuracy(range(count))
        return [*curves, Curve("all", [count], [[whole]], reference=True)]

    def _at(self, name: str, size: int, draw: int) -> float:
        selector = Random(size, draw) if draw else self.selectors(size)[name]
        with torch.no_grad():
            return self.accuracy(selector.choose(self.pool).chosen)


def draw_clusters(
    rows: NDArray[np.float64], choice: Choice, names: Sequence[str], path: Path, title: str = ""
) -> None:
    """Draw members by their rows in two principal components.

    Colour and marker are the cluster, a ring is a member that votes,
    a cross one that was left out before.
    """
    check_suffix(path)
    from sklearn.decomposition import PCA

    # where each member lies in the two principal components, and their shares of the variance
    places, shares = np.zeros((len(rows), 2)), [0.0, 0.0]
    count = min(2, len(rows) - 1, rows.shape[1])
    if count > 0 and (rows != rows[0]).any():
        found = PCA(count, svd_solver="full").fit(rows)
        places[:, :count] = found.transform(rows)
        shares[:count] = found.explained_variance_ratio_.tolist()
    figure = new_figure(6.4, 5.0)
    axes = figure.add_subplot()
    groups = np.array(choice.groups or [0] * len(rows))
    for group in sorted(set(groups.tolist())):
        x, y = places[groups == group].T
        if group == NOWHERE:
            axes.scatter(x, y, s=36, color="0.6", marker="x", label="left out before")
            continue
        colour = COLOURS[group % len(COLOURS)]
        marker = ("o", *MARKERS)[group // len(COLOURS) % (len(MARKERS) + 1)]
        axes.scatter(x, y, s=30, color=colour, marker=marker, linewidths=0)
    x, y = places[list(choice.chosen)].T
    axes.scatter(x, y, s=150, facecolors="none", edgecolors="black", linewidths=1.4, label="votes")
    if len(rows) <= FEW:
        for name, (x, y) in zip(names, places, strict=True):
            axes.annotate(cut(name, 12), (x, y), (7, 5), textcoords="offset points", fontsize=6)
        axes.set_xmargin(0.12)  # a name stands to the right of its place
    axes.set_xlabel(f"first principal component ({100 * shares[0]:.0f} % of the variance)")
    axes.set_ylabel(f"second ({100 * shares[1]:.0f} %)")
    axes.tick_params(labelsize=7)
    axes.set_title(title, fontsize=9, loc="left")
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    save(figure, path)


def draw_teams(
    found: Inspection, teams: Mapping[str, Sequence[int]], path: Path, title: str = ""
) -> None:
    """Draw the accuracy of every team against its size, and mark those of the selectors, side by
    side where they have one size; black are `all` and `best`, which nobody chose.
    """
    check_suffix(path)
    figure = new_figure(6.8, 4.4)
    axes = figure.add_subplot()
    sizes = np.array([len(team) for team in found.accuracy], dtype=float)
    values = 100 * np.array(list(found.accuracy.values()))
    # beside each other, so that many equal ones are seen as many
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(sizes))
    axes.scatter(sizes + spread, values, s=4, color="0.75", linewidths=0)
    for place, (name, team) in enumerate(teams.items()):
        own, rank = found.accuracy[tuple(sorted(team))], found.rank(team)
        level = [other for other, one in teams.items() if len(one) == len(team)]
        beside = BESIDE * (level.index(name) - (len(level) - 1) / 2)
        axes.scatter(
            [len(team) + beside],
            [100 * own],
            s=60,
            color="black" if name in UNCHOSEN else COLOURS[place % (len(COLOURS) - 1)],
            marker=UNCHOSEN.get(name, MARKERS[place % (len(MARKERS) - 1)]),
            edgecolors="white",
            label=f"{name}: {100 * own:.2f} %, rank {rank} of {len(found.accuracy)}",
            zorder=3,
        )
    axes.set_xlabel("members of the team")
    axes.set_ylabel("accuracy (%)")
    axes.set_xticks(range(1, int(sizes.max()) + 1))
    axes.set_title(title, fontsize=9, loc="left")
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    save(figure, path)


def draw_parties(
    counts: NDArray[np.int64],
    names: Sequence[str],
    classes: Sequence[str],
    lines: Mapping[str, Sequence[float | None]],
    path: Path,
    title: str = "",
) -> None:
    """Draw each party's samples by class [M, K] as a bar,
    and accuracies of its member, in percent, as lines.
    """
    from matplotlib import colormaps

    check_suffix(path)
    figure = new_figure(max(6.4, min(16.0, 2.5 + 0.28 * len(names))), 4.6)
    axes = figure.add_subplot()
    below, places = np.zeros(len(names)), np.arange(len(names))
    # pale colours, so that lines before them are seen
    few = len(classes) <= 12
    wheel = colormaps["Set3" if few else "terrain"]
    for label, name in enumerate(classes):
        axes.bar(
            places,
            counts[:, label],
            bottom=below,
            color=wheel(label if few else label / (len(classes) - 1)),
            label=cut(name, 14) if len(classes) <= LISTED else None,
        )
        below = below + counts[:, label]
    axes.set_ylabel("samples")
    axes.set_xlabel("party")
    every = -(-len(names) // FEW)
    axes.set_xticks(places[::every], [cut(name, 12) for name in names[::every]], rotation=90)
    axes.tick_params(labelsize=7)
    other = axes.twinx()
    for place, (name, values) in enumerate(lines.items()):
        shown = [np.nan if value is None else value for value in values]
        colour, marker = ("#D55E00", "#0072B2", "#000000")[place % 3], "os^"[place % 3]
        line: dict[str, Any] = {"color": colour, "marker": marker, "label": name}
        other.plot(places, shown, markersize=4, linewidth=1.4, **line)
    other.set_ylim(0, 102)
    other.set_ylabel("accuracy (%)")
    other.tick_params(labelsize=7)
    axes.set_title(title, fontsize=9, loc="left")
    if lines or len(classes) <= LISTED:
        figure.legend(fontsize=7, frameon=False, loc="outside right center")
    save(figure, path)
