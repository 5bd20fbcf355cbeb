"""FedProx (Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020).

Algorithm 2: FedAvg whose parties minimise their loss + mu/2 ||w - w_server||^2, so that no party
drifts far from where the round began. Deviations: parties make a fixed number of epochs instead of
stopping at a gamma-inexact solution (the authors' experiments do so too); the mean is weighted by
size as in FedAvg (`weights="uniform"` is Algorithm 2's mean, which draws parties by size instead).
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ostraka.contract import METHODS, Memory, Net, Params, Party, Report, Round, setting
from ostraka.core.learning import Penalty
from ostraka.methods.averaging import PlainAveraging, report_of


@final
@METHODS.add("fedprox")
@dataclass(frozen=True)
class FedProx(PlainAveraging):
    """FedAvg with a pull back to the server's model."""

    mu: float = setting(
        0.01, "strength of the pull to the server's model; 0: FedAvg", span="[0, inf)"
    )

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model, anchored to it."""
        penalty = anchored(rnd.message, self.mu) if self.mu else None
        return report_of(party, self.train(rnd, party, rnd.message, penalty=penalty))


def anchored(anchor: Params, mu: float) -> Penalty:
    """mu/2 ||w - anchor||^2 over all trained weights."""

    def term(net: Net) -> Tensor:
        trained = ((name, p) for name, p in net.named_parameters() if p.requires_grad)
        squares = [(p - anchor[name].to(p.device)).square().sum() for name, p in trained]
        return 0.5 * mu * torch.stack(squares).sum()

    return term
