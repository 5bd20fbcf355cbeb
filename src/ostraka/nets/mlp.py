"""A multi-layer perceptron for samples of any shape."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Annotated

from torch import nn

from ostraka.core.net import Layer, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import LinearBlock
from ostraka.nets.layered import Layered, Stages
from ostraka.registry import NETS


@NETS.add("mlp")
class MLP(Layered):
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
        self.first = LinearBlock(widths[0], widths[1])
        self.layers = nn.ModuleList(LinearBlock(a, b) for a, b in pairwise(widths[1:]))
        self.last = LinearBlock(widths[-1], self.outputs, "none")

    def stages(self) -> Stages:
        """The cut is behind the first hidden layer."""
        middle = [layer for layer in self.layers if isinstance(layer, LinearBlock)]
        return Stages((self.first,), middle, self.last)

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain("first", *(f"layers.{i}" for i in range(len(self.layers))), "last")
