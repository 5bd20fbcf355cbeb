"""VGG-9 (Simonyan & Zisserman 2015, in the nine-layer form that federated experiments use)."""

from itertools import pairwise
from typing import Annotated

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS

WIDTHS = (32, 64, 128, 128, 256, 256)
POOLED = (False, True, False, True, False, True)


@NETS.add("vgg9", "vgg-9", "vgg")
class VGG9(Net):
    """VGG-9: six 3x3 convolutions (32 to 256), three pools, two fc 512, outputs;
    mixes after the first fc.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        unknown: bool,
        dropout: Annotated[
            float, Option("share of values that are dropped in training", "[0, 1)")
        ] = 0.05,
    ) -> None:
        super().__init__(classes, unknown)
        channels = image_channels("vgg9", shape)
        if min(shape[1:]) < 8:
            raise ConfigError(
                "vgg9 halves images three times: at least 8x8; "
                f"these are {shape[1]}x{shape[2]}. Try mlp"
            )
        steps = pairwise((channels, *WIDTHS))
        self.convs = nn.Sequential(
            *(
                ConvBlock(a, b, 3, True, "max" if pooled else "none")
                for (a, b), pooled in zip(steps, POOLED, strict=True)
            )
        )
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.fc1 = nn.Linear(WIDTHS[-1] * (shape[1] // 8) * (shape[2] // 8), 512)
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
        return chain(*(f"convs.{i}" for i in range(len(WIDTHS))), "fc1", "fc2", "fc3")
