"""The native convolution block as an ordinary differentiable torch function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ostraka.nets.native.library import Shape, current, describe

KERNELS = (3, 5)
"""Square kernel sizes that were compiled."""

_memory = threading.local()


class Conv(NamedTuple):
    """One block: convolution (stride 1) + bias + optional ReLU + optional 2x2 max-pool."""

    weight: Tensor
    bias: Tensor | None
    padding: int = 0
    relu: bool = True
    pool: bool = True


def conv_blocks(x: Tensor, blocks: Sequence[Conv]) -> Tensor:
    """Blocks one behind the other, computed by the native kernel.

    `x` is [B, C, H, W] with any strides. The result is [B, C', H', W'] whose memory is [C', H', W',
    B]: a following block reads it without a copy, and `flatten(1)` is a view that `F.linear` takes
    as it is. Gradients cannot be differentiated again (`create_graph=True` is an error); run within
    `disabled()` for that. Check `usable` first; `through` does so.
    """
    sizes = _sizes(x, blocks)
    # Views, so that each gradient leaves through a node that the backward pass
    # can be asked about (see `_wanted`).
    views = [None if t is None else t.view_as(t) for c in blocks for t in (c.weight, c.bias)]
    y: Tensor = _Blocks.apply(x.permute(1, 2, 3, 0), sizes, *views)  # type: ignore[no-untyped-call]
    return y.permute(3, 0, 1, 2)


@torch.no_grad()
def conv_input_gradient(
    x: Tensor, blocks: Sequence[Conv]
) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """What `conv_blocks` gives as [C', H', W', B],
    and a function from the gradient there to the gradient in `x`.

    Nothing of it is known to autograd, which takes as long around a small
    batch as the blocks' gradient itself.
    """
    library, tensors = _library(), [t for c in blocks for t in (c.weight, c.bias)]
    only_x = [True] + [False] * (1 + len(tensors))
    y, shapes, saved = _forward(library, x.permute(1, 2, 3, 0), _sizes(x, blocks), tensors, only_x)

    def back(grad: Tensor) -> Tensor:
        found = _backward(library, shapes, saved, grad, only_x)[0]
        assert found is not None
        return found.permute(3, 0, 1, 2)

    return y, back


def _sizes(x: Tensor, blocks: Sequence[Conv]) -> list[Geometry]:
    """The sizes of every block; an error where something does not fit."""
    for name, tensor in (
        ("input", x),
        *((n, t) for c in blocks for n, t in (("weight", c.weight), ("bias", c.bias))),
    ):
        if tensor is not None and (tensor.dtype != torch.float32 or tensor.device.type != "cpu"):
            raise ValueError(
                f"{name} is {tensor.dtype} on {tensor.device}; "
                "the native kernel takes float32 on cpu"
            )
    sizes, shape = [], tuple(x.shape)
    for weight, bias, padding, relu, pool in blocks:
        sizes.append(
            geometry(shape, weight.shape, None if bias is None else bias.shape, padding, relu, pool)
        )
        shape = sizes[-1].result
    return sizes


class Geometry(NamedTuple):
    """The sizes of one block, checked once: the kernel sees only addresses and
    would misread what does not fit.
    """

    innermost: Shape
    """For an input whose memory has the batch innermost."""
    outermost: Shape
    """For an input of ordinary images."""
    result: tuple[int, int, int, int]
    """The shape of the result."""
    memory: tuple[int, int, int, int]
    """The same as it lies in memory, batch innermost."""


@lru_cache(maxsize=1024)
def geometry(
    x: Sequence[int],
    weight: Sequence[int],
    bias: Sequence[int] | None,
    padding: int,
    relu: bool,
    pool: bool,
) -> Geometry:
    """The sizes of a block from the shapes of its tensors; an error where they do not fit."""
    if len(x) != 4 or len(weight) != 4 or x[1] != weight[1]:
        raise ValueError(
            f"input {tuple(x)} does not fit weight {tuple(weight)}: "
            "need [B, C, H, W], [C', C, k, k]"
        )
    batch, inputs, height, width = x
    outputs, _, kernel, _ = weight
    if kernel not in KERNELS or weight[3] != kernel:
        raise ValueError(
            f"kernel {tuple(weight[2:])} is not supported natively; allowed: square {KERNELS}"
        )
    if bias is not None and tuple(bias) != (outputs,):
        raise ValueError(f"bias {tuple(bias)} does not fit weight {tuple(weight)}: need [C']")
    if not 0 <= padding < kernel:
        raise ValueError(
            f"padding {padding} is not supported with kernel {kernel}; allowed: 0 to {kernel - 1}"
        )
    rows, cols = height + 2 * padding - kernel + 1, width + 2 * padding - kernel + 1
    if min(height, width) < 1 or min(rows, cols) < (2 if pool else 1):
        raise ValueError(
            f"image {(height, width)} is too small for kernel {kernel}, "
            f"padding {padding}, pool={pool}"
        )
    given = batch, inputs, outputs, height, width, kernel, padding, int(relu), int(pool)
    rows, cols = (rows // 2, cols // 2) if pool else (rows, cols)
    return Geometry(
        Shape(*given, 0),
        Shape(*given, 1),
        (batch, outputs, rows, cols),
        (outputs, rows, cols, batch),
    )


def _forward(
    library: Any,
    x: Tensor,
    sizes: Sequence[Geometry],
    tensors: Sequence[Tensor | None],
    needs: Sequence[bool],
) -> tuple[Tensor, list[Shape], list[Tensor | None]]:
    """Run the blocks: the result, their shapes, and what the gradients that may be asked for need.

    x is [C, H, W, B], and so is its memory (or else [B, C, H, W]: ordinary images need no copy
    either). `needs` is in the order of `_Blocks.forward`'s arguments. Four tensors are kept of each
    block: input, weight, result, picks.
    """
    outermost = not x.is_contiguous() and x.permute(3, 0, 1, 2).is_contiguous()
    x = x if outermost else x.contiguous()
    shapes: list[Shape] = []
    saved: list[Tensor | None] = []
    leads_back = needs[0]
    for i, size in enumerate(sizes):
        shape = size.outermost if outermost and i == 0 else size.innermost
        weight, bias = (None if t is None else t.contiguous() for t in tensors[2 * i : 2 * i + 2])
        for_weight, for_bias = needs[2 + 2 * i : 4 + 2 * i]
        saved += x if for_weight else None, weight if leads_back else None
        leads_back = leads_back or for_weight or for_bias
        y = torch.empty(size.memory)
        picks = torch.empty(size.memory, dtype=torch.int8) if shape.pool and leads_back else None
        _call(library, library.ostraka_forward, shape, x, weight, bias, y, picks)
        saved += y if shape.relu and not shape.pool else None, picks
        shapes.append(shape)
        x = y
    return x, shapes, saved


def _backward(
    library: Any,
    shapes: Sequence[Shape],
    saved: Sequence[Tensor | None],
    grad: Tensor,
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients of `_Blocks.forward`'s arguments; None where not `wanted`."""
    wants_x, _, *others = wanted
    grads: list[Tensor | None] = [None] * len(others)
    following: Tensor | None = grad.contiguous()
    for i, s in reversed(list(enumerate(shapes))):
        if following is None:
            break
        x, weight, y, picks = saved[4 * i : 4 * i + 4]
        before = (
            torch.empty((s.inputs, s.height, s.width, s.batch))
            if wants_x or any(others[: 2 * i])
            else None
        )
        if others[2 * i]:
            grads[2 * i] = torch.empty((s.outputs, s.inputs, s.kernel, s.kernel))
        if others[2 * i + 1]:
            grads[2 * i + 1] = torch.empty(s.outputs)
        mine = before, *grads[2 * i : 2 * i + 2]
        _call(library, library.ostraka_backward, s, x, weight, y, picks, following, *mine)
        following = before
    return [following, None, *grads]


class _Blocks(torch.autograd.Function):
    """All blocks in one function: what torch and Python do around a function takes as long as a
    third of the kernel's work on a small batch.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: Sequence[Geometry], *tensors: Tensor | None) -> Tensor:
        ctx.library = _library()
        ctx.places = [0, *(2 + i for i, t in enumerate(tensors) if t is not None)]
        y, ctx.shapes, saved = _forward(ctx.library, x, sizes, tensors, ctx.needs_input_grad)
        ctx.save_for_backward(*saved)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Torch's once_differentiable would treat the gradient as a constant where
        # only x or weight leads back to it.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the native convolution has no second derivative; "
                "run within native.disabled() for that"
            )
        return tuple(_backward(ctx.library, ctx.shapes, ctx.saved_tensors, grad, _wanted(ctx)))


def _library() -> Any:
    library = current()
    if library is None:
        raise RuntimeError(
            f"the native kernel is not available: {describe()}; `through` falls back to torch"
        )
    return library


def _wanted(ctx: Any) -> list[bool]:
    """Which gradients this backward pass uses.

    `needs_input_grad` knows only what requires a gradient; `torch.autograd.grad(loss, x)` leaves
    the parameters out, and then their gradient must not be paid for.
    """
    wanted = list(ctx.needs_input_grad)
    for place, (node, _) in zip(ctx.places, ctx.next_functions, strict=True):
        wanted[place] = wanted[place] and torch._C._will_engine_execute_node(node)
    return wanted


def _call(library: Any, function: Any, shape: Shape, *tensors: Tensor | None) -> None:
    """Calls with addresses (None becomes a null pointer);
    ctypes releases the interpreter lock meanwhile.
    """
    scratch = _scratch(library.ostraka_scratch(shape))
    if function(shape, *[None if t is None else t.data_ptr() for t in (*tensors, scratch)]):
        raise RuntimeError(f"kernel size {shape.kernel} was not compiled")


def _scratch(size: int) -> Tensor:
    """This thread's working memory, kept for the next call:
    fresh pages at every call cost a third of the time.
    """
    memory: Tensor | None = getattr(_memory, "scratch", None)
    if memory is None or memory.numel() < size:
        memory = _memory.scratch = torch.empty(size, dtype=torch.uint8)
    return memory
