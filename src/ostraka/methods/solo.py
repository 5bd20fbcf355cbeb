"""Solo: every party uses the model it trained alone; the figures are means over the parties."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from ostraka.core.learner import load_predictor
from ostraka.core.method import Regime
from ostraka.core.predictor import Predictor
from ostraka.core.predictor import Solo as Alone
from ostraka.core.task import Task
from ostraka.methods.panel import PanelMethod
from ostraka.registry import METHODS
from ostraka.voting.ensemble import Panel


@final
@METHODS.add("solo", "local")
@dataclass(frozen=True)
class Solo(PanelMethod):
    """Each party alone, without any federation: mean accuracy of their own models."""

    regime: ClassVar[Regime] = "alone"

    def work_key(self, task: Task) -> dict[str, Any]:
        """The same models may vote."""
        return self.member_key()

    def predictor(self, task: Task, state: Panel) -> Predictor:
        """Every member by itself."""
        members = {m.card.party: m for m in state.members}
        alone = {
            party: load_predictor(task, self.objective, m.params, m.card.calibration)
            for party, m in members.items()
        }
        return Alone(alone, {party: m.card.name for party, m in members.items()})
