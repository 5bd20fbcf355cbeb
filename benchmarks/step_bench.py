"""Samples per CPU-second of whole training steps, beside the core's matmul rate.

    python benchmarks/step_bench.py [--seconds 1] [--only lenet]

One line of JSON: for every case the samples per CPU-second and the share of the matmul rate. To
compare two versions, run it from both in turn (PYTHONPATH) and take ratios of neighbouring runs.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from ostraka.core.fit import Budget, fit
from ostraka.core.net import Recipe
from ostraka.core.objective import Objective
from ostraka.core.samples import Samples, View
from ostraka.engines.memory import keep_freed_memory
from ostraka.methods.fedov import WIDE
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting

SHAPES = ((1, 28, 28), (3, 32, 32))
PAPER = OpenVoting()
ADAM = Budget(epochs=1, batch=64, optimiser="adam", lr=1e-3, weight_decay=1e-5)


def images(shape: tuple[int, ...], count: int) -> Samples:
    rng = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (count, *shape), generator=rng, dtype=torch.uint8)
    return Samples(x, torch.randint(0, 10, (count,), generator=rng), view=View(scale=1 / 255))


def products(shape: tuple[int, ...], outputs: int) -> tuple[float, float]:
    """Operations of a forward pass of the simple CNN, and of its first layer alone."""
    channels, side, layers = shape[0], shape[1], []
    for width in (6, 16):
        layers.append(2 * 25 * channels * width * (side - 4) ** 2)
        channels, side = width, (side - 4) // 2
    units = (channels * side * side, 120, 84, outputs)
    return sum(layers) + sum(2 * a * b for a, b in pairwise(units)), layers[0]


def operations(shape: tuple[int, ...], objective: Objective) -> float:
    """Per sample: the passes that the losses need, each layer's gradients included."""
    whole, first = products(shape, 11 if objective.unknown else 10)
    learn, both, climb = 3 * whole - first, 3 * whole, 2 * whole
    if isinstance(objective, OpenVoting):
        return 2 * learn + both + (objective.steps - 1) * climb
    return learn


def matmul(size: int = 1024) -> float:
    a, b = torch.rand(size, size), torch.rand(size, size)
    began = time.process_time()
    for _ in range(4):
        a @ b
    return 4 * 2 * size**3 / (time.process_time() - began) / 1e9


def training(
    net: str, shape: tuple[int, ...], objective: Objective, budget: Budget, count: int
) -> Callable[[], None]:
    samples = images(shape, count)

    def train() -> None:
        built = Recipe(net).build_net(shape, 10, objective.unknown, 0)
        fit(built, None, samples, objective, budget, seed=0)

    return train


def plain_lenet(
    shape: tuple[int, ...], count: int, order: torch.memory_format
) -> Callable[[], None]:
    """LeNet-5 as one would write it, batch 256, in one of torch's two memory orders."""
    samples = images(shape, count)
    middle = [nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(16, 120, 5), nn.Tanh()]
    first = [nn.Conv2d(shape[0], 6, 5, padding=2 if shape[1] < 32 else 0), nn.Tanh()]
    last = [nn.Flatten(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)]
    net = nn.Sequential(*first, nn.AvgPool2d(2), *middle, *last).to(memory_format=order)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)

    def train() -> None:
        for index in torch.randperm(count).split(256):
            x = (samples.x[index].float() / 255).contiguous(memory_format=order)
            optimiser.zero_grad()
            F.cross_entropy(net(x), samples.labels[index]).backward()
            optimiser.step()

    return train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of every case, three times")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    cases: dict[str, tuple[Callable[[], None], int, float]] = {}
    for shape in SHAPES:
        name = "x".join(map(str, shape))
        fast = replace(ADAM, batch=32)
        for label, net, objective, budget in (
            ("paper", "simple-cnn", PAPER, ADAM),
            ("fast", "simple-cnn", WIDE, fast),
            ("cross-entropy", "simple-cnn", CrossEntropy(), ADAM),
            ("lenet5 256", "lenet5", CrossEntropy(), replace(ADAM, batch=256)),
            ("mlp", "mlp", CrossEntropy(), ADAM),
        ):
            work = operations(shape, objective) if net == "simple-cnn" else 0.0
            cases[f"{label} {name}"] = (training(net, shape, objective, budget, 2048), 2048, work)
        for label, order in (("NCHW", torch.contiguous_format), ("last", torch.channels_last)):
            cases[f"lenet5 torch {label} {name}"] = (plain_lenet(shape, 2048, order), 2048, 0.0)
    cases = {name: case for name, case in cases.items() if options.only in name}
    limit, found = [], {name: list[float]() for name in cases}
    for job, _, _ in cases.values():
        job()
    for _ in range(3):
        limit.append(matmul())
        for name, (job, count, _) in cases.items():
            began, passes = time.process_time(), 0
            while time.process_time() - began < options.seconds:
                job()
                passes += 1
            found[name].append(passes * count / (time.process_time() - began))
    rate = median(limit)
    figures = {
        name: (round(median(found[name])), round(100 * median(found[name]) * work / rate / 1e9, 1))
        for name, (_, _, work) in cases.items()
    }
    print(json.dumps({"matmul": round(rate, 1), **figures}))


if __name__ == "__main__":
    main()
