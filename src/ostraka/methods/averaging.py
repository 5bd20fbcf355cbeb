"""What the averaging methods share: one model goes out,
parties train it on their own data, and it comes back.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ostraka.contract import (
    Budget,
    Card,
    Fitted,
    Iterative,
    Memory,
    Objective,
    Params,
    Party,
    PartyRef,
    Predictor,
    Report,
    Round,
    RoundBudget,
    Samples,
    Task,
    build_net,
    check_answers,
    fit,
    load_predictor,
    params_of,
    setting,
)
from ostraka.core.build import lent_net
from ostraka.core.learning import Penalty
from ostraka.core.method import Message, Payload, State
from ostraka.core.params import average
from ostraka.methods.training import Training

Weights = Literal["size", "uniform"]

EACH_ROUND = RoundBudget(lr=0.02, batch=32, least_batches=4, least_steps=20)
"""The parties' training in a round, on large and small parties (docs/results/defaults.md)."""


@dataclass(frozen=True)
class ModelMethod(Training, Iterative[State, Message, Payload]):
    """The server keeps one model, whatever else its state holds."""

    takes_start: ClassVar[bool] = True

    local: RoundBudget = setting(EACH_ROUND, "the parties' training")

    @abstractmethod
    def model(self, state: State) -> Params:
        """The server's model."""

    @abstractmethod
    def sent(self, payload: Payload) -> Params:
        """The model in what a party sent."""

    def inspect(self, task: Task, report: Report[Payload]) -> None:
        """As every report, and the party's model must be of use."""
        super().inspect(task, report)
        self.check_model(task, self.sent(report.payload))

    def check_model(self, task: Task, params: Params) -> None:
        """Refuse a party's model that is not this task's, or cannot answer."""
        check_answers(task, self.objective, params)

    def first_model(self, task: Task, seed: int) -> Params:
        """A random model, or the commons' "start"."""
        start = task.commons.nets.get("start")
        return start if start is not None else params_of(build_net(task, self.objective, seed))

    def trained_names(self, task: Task) -> tuple[str, ...]:
        """The model's tensors that gradients move; the others are counters and running means."""
        return tuple(
            n for n, p in build_net(task, self.objective).named_parameters() if p.requires_grad
        )

    def local_in(self, rnd: Round[Any]) -> Budget:
        """The parties' training in this round."""
        return self.local.in_round(rnd.index, self.exchanges)

    def train(
        self,
        rnd: Round[Any],
        party: Party,
        start: Params,
        objective: Objective | None = None,
        samples: Samples | None = None,
        penalty: Penalty | None = None,
    ) -> Fitted:
        """The party's training from `start`.

        Other than its own objective or samples where given.
        """
        samples = party.samples if samples is None else samples
        goal, local = objective or self.objective, self.local_in(rnd)
        with lent_net(rnd.task, self.objective) as net:
            return fit(net, start, samples, goal, local, rnd.seed, party.progress, penalty=penalty)

    def single_model(self, state: State) -> Params:
        """The server's model."""
        return self.model(state)

    def predictor(self, task: Task, state: State) -> Predictor:
        """The server's model."""
        return load_predictor(task, self.objective, self.model(state))


@dataclass(frozen=True)
class SendingMethod(ModelMethod[State, Params, Payload]):
    """The server's model goes to the parties as it is."""

    def message(self, state: State, party: PartyRef) -> Params:
        """The server's model."""
        return self.model(state)


@dataclass(frozen=True)
class PlainModel(SendingMethod[Params, Payload]):
    """The state is the model and nothing else."""

    def init(self, task: Task, seed: int) -> Params:
        """A random model, or the commons' "start"."""
        return self.first_model(task, seed)

    def model(self, state: Params) -> Params:
        """The state itself."""
        return state


@dataclass(frozen=True)
class AveragingMethod(SendingMethod[State, Params]):
    """The server's model goes to the parties, and the mean of what
    they made of it is the new one.
    """

    weights: Weights = setting("size", "weigh parties by size, or all the same", server=True)

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model on the party's data."""
        return report_of(party, self.train(rnd, party, rnd.message))

    def sent(self, payload: Params) -> Params:
        """The payload itself."""
        return payload

    def mean(self, reports: Sequence[Report[Params]]) -> Params:
        """The weighted mean of the parties' models."""
        return average((r.payload, weight_of(r, self.weights)) for r in reports)


@dataclass(frozen=True)
class PlainAveraging(PlainModel[Params], AveragingMethod[Params]):
    """The mean of the parties' models and nothing else."""

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        """The weighted mean of the parties' models."""
        return self.mean(reports)


def report_of(party: Party, fitted: Fitted, memory: Memory | None = None) -> Report[Params]:
    """A trained model as a report, weighed by the party's own samples."""
    return Report(fitted.params, float(len(party.samples)), card_of(party, fitted), memory or {})


def card_of(party: Party, fitted: Fitted) -> Card:
    """The party's size and its last loss."""
    return Card(party.id, len(party.samples), scores=fitted.figures())


def weight_of(report: Report[Any], weights: Weights) -> float:
    """What a report counts in the mean."""
    return report.weight if weights == "size" else 1.0
