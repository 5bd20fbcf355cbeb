"""LeNet-5 (LeCun et al. 1998) as FedOS uses it: tanh, average pooling,
and a choice of normalisation.
"""

from typing import Annotated, Literal, final

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, LinearBlock, image_channels
from ostraka.nets.layered import Layered, Stages
from ostraka.registry import NETS

Norm = Literal["none", "batch", "group"]
GROUPS = (2, 4, 30)
"""Groups of group norm after the three convolutions (6, 16 and 120 channels)."""


@NETS.add("lenet5", "lenet-5", "lenet")
def lenet5(
    shape: tuple[int, ...],
    classes: int,
    unknown: bool,
    norm: Annotated[Norm, Option("normalisation after each convolution")] = "none",
) -> Net:
    """LeNet-5: conv 6/16/120 with tanh and average pooling, fc 84, outputs;
    `norm` none, batch or group.
    """
    if norm == "none":
        return LeNet5(shape, classes, unknown)
    return NormedLeNet5(shape, classes, unknown, norm)


@final
class LeNet5(Layered):
    """LeNet-5 as it was: no normalisation."""

    def __init__(self, shape: tuple[int, ...], classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        channels, padded, last = _sizes(shape)
        self.conv1 = ConvBlock(channels, 6, 5, padded, "mean", "tanh")
        self.conv2 = ConvBlock(6, 16, 5, False, "mean", "tanh")
        self.conv3 = ConvBlock(16, 120, 5, False, "none", "tanh")
        self.fc1 = LinearBlock(last, 84, "tanh")
        self.fc2 = LinearBlock(84, self.outputs, "none")

    def stages(self) -> Stages:
        """The cut is behind the third convolution."""
        return Stages((self.conv1, self.conv2, self.conv3), (self.fc1,), self.fc2)


@final
class NormedLeNet5(Net):
    """LeNet-5 with batch or group norm after each convolution."""

    def __init__(
        self, shape: tuple[int, ...], classes: int, unknown: bool, norm: Literal["batch", "group"]
    ) -> None:
        super().__init__(classes, unknown)
        channels, padded, last = _sizes(shape)
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2 if padded else 0)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.conv3 = nn.Conv2d(16, 120, 5)
        self.norm1, self.norm2, self.norm3 = (
            nn.BatchNorm2d(c) if norm == "batch" else nn.GroupNorm(g, c)
            for c, g in zip((6, 16, 120), GROUPS, strict=True)
        )
        self.fc1 = nn.Linear(last, 84)
        self.fc2 = nn.Linear(84, self.outputs)
        self.pool = nn.AvgPool2d(2)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the flattened values after the third convolution."""
        x = self.pool(self.norm1(self.conv1(x)).tanh())
        x = self.pool(self.norm2(self.conv2(x)).tanh())
        x = self.norm3(self.conv3(x)).tanh()
        return x.flatten(1)

    def embed_late(self, hidden: Tensor) -> Tensor:
        """To the 84 values that the last layer sees."""
        embedding: Tensor = self.fc1(hidden)
        return embedding.tanh()

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.fc2(embedding)
        return logits

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other.

        Not with group norm, whose groups of channels fix their order.
        """
        if isinstance(self.norm1, nn.GroupNorm):
            raise ConfigError(
                "lenet5 with norm=group ties its channels into groups, so they cannot be matched "
                "across parties; set net.norm to batch or none"
            )
        norms = {f"conv{i}": [f"norm{i}"] for i in (1, 2, 3)}
        return chain("conv1", "conv2", "conv3", "fc1", "fc2", norms=norms)


def _sizes(shape: tuple[int, ...]) -> tuple[int, bool, int]:
    """Channels, whether images are padded, and the number of values after the convolutions."""
    channels = image_channels("lenet5", shape)
    if min(shape[1:]) < 28:
        raise ConfigError(
            "lenet5 takes images of at least 28x28; these are "
            f"{shape[1]}x{shape[2]}. Try simple-cnn or mlp"
        )
    padded = min(shape[1:]) < 32  # the original pads 28x28 digits to 32x32
    sides = [((side + 4 * padded - 4) // 2 - 4) // 2 - 4 for side in shape[1:]]
    return channels, padded, 120 * sides[0] * sides[1]
