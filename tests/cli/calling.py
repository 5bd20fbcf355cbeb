"""Short runs, what a command printed, and a method that can fail."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ostraka.core.method import Memory, Report, Round
from ostraka.core.net import Params
from ostraka.core.party import Party
from ostraka.core.predictor import Predictor
from ostraka.core.task import Task
from ostraka.methods.panel import PanelMethod
from ostraka.voting.ballots import Sum
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel

TINY = (
    "--data",
    "digits",
    "--parties",
    "3",
    "--partition",
    "iid",
    "--train-per-class",
    "6",
    "--engine",
    "serial",
)
ONE_EPOCH = ("--set", "local.epochs=1")


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The output, which must be one JSON value."""
        return json.loads(self.out)


Ostraka = Callable[..., Result]


@dataclass(frozen=True)
class Fragile(PanelMethod):
    """A vote whose second party cannot train."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Fail at party 1."""
        if party.id == 1:
            raise RuntimeError("the disk of this party is full")
        return super().local_update(rnd, party, memory)

    def predictor(self, task: Task, state: Panel) -> Predictor:
        """The members that arrived."""
        return Ensemble.of(self.members(task, state), Sum())
