"""Densely connected networks (Huang, Liu, van der Maaten & Weinberger, "Densely Connected
Convolutional Networks", CVPR 2017) for small images, with bottlenecks and compression (BC).

`densenet121` has ImageNet's four blocks behind a stem of one 3x3 convolution; `densenet` the three
equal blocks that the paper has for CIFAR-10.
"""

from collections.abc import Sequence
from typing import Annotated, final

import torch
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.settings import Option
from ostraka.nets.staged import (
    Norm,
    NormConv,
    NormOption,
    Staged,
    blocks_of,
    channels_of,
    convolution,
    norm_of,
)
from ostraka.registry import NETS

Growth = Annotated[int, Option("channels that every layer adds", "[1, inf)")]
INSIDE = 4
"""How many times as many channels as it adds a layer has inside."""


@NETS.add("densenet121", "densenet-121")
def densenet121(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    growth: Growth = 32,
    norm: NormOption = "batch",
) -> Net:
    """DenseNet-121 for small images: blocks of 6, 12, 24 and 16 layers; `growth` 32; mixes after
    block 2.
    """
    return DenseNet("densenet121", shape, classes, unknown, (6, 12, 24, 16), growth, norm)


@NETS.add("densenet", "densenet-bc", "densenet-small")
def densenet(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    # deeper ones take minutes to build, and nobody has trained one
    depth: Annotated[int, Option("number of layers: 10, 16, 22, ... (6n + 4)", "[10, 1204]")] = 22,
    growth: Growth = 12,
    norm: NormOption = "batch",
) -> Net:
    """DenseNet-BC of CIFAR-10: three blocks, `depth` 6n + 4 (22), `growth` 12; mixes after block
    2.
    """
    layers = blocks_of("densenet", depth, 4)
    return DenseNet("densenet", shape, classes, unknown, (layers,) * 3, growth, norm)


@final
class DenseNet(Staged):
    """Blocks whose layers see all that came before them; between two blocks half of the channels
    and half of the size are left.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        blocks: Sequence[int],
        growth: int,
        norm: Norm,
    ) -> None:
        channels, width = channels_of(name, shape, len(blocks) - 1), 2 * growth
        stages: list[nn.Module] = [convolution(channels, width, 3)]
        for number, layers in enumerate(blocks, 1):
            dense = [Dense(width + i * growth, growth, norm) for i in range(layers)]
            width += layers * growth
            if number < len(blocks):
                between: list[nn.Module] = [NormConv(width, width // 2, 1, norm), nn.AvgPool2d(2)]
                width //= 2
            else:
                between = [norm_of(norm, width), nn.ReLU()]
            stages.append(nn.Sequential(*dense, *between))
        super().__init__(classes, unknown, stages, width)


class Dense(nn.Module):
    """All that came before, and `growth` channels more."""

    def __init__(self, inputs: int, growth: int, norm: Norm) -> None:
        super().__init__()
        self.inner = NormConv(inputs, INSIDE * growth, 1, norm)
        self.outer = NormConv(INSIDE * growth, growth, 3, norm)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C + growth, H, W]."""
        return torch.cat([x, self.outer(self.inner(x))], dim=1)
