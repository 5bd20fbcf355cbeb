"""Centralised training: all data in one place, the reference that a federation cannot have.

It makes the same number of sample passes as the federation it is compared with:
`rounds * fraction * local.epochs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from torch import Tensor

from ostraka.contract import (
    METHODS,
    Memory,
    Params,
    Party,
    Report,
    Round,
    RoundBudget,
    Task,
)
from ostraka.core.method import Regime
from ostraka.methods.averaging import PlainModel, report_of


@final
@METHODS.add("centralised", "centralized", "oracle", "pooled")
@dataclass(frozen=True)
class Centralised(PlainModel[Params]):
    """All data pooled: the same passes over it as the federation, any objective."""

    regime: ClassVar[Regime] = "pooled"

    @property
    def exchanges(self) -> int:
        """One: the passes of all rounds are made in one go."""
        return 1

    def budget(self) -> RoundBudget:
        """The passes of all the federation's rounds."""
        passes = self.rounds * self.fraction
        local = replace(
            self.local,
            most_steps=_some(self.local.most_steps, passes),
            class_steps=_some(self.local.class_steps, passes),
            least_steps=_some(self.local.least_steps, passes),
            least_class_steps=_some(self.local.least_class_steps, passes),
        )
        if local.steps is not None:
            return replace(local, steps=_some(local.steps, passes))
        return replace(local, epochs=_some(local.epochs, passes))

    def steps(self, counts: Tensor) -> int:
        """Those of all rounds."""
        return self.budget().steps_on(int(counts.sum()), int((counts > 0).sum()))

    def sent(self, payload: Params) -> Params:
        """The party's model."""
        return payload

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Plain training, for the passes of all rounds."""
        whole = replace(self, local=self.budget(), rounds=1, fraction=1.0)
        return report_of(party, whole.train(rnd, party, rnd.message))

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        """The one model there is; the old one if its party dropped out."""
        return reports[0].payload if len(reports) else state


def _some(count: int, passes: float) -> int:
    """The count of all passes; a small share of a few is not none,
    which would mean another thing.
    """
    return max(1, round(count * passes)) if count else 0
