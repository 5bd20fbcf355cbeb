"""VGG-9 and VGG-11 (Simonyan & Zisserman 2015): the nine-layer form that federated experiments
use, and configuration A with linear layers of 512 units, enough for small photographs.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, final

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS

Dropout = Annotated[float, Option("share of values that are dropped in training", "[0, 1)")]


class VGG(Net):
    """3x3 convolutions, some of them pooled, and three linear layers."""

    WIDTHS: ClassVar[Sequence[int]]
    POOLED: ClassVar[Sequence[bool]]

    def __init__(
        self, name: str, shape: tuple[int, ...], classes: int, unknown: bool, dropout: float
    ) -> None:
        super().__init__(classes, unknown)
        channels, pools = image_channels(name, shape), sum(self.POOLED)
        least = 2**pools
        if min(shape[1:]) < least:
            times = {3: "three", 5: "five"}[pools]
            raise ConfigError(
                f"{name} halves images {times} times: at least {least}x{least}; "
                f"these are {shape[1]}x{shape[2]}. Try mlp"
            )
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

    WIDTHS = (32, 64, 128, 128, 256, 256)
    POOLED = (False, True, False, True, False, True)

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        dropout: Dropout = 0.05,
    ) -> None:
        super().__init__("vgg9", shape, classes, unknown, dropout)


@final
@NETS.add("vgg11", "vgg-11")
class VGG11(VGG):
    """VGG-11: eight 3x3 convolutions (64 to 512), five pools, two fc 512, outputs;
    mixes after the first fc.
    """

    WIDTHS = (64, 128, 256, 256, 512, 512, 512, 512)
    POOLED = (True, True, False, True, False, True, False, True)

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__("vgg11", shape, classes, unknown, dropout)
        for conv in self.convs:  # torch's own first weights let the signal fade over eight layers
            assert isinstance(conv, ConvBlock)
            assert conv.bias is not None
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(conv.bias)
