"""What deep networks of convolutions share: a stem and stages, each with normalised layers, then
the mean over all places and one linear layer.
"""

from collections.abc import Sequence
from math import ceil
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import halved_channels

Norm = Literal["batch", "group"]
NormOption = Annotated[
    Norm, Option("normalisation: by the batch, or by groups of a sample's own channels")
]
GROUPS, IN_GROUP = 32, 4
"""The most groups of group norm (Wu & He, ECCV 2018), and the least channels in one of them."""
CUT = 3
"""The stem and two stages come before the cut at which hidden values are mixed."""


class Staged(Net):
    """A stem, stages, the mean over all places and a last layer for `width` channels."""

    def __init__(
        self, classes: int, unknown: bool, stages: Sequence[nn.Module], width: int
    ) -> None:
        super().__init__(classes, unknown)
        self.stages = nn.ModuleList(stages)
        self.last = nn.Linear(width, self.outputs)
        first_weights(self)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the end of the second stage."""
        # faster on a processor, the copy included
        x = x.contiguous(memory_format=torch.channels_last)
        for stage in self.stages[:CUT]:
            x = stage(x)
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        """Through the other stages and the mean over all places."""
        for stage in self.stages[CUT:]:
            hidden = stage(hidden)
        return hidden.mean(dim=(2, 3))

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.last(embedding)
        return logits


class ConvNorm(nn.Module):
    """Convolution without a bias, norm, and ReLU unless it is added to something first."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        norm: Norm,
        stride: int = 1,
        active: bool = True,
    ) -> None:
        super().__init__()
        self.conv = convolution(inputs, outputs, kernel, stride)
        self.norm = norm_of(norm, outputs)
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        normed: Tensor = self.norm(self.conv(x))
        return F.relu(normed) if self.active else normed


class NormConv(nn.Module):
    """Norm, ReLU, and convolution without a bias."""

    def __init__(self, inputs: int, outputs: int, kernel: int, norm: Norm) -> None:
        super().__init__()
        self.norm = norm_of(norm, inputs)
        self.conv = convolution(inputs, outputs, kernel)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H, W]."""
        new: Tensor = self.conv(F.relu(self.norm(x)))
        return new


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size of images, or divides it by `stride`."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def first_weights(net: nn.Module) -> None:
    """He's, of all convolutions."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def norm_of(norm: Norm, channels: int) -> nn.Module:
    """Batch norm; or group norm with as many equal groups as there may be."""
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    most = max(1, min(GROUPS, channels // IN_GROUP))
    return nn.GroupNorm(max(g for g in range(1, most + 1) if channels % g == 0), channels)


def channels_of(name: str, shape: tuple[int, ...], halvings: int) -> int:
    """The channels of images that can be halved so often; others are refused."""
    return halved_channels(name, shape, halvings, f"{halvings} times", "simple-cnn or mlp")


def blocks_of(name: str, depth: int, rest: int) -> int:
    """The blocks of each of three stages, two layers in each block, of a network of 6n + rest
    layers.
    """
    if (depth - rest) % 6:
        near = [rest + 6 * max(1, n) for n in (depth // 6, ceil((depth - rest) / 6))]
        raise ConfigError(
            f"'net.depth' is {depth}; {name} takes 6n + {rest} layers, such as "
            f"{' or '.join(map(str, sorted(set(near))))}"
        )
    return (depth - rest) // 6
