"""Four small convolutions: for photographs on a processor,
where VGG-9 takes forty times as long.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated

from torch import Tensor, nn

from ostraka.core.net import Layer, Net, chain
from ostraka.core.settings import Option
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock, input_gradient, through
from ostraka.nets.simple_cnn import image_channels
from ostraka.registry import NETS


@NETS.add("conv4", "conv-4")
class Conv4(Net):
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
        self.fc1 = nn.Linear(widths[-1] * (shape[1] // 16) * (shape[2] // 16), 128)
        self.fc2 = nn.Linear(128, 84)
        self.fc3 = nn.Linear(84, self.outputs)

    def early(self, x: Tensor) -> Tensor:
        """Inputs to the 128 hidden values."""
        hidden: Tensor = self.fc1(through(x, *self._blocks()).flatten(1))
        return hidden.relu()

    def _blocks(self) -> list[ConvBlock]:
        return [block for block in self.convs if isinstance(block, ConvBlock)]

    def embed_late(self, hidden: Tensor) -> Tensor:
        """To the 84 values that the last layer sees."""
        embedding: Tensor = self.fc2(hidden)
        return embedding.relu()

    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        logits: Tensor = self.fc3(embedding)
        return logits

    def input_gradient(self, x: Tensor, error: Callable[[Tensor], Tensor]) -> Tensor:
        """As in every net, faster where the convolutions are native."""
        found = input_gradient(x, self._blocks(), (self.fc1, self.fc2, self.fc3), error)
        return super().input_gradient(x, error) if found is None else found

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        return chain(*(f"convs.{i}" for i in range(len(self.convs))), "fc1", "fc2", "fc3")
