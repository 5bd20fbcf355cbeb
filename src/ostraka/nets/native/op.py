"""Layers in one native call: as an ordinary differentiable torch function, and the attack."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ostraka.nets.native.library import Attack, current, describe
from ostraka.nets.native.plan import Block, Plan, make_plan

_memory = threading.local()
Tensors = Sequence[Tensor | None]


def run(x: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Layers one behind the other, computed by the native kernel.

    `x` is [B, ...] with any strides. Gradients cannot be differentiated again (`create_graph=True`
    is an error); run within `disabled()` for that. Check `usable` first; `through` does so.
    """
    library = _library()
    plan = plan_of(library, x, blocks)
    tensors = _tensors(blocks)
    if not torch.is_grad_enabled() or not any(
        t is not None and t.requires_grad for t in (x, *tensors)
    ):
        return _forward(library, plan, x, tensors, None)
    # Views, so that each gradient leaves through a node that the backward pass
    # can be asked about (see `_wanted`).
    views = [None if t is None else t.view_as(t) for t in (x, *tensors)]
    y: Tensor = _Layers.apply(library, plan, *views)  # type: ignore[no-untyped-call]
    return y


def plan_of(library: Any, x: Tensor, blocks: Sequence[Block]) -> Plan:
    """The sizes of all passes; an error where something does not fit."""
    return make_plan(library, x.shape, tuple([block.key() for block in blocks]))


class Climb(NamedTuple):
    """Adversarial steps: x <- x + size * sign(d/dx CE(f(x), last class)), within `clamp`."""

    steps: int
    size: float
    clamp: tuple[float, float] | None = None

    def how(self, plan: Plan, w_start: float = 0.0, w_end: float = 0.0) -> Attack:
        """As the kernel takes it."""
        low, high = self.clamp or (float("-inf"), float("inf"))
        return Attack(plan.result[1] - 1, self.steps, self.size, low, high, w_start, w_end)


@torch.no_grad()
def climbed(x: Tensor, blocks: Sequence[Block], climb: Climb) -> Tensor:
    """The samples after the steps."""
    library, tensors = _library(), _tensors(blocks)
    plan, moved = plan_of(library, x, blocks), torch.empty(x.shape)
    _attack(library, plan, climb.how(plan), x, tensors, None, moved)
    return moved


@torch.no_grad()
def climb_loss(
    x: Tensor, blocks: Sequence[Block], climb: Climb, w_start: float, w_end: float
) -> tuple[float, dict[Tensor, Tensor]]:
    """w_start CE(f(x), last class) + w_end CE(f(x after the steps), last class), and its gradient
    in every parameter that is trained, from one native call.
    """
    library, tensors = _library(), _tensors(blocks)
    plan = plan_of(library, x, blocks)
    grads = _empty_like(tensors, [t is not None and t.requires_grad for t in tensors])
    loss = _attack(library, plan, climb.how(plan, w_start, w_end), x, tensors, grads, None)
    return loss, {t: g for t, g in zip(tensors, grads, strict=True) if t is not None and g is not None}


def _tensors(blocks: Sequence[Block]) -> list[Tensor | None]:
    return [t for block in blocks for t in (block.weight, block.bias)]


class _Layers(torch.autograd.Function):
    """All layers in one function: what torch and Python do around a function takes as long as a
    third of the kernel's work on a small batch.
    """

    @staticmethod
    def forward(ctx: Any, library: Any, plan: Plan, x: Tensor, *tensors: Tensor | None) -> Tensor:
        ctx.library, ctx.plan = library, plan
        ctx.places = [2, *(3 + i for i, t in enumerate(tensors) if t is not None)]
        ctx.kept = torch.empty(plan.kept, dtype=torch.uint8)
        ctx.save_for_backward(x, *tensors)
        return _forward(library, plan, x, tensors, ctx.kept)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Torch's once_differentiable would treat the gradient as a constant where
        # only x or weight leads back to it.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the native kernel has no second derivative; "
                "run within native.disabled() for that"
            )
        x, *tensors = ctx.saved_tensors
        _, _, wants_x, *wanted = _wanted(ctx)
        grads = _empty_like(tensors, wanted)
        grad_x = torch.empty(x.shape) if wants_x else None
        own = _Addresses(tensors)
        ctx.library.ostraka_backward(
            ctx.plan.network,
            own.array,
            ctx.kept.data_ptr(),
            (held := grad.contiguous()).data_ptr(),
            _Addresses(grads).array,
            _address(grad_x),
            _scratch(ctx.plan.scratch).data_ptr(),
        )
        del held
        return None, None, grad_x, *grads


def _forward(library: Any, plan: Plan, x: Tensor, tensors: Tensors, kept: Tensor | None) -> Tensor:
    x, own, y = x.contiguous(), _Addresses(tensors), torch.empty(plan.result)
    library.ostraka_forward(
        plan.network,
        x.data_ptr(),
        own.array,
        y.data_ptr(),
        _address(kept),
        _scratch(plan.scratch).data_ptr(),
    )
    return y


def _attack(
    library: Any,
    plan: Plan,
    how: Attack,
    x: Tensor,
    tensors: Tensors,
    grads: Tensors | None,
    moved: Tensor | None,
) -> float:
    x, own = x.contiguous(), _Addresses(tensors)
    loss: float = library.ostraka_attack(
        plan.network,
        how,
        x.data_ptr(),
        own.array,
        None if grads is None else _Addresses(grads).array,
        _address(moved),
        _scratch(plan.scratch).data_ptr(),
    )
    return loss


class _Addresses:
    """Addresses of tensors (None: a null pointer), and the tensors themselves, which must live as
    long.
    """

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = [None if t is None else t.contiguous() for t in tensors]
        self.array = (ctypes.c_void_p * len(tensors))(*[_address(t) for t in self.tensors])


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _empty_like(tensors: Tensors, wanted: Sequence[bool]) -> list[Tensor | None]:
    return [
        torch.empty(t.shape) if want and t is not None else None
        for t, want in zip(tensors, wanted, strict=True)
    ]


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


def _scratch(size: int) -> Tensor:
    """This thread's working memory, kept for the next call:
    fresh pages at every call cost a third of the time.
    """
    memory: Tensor | None = getattr(_memory, "scratch", None)
    if memory is None or memory.numel() < size:
        memory = _memory.scratch = torch.empty(size, dtype=torch.uint8)
    return memory
