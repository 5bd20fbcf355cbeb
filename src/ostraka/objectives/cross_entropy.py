"""Cross-entropy: the closed-set objective of every averaging baseline."""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.settings import setting
from ostraka.nets.layered import native_step
from ostraka.registry import OBJECTIVES


@final
@OBJECTIVES.add("cross-entropy", "ce", "softmax")
@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Mean cross-entropy of the true class; its unknown score is minus
    the largest softmax probability.
    """

    smoothing: float = setting(0.0, "label smoothing", span="[0, 1]")

    def check_private(self) -> None:
        """It can: the loss of a batch is the mean over its samples."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Cross-entropy of one batch."""
        step = None if self.smoothing else native_step(net, batch.x)
        if step is not None:
            step.learn(batch.x, batch.y)
            return step.total()
        return F.cross_entropy(net(batch.x), batch.y, label_smoothing=self.smoothing)
