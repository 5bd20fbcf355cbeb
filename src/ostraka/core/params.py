"""Arithmetic on named tensors."""

from collections.abc import Iterable
from typing import final

import torch
from torch import Tensor

from ostraka.core.net import Params
from ostraka.errors import OstrakaError


@final
class Mean:
    """The weighted mean of parameter sets as they come, summed in double precision.

    Whole-number tensors (batch norm's counters) are averaged and rounded.
    """

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.terms: dict[str, Tensor] = {}
        self.kinds: dict[str, torch.dtype] = {}
        self.total = 0.0

    def add(self, params: Params, weight: float) -> None:
        """Count one more set; all must be of the same network."""
        sums, kinds = self.sums, self.kinds
        if kinds and params.keys() != kinds.keys():
            odd = sorted(params.keys() ^ kinds.keys())
            raise OstrakaError(
                f"parameter sets differ in {', '.join(odd)}; only equal networks can be averaged"
            )
        self.total += weight
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
            if name not in self.terms:
                self.terms[name] = torch.empty_like(sums[name])
            sums[name] += self.terms[name].copy_(tensor).mul_(weight)

    def value(self) -> Params:
        """The mean, weights normalised to 1."""
        if self.total <= 0:
            raise OstrakaError("nothing to average: no report arrived, or all weights are zero")
        return {name: _as(sum_ / self.total, self.kinds[name]) for name, sum_ in self.sums.items()}


def average(weighted: Iterable[tuple[Params, float]]) -> Params:
    """The weighted mean of parameter sets (`Mean`), one set in memory at a time."""
    mean = Mean()
    for params, weight in weighted:
        mean.add(params, weight)
    return mean.value()


def _as(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value.to(dtype) if dtype.is_floating_point else value.round().to(dtype)
