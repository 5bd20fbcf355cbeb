"""FedOVA (Zhu et al., "FedOVA: One-vs-All Training Method for Federated Learning with Non-IID
Data", IJCNN 2021).

Algorithm 2: the server keeps one binary network for each class. A party trains only those of the
labels that it holds (its samples of the label are yes, the rest of its data no; equation 4) and
sends only those back; a network becomes the plain mean of what its parties made of it (equation 5),
and stays where nobody trained it. The answer is the class of the surest network (equation 3).

What the paper leaves open, as it is read here: the loss is binary cross-entropy of one logit; all
networks of a party see its samples in the same order; a class whose network was never trained is
never the answer. Beyond the paper: a sample to which all networks say no is unknown; `outliers`
lets a party with a single label take part, which otherwise has no "rest" and is passed over;
`late` lets reports arrive some rounds after they were sent, as a mean in which they weigh less;
`only` trains some networks and leaves the others as they are, to the last bit.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from ostraka.contract import (
    METHODS,
    Card,
    ConfigError,
    DataError,
    Fitted,
    Iterative,
    Memory,
    Params,
    Party,
    PartyRef,
    Predictor,
    Report,
    ReportRefused,
    Round,
    RoundBudget,
    Samples,
    Task,
    build_net,
    check_answers,
    check_kind,
    derive,
    fit,
    params_of,
    setting,
    torch_rng,
    wire,
)
from ostraka.core.build import lent_net
from ostraka.core.learner import NetPredictor
from ostraka.core.params import Mean
from ostraka.errors import choices
from ostraka.methods.averaging import EACH_ROUND
from ostraka.methods.late import Late, Networks, Pile
from ostraka.objectives.one_vs_all import NONE, OneVsAll, SideBySide, check_outliers

PLAIN = OneVsAll()
NAMED = 10
"""Classes that a note names."""
BETWEEN = "/"
"""Between class and tensor in the names of a start's tensors."""


@wire("fedova.server/1")
@dataclass(frozen=True)
class Server:
    """What the server keeps: networks that are trained, others that stay, and how often each of
    them was trained by a party.
    """

    nets: Networks
    seed: int
    fixed: Networks = field(default_factory=dict)
    trained: dict[str, int] = field(default_factory=dict)
    round: int = 0
    held: dict[str, list[str]] = field(default_factory=dict)
    """Classes that a party's report was of, by its number: what the server has learnt of its
    labels. Kept where it is made use of."""
    late: tuple[Late, ...] = ()

    def all(self) -> Networks:
        """Trained or not."""
        return {**self.fixed, **self.nets}


@final
@METHODS.add("fedova")
@dataclass(frozen=True)
class FedOVA(Iterative[Server, Networks, Networks]):
    """One binary network for each class, averaged over the parties that hold the class."""

    takes_start: ClassVar[bool] = True
    adds_classes: ClassVar[bool] = True

    local: RoundBudget = setting(
        replace(EACH_ROUND, epochs=5, batch=16), "the parties' training, of each network"
    )
    outliers: str = setting(
        NONE,
        "what a party with a single label learns to tell it from: dd (destroyed copies of its "
        "samples), or a mix of operations such as wide; none: it does not train",
    )
    labels_known: bool = setting(
        False,
        "send a party that took part before only the networks of the labels it then had, not all",
        server=True,
    )
    only: tuple[str, ...] = setting((), "classes whose networks are trained; none named: all")
    late: Literal["never", "deliver"] = setting(
        "never", "deliver: some reports arrive rounds later and weigh 1 / (1 + rounds)", server=True
    )
    late_share: float = setting(
        0.2, "share of the reports that are late", span="[0, 1]", server=True
    )
    late_rounds: int = setting(
        3,
        "most rounds that a late report takes; each number from 1 is as likely",
        span="[1, inf)",
        server=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_outliers(self.outliers)

    def notes(self, task: Task, counts: Tensor) -> tuple[str, ...]:
        """Says how many parties cannot train; refuses a run in which none can."""
        self._trained_classes(task)
        OneVsAll(self.outliers).check_samples(task.kind, task.shape)
        held = counts > 0
        able = held.sum(dim=1) >= self._least_labels
        idle, parties = int((~able & held.any(dim=1)).sum()), len(counts)
        advice = "outliers=dd (--set) trains them against destroyed copies of their samples"
        if idle and not able.any():
            raise DataError(
                f"every one of the {parties} parties holds a single label, so none has samples to "
                f"tell it from, and none can train a binary network; {advice}"
            )
        for name in self.only:
            if not (held[:, task.classes.index(name)] & able).any():
                raise DataError(
                    f"no party that can train has samples of the class {name!r}, which is to be "
                    "trained (only); give data that has some"
                )
        if not idle:
            return ()
        trained = (held & able.unsqueeze(1)).any(dim=0)
        lost = [name for i, name in enumerate(task.classes) if held[:, i].any() and not trained[i]]
        only = f"; nobody else holds {choices(lost)}, so nobody trains its network" if lost else ""
        return (
            f"{idle} of {parties} parties hold a single label and do not train: they have no other "
            f"samples to tell it from{only}; {advice}",
        )

    def closing_notes(self, task: Task, state: Server) -> tuple[str, ...]:
        """Says which classes are never the answer."""
        never = [name for name in task.classes if not state.trained.get(name)]
        if not never:
            return ()
        others = f" and {len(never) - NAMED} more" if len(never) > NAMED else ""
        return (
            f"nobody has trained the networks of {len(never)} of {len(task.classes)} classes, "
            f"which are never the answer: {', '.join(never[:NAMED])}{others}",
        )

    @property
    def _least_labels(self) -> int:
        """So many labels a party must hold to train."""
        return 2 if self.outliers == NONE else 1

    def trainings(self, task: Task, counts: Tensor) -> int:
        """One for each label that the party holds, if its network is trained;
        none where there is nothing to tell a label from.
        """
        held = [name for name, count in zip(task.classes, counts.tolist(), strict=True) if count]
        if len(held) < self._least_labels:
            return 0
        return len(set(held) & set(self._trained_classes(task)))

    def init(self, task: Task, seed: int) -> Server:
        """A random network for each class, or the start's."""
        given = grouped(task.commons.nets.get("start", {}))
        every = {
            name: given.get(name)
            or params_of(build_net(task_of(task, name), PLAIN, derive(seed, "fedova", name)))
            for name in task.classes
        }
        wanted = self._trained_classes(task)
        return Server(
            nets={name: every[name] for name in wanted},
            fixed={name: net for name, net in every.items() if name not in wanted},
            trained=dict.fromkeys(given, 1),
            seed=seed,
        )

    def message(self, state: Server, party: PartyRef) -> Networks:
        """All networks that are trained; or those of the labels that the party is known for."""
        held = state.held.get(str(party.id))
        return state.nets if held is None else {name: state.nets[name] for name in held}

    def local_update(self, rnd: Round[Networks], party: Party, memory: Memory) -> Report[Networks]:
        """Train the networks of the party's labels; an empty report if it can train none."""
        labels = party.samples.labels.unique().tolist()
        mine = [label for label in labels if rnd.task.classes[label] in rnd.message]
        card = Card(party.id, len(party.samples))
        if not mine or len(labels) < self._least_labels:
            return Report({}, 1.0, card)
        names = [rnd.task.classes[label] for label in mine]
        goal = OneVsAll(self.outliers) if len(labels) == 1 else PLAIN
        starts = [rnd.message[name] for name in names]
        fitted, nets = self._train(rnd, party, relabelled(party.samples, mine), starts, goal)
        scores = {key: value / len(mine) for key, value in fitted.figures().items()}
        return Report(dict(zip(names, nets, strict=True)), 1.0, replace(card, scores=scores))

    def _train(
        self,
        rnd: Round[Networks],
        party: Party,
        samples: Samples,
        starts: Sequence[Params],
        goal: OneVsAll,
    ) -> tuple[Fitted, list[Params]]:
        """All networks of the party in one training: samples are drawn and prepared once."""
        one = task_of(rnd.task, "")
        local = self.local.in_round(rnd.index, self.rounds)
        with ExitStack() as stack:
            parts = [stack.enter_context(lent_net(one, PLAIN)) for _ in starts]
            start = joined(starts)
            fitted = fit(SideBySide(parts), start, samples, goal, local, rnd.seed, party.progress)
        return fitted, parted(fitted.params, len(starts))

    def inspect(self, task: Task, report: Report[Networks]) -> None:
        """As every report, and each of its networks must be one of a class that is trained."""
        super().inspect(task, report)
        check_kind(report.payload, dict)
        for name, params in report.payload.items():
            if name not in self._trained_classes(task):
                raise ReportRefused(
                    f"it holds a network of the class {name!r}; those that are trained are: "
                    f"{choices(self._trained_classes(task))}"
                )
            check_answers(task_of(task, name), PLAIN, params)

    def aggregate(self, task: Task, state: Server, reports: Sequence[Report[Networks]]) -> Server:
        """Each network is the mean of those that arrived; one that nobody sent stays."""
        index = state.round + 1
        piles = {index: Pile()}
        for late in state.late:
            piles.setdefault(late.due, Pile()).take(late)
        for report in reports:
            party, nets = report.card.party, report.payload
            delay = self._delay(state.seed, index, party) if nets else 0
            if delay and index + delay > self.rounds:
                continue  # the run ends before it arrives
            pile = piles.setdefault(index + delay, Pile())
            pile.add(nets, 1 / (1 + delay))
            if self.labels_known:
                pile.held[str(party)] = list(nets)
        now = piles.pop(index)
        trained = dict(state.trained)
        for name, count in now.counts.items():
            trained[name] = trained.get(name, 0) + count
        return replace(
            state,
            nets={name: _merged(net, now.means.get(name)) for name, net in state.nets.items()},
            trained=trained,
            round=index,
            held={**state.held, **now.held} if self.labels_known else state.held,
            late=tuple(pile.late(due) for due, pile in sorted(piles.items())),
        )

    def _delay(self, seed: int, index: int, party: int) -> int:
        """Rounds that a party's report of round `index` is late."""
        if self.late == "never":
            return 0
        rng = torch_rng(seed, "fedova", "late", index, party)
        if float(torch.rand((), generator=rng)) >= self.late_share:
            return 0
        return int(torch.randint(1, self.late_rounds + 1, (), generator=rng))

    def predictor(self, task: Task, state: Server) -> Predictor:
        """All networks that were ever trained, side by side."""
        nets, places = [], []
        for place, name in enumerate(task.classes):
            if state.trained.get(name):
                net = build_net(task_of(task, name), PLAIN)
                net.load_state_dict(state.all()[name])
                nets.append(net)
                places.append(place)
        together = SideBySide(nets, len(task.classes), places)
        together.shape = task.shape
        return NetPredictor(together, PLAIN, view=task.view)

    def single_model(self, state: Server) -> Params:
        """All networks' tensors, named after class and tensor:
        another run of this method may start from them.

        After a round, without those that nobody has trained: whoever starts from them takes what it
        is given for trained, and a random network would answer.
        """
        return {
            f"{name}{BETWEEN}{key}": tensor
            for name, net in state.all().items()
            for key, tensor in net.items()
            if not state.round or state.trained.get(name)
        }

    def _trained_classes(self, task: Task) -> tuple[str, ...]:
        unknown = [name for name in self.only if name not in task.classes]
        if unknown:
            raise ConfigError(
                f"only names the class {unknown[0]!r}, which this task does not know; "
                f"its classes: {choices(task.classes)}"
            )
        return tuple(name for name in task.classes if not self.only or name in self.only)


def task_of(task: Task, name: str) -> Task:
    """The task of one binary network: a single class."""
    return replace(task, classes=(name,))


def relabelled(samples: Samples, labels: Sequence[int]) -> Samples:
    """The samples with the place of their label among `labels`; -1: it is none of them."""
    mine = torch.tensor(labels, device=samples.labels.device)
    same = samples.labels.unsqueeze(1) == mine
    places = torch.where(same.any(dim=1), same.int().argmax(dim=1), -1)
    return samples.with_labels(places)


def joined(starts: Sequence[Params]) -> Params:
    """The tensors of networks side by side, of those of each one."""
    return {
        f"nets.{i}.{key}": tensor for i, net in enumerate(starts) for key, tensor in net.items()
    }


def parted(params: Params, count: int) -> list[Params]:
    """What `joined` was given."""
    nets: list[Params] = [{} for _ in range(count)]
    for key, tensor in params.items():
        _, number, name = key.split(".", 2)
        nets[int(number)][name] = tensor
    return nets


def grouped(start: Params) -> Networks:
    """Networks of a start's tensors, which are named after class and tensor."""
    nets: Networks = {}
    for key, tensor in start.items():
        name, _, tail = key.rpartition(BETWEEN)
        nets.setdefault(name, {})[tail] = tensor
    return nets


def _merged(net: Params, mean: Mean | None) -> Params:
    """The mean of what arrived. Weights that add up to less than 1, as those of late reports alone
    may, leave the rest to the network that is there.
    """
    if mean is None:
        return net
    if mean.total < 1:
        mean.add(net, 1 - mean.total)
    return mean.value()
