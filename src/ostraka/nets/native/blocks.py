"""What networks call: a convolution block that is native where
that pays and plain torch elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.nets.native.library import available
from ostraka.nets.native.op import KERNELS, Conv, conv_blocks, conv_input_gradient


def through(x: Tensor, blocks: Sequence[Conv]) -> Tensor:
    """Blocks one behind the other: native where `usable` and `worth_it`, else torch."""
    ways = [_native(x, block) for block in blocks]
    if all(ways):
        return conv_blocks(x, blocks)
    for way, block in zip(ways, blocks, strict=True):
        x = conv_blocks(x, [block]) if way else torch_block(x, block)
    return x


def gradient_through(
    x: Tensor, blocks: Sequence[Conv]
) -> tuple[Tensor, Callable[[Tensor], Tensor]] | None:
    """`conv_input_gradient` of the blocks, if they are all native."""
    return conv_input_gradient(x, blocks) if all(_native(x, block) for block in blocks) else None


def torch_block(x: Tensor, block: Conv) -> Tensor:
    """The same in plain torch, on any device and floating type."""
    if x.device.type == "cpu" and _ordinary(x):
        x = x.contiguous(memory_format=torch.channels_last)  # somewhat faster, the copy included
    y = F.conv2d(x, block.weight, block.bias, padding=block.padding)
    y = F.relu(y) if block.relu else y
    return F.max_pool2d(y, 2) if block.pool else y


def _native(x: Tensor, block: Conv) -> bool:
    return usable(x, block.weight) and worth_it(block.weight.shape, x.shape[2:])


def usable(x: Tensor, weight: Tensor) -> bool:
    """Whether the native kernel can take these: float32 on a CPU,
    a compiled kernel size, ordinary tensors.
    """
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == weight.device.type == "cpu"
        and x.dim() == weight.dim() == 4
        and weight.shape[2] == weight.shape[3]
        and weight.shape[2] in KERNELS
        and _ordinary(x)
        and _ordinary(weight)
        and available()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def worth_it(weight_shape: Sequence[int], image_shape: Sequence[int]) -> bool:
    """Whether the native kernel is the better choice for this layer: unless both sides are wide.

    Torch's time for forward + both gradients over native's, for the better of NCHW and
    channels_last, pooled layers, one busy AVX-512 machine, so good to about a fifth (batch 64;
    48 -> 48 and 56x56 with 32): 1 -> 32 channels 9, 3 -> 64 3.6, 10 -> 20 2.3, 20 -> 50 1.6, 24 ->
    48 1.3, 32 -> 64 1.1; but 48 -> 48 0.8, 64 -> 64 0.9, and 1.0 on images of 56x56. Without
    pooling torch in channels_last is ahead from 16 channels on (16 -> 32 0.8, 32 -> 32 0.8, 64 ->
    64 0.7), in NCHW about equal; native is still chosen up to 32 because a change of memory layout
    between blocks would cost what it saves. `make bench` measures again.
    """
    return min(weight_shape[:2]) <= 32 or min(image_shape) >= 56


def _ordinary(x: Tensor) -> bool:
    """Neither fake, sparse nor wrapped by vmap or another functorch transform:
    there is memory to point at.
    """
    return (
        type(x) in (Tensor, torch.nn.Parameter)
        and x.layout == torch.strided
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )
