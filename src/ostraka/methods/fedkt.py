"""FedKT (Li, He & Song, "Practical One-Shot Federated Learning for
Cross-Silo Setting", IJCAI 2021).

Algorithm 1, without differential privacy. Every party divides its data `partitions` times into
`teachers` disjoint subsets, trains a teacher on each, lets the teachers of a division vote on
unlabelled public samples, and trains a student on the labels that won. The students go to the
server, which lets them vote in turn and trains the final student on the result. With consistent
voting a party's students count only where all of them agree. Deviations and readings: of classes
with equally many votes the first wins; public samples on which no party agrees with itself are left
out (if that leaves none, every student votes for itself); a party trains no more teachers than give
each at least two samples (a party of three samples or fewer: one teacher); teachers and students
all have the task's network and random first weights.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.contract import (
    METHODS,
    Budget,
    Card,
    Memory,
    Method,
    Needs,
    Objective,
    OstrakaError,
    Params,
    Party,
    PartyRef,
    Predictor,
    Report,
    ReportRefused,
    Round,
    Samples,
    Task,
    build_net,
    check_answers,
    check_kind,
    derive,
    fit,
    load_predictor,
    setting,
    torch_rng,
    wire,
)
from ostraka.core.progress import NoProgress, Progress
from ostraka.methods.training import Training
from ostraka.objectives.cross_entropy import CrossEntropy

ADAM = Budget(
    epochs=40, least_steps=300, least_batches=4, optimiser="adam", lr=1e-3, weight_decay=1e-5
)


@wire("fedkt.transfer/2")
@dataclass(frozen=True)
class Transfer:
    """The final student (None before it is trained), and the seed of what is random in it."""

    seed: int
    student: Params | None = None


@final
@METHODS.add("fedkt")
@dataclass(frozen=True)
class FedKT(Training, Method[Transfer, None, list[Params]]):
    """One-shot: teachers, students and a final student that learn from votes on public samples."""

    local: Budget = setting(ADAM, "the teachers' training")
    student: Budget = setting(ADAM, "training of the parties' students and of the final one")
    partitions: int = setting(
        2, "divisions of a party's data, each with a student of its own", span="[1, inf)"
    )
    teachers: int = setting(
        5, "teachers of a division, each on its own part of the data", span="[1, inf)"
    )
    consistent: bool = setting(
        True, "a party counts only where all its students agree", server=True
    )

    @property
    def needs(self) -> Needs:
        """Public samples to vote on."""
        return Needs(public=True)

    def init(self, task: Task, seed: int) -> Transfer:
        """No student yet."""
        return Transfer(seed)

    def message(self, state: Transfer, party: PartyRef) -> None:
        """Nothing: the public samples lie in the commons."""

    def work_key(self, task: Task) -> dict[str, Any]:
        """Students depend on the samples that their teachers vote on,
        and not on how the students' votes count.
        """
        public = _public(task)
        content = public.stored().cpu().contiguous().numpy().tobytes() + repr(public.view).encode()
        return {
            "work": "fedkt",
            "settings": self.party_settings(),
            "public": blake2b(content, digest_size=16).hexdigest(),
        }

    def local_update(self, rnd: Round[None], party: Party, memory: Memory) -> Report[list[Params]]:
        """One student for every division of the party's data."""
        students = [self._transfer(rnd, party, number) for number in range(self.partitions)]
        card = Card(party.id, len(party.samples), name=party.ref.name)
        return Report(students, float(len(party.samples)), card)

    def _transfer(self, rnd: Round[None], party: Party, number: int) -> Params:
        """The teachers of one division, and the student of their vote."""
        seed, task = derive(rnd.seed, "division", number), rnd.task
        public = _public(task).to(party.samples.x.device)
        order = torch.randperm(len(party.samples), generator=torch_rng(seed, "parts"))
        answers = []
        for i, rows in enumerate(order.tensor_split(teacher_count(len(order), self.teachers))):
            net = build_net(task, self.objective, derive(seed, "init", i))
            fitted = fit(
                net, None, party.samples.take(rows), self.objective, self.local,
                derive(seed, "teacher", i), party.progress, f"teacher {number}.{i}",
            )  # fmt: skip
            answers.append(_answers(task, self.objective, fitted.params, public))
        labels = tally(answers, len(task.classes)).argmax(dim=1)
        return self._learn(
            task, public, labels, derive(seed, "student"), party.progress, f"student {number}"
        )

    def _learn(
        self,
        task: Task,
        public: Samples,
        labels: Tensor,
        seed: int,
        progress: Progress,
        name: str = "student",
    ) -> Params:
        """A student of these labels."""
        net = task.build_net(unknown=False, seed=derive(seed, "init"))
        samples = public.with_labels(labels)
        return fit(net, None, samples, CrossEntropy(), self.student, seed, progress, name).params

    def inspect(self, task: Task, report: Report[list[Params]]) -> None:
        """As every report, and every student must answer."""
        super().inspect(task, report)
        check_kind(report.payload, list)
        if not report.payload:
            raise ReportRefused("it holds no student")
        for student in report.payload:
            check_answers(task, CrossEntropy(), student)

    def aggregate(
        self, task: Task, state: Transfer, reports: Sequence[Report[list[Params]]]
    ) -> Transfer:
        """The final student of the students' vote."""
        if not len(reports):
            raise OstrakaError("no student arrived; a vote needs at least one")
        public, classes = _public(task), len(task.classes)
        groups = [
            [_answers(task, CrossEntropy(), student, public) for student in r.payload]
            for r in reports
        ]
        votes = sum(
            agreed(group, classes) if self.consistent else tally(group, classes) for group in groups
        )
        assert isinstance(votes, Tensor)
        if not votes.any():
            votes = tally((answer for group in groups for answer in group), classes)
        rows = votes.any(dim=1).nonzero().squeeze(1)
        labels = votes[rows].argmax(dim=1)
        seed = derive(state.seed, "final student")
        student = self._learn(task, public.take(rows), labels, seed, NoProgress())
        return Transfer(state.seed, student)

    def single_model(self, state: Transfer) -> Params | None:
        """The final student."""
        return state.student

    def predictor(self, task: Task, state: Transfer) -> Predictor:
        """The final student."""
        if state.student is None:
            raise OstrakaError("fedkt has no student before its exchange is over")
        return load_predictor(task, CrossEntropy(), state.student)


def teacher_count(samples: int, wanted: int) -> int:
    """As many teachers as wanted, but no more than get two samples each; at least one."""
    return max(1, min(wanted, samples // 2))


def tally(answers: Iterable[Tensor], classes: int) -> Tensor:
    """Votes [N, K] of voters that answer [N] class numbers."""
    return torch.stack([F.one_hot(answer, classes) for answer in answers]).sum(dim=0)


def agreed(answers: Sequence[Tensor], classes: int) -> Tensor:
    """As `tally`, with no vote at all on a sample where the voters differ."""
    votes = tally(answers, classes)
    return torch.where(votes == len(answers), votes, 0)


def _answers(task: Task, objective: Objective, params: Params, samples: Samples) -> Tensor:
    """The most likely known class of every sample."""
    return load_predictor(task, objective, params).scores(samples.stored()).closed


def _public(task: Task) -> Samples:
    """The public samples, whose presence `needs` has checked."""
    assert task.commons.public is not None
    return task.commons.public
