"""FedOV: one-shot federated learning by open-set voting.

Diao, Li & He, "Towards Addressing Label Skews in One-Shot Federated Learning", ICLR 2023,
Algorithm 1. Every party trains one classifier with an extra *unknown* output (PROSER, data
destruction, adversarial outlier enhancement) and uploads it once; the server keeps all of
them and lets them vote. Deviations: PROSER's two weights are those of the authors' code (the
paper's text has them swapped: preset `fedov-text-weights`), enhancement starts from a copy
of the destroyed images (the authors' code alters them in place), and the default ballot is
ours (preset `fedov-sum`: theirs).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, final

from ostraka.contract import BALLOTS, METHODS, OBJECTIVES, Budget, Objective, Task, setting
from ostraka.core.settings import values_of
from ostraka.methods.panel import FAST, PAPER, VotingMethod
from ostraka.methods.training import preset
from ostraka.objectives.destruction import FEDOV, GEOMETRY
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.ballots import Ballot
from ostraka.voting.guarded import Guarded

WIDE = OpenVoting(outliers="auto", steps=2, size=0.005)
"""More kinds of outliers than the paper's,
and two adversarial steps that together reach as far as the paper's five.
"""
SHORT = replace(FAST, class_steps=500)
"""Members that go on telling their classes from outliers, once they can, learn the outliers and not
the classes: more steps make them worse (docs/results/better-members.md).
"""
GENTLE = OpenVoting(outliers="auto", w_second=0.0, w_destroyed=0.2, w_adversarial=0.0)
"""With differential privacy. The gradients of outliers point the same way in all samples, those of
classes do not: cut to one length and summed, outliers of the usual weight drown the classes, and
all that is learned is to reject everything.
"""


@final
@METHODS.add("fedov")
@dataclass(frozen=True)
class FedOV(VotingMethod):
    """One-shot open-set voting: members that may answer unknown."""

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "fast": {},
        "long": {
            "local": {"class_steps": 0},
            "objective": {"outliers": "destruction"},
            "hold_out": 0.0,
        },
        "photos": {
            "local": {"class_steps": 0, "most_steps": 5000},
            "objective": {"outliers": "wide:0.6+turn:0.4", "w_adversarial": 0.0},
        },
        "paper": {
            "local": PAPER,
            "objective": {"outliers": "destruction", "steps": 5, "size": 0.002},
            "hold_out": 0.0,
        },
        "private": {
            **VotingMethod.RECIPES["private"],
            "objective": values_of(GENTLE) | {"name": "fedov"},
            "ballot": "sum",
        },
    }

    local: Budget = setting(SHORT, "the members' training")
    objective: Objective = setting(WIDE, "what the members minimise", registry=OBJECTIVES)
    ballot: Ballot = setting(Guarded(), "how the votes are counted", server=True, registry=BALLOTS)

    def work_key(self, task: Task) -> dict[str, Any]:
        """Members serve every ballot, and students too."""
        return self.member_key()


_preset = partial(preset, "fedov")

_preset(
    "fedov-paper",
    "FedOV with the paper's training (200 epochs, constant rate, 5 adversarial steps) and ballot",
    recipe="paper",
    ballot="sum",
)
_preset("fedov-sum", "FedOV with the paper's ballot: the plain sum of probabilities", ballot="sum")
_preset(
    "fedov-calibrated",
    "FedOV with the calibrated ballot, which trusts all members",
    ballot="calibrated",
)
_preset("fedov-top-k", "FedOV with the paper's top-k ballot (k = 3)", ballot="top-k")
_preset(
    "fedov-distilled", "FedOV, distilled into one network on public samples", distil={"epochs": 100}
)
_preset("fedov-text-weights", "FedOV with PROSER's weights as the paper's text has them",
        objective={"w_second": 0.01, "w_mix": 1.0}, ballot="sum")  # fmt: skip
_preset("open-proser", "ablation: PROSER alone", objective={"outliers": "none"}, ballot="sum")
_preset(
    "open-proser-dd",
    "ablation: PROSER and data destruction",
    objective={"w_adversarial": 0.0},
    ballot="sum",
)
_preset(
    "open-proser-aoe",
    "ablation: PROSER and adversarial outliers, without the loss of the destroyed images",
    objective={"w_destroyed": 0.0},
    ballot="sum",
)
for operation in (*FEDOV, "fedov", "cutpaste", "mixture", *GEOMETRY, "wide"):
    _preset(f"dd-{operation}", f"ablation: PROSER and destruction by {operation} alone",
            objective={"outliers": operation, "w_adversarial": 0.0}, ballot="sum")  # fmt: skip
