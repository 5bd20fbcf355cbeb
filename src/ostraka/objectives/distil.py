"""Distillation: a student learns to answer as a teacher did (Hinton,
Vinyals & Dean 2015), here a voted ensemble.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.samples import Samples
from ostraka.objectives.cross_entropy import CrossEntropy


@final
@dataclass(frozen=True, eq=False)
class Distillation(Objective):
    """Divergence between the teacher's shares [N, K] and the student's.

    A sample's label is its row of `targets`. `kl="code"`: KL(teacher || student), as FedOV's
    authors implement it; `kl="paper"`: KL(student || teacher).
    """

    targets: Tensor
    kl: Literal["code", "paper"] = "code"
    answers: Objective = CrossEntropy()
    """The objective by which the student answers."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Mean divergence of a batch."""
        student = self.answers.logits(net, batch.x).log_softmax(dim=1)
        teacher = self.targets[batch.y]
        if self.kl == "code":
            return F.kl_div(student, teacher, reduction="batchmean")
        return F.kl_div(teacher.clamp(min=1e-8).log(), student.exp(), reduction="batchmean")


def numbered(samples: Samples) -> Samples:
    """The samples with their own positions as labels, for `Distillation`."""
    return samples.with_labels(torch.arange(len(samples), device=samples.x.device))
