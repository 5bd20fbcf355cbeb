"""FedAwS (Yu, Rawat, Menon & Kumar, "Federated Learning with Only Positive Labels", ICML 2020).

Federated averaging with spread-out, for parties that hold one class each. The network maps
samples to unit vectors, a class is a unit vector w_c, and the answer is the class with the
largest cosine. A party gets the network and the vector of its own class only and minimises
mean(max(0, 0.9 - cos(f(x), w_c))^2); the server averages the networks with equal weights and
then moves the class vectors apart,

    W <- W - lambda * lr * gradient of  - sum_c sum_{c' among the k nearest of c} ||w_c - w_c'||^2.

As FedOV's appendix B.10 uses it: k = 10, margin 0.9, lambda 10 (or 100), one local epoch, lr 1e-3.
Readings and deviations: distances are Euclidean between unit vectors, and vectors are brought back
to length 1 after a step; the class vectors are the rows of the network's last linear layer, whose
bias is not used; a party whose class the server has not been told yet makes its first vector
itself, from the server's seed; a class with several parties gets the mean of their vectors;
optimiser and batch size are those of the averaging baselines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.contract import (
    METHODS,
    Batch,
    Card,
    ConfigError,
    DataError,
    Iterative,
    Memory,
    Net,
    Objective,
    Params,
    Party,
    PartyRef,
    Predictor,
    Report,
    ReportRefused,
    Round,
    RoundBudget,
    Scores,
    Task,
    check_kind,
    check_tensors,
    fit,
    load_predictor,
    params_of,
    setting,
    wire,
)
from ostraka.core.params import average

SHORT = RoundBudget(epochs=1, most_steps=5, batch=32, least_batches=4, lr=0.03)
"""Few steps in each of many rounds: in between a party pulls all embeddings to its own class, and
only the server pushes them apart (docs/results/defaults.md).
"""


@wire("fedaws.positive/1")
@dataclass(frozen=True)
class Positive:
    """The network without its last layer, and one class vector (None:
    the party makes it from `seed`).

    From a party: its trained network and vector, and its class.
    """

    body: Params
    row: Tensor | None
    label: int | None = None
    seed: int = 0


@wire("fedaws.spread/1")
@dataclass(frozen=True)
class Spread:
    """What the server keeps: the network without its last layer, all class vectors [K, D],
    and who has which class.
    """

    body: Params
    rows: Tensor
    seed: int
    classes: dict[str, int] = field(default_factory=dict)


@final
@METHODS.add("fedaws")
@dataclass(frozen=True)
class FedAwS(Iterative[Spread, Positive, Positive]):
    """For parties of one class each: they pull their class together,
    the server pushes the classes apart.
    """

    rounds: int = setting(100, "exchanges between server and parties", span="[1, inf)")
    local: RoundBudget = setting(SHORT, "the parties' training")
    margin: float = setting(
        0.9, "cosine between a sample and its class from which on nothing is gained", span="(-1, 1]"
    )
    spread: float = setting(
        10.0,
        "lambda: strength of the server's step, in local learning rates",
        span="[0, inf)",
        server=True,
    )
    nearest: int = setting(
        10,
        "k: how many of the nearest classes a class is moved away from",
        span="[1, inf)",
        server=True,
    )

    def init(self, task: Task, seed: int) -> Spread:
        """A random network and random class vectors."""
        net = task.build_net(unknown=False, seed=seed)
        head = last_layer(task, net)
        body = {name: tensor for name, tensor in params_of(net).items() if name not in head}
        return Spread(body, first_rows(task, seed), seed)

    def message(self, state: Spread, party: PartyRef) -> Positive:
        """The network, and the vector of the party's own class if
        the server knows which that is.
        """
        label = state.classes.get(str(party.id))
        row = None if label is None else state.rows[label].clone()
        return Positive(state.body, row, label, state.seed)

    def local_update(self, rnd: Round[Positive], party: Party, memory: Memory) -> Report[Positive]:
        """Bring the party's samples and its class vector together."""
        held = party.samples.labels.unique().tolist()
        if len(held) != 1:
            raise DataError(
                f"fedaws is for parties of one class each; {party.ref} has {len(held)} classes. "
                "Divide with labels:1, or use another method"
            )
        label, given = int(held[0]), rnd.message
        row = first_rows(rnd.task, given.seed)[label] if given.row is None else given.row
        net = rnd.task.build_net(unknown=False)
        head = last_layer(rnd.task, net)
        start = params_of(net) | given.body
        start |= {name: torch.zeros_like(start[name]) for name in head}
        start[head[0]][label] = row
        objective = _Cosine(head[0], self.margin)
        local = self.local.in_round(rnd.index, self.exchanges)
        fitted = fit(net, start, party.samples, objective, local, rnd.seed, party.progress)
        body = {name: fitted.params[name] for name in given.body}
        card = Card(party.id, len(party.samples), scores=fitted.figures())
        return Report(Positive(body, fitted.params[head[0]][label].clone(), label), 1.0, card)

    def inspect(self, task: Task, report: Report[Positive]) -> None:
        """As every report, and its network, class and vector must be of this task."""
        super().inspect(task, report)
        sent = report.payload
        check_kind(sent, Positive)
        start = self.init(task, 0)
        check_tensors(sent.body, start.body, "this task's network")
        check_tensors({"row": sent.row}, {"row": start.rows[0]}, "a class")
        if type(sent.label) is not int or not 0 <= sent.label < len(task.classes):
            raise ReportRefused(
                f"it says that its class is {sent.label!r}; it must be 0 to {len(task.classes) - 1}"
            )

    def aggregate(self, task: Task, state: Spread, reports: Sequence[Report[Positive]]) -> Spread:
        """The mean network; class vectors from their parties, then moved apart."""
        body = average((r.payload.body, 1.0) for r in reports)
        rows, classes = state.rows.clone(), dict(state.classes)
        vectors: dict[int, list[Tensor]] = {}
        for report in reports:  # one pass for all classes: every look at a report loads it
            label, row = report.payload.label, report.payload.row
            assert label is not None
            assert row is not None
            classes[str(report.card.party)] = label
            vectors.setdefault(label, []).append(row)
        for label, mine in vectors.items():
            rows[label] = F.normalize(torch.stack(mine), dim=1).mean(dim=0)
        rows = spread_out(rows, self.nearest, self.spread * self.local.lr)
        return Spread(body, rows, state.seed, classes)

    def predictor(self, task: Task, state: Spread) -> Predictor:
        """The network and all class vectors."""
        net = task.build_net(unknown=False)
        head = last_layer(task, net)
        unused = {name: torch.zeros_like(net.get_parameter(name)) for name in head[1:]}
        params = {**unused, head[0]: state.rows, **state.body}
        return load_predictor(task, _Cosine(head[0], self.margin), params)


@final
@dataclass(frozen=True)
class _Cosine(Objective):
    """Squared hinge on the cosine between a sample's embedding and its class vector,
    a row of the tensor `rows`.
    """

    rows: str
    margin: float

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Mean of max(0, margin - cosine)^2."""
        vectors = F.normalize(net.get_parameter(self.rows)[batch.y], dim=1)
        cosines = (F.normalize(net.embed(batch.x), dim=1) * vectors).sum(dim=1)
        return (self.margin - cosines).clamp(min=0).square().mean()

    def scores(self, net: Net, x: Tensor) -> Scores:
        """Cosines to all classes; the farther from the nearest class, the more unknown."""
        vectors = F.normalize(net.get_parameter(self.rows), dim=1)
        cosines = F.normalize(net.embed(x), dim=1) @ vectors.t()
        return Scores(cosines, -cosines.max(dim=1).values, float("inf"))


def spread_out(rows: Tensor, nearest: int, step: float) -> Tensor:
    """Unit vectors after one step away from each one's `nearest` others."""
    rows = F.normalize(rows, dim=1)
    others = min(nearest, len(rows) - 1)
    if others == 0:
        return rows
    moving = rows.clone().requires_grad_()
    with torch.enable_grad():
        unit = F.normalize(moving, dim=1)
        squares = 2 - 2 * unit @ unit.t()
        # no vector is its own neighbour: 4 is the largest real value
        apart = squares + 8 * torch.eye(len(rows))
        (gradient,) = torch.autograd.grad(
            -apart.topk(others, dim=1, largest=False).values.sum(), moving
        )
    return F.normalize(rows - step * gradient, dim=1)


def first_rows(task: Task, seed: int) -> Tensor:
    """The class vectors before round 1: the directions of a fresh network's last layer."""
    net = task.build_net(unknown=False, seed=seed)
    return F.normalize(net.get_parameter(last_layer(task, net)[0]).detach(), dim=1)


def last_layer(task: Task, net: Net) -> list[str]:
    """The tensors that only logits depend on: the matrix whose rows are the classes,
    then the others (a bias).
    """
    names = [name for name, p in net.named_parameters() if p.requires_grad]
    training = net.training
    net.eval()
    with torch.enable_grad():
        embedding = net.embed(torch.zeros(1, *task.shape))
        gradients = torch.autograd.grad(
            embedding.sum(), [net.get_parameter(n) for n in names], allow_unused=True
        )
    net.train(training)
    head = [name for name, gradient in zip(names, gradients, strict=True) if gradient is None]
    matrix = [
        n for n in head if net.get_parameter(n).shape == (len(task.classes), embedding.shape[1])
    ]
    if len(matrix) != 1:
        raise ConfigError(
            "fedaws needs a network whose last layer is one linear layer; "
            f"{type(net).__name__} has not"
        )
    return [*matrix, *(name for name in head if name not in matrix)]
