"""Tiny networks and objectives whose training can be followed by hand."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective


class Line(Net):
    """`weight @ x`, no bias: logits of `outputs` classes from `inputs` numbers; starts at zero."""

    def __init__(self, inputs: int = 1, classes: int = 1) -> None:
        super().__init__(classes, unknown=False)
        self.weight = nn.Parameter(torch.zeros(classes, inputs))

    def early(self, x: Tensor) -> Tensor:
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        return embedding @ self.weight.t()


class Layered(Net):
    """Two linear layers with anything in between."""

    def __init__(self, between: nn.Module, inputs: int = 3, classes: int = 2) -> None:
        super().__init__(classes, unknown=False)
        torch.manual_seed(0)
        self.first, self.between, self.last = nn.Linear(inputs, 8), between, nn.Linear(8, classes)

    def early(self, x: Tensor) -> Tensor:
        return self.between(self.first(x)).relu()

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        return self.last(embedding)


@dataclass(frozen=True)
class Squares(Objective):
    """Half the mean squared error of one output against the label."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return 0.5 * (net(batch.x)[:, 0] - batch.y).square().mean()


@dataclass(frozen=True)
class UnitGradient(Objective):
    """The first weight itself, plus 2: its gradient is always 1. Notes the size of every batch."""

    sizes: list[int] = field(default_factory=list)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        self.sizes.append(len(batch))
        weight = next(net.parameters())
        return weight.flatten()[0] + 2


@dataclass(frozen=True)
class Noisy(Objective):
    """Cross-entropy on inputs with noise: drawn for many batches at once
    in `prepare`, and again in `loss`.
    """

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        return Batch(batch.x, batch.y, {"noise": torch.randn(batch.x.shape, generator=rng)})

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        x = batch.x + 0.1 * batch.extra["noise"] + 0.1 * torch.randn(batch.x.shape, generator=rng)
        return nn.functional.cross_entropy(net(x), batch.y)
