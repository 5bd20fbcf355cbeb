"""The layers of the small networks: convolution or linear layer, activation and pooling in one
step; and which images networks take.
"""

from torch import Tensor, nn

from ostraka.errors import ConfigError
from ostraka.nets import native


class ConvBlock(nn.Conv2d):
    """Stride-1 convolution + activation + optional 2x2 pooling,
    native where that is faster, torch elsewhere.

    Its tensors are those of `nn.Conv2d`, so files made with either path are interchangeable.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        same: bool = False,
        pool: native.Pool = "max",
        activation: native.Activation = "relu",
    ) -> None:
        border = kernel // 2 if same else 0
        super().__init__(inputs, outputs, kernel, padding=border)
        self.border, self.pool, self.activation = border, pool, activation

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        return through(x, self)

    def block(self) -> native.Block:
        """The layer as the kernel takes it."""
        return native.Block(self.weight, self.bias, self.border, self.activation, self.pool)


class LinearBlock(nn.Linear):
    """Linear layer + activation, with the tensors of `nn.Linear`."""

    def __init__(self, inputs: int, outputs: int, activation: native.Activation = "relu") -> None:
        super().__init__(inputs, outputs)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """[B, ...] to [B, N']."""
        return through(x, self)

    def block(self) -> native.Block:
        """The layer as the kernel takes it."""
        return native.Block(self.weight, self.bias, 0, self.activation)


def through(x: Tensor, *blocks: ConvBlock | LinearBlock) -> Tensor:
    """Layers one behind the other; faster than one call for each."""
    return native.through(x, [block.block() for block in blocks])


def convolution_of(net: nn.Module) -> str:
    """What carries a network's layers out: the native build, or torch."""
    if any(isinstance(module, ConvBlock | LinearBlock) for module in net.modules()):
        return native.describe()
    return "torch (the net has no layers that the native kernel takes)"


def image_channels(net: str, shape: tuple[int, ...]) -> int:
    """The number of channels of an image shape, or an error that says what the net takes."""
    if len(shape) != 3:
        raise ConfigError(
            f"{net} takes images of channels x height x width; "
            f"these samples have shape {shape}. Try mlp"
        )
    return shape[0]


def halved_channels(
    net: str, shape: tuple[int, ...], halvings: int, times: str, instead: str = "mlp"
) -> int:
    """The number of channels of images that can be halved so often; others are refused."""
    channels, least = image_channels(net, shape), 2**halvings
    if min(shape[1:]) < least:
        raise ConfigError(
            f"{net} halves images {times}: at least {least}x{least}; "
            f"these are {shape[1]}x{shape[2]}. Try {instead}"
        )
    return channels
