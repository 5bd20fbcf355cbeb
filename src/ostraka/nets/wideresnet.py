"""Wide residual networks (Zagoruyko & Komodakis, BMVC 2016) for small images, without dropout."""

from collections.abc import Iterator
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import INPUT, OUTPUT, Layer, Net
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS


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
        if min(shape[1:]) < 4:
            raise ConfigError(
                "wideresnet halves images twice: at least 4x4; "
                f"these are {shape[1]}x{shape[2]}. Try mlp"
            )
        blocks, widths = (depth - 4) // 6, [16, *(units * width for units in (16, 32, 64))]
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.stage1, self.stage2, self.stage3 = (
            nn.Sequential(
                *(
                    _Block(
                        widths[i] if j == 0 else widths[i + 1],
                        widths[i + 1],
                        2 if i and j == 0 else 1,
                    )
                    for j in range(blocks)
                )
            )
            for i in range(3)
        )
        self.norm = nn.BatchNorm2d(widths[-1])
        self.last = nn.Linear(widths[-1], self.outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

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
        blocks = list(self._blocks())
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

    def _blocks(self) -> Iterator[tuple[str, "_Block"]]:
        for name, module in self.named_modules():
            if isinstance(module, _Block):
                yield name, module


class _Block(nn.Module):
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
