"""A sound toy network, and one broken in each way that a check of
`ostraka.testing.nets` looks for.
"""

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain


class Sound(Net):
    """One hidden layer for samples of any shape."""

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        self.first = nn.Linear(prod(shape), 8)
        self.last = nn.Linear(8, self.outputs)

    def early(self, x: Tensor) -> Tensor:
        return self.first(x.flatten(1)).relu()

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        return self.last(embedding)

    def anatomy(self) -> tuple[Layer, ...]:
        return chain("first", "last")


class ForgetsUnknown(Sound):
    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(shape, classes, unknown)
        self.last = nn.Linear(8, classes)


class ForwardOfItsOwn(Sound):
    """What is mixed between early and late is not what forward computes."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class EmbedsImages(Sound):
    """The embedding has three dimensions."""

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden.unsqueeze(1)

    def head(self, embedding: Tensor) -> Tensor:
        return self.last(embedding.squeeze(1))


class MixesTheBatch(Sound):
    """By hand, so that mixes_batch cannot know."""

    def early(self, x: Tensor) -> Tensor:
        hidden = super().early(x)
        return hidden - hidden.mean(dim=0) if self.training else hidden


class OneSeedForAll(Sound):
    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(shape, classes, unknown)
        torch.manual_seed(0)
        for parameter in self.parameters():
            nn.init.normal_(parameter)


class HidesAScale(Sound):
    """Learns a number that is not among its tensors."""

    scale = 1.0

    def head(self, embedding: Tensor) -> Tensor:
        if self.training and torch.is_grad_enabled():
            self.scale += 1.0
        return super().head(embedding) * self.scale


class UnusedLayer(Sound):
    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(shape, classes, unknown)
        self.spare = nn.Linear(8, 8)


class WrongInputGradient(Sound):
    def input_gradient(self, x: Tensor, error: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.ones_like(x)


class ForgetsItsBias(Sound):
    def anatomy(self) -> tuple[Layer, ...]:
        return chain("first", "last", bias=False)


class UnitsWithAnOrder(Sound):
    """Each hidden unit is weighed by its place, which anatomy does not tell."""

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden * torch.arange(1.0, 9.0)


class TakesAnyShape(Sound):
    """Until it is used: samples that are not images stop it in the middle of a run."""

    def early(self, x: Tensor) -> Tensor:
        return super().early(x.transpose(2, 3))
