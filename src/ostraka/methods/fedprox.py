"""FedProx (Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020).

Algorithm 2: FedAvg whose parties minimise their loss + mu/2 ||w - w_server||^2, so that no party
drifts far from where the round began. Deviations: parties make a fixed number of epochs instead of
stopping at a gamma-inexact solution (the authors' experiments do so too); the mean is weighted by
size as in FedAvg (`weights="uniform"` is Algorithm 2's mean, which draws parties by size instead).
"""

from dataclasses import dataclass
from typing import final

from ostraka.contract import METHODS, Memory, Params, Party, Report, Round, setting
from ostraka.methods.averaging import PlainAveraging, report_of
from ostraka.objectives.anchor import Anchored


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
        objective = Anchored(self.objective, rnd.message, self.mu) if self.mu else self.objective
        return report_of(party, self.train(rnd, party, rnd.message, objective))
