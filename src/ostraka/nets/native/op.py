"""Layers in one native call: as an ordinary differentiable torch function, and the attack."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ostraka.nets.native.library import Attack, Lesson, current, describe
from ostraka.nets.native.plan import Block, Plan, make_plan

_memory = threading.local()
Tensors = Sequence[Tensor | None]


@cache
def _pointers(count: int) -> Any:
    return ctypes.c_void_p * count


class Climb(NamedTuple):
    """Adversarial steps: x <- x + size * sign(d/dx CE(f(x), last class)), within `clamp`."""

    steps: int
    size: float
    clamp: tuple[float, float] | None = None

    def attack(self, w_start: float = 0.0, w_end: float = 0.0) -> Attack:
        """As the kernel takes it."""
        low, high = self.clamp or (float("-inf"), float("inf"))
        return Attack(self.steps, self.size, low, high, w_start, w_end)


class Gradients:
    """Room for the gradients of those tensors that are trained, where native passes add up."""

    def __init__(self, tensors: Tensors, wanted: Sequence[bool] | None = None) -> None:
        if wanted is None:
            wanted = [t is not None and t.requires_grad for t in tensors]
        pairs = zip(tensors, wanted, strict=True)
        self.trained = [t for t, want in pairs if want and t is not None]
        self.flat = torch.zeros(sum([t.numel() for t in self.trained]))
        self.at, address = dict[int, int](), self.flat.data_ptr()
        for tensor in self.trained:
            self.at[id(tensor)] = address
            address += 4 * tensor.numel()

    def addresses(self, tensors: Tensors) -> Any:
        """As the kernel takes them; null for a tensor that is not trained."""
        return _pointers(len(tensors))(*[self.at.get(id(t)) for t in tensors])

    def pieces(self) -> list[Tensor]:
        """One gradient for every trained tensor."""
        runs = self.flat.split([t.numel() for t in self.trained])
        return [run.view(t.shape) for run, t in zip(runs, self.trained, strict=True)]


class Call(NamedTuple):
    """Layers one behind the other, ready for samples of one shape.

    Check `usable` first; `blocks.native` does so.
    """

    library: Any
    plan: Plan
    tensors: Tensors
    """Weight and bias of every layer."""

    @classmethod
    def of(cls, shape: Sequence[int], blocks: Sequence[Block]) -> Call:
        """For samples of this shape, the batch first; an error where something does not fit."""
        library = current()
        if library is None:
            raise RuntimeError(
                f"the native kernel is not available: {describe()}; `through` falls back to torch"
            )
        plan = make_plan(library, tuple(shape), tuple([block.key() for block in blocks]))
        return cls(library, plan, [t for block in blocks for t in (block.weight, block.bias)])

    def run(self, x: Tensor) -> Tensor:
        """What the last layer gives, for `x` with any strides.

        Gradients cannot be differentiated again (`create_graph=True` is an error); run within
        `disabled()` for that.
        """
        every = [x, *self.tensors]
        if not torch.is_grad_enabled() or not any(
            [t is not None and t.requires_grad for t in every]
        ):
            return self.forward(x, None)
        # Views, so that each gradient leaves through a node that the backward pass
        # can be asked about (see `_wanted`).
        views = [t.view_as(t) if t is not None and t.requires_grad else t for t in every]
        y: Tensor = _Layers.apply(self, *views)  # type: ignore[no-untyped-call]
        return y

    @torch.no_grad()
    def climbed(self, x: Tensor, climb: Climb) -> Tensor:
        """The samples after the steps."""
        moved = torch.empty(x.shape)
        self._attack(x, climb.attack(), None, moved)
        return moved

    def climb(
        self, x: Tensor, climb: Climb, w_start: float, w_end: float, grads: Gradients
    ) -> float:
        """w_start CE(f(x), last class) + w_end CE(f(x after the steps), last class); its gradient
        is added to `grads`.
        """
        return self._attack(x, climb.attack(w_start, w_end), grads.addresses(self.tensors), None)

    def learn(
        self, x: Tensor, labels: Tensor, lesson: Lesson, grads: Gradients, grad_x: Tensor | None
    ) -> float:
        """The loss of a lesson; its gradient is added to `grads`, and that in x put into `grad_x`.

        `labels` are those of the first rows; the other rows have the last class.
        """
        x, labels, own = x.contiguous(), labels.contiguous(), _Addresses(self.tensors)
        loss: float = self.library.ostraka_learn(
            self.plan.network,
            lesson,
            x.data_ptr(),
            labels.data_ptr(),
            own.array,
            grads.addresses(self.tensors),
            _address(grad_x),
            _scratch(self.plan.scratch),
        )
        return loss

    def room(self) -> Tensor:
        """For what a forward pass keeps."""
        return torch.empty(self.plan.kept, dtype=torch.uint8)

    def forward(self, x: Tensor, kept: Tensor | None) -> Tensor:
        """The pass itself; `kept` is the `room` for what its gradients will need."""
        x, own, y = x.contiguous(), _Addresses(self.tensors), torch.empty(self.plan.result)
        self.library.ostraka_forward(
            self.plan.network,
            x.data_ptr(),
            own.array,
            y.data_ptr(),
            _address(kept),
            _scratch(self.plan.scratch),
        )
        return y

    def backward(self, kept: Tensor, grad: Tensor, grads: Gradients, grad_x: Tensor | None) -> None:
        """From the gradient in what `forward` gave: added to `grads`, put into `grad_x`."""
        grad, own = grad.contiguous(), _Addresses(self.tensors)
        self.library.ostraka_backward(
            self.plan.network,
            own.array,
            kept.data_ptr(),
            grad.data_ptr(),
            grads.addresses(self.tensors),
            _address(grad_x),
            _scratch(self.plan.scratch),
        )

    def _attack(self, x: Tensor, attack: Attack, grads: Any, moved: Tensor | None) -> float:
        x, own = x.contiguous(), _Addresses(self.tensors)
        loss: float = self.library.ostraka_attack(
            self.plan.network,
            attack,
            x.data_ptr(),
            own.array,
            grads,
            _address(moved),
            _scratch(self.plan.scratch),
        )
        return loss


class _Layers(torch.autograd.Function):
    """All layers in one function: what torch and Python do around a function takes as long as a
    third of the kernel's work on a small batch.
    """

    @staticmethod
    def forward(ctx: Any, call: Call, x: Tensor, *tensors: Tensor | None) -> Tensor:
        ctx.call, ctx.shape = call, x.shape
        # torch lists the functions that come next for tensors alone
        ctx.places = [1, *(2 + i for i, t in enumerate(tensors) if t is not None)]
        ctx.kept = call.room()
        ctx.save_for_backward(*tensors)
        return call.forward(x, ctx.kept)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Torch's once_differentiable would treat the gradient as a constant where
        # only x or weight leads back to it.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the native kernel has no second derivative; run within native.disabled() for that"
            )
        # What was saved is asked for, so that torch notices a change in place.
        assert len(ctx.saved_tensors) == len(ctx.call.tensors)
        _, wants_x, *wanted = _wanted(ctx)
        grads = Gradients(ctx.call.tensors, wanted)
        grad_x = torch.empty(ctx.shape) if wants_x else None
        ctx.call.backward(ctx.kept, grad, grads, grad_x)
        pieces = iter(grads.pieces())
        return None, grad_x, *(next(pieces) if want else None for want in wanted)


class _Addresses:
    """Addresses of tensors (None: a null pointer), and the tensors themselves, which must live as
    long.
    """

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = [None if t is None else t.contiguous() for t in tensors]
        self.array = _pointers(len(tensors))(*[_address(t) for t in self.tensors])


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _wanted(ctx: Any) -> list[bool]:
    """Which gradients this backward pass uses.

    `needs_input_grad` knows only what requires a gradient; `torch.autograd.grad(loss, x)` leaves
    the parameters out, and then their gradient must not be paid for.
    """
    wanted = list(ctx.needs_input_grad)
    for place, (node, _) in zip(ctx.places, ctx.next_functions, strict=True):
        if wanted[place]:
            wanted[place] = torch._C._will_engine_execute_node(node)
    return wanted


def _scratch(size: int) -> int:
    """This thread's working memory, kept for the next call:
    fresh pages at every call cost a third of the time.
    """
    memory: Tensor | None = getattr(_memory, "scratch", None)
    if memory is None or memory.numel() < size:
        memory = _memory.scratch = torch.empty(size, dtype=torch.uint8)
    return memory.data_ptr()
