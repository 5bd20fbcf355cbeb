"""A sound toy objective, and one broken in each way that a check of
`ostraka.testing.objectives` looks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net, Params
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.predictor import Scores
from ostraka.core.samples import Samples
from ostraka.core.settings import setting
from ostraka.objectives.cross_entropy import CrossEntropy


@dataclass(frozen=True)
class Sound(Objective):
    """Cross-entropy with a scale that travels with the network."""

    scale: float = setting(1.0, "the logits are multiplied by it")

    def attach(self, net: Net) -> None:
        net.objective = nn.ParameterDict({"scale": nn.Parameter(torch.tensor(self.scale))})

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        noise = torch.rand((), generator=rng)
        return F.cross_entropy(net(batch.x) * net.objective["scale"], batch.y) + 0.01 * noise


@dataclass(frozen=True)
class CannotBeWritten(Sound):
    """Its inner objective has a name that it does not tell."""

    inner: Objective = setting(CrossEntropy(smoothing=0.1), "forgot registry=OBJECTIVES")


@dataclass(frozen=True)
class AttachesElsewhere(Sound):
    def attach(self, net: Net) -> None:
        super().attach(net)
        net.points = nn.Parameter(torch.zeros(3))


@dataclass(frozen=True)
class AttachesByNumpysRandomness(Sound):
    def attach(self, net: Net) -> None:
        net.objective = nn.ParameterDict(
            {"scale": nn.Parameter(torch.tensor(1 + 0.1 * np.random.rand()))}
        )


@dataclass(frozen=True)
class RefusesInSilence(Sound):
    """Says that it may answer unknown, and never does."""

    @property
    def refuses(self) -> bool:
        return True


@dataclass(frozen=True)
class AddsRows(Sound):
    """Twice as many samples would be cut into batches that do not fit."""

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        return Batch(torch.cat([batch.x, batch.x]), torch.cat([batch.y, batch.y]))


@dataclass(frozen=True)
class NeedsTwoSamples(Sound):
    """The standard deviation of one sample is not a number."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return super().loss(net, batch, rng) + 0.01 * net(batch.x).std(dim=0).mean()


@dataclass(frozen=True)
class LossOfEverySample(Sound):
    """Not one number but one for each sample."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return F.cross_entropy(net(batch.x), batch.y, reduction="none")


@dataclass(frozen=True)
class NumpysRandomness(Sound):
    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return super().loss(net, batch, rng) * (1 + np.random.rand())


@dataclass(frozen=True)
class ChangesBatch(Sound):
    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        batch.x.mul_(0.5)
        return super().loss(net, batch, rng)


@dataclass(frozen=True)
class LeavesGradients(Sound):
    """Its own backward pass adds to that of the training step."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        super().loss(net, batch, rng).backward()
        return super().loss(net, batch, rng)


@dataclass(frozen=True)
class ScoresByBatch(Sound):
    def scores(self, net: Net, x: Tensor) -> Scores:
        scores = super().scores(net, x)
        return replace(scores, known=scores.known - scores.known.mean(dim=0))


@dataclass(frozen=True)
class MeasuresNowhere(Sound):
    """There is no such tensor; loading would pass over it."""

    def statistics(self, net: Net, samples: Samples) -> Params:
        return {"objective.means": torch.zeros(3)}


@dataclass(frozen=True)
class HidesTensors(Sound):
    """Counts its steps where nothing is stored."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        net.steps = getattr(net, "steps", 1) + 1
        return super().loss(net, batch, rng)

    def scores(self, net: Net, x: Tensor) -> Scores:
        scores = super().scores(net, x)
        return replace(scores, known=scores.known * getattr(net, "steps", 1))


@dataclass(frozen=True)
class LowerIsLikelier(Sound):
    def scores(self, net: Net, x: Tensor) -> Scores:
        scores = super().scores(net, x)
        return replace(scores, known=-scores.known)


class Forgetful(Helper):
    """Counts steps and does not save the count."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, net: Net, batch: Batch, rng: torch.Generator) -> Batch:
        self.steps += 1
        return replace(batch, extra={"weight": torch.full((len(batch),), float(self.steps))})

    def state(self) -> dict[str, Any]:
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class ForgetfulHelper(Sound):
    """A training that goes on after an interruption differs."""

    def helper(self, net: Net) -> Helper:
        return Forgetful()

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return super().loss(net, batch, rng) * batch.extra["weight"].mean() ** -0.5
