"""FedOV's "simple CNN" (Diao, Li & He, ICLR 2023): two 5x5 convolutions and three linear layers."""

from typing import Annotated, Literal

from ostraka.core.net import Layer, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, LinearBlock, after
from ostraka.nets.layered import Layered, Stages
from ostraka.registry import NETS


@NETS.add("simple-cnn", "simple_cnn", "simplecnn")
class SimpleCNN(Layered):
    """Simple CNN of FedOV: conv 5x5 (6), pool, conv 5x5 (16), pool, fc 120, fc 84,
    outputs; mixes after fc 120.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        padding: Annotated[
            Literal["valid", "same"], Option("same: convolutions keep the size of images")
        ] = "valid",
    ) -> None:
        super().__init__(classes, unknown)
        channels, same = image_channels("simple-cnn", shape), padding == "same"
        sides = [after(after(side, 5, same), 5, same) for side in shape[1:]]
        if min(sides) < 1:
            raise ConfigError(
                f"simple-cnn with padding {padding!r} cannot take images of {shape[1]}x{shape[2]}; "
                "give larger images, --set net.padding=same (8x8 or more), or --net mlp"
            )
        self.conv1 = ConvBlock(channels, 6, 5, same)
        self.conv2 = ConvBlock(6, 16, 5, same)
        self.fc1 = LinearBlock(16 * sides[0] * sides[1], 120)
        self.fc2 = LinearBlock(120, 84)
        self.fc3 = LinearBlock(84, self.outputs, "none")

    def stages(self) -> Stages:
        """120 hidden values at the cut, 84 that the last layer sees."""
        return Stages((self.conv1, self.conv2, self.fc1), (self.fc2,), self.fc3)

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain("conv1", "conv2", "fc1", "fc2", "fc3")


def image_channels(net: str, shape: tuple[int, ...]) -> int:
    """The number of channels of an image shape, or an error that says what the net takes."""
    if len(shape) != 3:
        raise ConfigError(
            f"{net} takes images of channels x height x width; "
            f"these samples have shape {shape}. Try mlp"
        )
    return shape[0]
