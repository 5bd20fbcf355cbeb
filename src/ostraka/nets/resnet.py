"""Residual networks (He, Zhang, Ren & Sun, "Deep Residual Learning for Image Recognition", CVPR
2016) for small images.

ResNet-18 and ResNet-50 as they are used for images of 32x32: those of ImageNet, but for the stem,
which is one 3x3 convolution without pooling; in a bottleneck the 3x3 convolution has the stride.
`resnet` has the three stages that the paper has for CIFAR-10, with 1x1 convolutions where the
width changes (the paper's option B).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, final

import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import INPUT, OUTPUT, Layer, Net
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.staged import ConvNorm, Norm, NormOption, Staged, blocks_of, channels_of
from ostraka.registry import NETS

Width = Annotated[int, Option("channels of the stem and the first stage", "[1, inf)")]
WIDER = 4
"""How many times as many channels a bottleneck gives as it has inside."""


@NETS.add("resnet50", "resnet-50")
def resnet50(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    width: Width = 64,
    norm: NormOption = "batch",
) -> Net:
    """ResNet-50 for small images: 3, 4, 6 and 3 bottlenecks; `width` 64; mixes after stage 2."""
    return ResNet("resnet50", shape, classes, unknown, (3, 4, 6, 3), width, norm, True)


@NETS.add("resnet18", "resnet-18")
def resnet18(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    width: Width = 64,
    norm: NormOption = "batch",
) -> Net:
    """ResNet-18 for small images: four stages of two blocks; `width` 64; mixes after stage 2."""
    return ResNet("resnet18", shape, classes, unknown, (2, 2, 2, 2), width, norm, False)


@NETS.add("resnet", "resnet-small", "resnet8")
def resnet(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    # deeper ones take minutes to build, and nobody has trained one
    depth: Annotated[int, Option("number of layers: 8, 14, 20, 32, ... (6n + 2)", "[8, 1202]")] = 8,
    width: Width = 16,
    norm: NormOption = "batch",
) -> Net:
    """Small ResNet of CIFAR-10: three stages, `depth` 6n + 2 (8), `width` 16; mixes after stage
    2.
    """
    blocks = blocks_of("resnet", depth, 2)
    return ResNet("resnet", shape, classes, unknown, (blocks,) * 3, width, norm, False)


@final
class ResNet(Staged):
    """Stages of residual blocks; every stage but the first halves images and doubles the width."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        blocks: Sequence[int],
        width: int,
        norm: Norm,
        bottleneck: bool,
    ) -> None:
        channels = channels_of(name, shape, len(blocks) - 1)
        wider = WIDER if bottleneck else 1
        widths = [width * 2**stage for stage in range(len(blocks))]
        given = [width, *(units * wider for units in widths)]
        stages: list[nn.Module] = [ConvNorm(channels, width, 3, norm)]
        for stage, count in enumerate(blocks):
            inputs = [given[stage], *[given[stage + 1]] * (count - 1)]
            strides = [2 if stage else 1, *[1] * (count - 1)]
            stages.append(
                nn.Sequential(
                    *(
                        Residual(bent(units, widths[stage], stride, norm, bottleneck), norm)
                        for units, stride in zip(inputs, strides, strict=True)
                    )
                )
            )
        super().__init__(classes, unknown, stages, given[-1])
        self.norm = norm

    def anatomy(self) -> tuple[Layer, ...]:
        """Every block writes to its stage's group of units.

        Not with group norm, whose groups of channels fix their order.
        """
        if self.norm == "group":
            raise ConfigError(
                "a resnet with norm=group ties its channels into groups, so they cannot be matched "
                "across parties; set net.norm to batch"
            )
        stream = "stem"
        layers = [_layer("stages.0", INPUT, stream)]
        for name, block in self._blocks():
            came_from = stream
            if block.shortcut is not None:
                stream = name
                layers.append(_layer(f"{name}.shortcut", came_from, stream))
            inner = [f"{name}.{i}" for i in range(len(block.body) - 1)]
            for i, (reads, writes) in enumerate(pairwise((came_from, *inner, stream))):
                layers.append(_layer(f"{name}.body.{i}", reads, writes))
        return (*layers, Layer.of("last", stream, OUTPUT))

    def _blocks(self) -> Iterator[tuple[str, "Residual"]]:
        for name, module in self.named_modules():
            if isinstance(module, Residual):
                yield name, module


class Residual(nn.Module):
    """relu(x + body(x)); where the width or the size changes, a 1x1 convolution of x is added."""

    def __init__(self, body: Sequence[ConvNorm], norm: Norm) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        inputs, outputs = body[0].conv.in_channels, body[-1].conv.out_channels
        stride = max(part.conv.stride[0] for part in body)
        self.shortcut = (
            None
            if inputs == outputs and stride == 1
            else ConvNorm(inputs, outputs, 1, norm, stride, active=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        kept = x if self.shortcut is None else self.shortcut(x)
        return F.relu(kept + self.body(x))


def bent(inputs: int, width: int, stride: int, norm: Norm, bottleneck: bool) -> list[ConvNorm]:
    """The way around a shortcut: two 3x3 convolutions, or one between two of 1x1."""
    if not bottleneck:
        return [
            ConvNorm(inputs, width, 3, norm, stride),
            ConvNorm(width, width, 3, norm, active=False),
        ]
    return [
        ConvNorm(inputs, width, 1, norm),
        ConvNorm(width, width, 3, norm, stride),
        ConvNorm(width, WIDER * width, 1, norm, active=False),
    ]


def _layer(name: str, inputs: str, outputs: str) -> Layer:
    """A `ConvNorm` as methods see it that match units."""
    return Layer.of(f"{name}.conv", inputs, outputs, False, [f"{name}.norm"])
