"""What a run's members could have been: teams chosen by all selectors, judged on its test set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ostraka.core.member import Member
from ostraka.core.settings import values_of
from ostraka.display.curves import Curve
from ostraka.errors import ConfigError
from ostraka.methods.panel import VotingMethod
from ostraka.registry import SELECTORS
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import load_state
from ostraka.voting.ballots import Votes
from ostraka.voting.choice import Choice
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

    def alone(self) -> list[float]:
        """The accuracy of every member alone, in percent."""
        known = self.labels >= 0
        answers = self.votes.logits[..., :-1].argmax(dim=2)
        return (100 * (answers == self.labels)[:, known].double().mean(dim=1)).tolist()

    def inspect(self) -> Inspection:
        """All teams that can be made of the members."""
        return inspect_teams(self.votes, self.labels, self.method.ballot, self.public)

    def diversity(self, team: Sequence[int]) -> dict[str, float]:
        """How different a team's members are on samples of known classes."""
        known = self.labels >= 0
        answers = self.votes.logits[..., :-1].argmax(dim=2)
        return diversity((answers == self.labels)[:, known], team)

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
