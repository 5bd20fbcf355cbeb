"""Cross-entropy in which classes count differently: FedIR's importance weights
(Hsu, Qi & Brown, ECCV 2020).
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective


@final
@dataclass(frozen=True, eq=False)
class ClassWeighted(Objective):
    """sum_i w(y_i) l_i / sum_i w(y_i) over a batch, l = cross-entropy:
    self-normalised, so only ratios matter.

    A batch whose weights are all 0 has loss 0. It stands in for cross-entropy and not around any
    objective, because it needs the loss of every single sample.
    """

    weights: Tensor
    """[K], one weight for each class."""
    smoothing: float = 0.0

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The weighted mean of a batch."""
        losses = F.cross_entropy(
            net(batch.x), batch.y, label_smoothing=self.smoothing, reduction="none"
        )
        weights = self.weights.to(losses.device)[batch.y]
        return (weights * losses).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)


def importance(prior: Tensor, counts: Tensor) -> Tensor:
    """p(y) / q(y) for the target shares p and the class counts of one party;
    0 for a class it does not have.
    """
    own = counts.to(torch.float64)
    shares = own / own.sum()
    return torch.where(own > 0, prior.to(torch.float64) / shares.clamp(min=1e-300), 0.0).float()
