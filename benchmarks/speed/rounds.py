"""Rounds of FedAvg: every party trains one epoch by SGD, the server averages, nobody evaluates."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
import torch
from torch import Tensor

from benchmarks.speed import plain
from benchmarks.speed.table import OURS, PLAINS, Job, Lap, Table, layout

SHAPE = (1, 28, 28)


@final
@dataclass(frozen=True)
class Federation:
    """Parties with equally many samples, all of whom take part in every round."""

    parties: int
    samples: int
    rounds: int
    batch: int = 32

    def division(self) -> list[tuple[Tensor, Tensor]]:
        """Each party's images and labels."""
        x, y = plain.images(SHAPE, self.parties * self.samples)
        return list(zip(x.split(self.samples), y.split(self.samples), strict=True))


FEDERATIONS = {"hundred": Federation(100, 120, 4), "tiny": Federation(20, 6, 20)}
CELLS = {
    "hundred": "100 parties with 120 images of 1x28x28",
    "tiny": "20 parties with 6 images of 1x28x28",
}


def _plain(work: Federation, last: bool) -> Job:
    net, parties = plain.laid(plain.SimpleCNN(SHAPE), last), work.division()

    def run(lap: Lap) -> None:
        for _ in range(work.rounds):
            lap()
            plain.fedavg_round(net, parties, work.batch, last)
        lap()

    return Job(run)


def _ours(work: Federation) -> Job:
    """A whole run in a folder, as any other: messages, reports and checkpoints are on the disk.

    The last round, which is evaluated, and what comes before the first do not count.
    """
    from ostraka import run
    from ostraka.runs.watch import Watch

    class Laps(Watch):
        def __init__(self, lap: Lap) -> None:
            self.lap = lap

        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            self.lap()

    def federation(lap: Lap) -> None:
        with tempfile.TemporaryDirectory() as folder:
            x, y = (torch.cat(part).numpy() for part in zip(*work.division(), strict=True))
            data = Path(folder) / "random.npz"
            np.savez(data, x_train=x[:, 0], y_train=y, x_test=x[:10, 0], y_test=y[:10])
            run(
                "fedavg",
                out=Path(folder) / "run",
                data=str(data),
                partition="iid",
                parties=work.parties,
                engine="serial",
                eval_every=work.rounds + 1,
                set={
                    "rounds": work.rounds + 1,
                    "local": {
                        "epochs": 1,
                        "batch": work.batch,
                        "optimiser": "sgd",
                        "lr": 0.01,
                        "momentum": 0.9,
                        "weight_decay": 1e-5,
                    },
                },
                watch=Laps(lap),
            )

    return Job(federation)


def job(cell: str, variant: str, small: bool) -> Job:
    """Some rounds, of which the mean counts."""
    work = replace(FEDERATIONS[cell], rounds=1) if small else FEDERATIONS[cell]
    return _plain(work, layout(variant)) if variant in PLAINS else _ours(work)


TABLE = Table(
    name="rounds",
    title="Rounds of FedAvg",
    unit="rounds",
    cells=CELLS,
    variants=(*PLAINS, OURS),
    opponents=PLAINS,
    job=job,
    rounds=7,
    memory=True,
)
