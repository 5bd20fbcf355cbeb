"""The convolution block of the small networks: convolution, bias, ReLU and pooling in one step."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ostraka.nets import native


class ConvBlock(nn.Conv2d):
    """Stride-1 convolution + ReLU + optional 2x2 max-pool,
    native where that is faster, torch elsewhere.

    Its tensors are those of `nn.Conv2d`, so files made with either path are interchangeable.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, same: bool = False, pool: bool = True
    ) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2 if same else 0)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, C', H', W']."""
        return through(x, self)

    def conv(self) -> native.Conv:
        """The block as the kernel takes it."""
        padding = self.padding[0]
        # nn.Conv2d would take a word, too; this block gives it numbers
        assert isinstance(padding, int)
        return native.Conv(self.weight, self.bias, padding, relu=True, pool=self.pool)


def through(x: Tensor, *blocks: ConvBlock) -> Tensor:
    """Blocks one behind the other; faster than one call for each."""
    return native.through(x, [block.conv() for block in blocks])


@torch.no_grad()
def input_gradient(
    x: Tensor,
    blocks: Sequence[ConvBlock],
    layers: Sequence[nn.Linear],
    error: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """`Net.input_gradient` of convolution blocks and linear layers, ReLU between these; None unless
    all blocks are native.

    Written out, it takes a sixth less than by autograd;
    with five adversarial steps it is half of FedOV's training.
    """
    found = native.gradient_through(x, [block.conv() for block in blocks])
    if found is None:
        return None
    y, back = found
    values = [y.flatten(0, 2)]  # one column for each sample, as the kernel leaves them
    for layer in layers:
        values.append(torch.addmm(layer.bias.unsqueeze(1), layer.weight, values[-1].relu_()))
    grad = error(values[-1].t()).t()
    for layer, value in zip(reversed(layers[1:]), reversed(values[1:-1]), strict=True):
        grad = (layer.weight.t() @ grad).mul_(value > 0)
    return back((layers[0].weight.t() @ grad).view(y.shape))


def after(side: int, kernel: int, same: bool, pool: bool = True) -> int:
    """The side of an image after one block; below 1 where the image is too small."""
    out = side if same else side - kernel + 1
    return out // 2 if pool else out
