"""The one contract: a federated method is a frozen value with seven functions."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Literal, TypeVar

import torch
from torch import Tensor

from ostraka.core.arrival import check_card, check_numbers
from ostraka.core.card import Card
from ostraka.core.fit import Budget
from ostraka.core.member import Member
from ostraka.core.net import Params
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor
from ostraka.core.seeds import torch_rng
from ostraka.core.settings import Settings, setting, values_of
from ostraka.core.task import Task
from ostraka.core.wire import wire
from ostraka.errors import NeedError, ReportRefused

State = TypeVar("State")
Message = TypeVar("Message")
Payload = TypeVar("Payload")

Regime = Literal["federated", "alone", "pooled"]
"""Whether server and parties talk, each party is alone, or one party is handed all data."""

Memory = Mapping[str, Any]
"""What a party keeps between rounds: tensors and plain values. Empty before its first round."""


@dataclass(frozen=True)
class Needs:
    """What a method cannot do without; checked before anything trains."""

    public: bool = False
    shared: bool = False
    prior: bool = False
    share: float = 0.0
    """Labelled samples that go to all parties, as a share of a party's mean size: one draw by the
    run's seed from those that were held back; 0: all of these."""

    def check(self, name: str, task: Task) -> None:
        """Raise a NeedError that names everything `task` lacks for the method `name`."""
        have = {
            "public": task.commons.public is not None,
            "shared": task.commons.shared is not None,
            "prior": task.commons.prior is not None,
        }
        missing = [name for name, there in have.items() if getattr(self, name) and not there]
        if missing:
            advice = "; ".join(_ADVICE[name] for name in missing)
            raise NeedError(
                f"the method {name!r} needs {', '.join(missing)}, "
                f"which this run does not have: {advice}"
            )


_ADVICE = {
    "public": "give unlabelled samples, for example --public half-test",
    "shared": "give labelled samples that all parties may use, for example --shared 0.05",
    "prior": "give the target label shares in the commons",
}


@dataclass(frozen=True)
class Round(Generic[Message]):
    """One exchange as a party sees it. `seed` belongs to this party and round alone."""

    task: Task
    index: int
    message: Message
    seed: int


@wire("report/2")
@dataclass(frozen=True)
class Report(Generic[Payload]):
    """A party's answer.

    `weight` is what it counts in a mean: at most the number of the party's samples, or 1. The
    engine keeps `memory` for that party and strips it: `aggregate` never sees it.
    """

    payload: Payload
    weight: float
    card: Card
    memory: Memory = field(default_factory=dict)


@dataclass(frozen=True)
class Method(Settings, ABC, Generic[State, Message, Payload]):
    """A federated algorithm: hyper-parameters only.

    What changes is `State`, a value passed in and returned.
    """

    fraction: float = setting(1.0, "share of the parties that takes part in a round", span="(0, 1]")

    regime: ClassVar[Regime] = "federated"
    """Parties that are alone, and pooled data, are references to compare a federation with."""

    takes_start: ClassVar[bool] = False
    """Whether the first model is the commons' "start" where there is one."""

    adds_classes: ClassVar[bool] = False
    """Whether that start may know fewer classes than the task."""

    @property
    def talks(self) -> bool:
        """Whether anything is exchanged; otherwise no bytes are counted."""
        return self.regime == "federated"

    @property
    def pooled(self) -> bool:
        """Whether the run hands all data to one party."""
        return self.regime == "pooled"

    @property
    def needs(self) -> Needs:
        """What this method, with these settings, cannot do without."""
        return Needs()

    @property
    def exchanges(self) -> int:
        """How many rounds the run makes: one, if the method is not `Iterative`."""
        return 1

    def notes(self, task: Task, counts: Tensor) -> tuple[str, ...]:
        """What must be said beside the figures where parties have so many samples of each class
        [parties, classes]; raise a DataError where nothing could be learnt from them.

        Asked before anything trains.
        """
        return ()

    def closing_notes(self, task: Task, state: State) -> tuple[str, ...]:
        """What must be said beside the figures that only the last state tells."""
        return ()

    def trainings(self, task: Task, counts: Tensor) -> int:
        """How many trainings, each of one network and by its `local`, the update of a party holds
        that has so many samples of each class [classes]; 0: it trains nothing.

        What a run will take is estimated by it; nothing else depends on it.
        """
        return 1

    def steps(self, counts: Tensor) -> int | None:
        """Optimiser steps of one such training of a party that has so many samples of each class
        [classes]; None: its settings do not say.
        """
        local = getattr(self, "local", None)
        if not isinstance(local, Budget):
            return None
        return local.steps_on(int(counts.sum()), int((counts > 0).sum()))

    @abstractmethod
    def init(self, task: Task, seed: int) -> State:
        """The state before round 1."""

    def draw(self, roster: Sequence[PartyRef], index: int, seed: int) -> Sequence[PartyRef]:
        """The parties of round `index`: a fraction, uniform, no repeats."""
        count = max(1, math.floor(self.fraction * len(roster) + 0.5))
        if count >= len(roster):
            return tuple(roster)
        order = torch.randperm(len(roster), generator=torch_rng(seed, "draw", index))
        return tuple(roster[i] for i in sorted(order[:count].tolist()))

    @abstractmethod
    def message(self, state: State, party: PartyRef) -> Message:
        """What the server sends to `party`; most methods send everyone the same."""

    @abstractmethod
    def local_update(self, rnd: Round[Message], party: Party, memory: Memory) -> Report[Payload]:
        """The work at the party.

        Must not change the message, the data or the memory it was given.
        """

    def inspect(self, task: Task, report: Report[Payload]) -> None:
        """Raise ReportRefused if a report that arrived cannot be used:
        that is then the failure of its party.
        """
        weight = report.weight
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (number and math.isfinite(weight) and weight >= 0):
            raise ReportRefused(f"its weight is {weight!r}; it must be a number from 0")
        check_card(report.card, len(task.classes))
        check_numbers(report.payload, "its report")

    @abstractmethod
    def aggregate(self, task: Task, state: State, reports: Sequence[Report[Payload]]) -> State:
        """The work at the server. Reports are sorted by party; their payloads load on access."""

    @abstractmethod
    def predictor(self, task: Task, state: State) -> Predictor:
        """How the result answers."""

    def members(self, task: Task, state: State) -> Sequence[Member]:
        """The models of the result that stand on their own,
        each with its card; none of an average.
        """
        return ()

    def selection(self, state: State) -> Mapping[str, Any]:
        """Which of the members answer and why, as plain values for the summary;
        empty where all do, or there are none.
        """
        return {}

    def work_key(self, task: Task) -> Any:
        """Plain values that name all that the parties' work depends on; None:
        their reports are shared with nobody.

        In a grid, runs of one exchange with the same key, data, division, seed and messages train
        once: the next takes the reports of the first. Whatever else a party looks at (settings, the
        commons) must be in the key. A key holds for the very class that gives it: a subclass may do
        other work, so it shares nothing until it gives its own.
        """
        return None

    def party_settings(self) -> dict[str, Any]:
        """The settings that are not the server's alone (`server=True`),
        as plain values: a part of most keys.
        """
        server = {spec.name for spec in fields(self) if spec.metadata.get("server")}
        return {name: value for name, value in values_of(self).items() if name not in server}

    def single_model(self, state: State) -> Params | None:
        """The result as named tensors from which another run may start, most often those of one
        network of the task; None: it is not.
        """
        return None


@dataclass(frozen=True)
class Iterative(Method[State, Message, Payload]):
    """A method of several rounds: what the server made of one goes out again in the next."""

    rounds: int = setting(20, "exchanges between server and parties", span="[1, inf)")

    @property
    def exchanges(self) -> int:
        """As many as its setting says."""
        return self.rounds
