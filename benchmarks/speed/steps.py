"""Local training: FedOV's step, cross-entropy, and LeNet-5, in samples per CPU-second."""

from functools import partial
from itertools import pairwise

import torch

from benchmarks.speed import plain, plain_fedov
from benchmarks.speed.table import OURS, PLAINS, Job, Lap, Table, layout

SHAPES = {"1x28x28": (1, 28, 28), "3x32x32": (3, 32, 32)}
RECIPES = {"paper": (5, 0.002, "destruction", 64), "fast": (2, 0.005, "auto", 32)}
"""FedOV's: adversarial steps, their size, our name for the outliers, samples in a batch."""
KINDS = {
    "paper": "FedOV, the paper's recipe",
    "fast": "FedOV, the fast recipe",
    "cross-entropy": "simple CNN, cross-entropy, batch 64",
    "lenet5": "LeNet-5, cross-entropy, batch 256",
}


def _plain(kind: str, shape: tuple[int, ...], count: int, last: bool) -> Job:
    """One epoch; on the paper's images destroyed one by one, whatever the recipe."""
    x, y = plain.images(shape, count)
    fedov = kind in RECIPES
    make = plain.LeNet5 if kind == "lenet5" else plain.SimpleCNN
    net = plain.laid(make(shape, plain.CLASSES + fedov), last)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    if fedov:
        steps, size, _, batch = RECIPES[kind]
        loss = partial(plain_fedov.loss, steps=steps, size=size)
    else:
        batch, loss = (256 if kind == "lenet5" else 64), None
    return Job(lambda lap: plain.train(net, optimiser, x, y, batch, last, loss), count)


def _ours(kind: str, shape: tuple[int, ...], count: int) -> Job:
    """One epoch of `fit`."""
    from ostraka.core.fit import Budget, fit
    from ostraka.core.net import Recipe
    from ostraka.core.objective import Objective
    from ostraka.core.samples import Samples, View
    from ostraka.objectives.cross_entropy import CrossEntropy
    from ostraka.objectives.open_voting import OpenVoting

    samples = Samples(*plain.images(shape, count), view=View(scale=1 / 255))
    objective: Objective = CrossEntropy()
    batch = 256 if kind == "lenet5" else 64
    if kind in RECIPES:
        steps, size, outliers, batch = RECIPES[kind]
        objective = OpenVoting(outliers=outliers, steps=steps, size=size)
    name = "lenet5" if kind == "lenet5" else "simple-cnn"
    net = Recipe(name).build_net(shape, plain.CLASSES, objective.unknown, seed=0)
    budget = Budget(epochs=1, batch=batch, optimiser="adam", lr=1e-3, weight_decay=1e-5)

    def train(lap: Lap) -> None:
        fit(net, None, samples, objective, budget, seed=0)

    return Job(train, count)


def job(cell: str, variant: str, small: bool) -> Job:
    """An epoch over as many samples as take a part of a second."""
    kind, size = cell.split(" ")
    count = {"paper": 512, "fast": 768}.get(kind, 5120)
    if variant in PLAINS:
        return _plain(kind, SHAPES[size], count // (4 if small else 1), layout(variant))
    return _ours(kind, SHAPES[size], (2048 if kind in RECIPES else 10_240) // (2 if small else 1))


def effort(kind: str, shape: tuple[int, ...]) -> float:
    """Millions of operations of a step for each sample, 2 for a multiplication and addition.

    A pass forward; one back for the weights; one back for the values, which the first layer is
    spared where nobody asks for the gradient in the images. FedOV passes four groups: the images,
    the destroyed ones with the first adversarial step, that step again and again, the enhanced.
    """
    convs, widths = _layers(kind, shape)
    flops = [2.0 * k * k * i * o * side * side for i, o, k, side in convs]
    flops += [2.0 * a * b for a, b in pairwise(widths)]
    forward, spared = sum(flops), flops[0]
    step = 3 * forward - spared
    if kind in RECIPES:
        step = 2 * step + 3 * forward + (RECIPES[kind][0] - 1) * 2 * forward
    return step / 1e6


def _layers(
    kind: str, shape: tuple[int, ...]
) -> tuple[list[tuple[int, int, int, int]], tuple[int, ...]]:
    """Inputs, outputs, kernel and side of the result of each convolution; widths of the rest."""
    if kind == "lenet5":
        convs = [(shape[0], 6, 5, 28), (6, 16, 5, 10), (16, 120, 5, 1)]
        return convs, (120, 84, plain.CLASSES)
    first = shape[1] - 4
    second = first // 2 - 4
    convs = [(shape[0], 6, 5, first), (6, 16, 5, second)]
    return convs, (16 * (second // 2) ** 2, 120, 84, plain.CLASSES + (kind in RECIPES))


CELLS = {f"{kind} {size}": f"{words}, {size}" for kind, words in KINDS.items() for size in SHAPES}

TABLE = Table(
    name="steps",
    title="Local training",
    unit="samples",
    cells=CELLS,
    variants=(*PLAINS, OURS),
    opponents=PLAINS,
    job=job,
    effort={cell: effort(cell.split(" ")[0], SHAPES[cell.split(" ")[1]]) for cell in CELLS},
)
