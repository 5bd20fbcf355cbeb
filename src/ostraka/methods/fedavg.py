"""FedAvg (McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017).

Algorithm 1: every round a fraction of the parties starts from the server's model, trains on its own data, and the
server takes the mean of the results weighted by the parties' sizes. One round is one-shot FedAvg. Deviations: an epoch
keeps its last, smaller batch; `weights="uniform"` gives every party the same weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build, load_predictor
from ostraka.core.method import Card, Memory, Method, Report, Round
from ostraka.core.net import Params, params_of
from ostraka.core.objective import Objective
from ostraka.core.params import average
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import METHODS, OBJECTIVES


@final
@METHODS.add("fedavg")
@dataclass(frozen=True)
class FedAvg(Method[Params, Params, Params]):
    """Average of the parties' models, round after round."""

    weights: Literal["size", "uniform"] = setting("size", "weigh parties by size, or all the same", server=True)
    objective: Objective = setting(CrossEntropy(), "what the parties minimise", registry=OBJECTIVES)
    local: Budget = setting(Budget(), "the parties' training")

    def init(self, task: Task, seed: int) -> Params:
        """A random model, or the commons' "start"."""
        start = task.commons.nets.get("start")
        return start if start is not None else params_of(build(task, self.objective, seed))

    def message(self, state: Params, party: PartyRef) -> Params:
        """The server's model."""
        return state

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model on the party's data."""
        net = build(rnd.task, self.objective)
        fitted = fit(net, rnd.message, party.samples, self.objective, self.local, rnd.seed, party.progress)
        size = len(party.samples)
        return Report(fitted.params, float(size), Card(party.id, size, scores=fitted.figures()))

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        """The weighted mean of the parties' models."""
        return average((r.payload, r.weight if self.weights == "size" else 1.0) for r in reports)

    def predictor(self, task: Task, state: Params) -> Predictor:
        """The server's model."""
        return load_predictor(task, self.objective, state)
