"""The native convolution block as an ordinary differentiable torch function."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ostraka.nets.native.library import Shape, current, describe

KERNELS = (3, 5)
"""Square kernel sizes that were compiled."""

_memory = threading.local()


def conv_block(x: Tensor, weight: Tensor, bias: Tensor | None, *, padding: int, relu: bool, pool: bool) -> Tensor:
    """Convolution (stride 1) + bias + optional ReLU + optional 2x2 max-pool, computed by the native kernel.

    `x` is [B, C, H, W] with any strides. The result is [B, C', H', W'] whose memory is [C', H', W', B]: a following
    block reads it without a copy, and `flatten(1)` is a view that `F.linear` takes as it is. Gradients cannot be
    differentiated again (`create_graph=True` is an error); run within `disabled()` for that. Check `usable` first;
    `block` does so.
    """
    check(x, weight, bias, padding, pool)
    # Views, so that each gradient leaves through a node that the backward pass can be asked about (see `_wanted`).
    views = x.permute(1, 2, 3, 0), weight.view_as(weight), None if bias is None else bias.view_as(bias)
    y: Tensor = _Block.apply(*views, padding, relu, pool)  # type: ignore[no-untyped-call]
    return y.permute(3, 0, 1, 2)


def check(x: Tensor, weight: Tensor, bias: Tensor | None, padding: int, pool: bool) -> None:
    """Refuse what the kernel would misread: it sees only addresses."""
    if x.dim() != 4 or weight.dim() != 4 or x.shape[1] != weight.shape[1]:
        raise ValueError(
            f"input {tuple(x.shape)} does not fit weight {tuple(weight.shape)}: need [B, C, H, W], [C', C, k, k]"
        )
    kernel = weight.shape[2]
    if kernel not in KERNELS or weight.shape[3] != kernel:
        raise ValueError(f"kernel {tuple(weight.shape[2:])} is not supported natively; allowed: square {KERNELS}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias {tuple(bias.shape)} does not fit weight {tuple(weight.shape)}: need [C']")
    if not 0 <= padding < kernel:
        raise ValueError(f"padding {padding} is not supported with kernel {kernel}; allowed: 0 to {kernel - 1}")
    smallest = kernel - 2 * padding + (1 if pool else 0)
    if min(x.shape[2:]) < max(smallest, 1):
        raise ValueError(f"image {tuple(x.shape[2:])} is too small for kernel {kernel}, padding {padding}, pool={pool}")
    for name, tensor in (("input", x), ("weight", weight), ("bias", bias)):
        if tensor is not None and (tensor.dtype != torch.float32 or tensor.device.type != "cpu"):
            raise ValueError(f"{name} is {tensor.dtype} on {tensor.device}; the native kernel takes float32 on cpu")


class _Block(torch.autograd.Function):
    """x is [C, H, W, B], and so is its memory (or else [B, C, H, W]: ordinary images need no copy either)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: int, relu: bool, pool: bool
    ) -> Tensor:
        library = current()
        if library is None:
            raise RuntimeError(f"the native kernel is not available: {describe()}; call `block` to fall back to torch")
        outermost = not x.is_contiguous() and x.permute(3, 0, 1, 2).is_contiguous()
        x, weight = x if outermost else x.contiguous(), weight.contiguous()
        bias = None if bias is None else bias.contiguous()
        inputs, height, width, batch = x.shape
        outputs, _, kernel, _ = weight.shape
        rows, cols = height + 2 * padding - kernel + 1, width + 2 * padding - kernel + 1
        size = (outputs, rows // 2, cols // 2, batch) if pool else (outputs, rows, cols, batch)
        y = torch.empty(size)
        picks = torch.empty(size, dtype=torch.int8) if pool and any(ctx.needs_input_grad[:3]) else None
        shape = _shape(batch, inputs, outputs, height, width, kernel, padding, relu, pool, outermost)
        _call(library, "ostraka_forward", shape, x, weight, bias, y, picks)
        ctx.library, ctx.shape = library, shape
        # Kept only as far as the gradients asked for need it.
        for_weight, for_x = x if ctx.needs_input_grad[1] else None, weight if ctx.needs_input_grad[0] else None
        ctx.save_for_backward(for_weight, for_x, y if relu and not pool else None, picks)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Torch's once_differentiable would treat the gradient as a constant where only x or weight leads back to it.
        if torch.is_grad_enabled():
            raise RuntimeError("the native convolution has no second derivative; run within native.disabled() for that")
        x, weight, y, picks = ctx.saved_tensors
        s = ctx.shape
        wants_x, wants_weight, wants_bias = _wanted(ctx)
        grad_x = torch.empty((s.inputs, s.height, s.width, s.batch)) if wants_x else None
        grad_weight = torch.empty((s.outputs, s.inputs, s.kernel, s.kernel)) if wants_weight else None
        grad_bias = torch.empty(s.outputs) if wants_bias else None
        grads = grad_x, grad_weight, grad_bias
        _call(ctx.library, "ostraka_backward", s, x, weight, y, picks, grad.contiguous(), *grads)
        return *grads, None, None, None


def _wanted(ctx: Any) -> list[bool]:
    """Which gradients this backward pass uses. `needs_input_grad` knows only what requires a gradient;
    `torch.autograd.grad(loss, x)` leaves the parameters out, and then their gradient must not be paid for."""
    wanted = list(ctx.needs_input_grad[:3])
    for i, (node, _) in enumerate(ctx.next_functions):
        wanted[i] = wanted[i] and torch._C._will_engine_execute_node(node)
    return wanted


@lru_cache(maxsize=1024)
def _shape(*sizes: int) -> Shape:
    return Shape(*(int(size) for size in sizes))


def _call(library: Any, function: str, shape: Shape, *tensors: Tensor | None) -> None:
    """Calls with addresses (None becomes a null pointer); ctypes releases the interpreter lock meanwhile."""
    scratch = _scratch(library.ostraka_scratch(shape))
    if getattr(library, function)(shape, *(None if t is None else t.data_ptr() for t in (*tensors, scratch))):
        raise RuntimeError(f"kernel size {shape.kernel} was not compiled")


def _scratch(size: int) -> Tensor:
    """This thread's working memory, kept for the next call: fresh pages at every call cost a third of the time."""
    memory: Tensor | None = getattr(_memory, "scratch", None)
    if memory is None or memory.numel() < size:
        memory = _memory.scratch = torch.empty(size, dtype=torch.uint8)
    return memory
