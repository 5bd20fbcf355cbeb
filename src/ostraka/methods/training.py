"""What most methods have: the settings of local training, and presets."""

from dataclasses import dataclass

from ostraka.contract import OBJECTIVES, Budget, Objective, setting
from ostraka.core.settings import Settings
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import PRESETS, Preset


@dataclass(frozen=True)
class Training(Settings):
    """What the parties minimise, and how they train."""

    objective: Objective = setting(CrossEntropy(), "what the parties minimise", registry=OBJECTIVES)
    local: Budget = setting(Budget(), "the parties' training")


def preset(method: str, name: str, summary: str, **settings: object) -> None:
    """Offer a method with these settings under another name."""
    PRESETS.add(name)(Preset(method, settings, summary))
