"""A loss whose gradient was found without autograd, as an ordinary differentiable number."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def known_gradient(
    value: Tensor, inputs: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> Tensor:
    """A copy of `value` that hands out these gradients in `inputs` when it is differentiated, times
    whatever it is multiplied with; None: it does not depend on that input.
    """
    carried: Tensor = _Known.apply(value, gradients, *inputs)  # type: ignore[no-untyped-call]
    return carried


class _Known(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, value: Tensor, gradients: Sequence[Tensor | None], *inputs: Tensor
    ) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        given = [g for g in ctx.gradients if g is not None]
        scaled = iter(torch._foreach_mul(given, factor) if given else ())
        return None, None, *(None if g is None else next(scaled) for g in ctx.gradients)
