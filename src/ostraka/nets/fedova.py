"""FedOVA's networks (Zhu et al. 2021). For Fashion-MNIST: that of McMahan et al. (2017), two 5x5
convolutions and one linear layer, with half the channels, 16 and 32. For spoken words: three
convolutions over frames and MFCC coefficients, the latter halved by each.
"""

from itertools import pairwise
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, LinearBlock, halved_channels, image_channels
from ostraka.nets.layered import Layered, Stages
from ostraka.registry import NETS

IMAGES, SOUND = (16, 32), (16, 32, 64)
"""Channels of the convolutions."""
HIDDEN = 256


@NETS.add("fedova-cnn", "fedova_cnn")
class FedOVACNN(Layered):
    """CNN of FedOVA: conv 5x5 (16), pool, conv 5x5 (32), pool, fc 512, outputs;
    mixes after fc 512.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        hidden: Annotated[
            int,
            Option("units of the linear layer before the outputs; 0: no such layer", "[0, inf)"),
        ] = 512,
    ) -> None:
        super().__init__(classes, unknown)
        channels = halved_channels("fedova-cnn", shape, 2, "twice")
        self.conv1 = ConvBlock(channels, IMAGES[0], 5, same=True)
        self.conv2 = ConvBlock(*IMAGES, 5, same=True)
        values = IMAGES[1] * (shape[1] // 4) * (shape[2] // 4)
        self.fc1 = LinearBlock(values, hidden) if hidden else None
        self.fc2 = LinearBlock(hidden or values, self.outputs, "none")

    def stages(self) -> Stages:
        """The cut is before the last layer."""
        convs = (self.conv1, self.conv2)
        return Stages(convs if self.fc1 is None else (*convs, self.fc1), (), self.fc2)


@NETS.add("kws-cnn", "kws_cnn", "kws")
class KWSCNN(Net):
    """CNN for spoken words of FedOVA: three 3x3 convolutions (16, 32, 64), each pooled 1x2,
    fc 256, outputs; mixes after the convolutions.
    """

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        channels = image_channels("kws-cnn", shape)
        if shape[2] < 8:
            raise ConfigError(
                "kws-cnn halves the coefficients three times: at least 8 of them; "
                f"these samples are {shape[1]}x{shape[2]}. Try mlp"
            )
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise((channels, *SOUND))
        )
        self.fc1 = LinearBlock(SOUND[-1] * shape[1] * (shape[2] // 8), HIDDEN)
        self.fc2 = LinearBlock(HIDDEN, self.outputs, "none")

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the pooled values of the last convolution."""
        # torch in this layout: a step took 0.88 times as long as with native blocks
        x = x.contiguous(memory_format=torch.channels_last)
        for conv in self.convs:
            x = F.max_pool2d(conv(x), (1, 2)).relu()  # the same values as ReLU first, half the work
        return x.flatten(1)

    def embed_late(self, hidden: Tensor) -> Tensor:
        """To the 256 values that the last layer sees."""
        embedding: Tensor = self.fc1(hidden)
        return embedding

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.fc2(embedding)
        return logits

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain(*(f"convs.{i}" for i in range(len(SOUND))), "fc1", "fc2")
