"""GFLOP/s on one core: the native convolution block against torch,
beside the core's matrix-product rate.

    python benchmarks/kernel_bench.py [--batch 64] [--repeats 15] [--only 3x6] [--step]

Every figure is the median of interleaved repeats on this thread's CPU time, autograd's overhead
included. Only useful operations count (2 per multiplication that the definition asks for), so
padding and waste lower a figure.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.nets import native


def _block(
    weight: Tensor, bias: Tensor | None, padding: int, relu: bool, pool: bool
) -> native.Block:
    return native.Block(
        weight, bias, padding, "relu" if relu else "none", "max" if pool else "none"
    )


def conv_block(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: int, relu: bool, pool: bool
) -> Tensor:
    return native.Call.of(x.shape, [_block(weight, bias, padding, relu, pool)]).run(x)


def torch_block(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: int, relu: bool, pool: bool
) -> Tensor:
    return native.torch_block(x, _block(weight, bias, padding, relu, pool))


@dataclass(frozen=True)
class Layer:
    """One convolution block; square images."""

    inputs: int
    outputs: int
    kernel: int
    side: int
    padding: int = 0
    pool: bool = True

    def __str__(self) -> str:
        """Short enough for a table, e.g. `5x5 3->6 32x32 pool`."""
        ends = f"{' same' if self.padding else ''}{' pool' if self.pool else ''}"
        return (
            f"{self.kernel}x{self.kernel} {self.inputs}->{self.outputs} "
            f"{self.side}x{self.side}{ends}"
        )

    def flops(self, batch: int) -> float:
        """Operations of one pass; the three passes need equally many."""
        side = self.side + 2 * self.padding - self.kernel + 1
        return 2.0 * batch * self.inputs * self.outputs * self.kernel**2 * side**2


LAYERS = [
    Layer(3, 6, 5, 32),
    Layer(6, 16, 5, 14),
    Layer(1, 6, 5, 28),
    Layer(6, 16, 5, 12),
    Layer(1, 32, 3, 28, 1),
    Layer(3, 32, 3, 32, 1),
    Layer(3, 64, 3, 32, 1),
    Layer(10, 20, 5, 12),
    Layer(20, 50, 5, 12),
    Layer(16, 32, 3, 16, 1, pool=False),
    Layer(24, 48, 3, 16, 1),
    Layer(48, 48, 3, 16, 1),
    Layer(16, 32, 3, 16, 1),
    Layer(32, 32, 3, 16, 1, pool=False),
    Layer(32, 64, 3, 16, 1),
    Layer(64, 64, 3, 16, 1, pool=False),
    Layer(128, 128, 3, 8, 1, pool=False),
    Layer(256, 256, 3, 4, 1, pool=False),
    Layer(32, 64, 5, 14, 2),
    Layer(64, 64, 5, 28, 2, pool=False),
]

BURST = 4
"""Timed runs in a turn."""

Block = Callable[..., Tensor]

OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, lr=1e-3),
    "adam": partial(torch.optim.Adam, lr=1e-3),
    "fused adam": partial(torch.optim.Adam, lr=1e-3, fused=True),
}


def plain_block(
    x: Tensor, weight: Tensor, bias: Tensor, *, padding: int, relu: bool, pool: bool
) -> Tensor:
    """Torch as most people write it, in whatever memory format x has."""
    y = F.conv2d(x, weight, bias, padding=padding)
    y = F.relu(y) if relu else y
    return F.max_pool2d(y, 2) if pool else y


def timed(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each job; the jobs take turns so that a busy moment hits all of them.

    A turn is a few runs, the first of them not timed: training repeats one step,
    so its data are in the caches.
    """
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            job()
            start = time.thread_time()
            for _ in range(BURST):
                job()
            times[name].append((time.thread_time() - start) / BURST)
    return {name: median(values) for name, values in times.items()}


def passes(
    run: Block, layer: Layer, x: Tensor, parameters: list[Tensor]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Forward, input gradient and weight gradient as separate jobs."""

    def forward() -> Tensor:
        return run(x, *parameters, padding=layer.padding, relu=True, pool=layer.pool)

    def inference() -> None:
        with torch.no_grad():
            forward()

    y = forward()
    grad = (
        torch.randn(y.shape[1:] + y.shape[:1])
        .permute(3, 0, 1, 2)
        .clone(memory_format=torch.preserve_format)
    )
    if run is not conv_block:
        grad = grad.contiguous(memory_format=memory_format(x))
    yield "forward", inference
    yield "input", lambda: torch.autograd.grad(y, x, grad, retain_graph=True)
    yield "weight", lambda: torch.autograd.grad(y, parameters, grad, retain_graph=True)


def memory_format(x: Tensor) -> torch.memory_format:
    last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return torch.channels_last if last else torch.contiguous_format


def measure(layer: Layer, batch: int, repeats: int) -> dict[str, float]:
    """GFLOP/s under keys like "native forward"."""
    x = torch.randn(batch, layer.inputs, layer.side, layer.side)
    weight = torch.randn(layer.outputs, layer.inputs, layer.kernel, layer.kernel) / layer.kernel
    bias = torch.randn(layer.outputs)
    innermost = x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    last = [t.contiguous(memory_format=torch.channels_last) for t in (x, weight)]
    ways: dict[str, tuple[Block, Tensor, Tensor]] = {
        "native": (conv_block, innermost, weight),
        "nchw": (plain_block, x, weight),
        "last": (plain_block, last[0], last[1]),
    }
    if not native.available():
        del ways["native"]
    jobs: dict[str, Callable[[], object]] = {}
    for name, (run, image, kernel) in ways.items():
        leaves = [t.detach().requires_grad_() for t in (image, kernel, bias)]
        jobs |= {f"{name} {job}": call for job, call in passes(run, layer, leaves[0], leaves[1:])}
    return {
        name: layer.flops(batch) / seconds / 1e9 for name, seconds in timed(jobs, repeats).items()
    }


def matmul_rate(repeats: int) -> float:
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return 2 * 1024**3 / timed({"matmul": lambda: a @ b}, repeats)["matmul"] / 1e9


class SimpleCNN(nn.Module):
    """conv5x5 6, pool, conv5x5 16, pool, 120, 84, 11: the network whose training step is timed."""

    def __init__(self, run: Block) -> None:
        """`run` computes the convolution blocks."""
        super().__init__()
        self.run = run
        self.convs = nn.ModuleList([nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)])
        self.fcs = nn.ModuleList([nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 11)])

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, 11] of images [B, 3, 32, 32]."""
        for conv in self.convs:
            x = self.run(x, conv.weight, conv.bias, padding=0, relu=True, pool=True)
        x = x.flatten(1)
        for i, layer in enumerate(self.fcs):
            x = layer(x).relu() if i < 2 else layer(x)
        return x


def training_step(batch: int, repeats: int) -> dict[str, float]:
    """Samples per CPU second of whole training steps: forward,
    cross-entropy, backward, optimiser.
    """
    x, labels = torch.randn(batch, 3, 32, 32), torch.randint(0, 11, (batch,))
    ways = {
        "native": (conv_block, torch.contiguous_format),
        "fallback": (torch_block, torch.contiguous_format),
        "torch nchw": (plain_block, torch.contiguous_format),
        "torch channels_last": (plain_block, torch.channels_last),
    }
    if not native.available():
        del ways["native"]
    jobs: dict[str, Callable[[], object]] = {}
    for name, (run, form) in ways.items():
        for optimiser, kind in OPTIMISERS.items():
            torch.manual_seed(0)
            net = SimpleCNN(run).to(memory_format=form)  # type: ignore[call-overload]
            jobs[f"{name}, {optimiser}"] = stepper(
                net, kind(net.parameters()), x.to(memory_format=form), labels
            )
    return {name: batch / seconds for name, seconds in timed(jobs, repeats).items()}


def stepper(
    net: nn.Module, optimiser: torch.optim.Optimizer, x: Tensor, labels: Tensor
) -> Callable[[], object]:
    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        optimiser.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument(
        "--only", default="", help="only layers whose name contains this, e.g. '6->16'"
    )
    parser.add_argument("--step", action="store_true", help="only the whole training step")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"kernel: {native.describe()}; batch {options.batch}; matmul "
        f"{matmul_rate(options.repeats):.0f} GFLOP/s"
    )
    if not options.step:
        print(
            f"{'layer':24}{'pass':>9}{'native':>9}{'nchw':>9}{'last':>9}{'gain':>7}   GFLOP/s; "
            "gain over the better"
        )
    for layer in [] if options.step else LAYERS:
        if options.only in str(layer):
            rates = measure(layer, options.batch, options.repeats)
            for job in ("forward", "input", "weight"):
                values = [
                    rates.get(f"{way} {job}", float("nan")) for way in ("native", "nchw", "last")
                ]
                gain = values[0] / max(values[1:])
                print(
                    f"{layer!s:24}{job:>9}" + "".join(f"{v:9.1f}" for v in values) + f"{gain:7.2f}"
                )
    if not options.only:
        for name, rate in training_step(options.batch, options.repeats).items():
            print(f"training step, {name:34} {rate:9.0f} samples per CPU-s")


if __name__ == "__main__":
    main()
