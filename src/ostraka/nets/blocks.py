"""The layers of the small networks: convolution or linear layer, activation and pooling in one
step.
"""

from torch import Tensor, nn

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


def after(side: int, kernel: int, same: bool, pool: bool = True) -> int:
    """The side of an image after one block; below 1 where the image is too small."""
    out = side if same else side - kernel + 1
    return out // 2 if pool else out
