"""FedAvg (McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
Data", AISTATS 2017).

Algorithm 1: every round a fraction of the parties starts from the server's model, trains on its own
data, and the server takes the mean of the results weighted by the parties' sizes. One round is
one-shot FedAvg. Deviations: an epoch keeps its last, smaller batch; `weights="uniform"` gives every
party the same weight.
"""

from dataclasses import dataclass
from typing import final

from ostraka.contract import METHODS
from ostraka.methods.averaging import PlainAveraging


@final
@METHODS.add("fedavg")
@dataclass(frozen=True)
class FedAvg(PlainAveraging):
    """Average of the parties' models, round after round."""
