"""FedOS (Mohamad, Neubert & Argayo, "FedOS: using open-set learning to stabilize training in
federated learning").

FedAvg whose parties learn an extra class *unknown* from samples that a generator makes: the server
trains it once, on unlabelled images of many classes, and sends it to each party once. After
training the closed answer leaves the unknown output out; the open answer is *unknown* where it is
the largest. A party's weight in the mean is the number of its own samples. Deviations: parties are
drawn without repeats (the authors' code draws with); the loss is the paper's sum of two means
(`objective.terms="weighted-mean"` is the code's); generated images span the data's range together,
where the code stretches each by itself, and are drawn in evaluation mode.
"""

from dataclasses import dataclass
from typing import final

from ostraka.contract import (
    METHODS,
    OBJECTIVES,
    ConfigError,
    Memory,
    Objective,
    Params,
    Party,
    Report,
    Round,
    setting,
)
from ostraka.methods.averaging import PlainAveraging, report_of
from ostraka.objectives.fedos import UnknownClass

DRAWN = "drawn"
"""The seed of a party's generated samples in its memory."""


@final
@METHODS.add("fedos")
@dataclass(frozen=True)
class FedOS(PlainAveraging):
    """FedAvg with an unknown class of generated samples."""

    objective: Objective = setting(UnknownClass(), "what the parties minimise", registry=OBJECTIVES)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, UnknownClass):
            raise ConfigError(
                "fedos adds generated samples to the parties' own, which its own objective does; "
                f"the objective is {type(self.objective).__name__}. Leave it at fedos, or use "
                "fedavg"
            )

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model on own and generated samples."""
        assert isinstance(self.objective, UnknownClass)
        if self.objective.draw == "epoch":
            return report_of(party, self.train(rnd, party, rnd.message))
        seed = int(memory.get(DRAWN, rnd.seed))
        fitted = self.train(rnd, party, rnd.message, self.objective.drawing_by(seed))
        return report_of(party, fitted, {DRAWN: seed})
