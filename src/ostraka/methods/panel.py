"""What the one-shot voting methods share: every party trains one member, once, and the server keeps the panel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build
from ostraka.core.method import Card, Memory, Method, Report, Round
from ostraka.core.net import Params, params_of
from ostraka.core.objective import Objective
from ostraka.core.party import Party, PartyRef
from ostraka.core.seeds import derive
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.errors import ConfigError, OstrakaError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import OBJECTIVES
from ostraka.voting.ensemble import Member, Panel

ADAM = Budget(epochs=40, optimiser="adam", lr=1e-3, weight_decay=1e-5)


@dataclass(frozen=True)
class PanelMethod(Method[Panel, Params, Params]):
    """One exchange: members up, nothing down but (if `start` is shared) the first weights."""

    objective: Objective = setting(CrossEntropy(), "what the members minimise", registry=OBJECTIVES)
    local: Budget = setting(ADAM, "the members' training")
    start: Literal["own", "shared"] = setting("own", "each member's first weights: its own, or the same for all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds != 1:
            raise ConfigError(
                f"members are trained in one exchange; rounds is {self.rounds}. Leave it at 1, or use fedavg"
            )

    def init(self, task: Task, seed: int) -> Panel:
        """No members yet; with a shared start, one that holds the first weights."""
        if self.start == "own":
            return Panel()
        return Panel((Member(Card(-1, 0), params_of(build(task, self.objective, seed))),))

    def message(self, state: Panel, party: PartyRef) -> Params:
        """The shared start, or nothing."""
        return state.members[0].params if state.members else {}

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train one member on the party's data."""
        net = build(rnd.task, self.objective, derive(rnd.seed, "init"))
        start = rnd.message or None
        fitted = fit(net, start, party.samples, self.objective, self.local, rnd.seed, party.progress)
        counts = tuple(party.samples.counts(len(rnd.task.classes)).tolist())
        card = Card(party.id, len(party.samples), counts, fitted.figures(), name=party.ref.name)
        return Report(fitted.params, float(card.size), card)

    def aggregate(self, task: Task, state: Panel, reports: Sequence[Report[Params]]) -> Panel:
        """The panel of all members that arrived."""
        if not len(reports):
            raise OstrakaError("no member arrived; a vote needs at least one")
        return Panel(tuple(Member(r.card, r.payload) for r in reports))
