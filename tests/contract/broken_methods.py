"""A sound toy method, and one broken in each way that a check of `ostraka.testing` looks for.

They lie in a module of their own so that worker processes can import them.
"""

import multiprocessing
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ostraka.core.arrival import check_kind, check_tensors
from ostraka.core.card import Card
from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net, load_predictor
from ostraka.core.method import Iterative, Memory, Report, Round
from ostraka.core.net import Params, params_of
from ostraka.core.objective import Objective
from ostraka.core.params import average
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor, Scores
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import OBJECTIVES


@dataclass(frozen=True)
class Sound(Iterative[Params, Params, Params]):
    """Averages models and keeps a tensor in its memory; passes every check."""

    objective: Objective = setting(CrossEntropy(), "what the parties minimise", registry=OBJECTIVES)
    local: Budget = setting(Budget(epochs=2, batch=16), "the parties' training")

    def init(self, task: Task, seed: int) -> Params:
        return params_of(build_net(task, self.objective, seed))

    def message(self, state: Params, party: PartyRef) -> Params:
        return state

    def train(self, rnd: Round[Params], party: Party) -> Params:
        net = build_net(rnd.task, self.objective)
        return fit(
            net, rnd.message, party.samples, self.objective, self.local, rnd.seed, party.progress
        ).params

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        params = self.train(rnd, party)
        before = memory.get("rounds", torch.zeros(1))
        payload = {
            name: tensor + 0.01 * before if "bias" in name else tensor
            for name, tensor in params.items()
        }
        return Report(payload, 1.0, Card(party.id, len(party.samples)), {"rounds": before + 1})

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        return average((r.payload, r.weight) for r in reports)

    def predictor(self, task: Task, state: Params) -> Predictor:
        return load_predictor(task, self.objective, state)


@dataclass(frozen=True)
class Heavy(Sound):
    """Counts for more than it has samples."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        return replace(super().local_update(rnd, party, memory), weight=1e3)


@dataclass(frozen=True)
class OneRound(Sound):
    """As `Sound`, in a single exchange whatever is asked."""

    @property
    def exchanges(self) -> int:
        return 1


@dataclass(frozen=True)
class ObjectiveWithoutRegistry(Sound):
    """Its objective cannot be written by name."""

    objective: Objective = setting(CrossEntropy(smoothing=0.1), "forgot registry=OBJECTIVES")


@dataclass(frozen=True)
class ForgetsSettings(Sound):
    """A copy of it in a worker has other settings."""

    scale: float = setting(1.0, "anything")

    def __reduce__(self) -> Any:
        return (ForgetsSettings, (self.fraction, self.rounds))


@dataclass(frozen=True)
class KeyOfTensors(OneRound):
    """Names its parties' work by what has no name."""

    def work_key(self, task: Task) -> Any:
        return {"start": self.init(task, 0)}


@dataclass(frozen=True)
class KeyOfTheMoment(OneRound):
    """Names its parties' work by an object's place in memory."""

    def work_key(self, task: Task) -> Any:
        return [id(self), self.party_settings()]


@dataclass(frozen=True)
class KeyWithoutSettings(OneRound):
    """Forgets that training has settings."""

    def work_key(self, task: Task) -> Any:
        return "one round"


@dataclass(frozen=True)
class KeyOfSettings(OneRound):
    """Names its parties' work as it should."""

    def work_key(self, task: Task) -> Any:
        return ["one round", self.party_settings()]


class Pair(namedtuple("Pair", ("params", "size"))):
    """Comes back from a file as a plain tuple."""


@dataclass(frozen=True)
class NamedTuplePayload(OneRound):
    """Works by luck: its server looks at places, not at names."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Any]:
        report = super().local_update(rnd, party, memory)
        return replace(report, payload=Pair(report.payload, 1.0))

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Any]]) -> Params:
        return average((r.payload[0], r.payload[1]) for r in reports)


@dataclass(frozen=True)
class ChangesMessage(Sound):
    """Trains first, then spoils the message: only who uses it again would notice."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        report = super().local_update(rnd, party, memory)
        next(iter(rnd.message.values())).zero_()
        return report

    def message(self, state: Params, party: PartyRef) -> Params:
        return {name: tensor.clone() for name, tensor in state.items()}


@dataclass(frozen=True)
class ChangesMemory(Sound):
    """Counts in the memory that it was given."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        report = super().local_update(rnd, party, memory)
        if memory:
            memory["rounds"].add_(1)
        return report


@dataclass(frozen=True)
class ChangesData(OneRound):
    """Normalises the party's data in place after training."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        report = super().local_update(rnd, party, memory)
        party.samples.x[party.samples.rows] *= 0.5
        return report


@dataclass(frozen=True)
class GlobalRandomness(Sound):
    """Starts from torch's global generator instead of the seed."""

    def init(self, task: Task, seed: int) -> Params:
        return {name: tensor + torch.rand(1) for name, tensor in super().init(task, seed).items()}


@dataclass(frozen=True)
class KnowsItsProcess(Sound):
    """Gives another result in a worker process."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        report = super().local_update(rnd, party, memory)
        inside = float(multiprocessing.parent_process() is not None)
        return replace(
            report, payload={name: tensor + inside for name, tensor in report.payload.items()}
        )


@dataclass(frozen=True)
class CountsOnSelf(Sound):
    """The server hides a counter on the method, where a resumed run cannot find it."""

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        count = self.__dict__.get("_count", 0) + 1
        object.__setattr__(self, "_count", count)
        return {
            name: tensor * count for name, tensor in super().aggregate(task, state, reports).items()
        }


@dataclass(frozen=True)
class NoProgressGiven(Sound):
    """Trains without saving."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        net = build_net(rnd.task, self.objective)
        return fit(net, rnd.message, party.samples, self.objective, self.local, rnd.seed).params


@dataclass(frozen=True)
class TwoFitsOneName(Sound):
    """Its second training would take the first one's result for its own."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        net, seed = build_net(rnd.task, self.objective), derive(rnd.seed, "second")
        first = fit(
            net, rnd.message, party.samples, self.objective, self.local, rnd.seed, party.progress
        )
        return fit(
            net, first.params, party.samples, self.objective, self.local, seed, party.progress
        ).params


@dataclass(frozen=True)
class TwoFitsTwoNames(Sound):
    """The same, done right."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        net, seed = build_net(rnd.task, self.objective), derive(rnd.seed, "second")
        first = fit(
            net,
            rnd.message,
            party.samples,
            self.objective,
            self.local,
            rnd.seed,
            party.progress,
            "first",
        )
        return fit(
            net,
            first.params,
            party.samples,
            self.objective,
            self.local,
            seed,
            party.progress,
            "second",
        ).params


@dataclass(frozen=True)
class NeedsTwoClasses(Sound):
    """Looks for a second class at every party."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        assert party.samples.labels.unique()[1] >= 0
        return super().train(rnd, party)


@dataclass(frozen=True)
class NeedsFullBatches(Sound):
    """Takes the variance within every batch: undefined for one sample."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        if any(len(part) < 2 for part in party.samples.inputs().split(self.local.batch)):
            raise ValueError("the variance of one sample is not defined")
        return super().train(rnd, party)


@dataclass(frozen=True)
class NeedsEveryParty(Sound):
    """Its server waits for three reports."""

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        return average((r.payload, w) for r, w in zip(reports, (1.0, 1.0, 1.0), strict=True))


@dataclass(frozen=True)
class NeedsMemory(Sound):
    """Expects a memory from round 2 on, which a party that dropped out does not have."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        if rnd.index > 1:
            assert float(memory["rounds"]) >= 1
        return super().local_update(rnd, party, memory)


@dataclass(frozen=True)
class Bent(Predictor):
    """A predictor whose scores go through a function."""

    inner: Predictor
    bend: Callable[[Tensor], Tensor]

    def scores(self, x: Tensor) -> Scores:
        scores = self.inner.scores(x)
        return replace(scores, known=self.bend(scores.known))


@dataclass(frozen=True)
class InfiniteScores(Sound):
    """Rules classes out with minus infinity."""

    def predictor(self, task: Task, state: Params) -> Predictor:
        return Bent(
            super().predictor(task, state),
            lambda known: known.masked_fill(known < known.amax(1, True), -torch.inf),
        )


@dataclass(frozen=True)
class ScoresByPlace(Sound):
    """A sample's scores depend on its place in the batch."""

    def predictor(self, task: Task, state: Params) -> Predictor:
        return Bent(
            super().predictor(task, state),
            lambda known: known + torch.arange(len(known)).unsqueeze(1),
        )


@dataclass(frozen=True)
class ScoresByBatch(Sound):
    """A sample's scores depend on the others of its batch."""

    def predictor(self, task: Task, state: Params) -> Predictor:
        return Bent(super().predictor(task, state), lambda known: known - known.sum(dim=0))


@dataclass(frozen=True)
class OwnLoop(Sound):
    """Trains in a loop of its own and saves nothing."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        net = build_net(rnd.task, self.objective)
        net.load_state_dict(rnd.message)
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            loss = torch.nn.functional.cross_entropy(
                net(party.samples.inputs()), party.samples.labels
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return params_of(net)


@dataclass(frozen=True)
class SeededNoise(Sound):
    """Noise from the party's own seed is no fault."""

    def train(self, rnd: Round[Params], party: Party) -> Params:
        rng = torch_rng(rnd.seed, "noise")
        return {
            k: v + torch.randn(v.shape, generator=rng) for k, v in super().train(rnd, party).items()
        }


@dataclass(frozen=True)
class TakesAnyPrecision(Sound):
    """Names and shapes are looked at, types are not."""

    def inspect(self, task: Task, report: Report[Params]) -> None:
        super().inspect(task, report)
        own = params_of(build_net(task, self.objective))
        check_kind(report.payload, dict)
        cast = {
            name: tensor.to(own[name].dtype)
            if isinstance(tensor, Tensor) and name in own
            else tensor
            for name, tensor in report.payload.items()
        }
        check_tensors(cast, own, "this task's network")
