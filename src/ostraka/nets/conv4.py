"""Four small convolutions: for photographs on a processor,
where VGG-9 takes forty times as long.
"""

from itertools import pairwise
from typing import Annotated

from torch import nn

from ostraka.core.net import Layer, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, LinearBlock
from ostraka.nets.layered import Layered, Stages
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS


@NETS.add("conv4", "conv-4")
class Conv4(Layered):
    """Conv-4: four 3x3 convolutions (16, 32, 64, 64), each pooled, fc 128, fc 84,
    outputs; mixes after fc 128.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        width: Annotated[
            int, Option("channels of the first convolution; the others: 2, 4, 4 times", "[1, inf)")
        ] = 16,
    ) -> None:
        super().__init__(classes, unknown)
        channels = image_channels("conv4", shape)
        if min(shape[1:]) < 16:
            raise ConfigError(
                "conv4 halves images four times: at least 16x16; "
                f"these are {shape[1]}x{shape[2]}. Try mlp"
            )
        widths = (channels, width, 2 * width, 4 * width, 4 * width)
        self.convs = nn.ModuleList(ConvBlock(a, b, 3, same=True) for a, b in pairwise(widths))
        self.fc1 = LinearBlock(widths[-1] * (shape[1] // 16) * (shape[2] // 16), 128)
        self.fc2 = LinearBlock(128, 84)
        self.fc3 = LinearBlock(84, self.outputs, "none")

    def stages(self) -> Stages:
        """128 hidden values at the cut, 84 that the last layer sees."""
        convs = [block for block in self.convs if isinstance(block, ConvBlock)]
        return Stages((*convs, self.fc1), (self.fc2,), self.fc3)

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain(*(f"convs.{i}" for i in range(len(self.convs))), "fc1", "fc2", "fc3")
