"""Arithmetic on named tensors."""

from collections.abc import Iterable

import torch
from torch import Tensor

from ostraka.core.net import Params
from ostraka.errors import OstrakaError


def average(weighted: Iterable[tuple[Params, float]]) -> Params:
    """The weighted mean of parameter sets, weights normalised to 1,
    summed in double precision one set at a time.

    Whole-number tensors (batch norm's counters) are averaged and rounded.
    """
    sums: dict[str, Tensor] = {}
    terms: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    total = 0.0
    for params, weight in weighted:
        if kinds and params.keys() != kinds.keys():
            odd = sorted(params.keys() ^ kinds.keys())
            raise OstrakaError(
                f"parameter sets differ in {', '.join(odd)}; only equal networks can be averaged"
            )
        total += weight
        for name, tensor in params.items():
            kinds.setdefault(name, tensor.dtype)
            if name in sums and sums[name].shape != tensor.shape:
                shapes = f"{tuple(sums[name].shape)} and {tuple(tensor.shape)}"
                raise OstrakaError(
                    f"{name} has the shapes {shapes}; only equal networks can be averaged"
                )
            if name not in sums:
                sums[name] = tensor.double() * weight
                continue
            # in memory that is taken once: fresh pages cost more than the sum
            term = terms.setdefault(name, torch.empty_like(sums[name]))
            sums[name] += term.copy_(tensor).mul_(weight)
    if total <= 0:
        raise OstrakaError("nothing to average: no report arrived, or all weights are zero")
    return {name: _as(value / total, kinds[name]) for name, value in sums.items()}


def _as(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value.to(dtype) if dtype.is_floating_point else value.round().to(dtype)
