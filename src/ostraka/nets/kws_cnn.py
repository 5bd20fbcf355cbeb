"""FedOVA's network for spoken words (Zhu et al. 2021): three convolutions over frames and MFCC
coefficients, the latter halved by each.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.errors import ConfigError
from ostraka.nets.blocks import LinearBlock
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS

WIDTHS = (16, 32, 64)
HIDDEN = 256


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
            nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise((channels, *WIDTHS))
        )
        self.fc1 = LinearBlock(WIDTHS[-1] * shape[1] * (shape[2] // 8), HIDDEN)
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
        return chain(*(f"convs.{i}" for i in range(len(WIDTHS))), "fc1", "fc2")
