"""Closed-set voting: a one-shot ensemble (Guha, Talwalkar & Smith,
"One-Shot Federated Learning", 2019).

The baseline that FedOV (Diao, Li & He, ICLR 2023) improves on:
members know nothing of the classes they did not see.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, final

from ostraka.contract import METHODS, Task
from ostraka.methods.panel import VotingMethod
from ostraka.methods.training import preset

DEDES: dict[str, Any] = {
    "epochs": 200,
    "most_steps": 0,
    "class_steps": 0,
    "batch": 128,
    "optimiser": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "schedule": "cosine",
}
"""The members' training in DeDES's supplement."""


@final
@METHODS.add("closed-voting", "close-set-voting")
@dataclass(frozen=True)
class ClosedVoting(VotingMethod):
    """One-shot vote of ordinary classifiers that never answer unknown."""

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **VotingMethod.RECIPES,
        "dedes": {"local": DEDES, "scored": True, "keep": "best"},
    }

    def work_key(self, task: Task) -> dict[str, Any]:
        """Members serve every ballot, and students too."""
        return self.member_key()


_preset = partial(preset, "closed-voting")

_preset(
    "closed-voting-paper",
    "closed voting with the paper's training (200 epochs)",
    recipe="paper",
)
_preset(
    "closed-voting-distilled",
    "closed voting, distilled into one network on public samples",
    distil={"epochs": 100},
)
_preset(
    "closed-voting-owners",
    "closed voting, every class judged by the members that have it",
    ballot="calibrated",
)
_preset(
    "dedes",
    "DeDES: one member of each cluster votes, by plurality (supplement of 2022)",
    scored=True,
    select="dedes",
    ballot="plurality",
)
_preset(
    "dedes-tmlr",
    "DeDES as its later revision has it: other filter, votes weighed by size",
    scored=True,
    select={"name": "dedes", "recipe": "tmlr"},
    ballot={"name": "plurality", "voice": "size"},
)
