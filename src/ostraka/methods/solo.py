"""Solo: every party uses the model it trained alone; the figures are means over the parties."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from ostraka.contract import METHODS, Predictor, Task
from ostraka.core.method import Regime
from ostraka.core.predictor import Solo as Alone
from ostraka.methods.panel import PanelMethod
from ostraka.voting.panel import Panel


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
        members = {member.card.party: member for member in self.members(task, state)}
        alone = {party: member.predictor() for party, member in members.items()}
        return Alone(alone, {party: member.card.name for party, member in members.items()})
