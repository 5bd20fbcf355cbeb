"""One weight, squared error and full batches: a training that can be followed by hand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ostraka.core.card import Card
from ostraka.core.method import Memory, Method, Report, Round
from ostraka.core.net import Net, Params, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.party import Parties
from ostraka.core.samples import Samples
from ostraka.core.task import Task
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir, load_state


class Line(Net):
    """`weight * x`."""

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        self.weight = nn.Parameter(torch.zeros(1))

    def early(self, x: Tensor) -> Tensor:
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        return embedding * self.weight


@dataclass(frozen=True)
class Squares(Objective):
    """Half the squared error against the label, so at x = 1 the gradient is w - y."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return 0.5 * (net(batch.x)[:, 0] - batch.y).square().mean()


@dataclass(frozen=True)
class LineRecipe(Recipe):
    """The line, without a registered name."""

    name: str = "line"

    def build_net(self, shape: tuple[int, ...], classes: int, unknown: bool, seed: int) -> Net:
        return Line(shape, classes, unknown)


TASK = Task(("a", "b", "c", "d", "e"), (1,), LineRecipe())
LABELS = (0, 4)
PARTIES = Parties.of(Samples(torch.ones(2, 1), torch.tensor(LABELS)), torch.arange(2).split(1))
"""Party 0 wants w = 0, party 1 wants w = 4; both have one sample, x = 1."""


def weight(value: float) -> Params:
    return {"weight": torch.tensor([value])}


def update(
    method: Method[Any, Any, Any],
    party: int,
    message: Any,
    memory: Memory | None = None,
    index: int = 1,
) -> Report[Any]:
    """One party's work in round `index`."""
    return method.local_update(Round(TASK, index, message, seed=1), PARTIES[party], memory or {})


def report(party: int, payload: Any, size: float = 1.0) -> Report[Any]:
    return Report(payload, size, Card(party, int(size)))


SMALL = {
    "train_per_class": 12,
    "partition": "dirichlet:0.5,min_size=4",
    "parties": 3,
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [8]}},
}


def plan_of(method: str, **values: Any) -> Plan:
    """A run on a little of the bundled data."""
    return make_plan(config.make({"method": method, **SMALL, **values}))


def final_state(plan: Plan, out: Path) -> Any:
    execute(plan, RunDir(out))
    return load_state(out)[1]
