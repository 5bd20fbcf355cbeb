"""Speed of data destruction and of FedOV's local step, on one core, in CPU time.

    python benchmarks/destruction_bench.py [--repeats 15] [--batch 64] [--only ops|step]

First the microseconds per image of every destruction operation and mix, over chunks of 1,024 images
as in training. Then samples per CPU-second of whole FedOV steps (destruction, all losses, backward,
Adam) with the simple CNN, beside a naive version: destruction image by image, an eager NCHW
network, five full attack passes with parameter gradients, every loss term with a forward pass of
its own. Jobs take turns, so a busy moment hits all of them; figures are medians.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.fit import Budget, fit
from ostraka.core.net import Recipe
from ostraka.core.samples import Samples
from ostraka.nets import native
from ostraka.objectives.destruction import MIXES, OPERATIONS, destroy
from ostraka.objectives.open_voting import OpenVoting

SHAPES = [(1, 28, 28), (3, 32, 32)]
CLASSES = 10
TARGET_MICROSECONDS, TARGET_RATE, TARGET_GAIN = 25, 3000, 5


def timed(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each job, this thread only, the jobs taking turns."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.thread_time()
            job()
            times[name].append(time.thread_time() - start)
    return {name: median(values) for name, values in times.items()}


def operations(shape: tuple[int, ...], repeats: int) -> dict[str, float]:
    """Microseconds per image of every mix and operation on images."""
    x, rng = torch.rand(OpenVoting.chunk, *shape), torch.Generator().manual_seed(0)
    names = [
        n
        for n in [*MIXES, *OPERATIONS]
        if all(OPERATIONS[o].dims == 3 for o in MIXES.get(n, {n: 1.0}))
    ]
    jobs: dict[str, Callable[[], object]] = {name: partial(destroy, x, rng, name) for name in names}
    jobs["image by image"] = lambda: naive_destroy(x[:64])
    seconds = timed(jobs, repeats)
    return {
        name: value * 1e6 / (64 if name == "image by image" else OpenVoting.chunk)
        for name, value in seconds.items()
    }


def steps(shape: tuple[int, ...], batch: int, repeats: int) -> dict[str, float]:
    """Samples per CPU-second of FedOV's local step: this package's and the naive one."""
    samples = batch * max(1, OpenVoting.chunk // batch)
    x, y = torch.rand(samples, *shape), torch.randint(0, CLASSES, (samples,))
    jobs: dict[str, Callable[[], object]] = {
        "ostraka": ours(x, y, batch),
        "ostraka, torch convolution": without_native(ours(x, y, batch)),
        "naive": naive(x[: 4 * batch], y[: 4 * batch], batch),
    }
    counts = {"naive": 4 * batch}
    return {name: counts.get(name, samples) / value for name, value in timed(jobs, repeats).items()}


def ours(x: Tensor, y: Tensor, batch: int) -> Callable[[], object]:
    """One pass of `fit` over one chunk, with the paper's five adversarial steps."""
    net = Recipe("simple-cnn").build_net(tuple(x.shape[1:]), CLASSES, unknown=True, seed=0)
    budget = Budget(epochs=1, batch=batch, optimiser="adam", lr=1e-3, weight_decay=1e-5)
    samples = Samples(x, y)
    return lambda: fit(net, None, samples, OpenVoting(), budget, seed=0)


def without_native(job: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        with native.disabled():
            job()

    return run


class NaiveCNN(nn.Module):
    """The simple CNN as one would write it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        """For images of `shape`."""
        super().__init__()
        side = ((shape[1] - 4) // 2 - 4) // 2
        self.conv1, self.conv2 = nn.Conv2d(shape[0], 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = (
            nn.Linear(16 * side**2, 120),
            nn.Linear(120, 84),
            nn.Linear(84, CLASSES + 1),
        )

    def early(self, x: Tensor) -> Tensor:
        """Images to 120 hidden values."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.relu(self.fc1(x.flatten(1)))

    def late(self, hidden: Tensor) -> Tensor:
        """Hidden values to logits."""
        return self.fc3(F.relu(self.fc2(hidden)))  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        """Images to logits."""
        return self.late(self.early(x))


def naive(x: Tensor, y: Tensor, batch: int) -> Callable[[], object]:
    net = NaiveCNN(tuple(x.shape[1:]))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)

    def run() -> None:
        for start in range(0, len(x), batch):
            part, labels = x[start : start + batch], y[start : start + batch]
            destroyed = naive_destroy(part)
            enhanced = naive_enhance(net, destroyed)
            optimiser.zero_grad()
            naive_loss(net, part, labels, destroyed, enhanced).backward()
            optimiser.step()

    return run


def naive_enhance(net: nn.Module, destroyed: Tensor) -> Tensor:
    x, unknown = destroyed.clone(), torch.full((len(destroyed),), CLASSES)
    for _ in range(5):
        x = x.detach().requires_grad_()
        F.cross_entropy(net(x), unknown).backward()
        assert x.grad is not None
        x = x + 0.002 * x.grad.sign()
    return x.detach()


def naive_loss(net: NaiveCNN, x: Tensor, y: Tensor, destroyed: Tensor, enhanced: Tensor) -> Tensor:
    unknown = torch.full_like(y, CLASSES)
    hidden = net.early(x)
    logits = net.late(hidden)
    loss = F.cross_entropy(logits, y) + F.cross_entropy(
        logits - 1e4 * F.one_hot(y, CLASSES + 1), unknown
    )
    order, share = torch.randperm(len(y)), random.random()
    differs = y != y[order]
    if differs.any():
        mixed = share * hidden + (1 - share) * hidden[order]
        loss = loss + 0.01 * F.cross_entropy(net.late(mixed)[differs], unknown[differs])
    return loss + F.cross_entropy(net(destroyed), unknown) + F.cross_entropy(net(enhanced), unknown)


def naive_destroy(x: Tensor) -> Tensor:
    ops = [naive_crop, naive_blur, naive_erase, naive_cut, naive_cut, naive_rotate, naive_rotate]
    return torch.stack([random.choice(ops)(image) for image in x])


def naive_rectangle(
    image: Tensor, area: tuple[float, float], aspect: tuple[float, float]
) -> tuple[int, int, int, int]:
    _, height, width = image.shape
    while True:
        pixels = random.uniform(*area) * height * width
        ratio = math.exp(random.uniform(math.log(aspect[0]), math.log(aspect[1])))
        h, w = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < h < height and 0 < w < width:
            return random.randint(0, height - h), random.randint(0, width - w), h, w


def naive_crop(image: Tensor) -> Tensor:
    top, left, h, w = naive_rectangle(image, (0.1, 0.33), (3 / 4, 4 / 3))
    part = image[None, :, top : top + h, left : left + w]
    return F.interpolate(part, size=image.shape[1:], mode="bilinear", align_corners=False)[0]


def naive_blur(image: Tensor) -> Tensor:
    sides = [random.choice((3, 5, 7, 9)), random.choice((1, 3, 5))]
    random.shuffle(sides)
    sigma = random.uniform(10, 100)
    lines = [torch.exp(-0.5 * (torch.arange(s) - s // 2) ** 2 / sigma**2) for s in sides]
    kernel = (lines[0] / lines[0].sum())[:, None] * (lines[1] / lines[1].sum())
    pads = (sides[1] // 2, sides[1] // 2, sides[0] // 2, sides[0] // 2)
    weight = kernel.expand(len(image), 1, *kernel.shape)
    return F.conv2d(F.pad(image[None], pads, mode="reflect"), weight, groups=len(image))[0]


def naive_erase(image: Tensor) -> Tensor:
    top, left, h, w = naive_rectangle(image, (0.33, 0.5), (0.3, 3.3))
    out = image.clone()
    out[:, top : top + h, left : left + w] = 0
    return out


def naive_cut(image: Tensor) -> Tensor:
    case, out = random.randint(0, 5), image.clone()
    if case >= 3:
        return naive_cut_columns(image.transpose(1, 2), out.transpose(1, 2), case - 3).transpose(
            1, 2
        )
    return naive_cut_columns(image, out, case)


def naive_cut_columns(image: Tensor, out: Tensor, case: int) -> Tensor:
    half = image.shape[2] // 2
    if case == 2:
        out[:, :, :half], out[:, :, half:] = image[:, :, half:], image[:, :, :half]
        return out
    target = source = 0
    while abs(target - source) < half / 2:
        target, source = random.randint(0, half - 1), random.randint(0, half - 1)
    out[:, :, target : target + half] = image[:, :, source : source + half]
    return out


def naive_rotate(image: Tensor) -> Tensor:
    half, out = image.shape[1] // 2, image.clone()
    top, turns = random.randint(0, half - 1), random.randint(1, 3)
    for left in (0, half):
        square = image[:, top : top + half, left : left + half]
        out[:, top : top + half, left : left + half] = torch.rot90(square, turns, (1, 2))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument(
        "--only", choices=["ops", "step"], help="only the operations, or only the local step"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    print(f"convolution: {native.describe()}; batch {options.batch}; {options.repeats} repeats")
    for shape in SHAPES:
        name = "x".join(map(str, shape))
        if options.only != "step":
            print(
                "\n"
                f"{name}: microseconds per image (target for fedov and wide at 3x32x32: below "
                f"{TARGET_MICROSECONDS})"
            )
            for job, value in operations(shape, options.repeats).items():
                print(f"  {job:28}{value:9.1f}")
        if options.only != "ops":
            rates = steps(shape, options.batch, options.repeats)
            print(
                f"\n{name}: FedOV local step, samples per CPU-second "
                f"(target at 3x32x32: {TARGET_RATE:,} and {TARGET_GAIN}x naive)"
            )
            for job, value in rates.items():
                print(f"  {job:28}{value:9,.0f}{value / rates['naive']:7.1f}x")


if __name__ == "__main__":
    main()
