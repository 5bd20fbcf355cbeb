"""What networks call: layers that are native where that pays and plain torch elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.nets.native.library import current
from ostraka.nets.native.op import plan_of, run
from ostraka.nets.native.plan import KERNELS, Block


def through(x: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Layers one behind the other: in one native call where that is the better choice for all of
    them, else each by itself, native or torch.
    """
    if native(x, blocks):
        return run(x, blocks)
    for block in blocks:
        x = run(x, [block]) if len(blocks) > 1 and native(x, [block]) else torch_block(x, block)
    return x


def native(x: Tensor, blocks: Sequence[Block]) -> bool:
    """Whether these layers run in one native call: `usable`, and measured to be faster."""
    return usable(x, blocks) and plan_of(current(), x, blocks).worth_it


def torch_block(x: Tensor, block: Block) -> Tensor:
    """One layer in plain torch, on any device and floating type."""
    if block.weight.dim() == 2:
        return _activated(F.linear(x.flatten(1), block.weight, block.bias), block)
    if x.device.type == "cpu" and _ordinary(x):
        x = x.contiguous(memory_format=torch.channels_last)  # somewhat faster, the copy included
    y = _activated(F.conv2d(x, block.weight, block.bias, padding=block.padding), block)
    if block.pool == "none":
        return y
    return F.max_pool2d(y, 2) if block.pool == "max" else F.avg_pool2d(y, 2)


def _activated(y: Tensor, block: Block) -> Tensor:
    return {"none": lambda: y, "relu": y.relu, "tanh": y.tanh}[block.activation]()


def usable(x: Tensor, blocks: Sequence[Block]) -> bool:
    """Whether the native kernel can take these: float32 on a CPU,
    compiled kernel sizes, ordinary tensors.
    """
    return (
        current() is not None
        and _plain(x)
        and all(
            _plain(block.weight)
            and (block.bias is None or _plain(block.bias))
            and (block.weight.dim() == 2 or _has_kernel(block.weight))
            for block in blocks
        )
        and x.dim() >= (2 if blocks[0].weight.dim() == 2 else 4)
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def _has_kernel(weight: Tensor) -> bool:
    return weight.dim() == 4 and weight.shape[2] == weight.shape[3] and weight.shape[2] in KERNELS


def _plain(x: Tensor) -> bool:
    return x.dtype == torch.float32 and x.device.type == "cpu" and _ordinary(x)


def _ordinary(x: Tensor) -> bool:
    """Neither fake, sparse nor wrapped by vmap or another functorch transform:
    there is memory to point at.
    """
    return (
        type(x) in (Tensor, torch.nn.Parameter)
        and x.layout == torch.strided
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )
