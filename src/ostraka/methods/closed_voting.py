"""Closed-set voting: a one-shot ensemble (Guha, Talwalkar & Smith,
"One-Shot Federated Learning", 2019).

The baseline that FedOV (Diao, Li & He, ICLR 2023) improves on:
members know nothing of the classes they did not see.
"""

from dataclasses import dataclass
from typing import Any, final

from ostraka.contract import METHODS, Task
from ostraka.methods.panel import VotingMethod
from ostraka.registry import PRESETS, Preset


@final
@METHODS.add("closed-voting", "close-set-voting")
@dataclass(frozen=True)
class ClosedVoting(VotingMethod):
    """One-shot vote of ordinary classifiers that never answer unknown."""

    def work_key(self, task: Task) -> dict[str, Any]:
        """Members serve every ballot, and students too."""
        return self.member_key()


PRESETS.add("closed-voting-paper")(
    Preset(
        "closed-voting", {"recipe": "paper"}, "closed voting with the paper's training (200 epochs)"
    )
)
DISTILLED = {"distil": {"epochs": 100}}
PRESETS.add("closed-voting-distilled")(
    Preset(
        "closed-voting", DISTILLED, "closed voting, distilled into one network on public samples"
    )
)
PRESETS.add("closed-voting-owners")(
    Preset(
        "closed-voting",
        {"ballot": "calibrated"},
        "closed voting, every class judged by the members that have it",
    )
)
