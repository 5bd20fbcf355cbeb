"""Centralised training: all data in one place, the reference that a federation cannot have.

It makes the same number of sample passes as the federation it is compared with: `rounds * fraction * local.epochs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build, load_predictor
from ostraka.core.method import Card, Memory, Method, Report, Round
from ostraka.core.net import Params, params_of
from ostraka.core.objective import Objective
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import METHODS, OBJECTIVES


@final
@METHODS.add("centralised", "centralized", "oracle", "pooled")
@dataclass(frozen=True)
class Centralised(Method[Params, Params, Params]):
    """All data pooled: the same passes over it as the federation, any objective."""

    pooled: ClassVar[bool] = True
    talks: ClassVar[bool] = False

    objective: Objective = setting(CrossEntropy(), "what training minimises", registry=OBJECTIVES)
    local: Budget = setting(Budget(), "training of the federation it is compared with")

    @property
    def exchanges(self) -> int:
        """One: the passes of all rounds are made in one go."""
        return 1

    def budget(self) -> Budget:
        """The passes of all the federation's rounds."""
        if self.local.steps is not None:
            return replace(self.local, steps=round(self.local.steps * self.rounds * self.fraction))
        return replace(self.local, epochs=max(1, round(self.local.epochs * self.rounds * self.fraction)))

    def init(self, task: Task, seed: int) -> Params:
        """A random model: the same as FedAvg's for the same seed."""
        return params_of(build(task, self.objective, seed))

    def message(self, state: Params, party: PartyRef) -> Params:
        """The start."""
        return state

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Plain training."""
        net = build(rnd.task, self.objective)
        fitted = fit(net, rnd.message, party.samples, self.objective, self.budget(), rnd.seed, party.progress)
        return Report(fitted.params, 1.0, Card(party.id, len(party.samples), scores=fitted.figures()))

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        """The one model there is; the old one if its party dropped out."""
        return reports[0].payload if len(reports) else state

    def predictor(self, task: Task, state: Params) -> Predictor:
        """The trained model."""
        return load_predictor(task, self.objective, state)
