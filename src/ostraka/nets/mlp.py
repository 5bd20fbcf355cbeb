"""A multi-layer perceptron for samples of any shape."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Annotated

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.registry import NETS


@NETS.add("mlp")
class MLP(Net):
    """Linear layers with ReLU; `hidden` lists their widths; mixes after the first hidden layer."""

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        hidden: Annotated[Sequence[int], Option("widths of the hidden layers", "[1, inf)")] = (
            128,
            64,
        ),
    ) -> None:
        super().__init__(classes, unknown)
        if not hidden:
            raise ConfigError(
                "'net.hidden' is empty; mlp needs at least one hidden layer, such as [64]"
            )
        widths = [prod(shape), *hidden]
        self.first = nn.Linear(widths[0], widths[1])
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths[1:]))
        self.last = nn.Linear(widths[-1], self.outputs)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the first hidden layer."""
        hidden: Tensor = self.first(x.flatten(1))
        return hidden.relu()

    def embed_late(self, hidden: Tensor) -> Tensor:
        """Through the other hidden layers."""
        for layer in self.layers:
            hidden = layer(hidden).relu()
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.last(embedding)
        return logits

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain("first", *(f"layers.{i}" for i in range(len(self.layers))), "last")
