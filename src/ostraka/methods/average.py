"""Average: the mean of members that were started and trained independently.

The baselines FedAvg and MeanAvg of DeDES (Wang et al., supplement of 2022), which are near
chance: hidden units of networks with different first weights have nothing to do with each other.
`fedavg`, whose parties start from one model, is another method.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from ostraka.contract import (
    METHODS,
    OstrakaError,
    Params,
    Predictor,
    Report,
    Task,
    load_predictor,
    setting,
)
from ostraka.core.params import average
from ostraka.methods.averaging import Weights
from ostraka.methods.panel import PanelMethod
from ostraka.methods.training import preset
from ostraka.voting.panel import Panel


@final
@METHODS.add("average", "mean-avg")
@dataclass(frozen=True)
class Average(PanelMethod):
    """One-shot mean of independently started members; near chance, for comparison."""

    weights: Weights = setting("uniform", "all members alike, or by their sizes", server=True)

    def work_key(self, task: Task) -> dict[str, Any]:
        """The same members may vote."""
        return self.member_key()

    def aggregate(self, task: Task, state: Panel, reports: Sequence[Report[Params]]) -> Panel:
        """The panel; members of several networks cannot be averaged."""
        panel = super().aggregate(task, state, reports)
        self._mean(panel)
        return panel

    def single_model(self, state: Panel) -> Params | None:
        """The mean of the members; None before they have arrived."""
        return self._mean(state) if state.members else None

    def predictor(self, task: Task, state: Panel) -> Predictor:
        """The mean of the members."""
        if not state.members:
            raise OstrakaError("average has no members before its exchange is over")
        return load_predictor(task, self.objective, self._mean(state))

    def _mean(self, panel: Panel) -> Params:
        by_size = self.weights == "size"
        return average(
            (seat.params, float(seat.card.size) if by_size else 1.0) for seat in panel.members
        )


preset(
    "average",
    "average-by-size",
    "mean of independently started members, by their sizes",
    weights="size",
)
