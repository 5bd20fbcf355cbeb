"""A network together with the objective it was trained for:
how to build one, and how it predicts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.build import build_net as build_net
from ostraka.core.net import Net, Params, move
from ostraka.core.objective import Objective
from ostraka.core.predictor import SILENT, Placed, Predictor, Promise, Scores, join
from ostraka.core.samples import View, stored_values
from ostraka.core.task import Task
from ostraka.core.told import curve, held, read
from ostraka.errors import DataError

CHUNK = 1000
WHOLE = 10
"""Values of a larger unit than this are whole numbers: pixels."""


@final
@dataclass(frozen=True)
class NetPredictor(Predictor):
    """One trained network that answers as its objective says."""

    net: Net
    objective: Objective
    told: Mapping[str, Any] = field(default_factory=dict)
    """What its party tells of held-out samples (`core.told`), if it was trained by one."""
    view: View = View()
    """How stored values become its inputs."""

    @property
    def binary(self) -> bool:
        """Whether its objective gives every class an answer of its own."""
        return self.objective.binary

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """Scores of stored values, in evaluation mode, in chunks of bounded memory."""
        return join([self.answers(self.inputs(part)) for part in stored_values(x).split(CHUNK)])

    def inputs(self, x: Tensor) -> Tensor:
        """What the network sees of stored values, which must be samples of its task.

        Grey images may come without their one channel, as [B, H, W].
        """
        x, shape = stored_values(x), self.net.shape
        if shape[:1] == (1,) and tuple(x.shape[1:]) == shape[1:]:
            x = x.unsqueeze(1)
        if shape and tuple(x.shape[1:]) != shape:
            raise DataError(
                f"values of shape {list(x.shape)} were given; this network takes samples of shape "
                f"{list(shape)} (images with their channels first), some at a time: "
                f"[B, {', '.join(map(str, shape))}]"
            )
        if x.is_floating_point() and self.view.unit > WHOLE and 0 < float(x.max()) <= 1:
            raise DataError(
                f"values up to {float(x.max()):g} were given, but samples are asked as they are "
                f"stored, and these go up to {self.view.unit:g}: do not scale them before"
            )
        return self.view.apply(x)

    @torch.no_grad()
    def answers(self, inputs: Tensor) -> Scores:
        """Scores of what the network sees, made by `inputs`."""
        move(self.net.eval(), inputs.device)
        return join([self.objective.scores(self.net, part) for part in inputs.split(CHUNK)])

    def keeping(self, rate: float) -> tuple[Predictor, Promise]:
        """The threshold at the told quantile of its own unknown scores."""
        refusals = curve(self.told, "refusals")
        if refusals is None or not self.objective.refuses:
            return self, SILENT
        if held(self.told) * rate < 1:
            why = (
                f"its party held out {held(self.told)} samples; "
                f"{ceil(1 / rate)} are needed for a rate of {rate:g}"
            )
            return self, Promise(why=why)
        quantiles = torch.tensor(refusals, dtype=torch.float64)
        threshold = -float(read(quantiles, torch.tensor([rate], dtype=torch.float64)))
        return Placed(self, threshold), Promise(rate, "told", threshold)


def load_predictor(
    task: Task, objective: Objective, params: Params, told: Mapping[str, Any] | None = None
) -> NetPredictor:
    """The predictor of trained tensors, with what its party tells of held-out samples."""
    net = build_net(task, objective)
    net.load_state_dict(params)
    return NetPredictor(net, objective, told or {}, task.view)
