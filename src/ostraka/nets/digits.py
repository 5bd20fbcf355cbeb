"""The six-layer network for digits of FedPD (Yang et al., ICCV 2023),
first used by FedBN (Li et al., ICLR 2021).

Deviation: convolutions and linear layers that batch norm follows have no bias,
as batch norm would cancel it.
"""

from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.nets.blocks import halved_channels
from ostraka.registry import NETS

CONVOLUTIONS, LINEAR = (64, 64, 128), (2048, 512)


@NETS.add("digits")
class Digits(Net):
    """FedPD's CNN: conv 5x5 (64, 64, 128), fc 2048, fc 512, all with batch norm;
    `width` scales; mixes after conv 2.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        width: Annotated[
            float, Option("scales the number of channels and units", "(0, inf)")
        ] = 1.0,
    ) -> None:
        super().__init__(classes, unknown)
        channels = halved_channels("digits", shape, 2, "twice")
        a, b, c, d, e = (max(1, round(width * units)) for units in (*CONVOLUTIONS, *LINEAR))
        self.conv1, self.norm1 = _conv(channels, a), nn.BatchNorm2d(a)
        self.conv2, self.norm2 = _conv(a, b), nn.BatchNorm2d(b)
        self.conv3, self.norm3 = _conv(b, c), nn.BatchNorm2d(c)
        values = c * (shape[1] // 4) * (shape[2] // 4)
        self.fc1, self.norm4 = nn.Linear(values, d, bias=False), nn.BatchNorm1d(d)
        self.fc2, self.norm5 = nn.Linear(d, e, bias=False), nn.BatchNorm1d(e)
        self.fc3 = nn.Linear(e, self.outputs)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the pooled values of the second convolution."""
        # With batch norm in between, torch in this layout was faster than the
        # native block (8 ms a step, not 13).
        x = x.contiguous(memory_format=torch.channels_last)
        # ReLU after the pool: the same values, a quarter of the work.
        x = F.max_pool2d(self.norm1(self.conv1(x)), 2).relu()
        return F.max_pool2d(self.norm2(self.conv2(x)), 2).relu()

    def embed_late(self, hidden: Tensor) -> Tensor:
        """Through the third convolution and two linear layers."""
        x = self.norm3(self.conv3(hidden)).relu().flatten(1)
        x = self.norm4(self.fc1(x)).relu()
        embedding: Tensor = self.norm5(self.fc2(x))
        return embedding.relu()

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.fc3(embedding)
        return logits

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        names = ("conv1", "conv2", "conv3", "fc1", "fc2")
        return chain(
            *names, "fc3", norms={name: [f"norm{i}"] for i, name in enumerate(names, 1)}, bias=False
        )


def _conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 5, padding=2, bias=False)
