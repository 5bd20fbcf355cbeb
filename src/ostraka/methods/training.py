"""The settings of local training, which most methods have."""

from dataclasses import dataclass

from ostraka.core.fit import Budget
from ostraka.core.objective import Objective
from ostraka.core.settings import Settings, setting
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import OBJECTIVES


@dataclass(frozen=True)
class Training(Settings):
    """What the parties minimise, and how they train."""

    objective: Objective = setting(CrossEntropy(), "what the parties minimise", registry=OBJECTIVES)
    local: Budget = setting(Budget(), "the parties' training")
