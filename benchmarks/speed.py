"""How fast the simple CNN trains and votes, beside plain torch and beside the core's own limit.

    make bench
    python benchmarks/speed.py [--rounds 9] [--json FILE] [--quick]

One run, all variants in turn (a busy moment then hits all of them), each in a process of its own
(none inherits what another did to the C library's memory), medians of CPU-seconds; wall time for
information. The opponent of every ratio is the better of a and a* in the same round: which of them
that is depends on the machine. Beside a ratio, its range over the rounds.

    a    plain torch: eager NCHW module fed by batches cut from memory
    a*   the same with the C library told to keep freed memory (plain torch otherwise gets fresh
         pages at every step)
    a+   a fed by a DataLoader that loads sample by sample, as research code does
    b    ostraka's `fit` with torch's convolution
    c    ostraka's `fit` with the native convolution
    d    the core's matmul rate: the limit
"""

import argparse
import json
import multiprocessing
import platform
import time
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ostraka.core.card import Card
from ostraka.core.fit import Budget, fit
from ostraka.core.learner import NetPredictor
from ostraka.core.net import Recipe
from ostraka.core.samples import Samples, View
from ostraka.nets import native
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.voting.ballots import Sum
from ostraka.voting.ensemble import Ensemble, Voter
from ostraka.voting.union import Standing

SHAPES = ((1, 28, 28), (3, 32, 32))
BATCH = 64
CLASSES = 10
ADAM = Budget(epochs=1, batch=BATCH, optimiser="adam", lr=1e-3, weight_decay=1e-5)


class Plain(nn.Module):
    """The simple CNN as one would write it."""

    def __init__(self, shape: tuple[int, ...], outputs: int = CLASSES) -> None:
        super().__init__()
        side = ((shape[1] - 4) // 2 - 4) // 2
        self.conv1, self.conv2 = nn.Conv2d(shape[0], 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = (
            nn.Linear(16 * side * side, 120),
            nn.Linear(120, 84),
            nn.Linear(84, outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        logits: Tensor = self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
        return logits


class OneByOne(Dataset[tuple[Tensor, int]]):
    """A data set that turns one image at a time into a float tensor."""

    def __init__(self, samples: Samples) -> None:
        self.x, self.y = samples.x.numpy(), samples.labels.tolist()

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.from_numpy(self.x[index]).float().div(255), self.y[index]


def images(shape: tuple[int, ...], count: int) -> Samples:
    rng = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (count, *shape), generator=rng, dtype=torch.uint8)
    return Samples(x, torch.randint(0, CLASSES, (count,), generator=rng), view=View(scale=1 / 255))


def train_plain(samples: Samples) -> None:
    net = Plain(samples.shape)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    order = torch.randperm(len(samples))
    for start in range(0, len(samples), BATCH):
        index = order[start : start + BATCH]
        _step(net, optimiser, samples.x[index].float() / 255, samples.labels[index])


def train_loader(samples: Samples) -> None:
    net = Plain(samples.shape)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    for x, y in DataLoader(OneByOne(samples), batch_size=BATCH, shuffle=True):
        _step(net, optimiser, x, y)


def _step(net: nn.Module, optimiser: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    optimiser.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimiser.step()


def train_ours(samples: Samples) -> None:
    net = Recipe("simple-cnn").build_net(samples.shape, CLASSES, unknown=False, seed=0)
    fit(net, None, samples, CrossEntropy(), ADAM, seed=0)


def train_ours_torch(samples: Samples) -> None:
    with native.disabled():
        train_ours(samples)


def matmul(size: int = 1024) -> float:
    """GFLOP/s of a square float32 product on one thread."""
    a, b = torch.rand(size, size), torch.rand(size, size)
    began = time.process_time()
    for _ in range(4):
        a @ b
    return 4 * 2 * size**3 / (time.process_time() - began) / 1e9


def flops_per_sample(shape: tuple[int, ...]) -> float:
    """Operations of one training step per sample: forward, weight gradient and
    (but for layer 1) input gradient.
    """
    channels, side, total = shape[0], shape[1], 0.0
    for number, outputs in enumerate((6, 16)):
        out = side - 4
        total += 2 * 25 * channels * outputs * out * out * (2 if number == 0 else 3)
        channels, side = outputs, out // 2
    widths = (channels * side * side, 120, 84, CLASSES)
    return total + sum(3 * 2 * a * b for a, b in pairwise(widths))


def cpu(job: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of a job."""
    wall, began = time.perf_counter(), time.process_time()
    job()
    return time.process_time() - began, time.perf_counter() - wall


Seconds = list[tuple[float, float]]
"""CPU and wall seconds, round by round."""


def interleave(
    jobs: dict[str, Callable[[], tuple[float, float]]], rounds: int, warm: int = 1
) -> dict[str, Seconds]:
    """CPU and wall seconds that each job tells in every round.

    The first `warm` rounds are not counted.
    """
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for number in range(warm + rounds):
        for name, job in jobs.items():
            figures = job()
            if number >= warm:
                seen[name].append(figures)
    return seen


def compared(opponents: list[Seconds], own: Seconds) -> str:
    """How many times less CPU than the best opponent of the same round:
    the median over rounds, and the range.
    """
    best = [min(opponent[i][0] for opponent in opponents) for i in range(len(own))]
    ratios = [there / here[0] for there, here in zip(best, own, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def keep_memory() -> None:
    """Freeing one large block makes glibc keep all smaller ones from then on."""
    torch.empty(7_900_000)


VARIANTS: dict[str, tuple[Callable[[Samples], None], Callable[[], None]]] = {
    "a plain torch": (train_plain, lambda: None),
    "a* memory kept": (train_plain, keep_memory),
    "a+ with a DataLoader": (train_loader, lambda: None),
    "b ours, torch": (train_ours_torch, lambda: None),
    "c ours, native": (train_ours, lambda: None),
}


def _variant(name: str, shape: tuple[int, ...], count: int, pipe: Connection) -> None:
    """One variant in its own process: trains once for every
    message and answers with the seconds.
    """
    torch.set_num_threads(1)
    samples, (train, before) = images(shape, count), VARIANTS[name]
    before()
    while pipe.recv():
        pipe.send(cpu(lambda: train(samples)))


class Remote:
    """A variant in another process."""

    def __init__(self, name: str, shape: tuple[int, ...], count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(
            target=_variant, args=(name, shape, count, there), daemon=True
        )
        self.process.start()

    def train(self) -> tuple[float, float]:
        """CPU and wall seconds of one training."""
        self.pipe.send(True)
        if not self.pipe.poll(600):
            raise SystemExit("a variant has not answered for ten minutes")
        seconds: tuple[float, float] = self.pipe.recv()
        return seconds

    def end(self) -> None:
        """Let the process go."""
        self.pipe.send(False)
        self.process.join()


def bench_training(
    shape: tuple[int, ...], count: int, rounds: int, limit: float
) -> list[dict[str, object]]:
    if not native.available():
        raise SystemExit(
            f"the native convolution is not active ({native.describe()}): "
            "there is nothing to compare"
        )
    crew = {name: Remote(name, shape, count) for name in VARIANTS}
    seconds = interleave({name: remote.train for name, remote in crew.items()}, rounds)
    for remote in crew.values():
        remote.end()
    plain = [seconds["a plain torch"], seconds["a* memory kept"]]
    rows: list[dict[str, object]] = []
    for name, found in seconds.items():
        used, wall = median(f[0] for f in found), median(f[1] for f in found)
        rate = flops_per_sample(shape) * count / used / 1e9
        rows.append(
            {
                "variant": name,
                "shape": "x".join(map(str, shape)),
                "samples per CPU-s": round(count / used),
                "times the better of a, a*": compared(plain, found),
                "GFLOP/s": round(rate, 1),
                "% of matmul": round(100 * rate / limit, 1),
                "wall s": round(wall, 3),
            }
        )
    return rows


def _worker(count: int, repeats: int, start: object, out: object) -> None:
    torch.set_num_threads(1)
    samples = images((3, 32, 32), count)
    train_ours(samples)
    start.wait()  # type: ignore[attr-defined]
    out.put(median(cpu(lambda: train_ours(samples))[0] for _ in range(repeats)) / count)  # type: ignore[attr-defined]


def bench_workers(count: int, repeats: int) -> dict[str, float]:
    """CPU-seconds per sample with one and with two workers at the same time, taken in turns."""
    context = multiprocessing.get_context("spawn")
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for workers in found:
            start, out = context.Barrier(workers), context.Queue()
            crew = [
                context.Process(target=_worker, args=(count, repeats, start, out))
                for _ in range(workers)
            ]
            for process in crew:
                process.start()
            found[workers] += [out.get(timeout=600) for _ in crew]
            for process in crew:
                process.join()
    one, two = median(found[1]), median(found[2])
    return {
        "one worker, µs/sample": 1e6 * one,
        "two workers, µs/sample": 1e6 * two,
        "ratio": two / one,
    }


def bench_voting(members: int, count: int, rounds: int) -> dict[str, object]:
    """All members over the same images: a plain loop over eager modules, and our ensemble."""
    samples = images((3, 32, 32), count)
    nets = [
        Recipe("simple-cnn").build_net(samples.shape, CLASSES, True, seed)
        for seed in range(members)
    ]
    plain = [Plain(samples.shape, CLASSES + 1).eval() for _ in nets]
    for ours, theirs in zip(nets, plain, strict=True):
        theirs.load_state_dict(ours.state_dict())
    names = tuple(map(str, range(CLASSES)))
    models = [NetPredictor(net, CrossEntropy(), view=samples.view) for net in nets]
    standing = Standing.of(names, names)
    voters = [Voter(model, Card(i, 1), standing) for i, model in enumerate(models)]
    ensemble = Ensemble(voters, names, Sum())

    def loop() -> Tensor:
        """As research code votes: for every member, for every batch."""
        total = torch.zeros(count, CLASSES)
        with torch.no_grad():
            for net in plain:
                for start in range(0, count, 1000):
                    x = samples.x[start : start + 1000].float() / 255
                    total[start : start + 1000] += net(x).softmax(dim=1)[:, :-1]
        return total

    def voted() -> Tensor:
        parts = [
            ensemble.scores(samples.stored(slice(s, s + 1000))).known for s in range(0, count, 1000)
        ]
        return torch.cat(parts)

    results: dict[str, Tensor] = {}
    jobs = {
        "plain loop": lambda: cpu(lambda: results.update(plain=loop())),
        "ours": lambda: cpu(lambda: results.update(ours=voted())),
    }
    # many members take minutes: one round, no warm-up
    seconds = interleave(jobs, rounds, warm=0 if members >= 100 else 1)
    torch.testing.assert_close(results["ours"], results["plain"], rtol=1e-3, atol=1e-4 * members)
    return {
        "members": members,
        "images": count,
        **{
            f"{name} CPU-s": round(median(f[0] for f in found), 2)
            for name, found in seconds.items()
        },
        "ratio": compared([seconds["plain loop"]], seconds["ours"]),
    }


def show(rows: list[dict[str, object]]) -> None:
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(str(row[name]) for name in names) + " |")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=9, help="repetitions of every variant (default 9)"
    )
    parser.add_argument(
        "--json", type=Path, default=Path("runs/bench/speed.json"), help="where the figures go"
    )
    parser.add_argument(
        "--training", action="store_true", help="training alone, without workers and votes"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few samples and members, to see that it works"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    count, rounds = (640, 2) if options.quick else (12_800, options.rounds)
    limit = median(matmul() for _ in range(9))
    machine = (
        f"{platform.machine()}, {native.describe()}, torch {torch.__version__}, {date.today()}"
    )
    print(f"{machine}; matmul {limit:.0f} GFLOP/s on one core\n")
    training = [row for shape in SHAPES for row in bench_training(shape, count, rounds, limit)]
    show(training)
    if options.training:
        return
    workers = bench_workers(count, 2 if options.quick else 5)
    show([{name: round(value, 2) for name, value in workers.items()}])
    panels = ((2, 500),) if options.quick else ((10, 10_000), (100, 10_000), (1000, 10_000))
    voting = []
    for members, pictures in panels:
        voting.append(bench_voting(members, pictures, 1 if members >= 100 else 3))
        show(voting[-1:])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    figures = {
        "machine": machine,
        "matmul": limit,
        "training": training,
        "workers": workers,
        "voting": voting,
    }
    options.json.write_text(json.dumps(figures, indent=1))
    print(f"figures: {options.json}")


if __name__ == "__main__":
    main()
