"""fluke: all clients in this process, data and models in memory."""

from typing import Any

import torch
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import DataContainer, DataSplitter
from fluke.evaluation import ClassificationEval

from benchmarks.speed.peers.net import SGD, BytesCNN
from benchmarks.speed.plain import CLASSES
from benchmarks.speed.rounds import Federation
from benchmarks.speed.table import Job, Lap


class Laps:
    """A lap at the start of every round."""

    def __init__(self, lap: Lap) -> None:
        self.lap = lap

    def start_round(self, round: int, global_model: Any) -> None:
        """A round begins."""
        self.lap()


def job(work: Federation) -> Job:
    """A training with one more round, which comes after the last lap."""
    env = FlukeENV()
    env.set_seed(0)
    env.set_inmemory(True)
    env.set_eval_cfg(pre_fit=False, post_fit=False, server=False, locals=False)
    env.set_evaluator(ClassificationEval(eval_every=work.rounds + 2, n_classes=CLASSES))
    x, y = (torch.cat(part) for part in zip(*work.division(), strict=True))
    # the test set, which fluke asks for, is not used
    container = DataContainer(x, y, x[:10], y[:10], CLASSES)
    settings = {
        "client": {
            "batch_size": work.batch,
            "local_epochs": 1,
            "loss": "CrossEntropyLoss",
            "optimizer": {"name": "SGD", **SGD},
            "scheduler": {"name": "StepLR", "step_size": work.rounds + 2, "gamma": 1.0},
        },
        "server": {"weighted": True},
    }

    def run(lap: Lap) -> None:
        splitter = DataSplitter(container, distribution="iid")
        algorithm = FedAVG(work.parties, splitter, DDict(**settings, model=BytesCNN()))
        algorithm.attach(Laps(lap))
        algorithm.run(work.rounds + 1, 1.0, finalize=False)

    return Job(run)
