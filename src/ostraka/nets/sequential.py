"""Networks of layers one behind the other: FedOV's "simple CNN" (Diao, Li & He, ICLR 2023), Conv-4,
a multi-layer perceptron, and VGG-9 and VGG-11 (Simonyan & Zisserman 2015): the nine-layer form that
federated experiments use, and configuration A with linear layers of 512 units, enough for small
photographs.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Annotated, ClassVar, Literal, final

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, LinearBlock, halved_channels, image_channels
from ostraka.nets.layered import Layered, Stages
from ostraka.registry import NETS

Dropout = Annotated[float, Option("share of values that are dropped in training", "[0, 1)")]


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
        border = 0 if same else 4
        sides = [((side - border) // 2 - border) // 2 for side in shape[1:]]
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


@NETS.add("conv4", "conv-4")
class Conv4(Layered):
    """Conv-4: four 3x3 convolutions (16, 32, 64, 64), each pooled, fc 128, fc 84,
    outputs; mixes after fc 128.

    For photographs on a processor, where VGG-9 takes forty times as long.
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
        channels = halved_channels("conv4", shape, 4, "four times")
        widths = (channels, width, 2 * width, 4 * width, 4 * width)
        self.convs = nn.ModuleList(ConvBlock(a, b, 3, same=True) for a, b in pairwise(widths))
        self.fc1 = LinearBlock(widths[-1] * (shape[1] // 16) * (shape[2] // 16), 128)
        self.fc2 = LinearBlock(128, 84)
        self.fc3 = LinearBlock(84, self.outputs, "none")

    def stages(self) -> Stages:
        """128 hidden values at the cut, 84 that the last layer sees."""
        convs = [block for block in self.convs if isinstance(block, ConvBlock)]
        return Stages((*convs, self.fc1), (self.fc2,), self.fc3)


@NETS.add("mlp")
class MLP(Layered):
    """Linear layers with ReLU; `hidden` lists their widths; mixes after the first hidden layer."""

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        hidden: Annotated[Sequence[int], Option("widths of the hidden layers", "[1, inf)")] = (
            128,
            64,
        ),
    ) -> None:
        super().__init__(classes, unknown)
        if not hidden:
            raise ConfigError(
                "'net.hidden' is empty; mlp needs at least one hidden layer, such as [64]"
            )
        widths = [prod(shape), *hidden]
        self.first = LinearBlock(widths[0], widths[1])
        self.layers = nn.ModuleList(LinearBlock(a, b) for a, b in pairwise(widths[1:]))
        self.last = LinearBlock(widths[-1], self.outputs, "none")

    def stages(self) -> Stages:
        """The cut is behind the first hidden layer."""
        middle = [layer for layer in self.layers if isinstance(layer, LinearBlock)]
        return Stages((self.first,), middle, self.last)


class VGG(Net):
    """3x3 convolutions, some of them pooled, and three linear layers."""

    NAME: ClassVar[str]
    WIDTHS: ClassVar[Sequence[int]]
    POOLED: ClassVar[Sequence[bool]]
    TIMES: ClassVar[str]
    """How often images are pooled, in words."""

    def __init__(
        self, shape: tuple[int, ...], classes: int, unknown: bool, dropout: Dropout = 0.05
    ) -> None:
        super().__init__(classes, unknown)
        pools = sum(self.POOLED)
        channels, least = halved_channels(self.NAME, shape, pools, self.TIMES), 2**pools
        steps = pairwise((channels, *self.WIDTHS))
        self.convs = nn.Sequential(
            *(
                ConvBlock(a, b, 3, True, "max" if pooled else "none")
                for (a, b), pooled in zip(steps, self.POOLED, strict=True)
            )
        )
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.fc1 = nn.Linear(self.WIDTHS[-1] * (shape[1] // least) * (shape[2] // least), 512)
        self.fc2 = nn.Linear(512, 512)
        self.fc3 = nn.Linear(512, self.outputs)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the first 512 hidden values."""
        hidden: Tensor = self.fc1(self.convs(x).flatten(1))
        return hidden.relu()

    def embed_late(self, hidden: Tensor) -> Tensor:
        """To the 512 values that the last layer sees."""
        embedding: Tensor = self.drop(self.fc2(self.drop(hidden)).relu())
        return embedding

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.fc3(embedding)
        return logits

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain(*(f"convs.{i}" for i in range(len(self.WIDTHS))), "fc1", "fc2", "fc3")


@final
@NETS.add("vgg9", "vgg-9", "vgg")
class VGG9(VGG):
    """VGG-9: six 3x3 convolutions (32 to 256), three pools, two fc 512, outputs;
    mixes after the first fc.
    """

    NAME = "vgg9"
    WIDTHS = (32, 64, 128, 128, 256, 256)
    POOLED = (False, True, False, True, False, True)
    TIMES = "three times"


@final
@NETS.add("vgg11", "vgg-11")
class VGG11(VGG):
    """VGG-11: eight 3x3 convolutions (64 to 512), five pools, two fc 512, outputs;
    mixes after the first fc.
    """

    NAME = "vgg11"
    WIDTHS = (64, 128, 256, 256, 512, 512, 512, 512)
    POOLED = (True, True, False, True, False, True, False, True)
    TIMES = "five times"

    def __init__(
        self, shape: tuple[int, ...], classes: int, unknown: bool, dropout: Dropout = 0.0
    ) -> None:
        super().__init__(shape, classes, unknown, dropout)
        for conv in self.convs:  # torch's own first weights let the signal fade over eight layers
            assert isinstance(conv, ConvBlock)
            assert conv.bias is not None
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(conv.bias)
