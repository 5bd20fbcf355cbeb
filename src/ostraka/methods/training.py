"""The settings of local training, which most methods have."""

from dataclasses import dataclass

from ostraka.contract import OBJECTIVES, Budget, Objective, setting
from ostraka.core.settings import Settings
from ostraka.objectives.cross_entropy import CrossEntropy


@dataclass(frozen=True)
class Training(Settings):
    """What the parties minimise, and how they train."""

    objective: Objective = setting(CrossEntropy(), "what the parties minimise", registry=OBJECTIVES)
    local: Budget = setting(Budget(), "the parties' training")
