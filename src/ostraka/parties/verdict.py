"""What a group's answers are worth on labelled samples, who gave them, and whom not to trust."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from torch import Tensor

from ostraka.core.names import UNKNOWN_NAME
from ostraka.core.predictor import UNKNOWN, Promise
from ostraka.core.samples import Samples
from ostraka.errors import choices
from ostraka.evaluation.evaluate import Evaluation
from ostraka.parties.answering import Answering
from ostraka.parties.answers import Answers
from ostraka.registry import BALLOTS
from ostraka.runs.results import BESIDE_ACCURACY


@final
@dataclass(frozen=True)
class ClassFigures:
    """How samples of one class were answered, in percent."""

    name: str
    samples: int
    right: float
    """Answered with their class, unknown counting as a mistake; of unknown ones, refused."""
    refused: float
    """Called unknown."""


@final
@dataclass(frozen=True)
class MemberFigures:
    """What one member had to do with the answers, in percent."""

    name: str
    file: str
    say: float
    """Its mean share of the say in the class that was nearest."""
    joined: float
    """Samples that it would have answered as the group did, and had a say in."""
    alone: float
    """Samples that it would have answered rightly alone, unknown being right for others."""
    unusual: tuple[str, ...] = ()
    """What the ballot found unusual of it, in words."""


@final
@dataclass(frozen=True)
class Verdict:
    """The figures of a vote, in percent; the keys of its JSON are those of a run's summary."""

    data: str
    ballot: str
    evaluation: Evaluation
    classes: tuple[ClassFigures, ...]
    members: tuple[MemberFigures, ...]
    answer: Promise
    looked: Mapping[str, Any] = field(default_factory=dict)
    """How many unlabelled samples of what member trust was estimated from; empty: none."""
    trust: Mapping[str, Any] = field(default_factory=dict)
    selection: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = self.evaluation.as_dict()
        opened = self.evaluation.open.as_dict()
        beside = {**opened, "open_balanced_accuracy": opened["balanced_accuracy"]}
        return {
            "data": self.data,
            "ballot": self.ballot,
            **{name: found[name] for name in ("accuracy", "balanced_accuracy", "f1")},
            **{name: beside[name] for name in BESIDE_ACCURACY},
            "samples": found["samples"],
            "unknown_samples": found["unknown_samples"],
            "open": found["open"],
            "answer": self.answer.as_dict(),
            "per_class": found["per_class"],
            "confusion": [list(row) for row in self.evaluation.confusion],
            "members": [{**vars(m), "unusual": list(m.unusual)} for m in self.members],
            "looked": dict(self.looked),
            "trust": dict(self.trust),
            "selection": dict(self.selection),
            "notes": list(self.notes),
        }


def judge(ready: Answering, samples: Samples, data: str, notes: Sequence[str] = ()) -> Verdict:
    """The figures of the group's answers to `samples`, whose labels count into its classes,
    UNKNOWN where it has no such class.
    """
    ready, answers = ready.asked(samples.stored())
    samples = ready.relabelled(samples)  # one who was left out may have been a class's only owner
    labels = samples.labels
    trusted, evaluation = ready.trust(), ready.judged_on(samples)
    return Verdict(
        data=data,
        ballot="none" if ready.ballot is None else BALLOTS.name_of(type(ready.ballot)),
        evaluation=evaluation,
        classes=_by_class(ready.classes, answers.numbers, labels),
        members=_by_member(answers, labels, ready.files, trusted),
        answer=ready.promise,
        looked=ready.looked,
        trust=trusted,
        selection=ready.selection,
        notes=(*ready.notes, *evaluation.notes, *_hardly_trained(evaluation), *notes),
    )


def _hardly_trained(evaluation: Evaluation) -> Iterator[str]:
    """Signs that the members have learned next to nothing, or nothing of these samples."""
    remedy = "let the parties train longer (ostraka train --epochs), or look at the samples"
    if evaluation.at_chance:
        yield f"hardly trained: the vote is at chance ({evaluation.at_chance}); {remedy}"
    elif evaluation.never_right:
        names = choices(evaluation.never_right)
        yield f"hardly trained: no sample of {names} is answered correctly; {remedy}"


def _by_class(classes: Sequence[str], answers: Tensor, labels: Tensor) -> tuple[ClassFigures, ...]:
    found = []
    for label, name in [*enumerate(classes), (UNKNOWN, UNKNOWN_NAME)]:
        mine = answers[labels == label]
        if len(mine):
            right, refused = (mine == label).double().mean(), (mine == UNKNOWN).double().mean()
            found.append(ClassFigures(name, len(mine), 100 * float(right), 100 * float(refused)))
    return tuple(found)


def _by_member(
    answers: Answers, labels: Tensor, files: Sequence[str], trusted: Mapping[str, Any]
) -> tuple[MemberFigures, ...]:
    suspects: Mapping[str, Sequence[str]] = trusted.get("suspects", {})
    joined, alone = answers.joined.double(), (answers.said.own == labels).double()
    return tuple(
        MemberFigures(
            name=name,
            file=files[i] if files else "",
            say=100 * float(answers.said.weight[i].mean()),
            joined=100 * float(joined[i].mean()),
            alone=100 * float(alone[i].mean()),
            unusual=tuple(suspects.get(name, ())),
        )
        for i, name in enumerate(answers.members)
    )
