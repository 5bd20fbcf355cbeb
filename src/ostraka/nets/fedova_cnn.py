"""FedOVA's network for Fashion-MNIST (Zhu et al. 2021): that of McMahan et al. (2017), two 5x5
convolutions and one linear layer, with half the channels: 16 and 32.
"""

from typing import Annotated

from ostraka.core.net import Layer, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, LinearBlock
from ostraka.nets.layered import Layered, Stages
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS

WIDTHS = (16, 32)


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
        channels = image_channels("fedova-cnn", shape)
        if min(shape[1:]) < 4:
            raise ConfigError(
                "fedova-cnn halves images twice: at least 4x4; "
                f"these are {shape[1]}x{shape[2]}. Try mlp"
            )
        self.conv1 = ConvBlock(channels, WIDTHS[0], 5, same=True)
        self.conv2 = ConvBlock(*WIDTHS, 5, same=True)
        values = WIDTHS[1] * (shape[1] // 4) * (shape[2] // 4)
        self.fc1 = LinearBlock(values, hidden) if hidden else None
        self.fc2 = LinearBlock(hidden or values, self.outputs, "none")

    def stages(self) -> Stages:
        """The cut is before the last layer."""
        convs = (self.conv1, self.conv2)
        return Stages(convs if self.fc1 is None else (*convs, self.fc1), (), self.fc2)

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain("conv1", "conv2", *(() if self.fc1 is None else ("fc1",)), "fc2")
