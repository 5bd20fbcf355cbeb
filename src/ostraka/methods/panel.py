"""What the one-shot methods share: every party trains one member, once.

The server keeps the panel and counts votes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from ostraka.contract import (
    BALLOTS,
    SELECTORS,
    Budget,
    Card,
    ConfigError,
    Member,
    Memory,
    Method,
    Model,
    Needs,
    OstrakaError,
    Params,
    Party,
    PartyRef,
    Predictor,
    Report,
    Round,
    Samples,
    Task,
    build_net,
    check_answers,
    derive,
    fit,
    load_predictor,
    params_of,
    setting,
)
from ostraka.core.fit import Student
from ostraka.core.member import Making
from ostraka.core.private import Private, check_net
from ostraka.core.settings import values_of
from ostraka.core.spent import spent_on
from ostraka.core.told import check_told
from ostraka.methods.training import Training
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.distil import Distillation, numbered
from ostraka.voting.ballots import Ballot, Sum
from ostraka.voting.choice import told
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel, Seat
from ostraka.voting.selectors import All, Pool, Selector, chosen
from ostraka.voting.training import Keep, Tell, Terms, train_member

FAST = Budget(
    epochs=45,
    most_steps=3500,
    least_steps=800,
    least_class_steps=120,
    batch=32,
    least_batches=4,
    optimiser="adam",
    lr=0.004,
    weight_decay=1e-5,
    schedule="cosine",
)
"""The accuracy of PAPER at 10.8 times less cost, on labels:2 of two data sets
(docs/results/time-to-accuracy.md); the minima are for parties with few samples
(docs/results/defaults.md).
"""
PAPER: dict[str, Any] = {
    "epochs": 200,
    "most_steps": 0,
    "class_steps": 0,
    "batch": 64,
    "lr": 0.001,
    "schedule": "constant",
}
"""The members' training in the FedOV paper: Adam at a constant rate."""
PRIVATE = Budget(epochs=60, most_steps=240, batch=1024, optimiser="adam", lr=0.02, weight_decay=0.0)
"""Few steps with as many samples as there are: the noise of a step is as large for one sample as
for a thousand, and the promise is spent by the step (docs/results/privacy.md).
"""
NOTHING: Params = {}
"""One object, so that all parties get the same (empty) message."""
SEEN = 2000
"""Public samples by which a ballot assesses the members that teach a student."""
STUDENT = Student(optimiser="adam", lr=1e-3, weight_decay=1e-5)


@dataclass(frozen=True)
class PanelMethod(Training, Method[Panel, Params, Params]):
    """One exchange: members up, nothing down but (if `start` is shared) the first weights."""

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "fast": {},
        "paper": {"local": PAPER, "hold_out": 0.0},
        "private": {"local": values_of(PRIVATE)},
    }

    local: Budget = setting(FAST, "the members' training")
    tell: Tell = setting(
        "counts",
        "what a party tells beside its weights: its size; class counts, doubt, answers to "
        "held-out samples; bands in place of counts (<10, 10-99, 100-999, >=1000); embedding "
        "statistics too",
    )
    hold_out: float = setting(
        0.1,
        "share of each class that a party keeps from training, "
        "to tell how its member answers it; 0: none",
        span="[0, 0.5]",
    )
    scored: bool = setting(
        False,
        "members that cannot answer unknown hold samples out too, and all tell a validation score",
    )
    keep: Keep = setting(
        "last",
        "which model of its training a party hands over: the last, or the best, of the epoch that "
        "answers most held-out samples rightly",
    )
    start: Literal["own", "shared"] = setting(
        "own", "each member's first weights: its own, or the same for all"
    )
    dp: Private = setting(
        Private(), "differential privacy of every sample; then only sizes are told"
    )

    @classmethod
    def implied(cls, values: Mapping[str, Any]) -> dict[str, str]:
        """The recipe of those who name none: with differential privacy that for it, as with any
        other the noise is larger than what is learned."""
        dp = values.get("dp")
        epsilon = dp.get("epsilon") if isinstance(dp, Mapping) else getattr(dp, "epsilon", 0)
        return {"recipe": "private"} if epsilon and "private" in cls.RECIPES else {}

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = self.scored or (self.objective.refuses and self.tell != "size")
        if self.keep == "best" and (self.dp.wanted or not asked or not self.hold_out):
            raise ConfigError(
                "keep is 'best', by the samples that a party holds out of its training, and none "
                "are: set scored=true and hold_out above 0, and do without dp"
            )
        if self.dp.wanted:
            self.objective.check_private()

    def init(self, task: Task, seed: int) -> Panel:
        """No members yet; with a shared start, one that holds the first weights."""
        if self.dp.wanted:
            check_net(build_net(task, self.objective))
        if self.start == "own":
            return Panel(seed=seed)
        start = params_of(build_net(task, self.objective, seed))
        return Panel((Seat(Card(-1, 0), start),), seed=seed)

    def message(self, state: Panel, party: PartyRef) -> Params:
        """The shared start, or nothing."""
        return state.members[0].params if state.members else NOTHING

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train one member on the party's data."""
        terms = Terms(self.local, self.tell, self.hold_out, self.scored, self.keep, self.dp)
        model = Model.of(rnd.task.for_party(party.ref), self.objective)
        member = train_member(model, terms, party, rnd.seed, rnd.message or None)
        return Report(member.params, float(len(party.samples)), member.card)

    def member_key(self) -> dict[str, Any]:
        """The `work_key` of a method whose members are trained and described as they are here.

        It is not this class's own `work_key`: only who knows that neither was changed can give it.
        """
        return {"work": "member", "settings": self.party_settings()}

    def inspect(self, task: Task, report: Report[Params]) -> None:
        """As every report, and the member must answer."""
        super().inspect(task, report)
        check_told(report.card.calibration)
        ref = PartyRef(report.card.party, report.card.size, report.card.name)
        check_answers(task.for_party(ref), self.objective, report.payload)

    def aggregate(self, task: Task, state: Panel, reports: Sequence[Report[Params]]) -> Panel:
        """The panel of all members that arrived."""
        if not len(reports):
            raise OstrakaError("no member arrived; a vote needs at least one")
        return Panel(tuple(Seat(r.card, r.payload) for r in reports), seed=state.seed)

    def members(self, task: Task, state: Panel) -> tuple[Member, ...]:
        """The members that arrived; none before that,
        also where a first one holds the shared start.
        """
        return self.seated(task, state.members)

    def seated(self, task: Task, seats: Sequence[Seat]) -> tuple[Member, ...]:
        """The members on these seats of a panel."""
        usual, made = Model.of(task, self.objective), Making(banded=self.tell == "bands")
        members = []
        for seat in seats:
            if seat.card.party < 0:
                continue
            own = task.for_party(PartyRef(seat.card.party, seat.card.size, seat.card.name))
            model = usual if own is task else Model.of(own, self.objective)
            members.append(Member(seat.card, model, seat.params, made))
        return tuple(members)


@dataclass(frozen=True)
class VotingMethod(PanelMethod):
    """Members vote by a ballot; with `distil.epochs` above 0,
    one student learns the vote on public samples.
    """

    ballot: Ballot = setting(Sum(), "how the votes are counted", server=True, registry=BALLOTS)
    select: Selector = setting(
        All(), "which of the members that arrived vote", server=True, registry=SELECTORS
    )
    distil: Student = setting(
        STUDENT, "training of the student that replaces the vote; 0 epochs: none", server=True
    )
    kl: Literal["code", "paper"] = setting(
        "code", "the student's divergence: as FedOV's code or its text", server=True
    )

    def closing_notes(self, task: Task, state: Panel) -> tuple[str, ...]:
        """What the ballot has to say of those that vote."""
        return self.ballot.notes([seat.card for seat in state.voters])

    @property
    def needs(self) -> Needs:
        """Public samples for a student, and for a ballot that is tuned on them."""
        return Needs(public=self.distil.wanted or self.ballot.wants_public)

    def aggregate(self, task: Task, state: Panel, reports: Sequence[Report[Params]]) -> Panel:
        """The panel, its voters chosen, its ballot tuned, its members shown junk and its
        student trained where asked for.
        """
        panel = self._selected(task, super().aggregate(task, state, reports))
        if self.ballot.wants_junk:
            panel = replace(panel, junk=self.ensemble(task, panel).known_junk())
        public = task.commons.public
        if self.ballot.wants_public and public is not None:
            votes = self.ensemble(task, panel).votes_on(public)
            panel = replace(panel, tuned=self.ballot.tune(votes))
        if self.distil.wanted and public is not None:
            panel = replace(panel, student=self._student(task, panel, public))
        return panel

    def _selected(self, task: Task, panel: Panel) -> Panel:
        """The panel with the choice of who votes; none is needed for everybody."""
        if isinstance(self.select, All):
            return panel
        self.select.load()
        with spent_on("selection"):
            members, public = self.members(task, panel), task.commons.public
            pool = Pool(members, task.classes, panel.seed, public, self.ballot)
            return replace(panel, choice=chosen(self.select, pool))

    def selection(self, state: Panel) -> dict[str, Any]:
        """Who votes and why; empty where everybody does."""
        if state.choice is None:
            return {}
        name = SELECTORS.name_of(type(self.select))
        return {"selector": name, **told(state.choice, [seat.card for seat in state.members])}

    def _student(self, task: Task, panel: Panel, public: Samples) -> Params:
        """One closed-set network that answers as the vote does."""
        x = public.stored()
        targets = self.ballot.shares(self.ensemble(task, panel).seeing(x[:SEEN]).scores(x))
        net = task.build_net(unknown=False, seed=derive(panel.seed, "student"))
        goal = Distillation(targets, self.kl)
        return fit(
            net, None, numbered(public), goal, self.distil, derive(panel.seed, "distil")
        ).params

    def single_model(self, state: Panel) -> Params | None:
        """The student if there is one; the vote itself is many models."""
        return state.student

    def predictor(self, task: Task, state: Panel) -> Predictor:
        """The student if there is one, else the voting ensemble."""
        if state.student is not None:
            return load_predictor(task, CrossEntropy(), state.student)
        return self.ensemble(task, state)

    def ensemble(self, task: Task, panel: Panel) -> Ensemble:
        """The members that vote on the task's classes."""
        members = self.seated(task, panel.voters)
        return Ensemble.of(members, self.ballot, task.classes, panel.tuned, panel.junk)
