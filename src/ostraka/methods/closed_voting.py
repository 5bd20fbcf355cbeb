"""Closed-set voting: a one-shot ensemble (Guha, Talwalkar & Smith, "One-Shot Federated Learning", 2019).

The baseline that FedOV (Diao, Li & He, ICLR 2023) improves on: members know nothing of the classes they did not see.
"""

from dataclasses import dataclass
from typing import final

from ostraka.core.predictor import Predictor
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.methods.panel import PanelMethod
from ostraka.registry import BALLOTS, METHODS
from ostraka.voting.ballots import Ballot, Sum
from ostraka.voting.ensemble import Ensemble, Panel


@final
@METHODS.add("closed-voting", "voting", "close-set-voting")
@dataclass(frozen=True)
class ClosedVoting(PanelMethod):
    """One-shot vote of ordinary classifiers that never answer unknown."""

    ballot: Ballot = setting(Sum(), "how the votes are counted", server=True, registry=BALLOTS)

    def predictor(self, task: Task, state: Panel) -> Predictor:
        """The voting ensemble."""
        return Ensemble.of(task, self.objective, state, self.ballot)
