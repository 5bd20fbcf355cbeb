"""The convolution block layer by layer: native against torch, in GFLOP/s.

Autograd's overhead is included. Only useful operations count (2 per multiplication that the
definition asks for), so padding and waste lower a figure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.speed.table import LAST, OURS, PLAIN, Job, Lap, Table, layout

BATCH, REPEATS = 64, 40
Block = Callable[[Tensor, Tensor, Tensor], Tensor]


@final
@dataclass(frozen=True)
class Layer:
    """One convolution block with ReLU; square images."""

    inputs: int
    outputs: int
    kernel: int
    side: int
    padding: int = 0
    pool: bool = True

    def __str__(self) -> str:
        """Short enough for a table."""
        ends = f"{', same' if self.padding else ''}{', pool' if self.pool else ''}"
        kernel, side = f"{self.kernel}x{self.kernel}", f"{self.side}x{self.side}"
        return f"{kernel} {self.inputs}→{self.outputs}, {side}{ends}"

    def gflop(self) -> float:
        """Billions of operations of one pass; the three passes need equally many."""
        side = self.side + 2 * self.padding - self.kernel + 1
        return 2e-9 * BATCH * self.inputs * self.outputs * self.kernel**2 * side**2

    def plain(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Torch as most people write it, in whatever memory format x has."""
        y = F.relu(F.conv2d(x, weight, bias, padding=self.padding))
        return F.max_pool2d(y, 2) if self.pool else y

    def native(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """The native block, also where `worth_it` would leave it to torch."""
        from ostraka.nets import native

        pool: native.Pool = "max" if self.pool else "none"
        block = native.Block(weight, bias, self.padding, "relu", pool)
        return native.Call.of(x.shape, [block]).run(x)


LAYERS = {
    str(layer): layer
    for layer in (
        Layer(3, 6, 5, 32),
        Layer(6, 16, 5, 14),
        Layer(1, 6, 5, 28),
        Layer(6, 16, 5, 12),
        Layer(1, 32, 3, 28, 1),
        Layer(3, 32, 3, 32, 1),
        Layer(10, 20, 5, 12),
        Layer(20, 50, 5, 12),
        Layer(16, 32, 3, 16, 1, pool=False),
        Layer(48, 48, 3, 16, 1),
        Layer(32, 64, 5, 14, 2),
        Layer(64, 64, 5, 28, 2, pool=False),
    )
}
PASSES = ("forward", "input", "weight")


def job(cell: str, variant: str, small: bool) -> Job:
    """One pass, many times: training repeats one step, so its data are in the caches."""
    name, _, which = cell.rpartition(": ")
    layer, native = LAYERS[name], variant not in (PLAIN, LAST)
    tensors = (
        torch.randn(BATCH, layer.inputs, layer.side, layer.side),
        torch.randn(layer.outputs, layer.inputs, layer.kernel, layer.kernel) / layer.kernel,
        torch.randn(layer.outputs),
    )
    x, weight, bias = (_as(t, variant).requires_grad_() for t in tensors)
    block: Block = layer.native if native else layer.plain
    y = block(x, weight, bias)
    grad = _as(torch.randn(y.shape), variant)
    leaves = (x,) if which == "input" else (weight, bias)

    repeats = REPEATS // 4 if small else REPEATS

    def run(lap: Lap) -> None:
        for _ in range(repeats):
            if which == "forward":
                with torch.no_grad():
                    block(x, weight, bias)
            else:
                torch.autograd.grad(y, leaves, grad, retain_graph=True)

    return Job(run, repeats * layer.gflop())


def _as(values: Tensor, variant: str) -> Tensor:
    """In the memory layout that the variant likes best."""
    if values.dim() == 4 and layout(variant):
        return values.contiguous(memory_format=torch.channels_last)
    return values


TABLE = Table(
    name="layers",
    title="The convolution block layer by layer",
    unit="GFLOP",
    cells={f"{name}: {which}": f"{name}: {which}" for name in LAYERS for which in PASSES},
    variants=(PLAIN, LAST, OURS),
    opponents=(PLAIN, LAST),
    job=job,
    rounds=7,
)
