"""FedIR (Hsu, Qi & Brown, "Federated Visual Classification with
Real-World Data Distribution", ECCV 2020).

FedAvg whose parties weigh every sample by p(y)/q(y): p are the target label shares, which all know
(the commons' prior), q are the party's own. A batch's weights are normalised by their sum. In a
simulation the prior is the label shares of all parties' training data together; a real federation
must agree on one. Local training is that of the other averaging baselines. Deviation: only
cross-entropy can be weighed, since other objectives give no loss per sample.
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.contract import (
    METHODS,
    Batch,
    ConfigError,
    DataError,
    Memory,
    Needs,
    Net,
    Objective,
    Params,
    Party,
    Report,
    Round,
)
from ostraka.methods.averaging import PlainAveraging, report_of
from ostraka.objectives.cross_entropy import CrossEntropy


@final
@METHODS.add("fedir")
@dataclass(frozen=True)
class FedIR(PlainAveraging):
    """FedAvg with samples weighed as if every party had the target's label shares."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, CrossEntropy):
            raise ConfigError(
                "fedir weighs the loss of every sample, which only cross-entropy "
                f"gives; the objective is {type(self.objective).__name__}. Leave "
                "it at cross-entropy, or use fedavg"
            )

    @property
    def needs(self) -> Needs:
        """The target's label shares."""
        return Needs(prior=True)

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model with weighted samples."""
        prior, classes = rnd.task.commons.prior, len(rnd.task.classes)
        if prior is None or len(prior) != classes:
            given = "none" if prior is None else f"{len(prior)} shares"
            raise DataError(
                f"fedir needs one label share for each of the {classes} "
                f"classes; the prior has {given}"
            )
        assert isinstance(self.objective, CrossEntropy)
        weights = importance(prior, party.samples.counts(classes))
        objective = ClassWeighted(weights, self.objective.smoothing)
        return report_of(party, self.train(rnd, party, rnd.message, objective))


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
