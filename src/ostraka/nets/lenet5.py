"""LeNet-5 (LeCun et al. 1998) as FedOS uses it: tanh, average pooling,
and a choice of normalisation.
"""

from typing import Annotated, Literal

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS

Norm = Literal["none", "batch", "group"]
GROUPS = (2, 4, 30)
"""Groups of group norm after the three convolutions (6, 16 and 120 channels)."""


@NETS.add("lenet5", "lenet-5", "lenet")
class LeNet5(Net):
    """LeNet-5: conv 6/16/120 with tanh and average pooling, fc 84, outputs;
    `norm` none, batch or group.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        norm: Annotated[Norm, Option("normalisation after each convolution")] = "none",
    ) -> None:
        super().__init__(classes, unknown)
        channels = image_channels("lenet5", shape)
        if min(shape[1:]) < 28:
            raise ConfigError(
                "lenet5 takes images of at least 28x28; these are "
                f"{shape[1]}x{shape[2]}. Try simple-cnn or mlp"
            )
        pad = 2 if min(shape[1:]) < 32 else 0  # the original pads 28x28 digits to 32x32
        sides = [_side(side + 2 * pad) for side in shape[1:]]
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=pad)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.conv3 = nn.Conv2d(16, 120, 5)
        self.norm1, self.norm2, self.norm3 = (
            _norm(norm, c, g) for c, g in zip((6, 16, 120), GROUPS, strict=True)
        )
        self.fc1 = nn.Linear(120 * sides[0] * sides[1], 84)
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
        norms = (
            {f"conv{i}": [f"norm{i}"] for i in (1, 2, 3)}
            if isinstance(self.norm1, nn.BatchNorm2d)
            else {}
        )
        return chain("conv1", "conv2", "conv3", "fc1", "fc2", norms=norms)


def _norm(kind: Norm, channels: int, groups: int) -> nn.Module:
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(groups, channels) if kind == "group" else nn.Identity()


def _side(side: int) -> int:
    return ((side - 4) // 2 - 4) // 2 - 4
