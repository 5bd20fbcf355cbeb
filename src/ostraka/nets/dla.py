"""Deep layer aggregation (Yu, Wang, Shelhamer & Darrell, CVPR 2018) for small images.

DLA-34's four trees of residual blocks behind a stem of three 3x3 convolutions, as it is used for
images of 32x32. A tree joins what its parts give in a root, a 1x1 convolution. `full`: a tree of
more than one level hands its input, its smaller trees and its own two blocks to one root
(hierarchical aggregation with reuse); `simple`: a tree of trees of one level less, two at a time.
"""

from typing import Annotated, Literal, final

import torch
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.settings import Option
from ostraka.nets.resnet import Residual, bent
from ostraka.nets.staged import ConvNorm, Norm, NormOption, Staged, channels_of
from ostraka.registry import NETS

Trees = Annotated[Literal["full", "simple"], Option("how trees join what their parts give")]
Width = Annotated[int, Option("channels of the stem; trees have 4 to 32 times as many", "[1, inf)")]
LEVELS = (1, 2, 2, 1)
"""Levels of the four trees."""


@NETS.add("dla", "dla34", "dla-34")
def dla(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    width: Width = 16,
    trees: Trees = "full",
    norm: NormOption = "batch",
) -> Net:
    """DLA-34 for small images: trees of 1, 2, 2 and 1 levels; `width` 16; mixes after tree 2."""
    return DLA("dla", shape, classes, unknown, width, trees, norm)


@NETS.add("dla-small")
def dla_small(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    width: Width = 3,
    trees: Trees = "simple",
    norm: NormOption = "batch",
) -> Net:
    """DLA with simple trees and few channels, for a processor: `width` 3; mixes after tree 2."""
    return DLA("dla-small", shape, classes, unknown, width, trees, norm)


@final
class DLA(Staged):
    """A stem, and trees of which every one but the first halves images and all double the width."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        width: int,
        trees: Literal["full", "simple"],
        norm: Norm,
    ) -> None:
        channels = channels_of(name, shape, len(LEVELS) - 1)
        make = FullTree if trees == "full" else SimpleTree
        stem = nn.Sequential(
            ConvNorm(channels, width, 3, norm),
            ConvNorm(width, width, 3, norm),
            ConvNorm(width, 2 * width, 3, norm),
        )
        widths = [width * 2 ** (1 + i) for i in range(len(LEVELS) + 1)]
        grown = [
            make(level, widths[i], widths[i + 1], 2 if i else 1, norm)
            for i, level in enumerate(LEVELS)
        ]
        super().__init__(classes, unknown, [stem, *grown], widths[-1])


class FullTree(nn.Module):
    """Two blocks and, above one level, smaller trees before them and the input beside them; one
    root joins all of them.
    """

    def __init__(self, level: int, inputs: int, outputs: int, stride: int, norm: Norm) -> None:
        super().__init__()
        first = [(inputs, stride), *[(outputs, 1)] * level]
        smaller = list(zip(reversed(range(1, level)), first, strict=False))
        self.trees = nn.ModuleList(FullTree(i, a, outputs, s, norm) for i, (a, s) in smaller)
        self.beside = _block(inputs, outputs, stride, norm) if level > 1 else None
        self.left = _block(first[level - 1][0], outputs, first[level - 1][1], norm)
        self.right = _block(outputs, outputs, 1, norm)
        joined = len(smaller) + (level > 1) + 2
        self.root = ConvNorm(joined * outputs, outputs, 1, norm)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        given = [] if self.beside is None else [self.beside(x)]
        for part in (*self.trees, self.left, self.right):
            x = part(x)
            given.append(x)
        joined: Tensor = self.root(torch.cat(given, dim=1))
        return joined


class SimpleTree(nn.Module):
    """Two smaller trees, or blocks, one behind the other, and the root that joins them."""

    def __init__(self, level: int, inputs: int, outputs: int, stride: int, norm: Norm) -> None:
        super().__init__()
        if level == 1:
            self.left: nn.Module = _block(inputs, outputs, stride, norm)
            self.right: nn.Module = _block(outputs, outputs, 1, norm)
        else:
            self.left = SimpleTree(level - 1, inputs, outputs, stride, norm)
            self.right = SimpleTree(level - 1, outputs, outputs, 1, norm)
        self.root = ConvNorm(2 * outputs, outputs, 1, norm)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        left = self.left(x)
        joined: Tensor = self.root(torch.cat([left, self.right(left)], dim=1))
        return joined


def _block(inputs: int, outputs: int, stride: int, norm: Norm) -> Residual:
    return Residual(bent(inputs, outputs, stride, norm, bottleneck=False), norm)
