"""A network together with the objective it was trained for: how to build one, and how it predicts."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ostraka.core.net import Net, Params
from ostraka.core.objective import Objective
from ostraka.core.predictor import Predictor, Scores, join
from ostraka.core.seeds import seeded
from ostraka.core.task import Task

CHUNK = 1000


def build(task: Task, objective: Objective, seed: int = 0) -> Net:
    """A fresh network for `task` with the outputs and tensors that `objective` needs."""
    net = task.build(objective.unknown, seed)
    with seeded(seed, "objective"):
        objective.attach(net)
    return net


@final
@dataclass(frozen=True)
class NetPredictor(Predictor):
    """One trained network that answers as its objective says."""

    net: Net
    objective: Objective

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """Scores in evaluation mode, in chunks of bounded memory."""
        self.net.eval().to(x.device)
        return join([self.objective.scores(self.net, part) for part in x.split(CHUNK)])


def load_predictor(task: Task, objective: Objective, params: Params) -> NetPredictor:
    """The predictor of trained tensors."""
    net = build(task, objective)
    net.load_state_dict(params)
    return NetPredictor(net, objective)
