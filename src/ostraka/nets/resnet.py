"""Residual networks (He, Zhang, Ren & Sun, "Deep Residual Learning for Image Recognition", CVPR
2016) for small images.

ResNet-18 and ResNet-50 as they are used for images of 32x32: those of ImageNet, but for the stem,
which is one 3x3 convolution without pooling; in a bottleneck the 3x3 convolution has the stride.
`resnet` has the three stages that the paper has for CIFAR-10, with 1x1 convolutions where the
width changes (the paper's option B).

Wide residual networks (Zagoruyko & Komodakis, BMVC 2016) too, without dropout.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import INPUT, OUTPUT, Layer, Net
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import halved_channels, image_channels
from ostraka.nets.staged import (
    ConvNorm,
    Norm,
    NormOption,
    Staged,
    blocks_of,
    channels_of,
    first_weights,
)
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
            made = [
                Residual(bent(units, widths[stage], stride, norm, bottleneck), norm)
                for units, stride in zip(inputs, strides, strict=True)
            ]
            stages.append(nn.Sequential(*made))
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
        for name, block in self.named_modules():
            if not isinstance(block, Residual):
                continue
            came_from = stream
            if block.shortcut is not None:
                stream = name
                layers.append(_layer(f"{name}.shortcut", came_from, stream))
            inner = [f"{name}.{i}" for i in range(len(block.body) - 1)]
            for i, (reads, writes) in enumerate(pairwise((came_from, *inner, stream))):
                layers.append(_layer(f"{name}.body.{i}", reads, writes))
        return (*layers, Layer.of("last", stream, OUTPUT))


class Residual(nn.Module):
    """relu(x + body(x)); where the width or the size changes, a 1x1 convolution of x is added."""

    def __init__(self, body: Sequence[ConvNorm], norm: Norm) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        inputs, outputs = body[0].conv.in_channels, body[-1].conv.out_channels
        stride = max(part.conv.stride[0] for part in body)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else ConvNorm(inputs, outputs, 1, norm, stride, active=False)

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


@NETS.add("wideresnet", "wide-resnet", "wrn")
class WideResNet(Net):
    """Wide ResNet: `depth` 6n + 4 (16), `width` the widening factor (1),
    pre-activation; mixes after stage 2.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        # deeper ones take minutes to build, and nobody has trained one
        depth: Annotated[
            int, Option("number of layers: 10, 16, 22, 28, ... (6n + 4)", "[10, 1204]")
        ] = 16,
        width: Annotated[int, Option("times as many channels", "[1, inf)")] = 1,
    ) -> None:
        super().__init__(classes, unknown)
        channels = image_channels("wideresnet", shape)
        if (depth - 4) % 6:
            raise ConfigError(
                f"'net.depth' is {depth}; wideresnet takes 10, 16, 22, 28, ... (6n + 4)"
            )
        halved_channels("wideresnet", shape, 2, "twice")
        blocks, widths = (depth - 4) // 6, [16, *(units * width for units in (16, 32, 64))]
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.stage1, self.stage2, self.stage3 = (
            _stage(blocks, widths[i], widths[i + 1], 2 if i else 1) for i in range(3)
        )
        self.norm = nn.BatchNorm2d(widths[-1])
        self.last = nn.Linear(widths[-1], self.outputs)
        first_weights(self)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the end of the second stage."""
        # faster on a processor, the copy included
        x = x.contiguous(memory_format=torch.channels_last)
        hidden: Tensor = self.stage2(self.stage1(self.stem(x)))
        return hidden

    def embed_late(self, hidden: Tensor) -> Tensor:
        """Through the third stage and the mean over all places."""
        return F.relu(self.norm(self.stage3(hidden))).mean(dim=(2, 3))

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.last(embedding)
        return logits

    def anatomy(self) -> tuple[Layer, ...]:
        """Every block writes to its stage's group of units.

        A batch norm belongs to the layer just before it.
        """
        blocks = [(name, m) for name, m in self.named_modules() if isinstance(m, PreActivated)]
        stream, layers = "stem", []
        following = [f"{name}.norm1" for name, _ in blocks] + ["norm"]
        layers.append(Layer.of("stem", INPUT, stream, False, following[:1]))
        for (name, block), after in zip(blocks, following[1:], strict=True):
            inner, came_from = f"{name}.inner", stream
            if block.shortcut is not None:
                stream = name
                layers.append(Layer.of(f"{name}.shortcut", came_from, stream, False))
            layers.append(Layer.of(f"{name}.conv1", came_from, inner, False, [f"{name}.norm2"]))
            layers.append(Layer.of(f"{name}.conv2", inner, stream, False, [after]))
        return (*layers, Layer.of("last", stream, OUTPUT))


def _stage(blocks: int, inputs: int, outputs: int, stride: int) -> nn.Sequential:
    first = PreActivated(inputs, outputs, stride)
    return nn.Sequential(first, *(PreActivated(outputs, outputs, 1) for _ in range(blocks - 1)))


class PreActivated(nn.Module):
    """x + conv(relu(norm(conv(relu(norm(x)))))).

    Where the width or the size changes, a 1x1 convolution replaces x.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = (
            None if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        active = F.relu(self.norm1(x))
        kept = x if self.shortcut is None else self.shortcut(active)
        new: Tensor = self.conv2(F.relu(self.norm2(self.conv1(active))))
        return kept + new
