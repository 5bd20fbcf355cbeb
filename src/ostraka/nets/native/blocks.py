"""What networks call: layers that are native where that pays and plain torch elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn import Parameter

from ostraka.nets.native.library import current
from ostraka.nets.native.op import Call
from ostraka.nets.native.plan import KERNELS, Block


def through(x: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Layers one behind the other: in one native call where that is the better choice for all of
    them, else each by itself, native or torch.
    """
    call = native(x, blocks)
    if call is not None:
        return call.run(x)
    alone = len(blocks) == 1
    for block in blocks:
        call = None if alone else native(x, [block])
        x = torch_block(x, block) if call is None else call.run(x)
    return x


def native(x: Tensor, blocks: Sequence[Block]) -> Call | None:
    """These layers as one native call: if `usable`, and measured to be faster.

    Linear layers alone are torch's: its matmul is as fast (natively mlp was 0.85 to 0.99 times as
    fast). That is seen first, because to ask all else takes as long as one of them.
    """
    if not any([block.weight.dim() == 4 for block in blocks]) or not usable(x, blocks):
        return None
    call = Call.of(x.shape, blocks)
    return call if call.plan.worth_it else None


def torch_block(x: Tensor, block: Block) -> Tensor:
    """One layer in plain torch, on any device and floating type."""
    if block.weight.dim() == 2:
        rows = x if x.dim() == 2 else x.flatten(1)
        return _activated(F.linear(rows, block.weight, block.bias), block)
    if x.device.type == "cpu" and _ordinary(x):
        x = x.contiguous(memory_format=torch.channels_last)  # somewhat faster, the copy included
    y = _activated(F.conv2d(x, block.weight, block.bias, padding=block.padding), block)
    if block.pool == "none":
        return y
    return F.max_pool2d(y, 2) if block.pool == "max" else F.avg_pool2d(y, 2)


def _activated(y: Tensor, block: Block) -> Tensor:
    if block.activation == "none":
        return y
    return y.relu() if block.activation == "relu" else y.tanh()


def usable(x: Tensor, blocks: Sequence[Block]) -> bool:
    """Whether the native kernel can take these: float32 on a CPU,
    compiled kernel sizes, ordinary tensors.
    """
    return (
        current() is not None
        and _plain(x)
        and all([_plain(t) for b in blocks for t in (b.weight, b.bias) if t is not None])
        and all([b.weight.dim() == 2 or _has_kernel(b.weight.shape) for b in blocks])
        and x.dim() >= (2 if blocks[0].weight.dim() == 2 else 4)
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def _has_kernel(weight: Sequence[int]) -> bool:
    return len(weight) == 4 and weight[2] == weight[3] and weight[2] in KERNELS


def _plain(x: Tensor) -> bool:
    return x.dtype is torch.float32 and x.is_cpu and _ordinary(x)


def _ordinary(x: Tensor) -> bool:
    """Neither fake, sparse nor wrapped by vmap or another functorch transform:
    there is memory to point at.
    """
    return (
        type(x) in (Parameter, Tensor)
        and x.layout is torch.strided
        and not is_functorch_wrapped_tensor(x)
    )
