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

from ostraka.contract import (
    METHODS,
    ConfigError,
    DataError,
    Memory,
    Needs,
    Params,
    Party,
    Report,
    Round,
)
from ostraka.methods.averaging import PlainAveraging, report_of
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.weights import ClassWeighted, importance


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
