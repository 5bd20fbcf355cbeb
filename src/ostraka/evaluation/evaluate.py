"""What a predictor is worth on labelled samples.

All figures in percent, None where the samples cannot define one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ostraka.core.predictor import UNKNOWN, Predictor, Solo
from ostraka.core.samples import Samples
from ostraka.errors import DataError
from ostraka.evaluation import metrics

Confusion = tuple[tuple[int, ...], ...]
"""Samples by true class (rows) and answer (columns)."""
ENOUGH = 10
"""Samples of a class from which on it is said that none is answered correctly."""
NEARLY_ALL = 95.0
"""Percent of known samples from which an answer that is rejected says nothing."""
ALL_REJECTED = (
    "{:.4g} % of the samples of known classes are rejected as unknown, so that open answers say "
    "next to nothing: the members have not learned to tell their classes from unknown ones. Train "
    "them on more samples or longer, or give a threshold of your own"
)


@dataclass(frozen=True)
class OpenFigures:
    """Figures of the unknown score and of the open answer, in percent.

    See `metrics` for what each one means. FPR95 and `known_refused` are better when lower. Where
    all samples are of known classes, AUROC, FPR95, OSCR, `unknown_refused` and `balanced_accuracy`
    are None. A predictor that never answers unknown (its threshold is infinite) has 0 in both
    `known_refused` and `unknown_refused`, which is what it does.
    """

    auroc: float | None = None
    fpr95: float | None = None
    oscr: float | None = None
    open_accuracy: float | None = None
    known_refused: float | None = None
    unknown_refused: float | None = None
    balanced_accuracy: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Plain values for JSON."""
        return dict(vars(self))


class OpenFigure(NamedTuple):
    """How a figure of the open answer is called in a list, and above a column."""

    name: str
    column: str


OPEN_FIGURES = {
    "auroc": OpenFigure("AUROC of unknown", "AUROC"),
    "fpr95": OpenFigure("FPR95 (lower is better)", "FPR95"),
    "oscr": OpenFigure("OSCR", "OSCR"),
    "open_accuracy": OpenFigure("accuracy, unknown as a class", "unknown as a class"),
    "open_balanced_accuracy": OpenFigure("accuracy, known and unknown alike", "balanced"),
    "known_refused": OpenFigure("known samples called unknown", "known refused"),
    "unknown_refused": OpenFigure("unknown samples called unknown", "unknown refused"),
}
"""Figures of `open` by their names beside the accuracy, in the order of tables."""


@dataclass(frozen=True)
class Evaluation:
    """Figures of one predictor.

    `accuracy`, `balanced_accuracy`, `f1` and `per_class` are of the closed answers to the samples
    of known classes, `open` is of the open answers and of the unknown scores. `confusion` counts
    samples: a row for each true class, a column for each answer, and where the samples have unknown
    classes one more row and column for unknown, last; the answers are then the open ones.

    `per_part` holds the figures of each model that stands alone (`Solo`) by its party's
    number, `per_domain` those on the samples of each domain; the other figures are then means
    of theirs, `confusion` is the sum, which `per_part` leaves out. Every domain counts the
    same, however many samples it has.
    """

    samples: int
    unknown_samples: int
    accuracy: float | None
    balanced_accuracy: float | None = None
    f1: float | None = None
    per_class: dict[str, float | None] = field(default_factory=dict)
    open: OpenFigures = OpenFigures()
    per_part: "dict[int, Evaluation]" = field(default_factory=dict)
    per_domain: "dict[str, Evaluation]" = field(default_factory=dict)
    confusion: Confusion = ()
    per_network: dict[str, float | None] = field(default_factory=dict)
    """Where every class has a yes-or-no answer of its own (`Predictor.binary`): how often each is
    right, over all samples, those of unknown classes too."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What must stand beside the figures."""
        rejected = self.open.known_refused
        return (ALL_REJECTED.format(rejected),) if rejected and rejected >= NEARLY_ALL else ()

    @property
    def at_chance(self) -> str:
        """The balanced accuracy and that of guessing, where it is within two standard errors of it;
        else nothing."""
        classes = sum(figure is not None for figure in self.per_class.values())
        known = self.samples - self.unknown_samples
        if classes < 2 or known <= 0 or self.balanced_accuracy is None:
            return ""
        guess = 100 / classes
        error = 100 * sqrt((1 - 1 / classes) / classes / known)
        words = f"balanced accuracy {self.balanced_accuracy:.1f} %; guessing: {guess:.1f} %"
        return words if self.balanced_accuracy <= guess + 2 * error else ""

    @property
    def never_right(self) -> list[str]:
        """Classes of which not one sample is answered correctly, of those with enough of them."""
        samples = [sum(row) for row in self.confusion]
        return [
            name
            for place, (name, figure) in enumerate(self.per_class.items())
            if figure == 0.0 and (not samples or samples[place] >= ENOUGH)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: no NaN, None where undefined.

        The confusion matrix is left out: it can be large.
        """
        left_out = ("confusion",) if self.per_network else ("confusion", "per_network")
        return {name: _plain(value) for name, value in vars(self).items() if name not in left_out}


def _plain(value: Any) -> Any:
    if isinstance(value, Evaluation | OpenFigures):
        return value.as_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


Domains = Mapping[str, Tensor]
"""Where the samples of each domain lie: positions within the samples to evaluate on."""


def evaluate(
    predictor: Predictor,
    samples: Samples,
    classes: Sequence[str],
    chunk: int = 1000,
    domains: Domains | None = None,
) -> Evaluation:
    """Figures of `predictor` on `samples`; a label of UNKNOWN marks a sample of no known class.

    Closed-set figures use the samples of known classes only. At most `chunk` samples are turned
    into inputs at a time, and only the answers and unknown scores of one model are kept. With
    `domains`, the samples of each are judged alone, unknown against known ones of the same domain,
    and the figures are the plain means over the domains.
    """
    if not len(samples):
        raise DataError("there are no samples to evaluate on; give at least one")
    if len(set(classes)) != len(classes):
        raise DataError(
            f"class names must differ from each other, but they are {', '.join(classes)}"
        )
    metrics.check_labels(samples.labels, len(classes))
    _check_domains(domains or {}, len(samples))
    if isinstance(predictor, Solo):
        return _alone(predictor, samples, classes, chunk, domains)
    answers = [*_answers(predictor, samples, len(classes), chunk), samples.labels.cpu()]
    opened = bool((answers[-1] == UNKNOWN).any())
    if not domains:
        return _judge(answers, classes, opened)
    parts = {
        name: _judge([values[index] for values in answers], classes, opened)
        for name, index in domains.items()
    }
    return replace(_mean(list(parts.values())), per_domain=parts)


def _check_domains(domains: Domains, samples: int) -> None:
    """Refuse positions that leave a sample out, count it twice, or make an empty domain."""
    empty = [name for name, index in domains.items() if not len(index)]
    if empty:
        raise DataError(
            f"the domain {empty[0]} has no samples to evaluate on; leave it out or give it some"
        )
    if domains:
        met = torch.cat(list(domains.values())).sort().values
        if not torch.equal(met, torch.arange(samples)):
            raise DataError(
                f"the domains {', '.join(domains)} list {len(met)} samples; every one of the "
                f"{samples} to evaluate on must be in exactly one domain"
            )


def _judge(answers: Sequence[Tensor], classes: Sequence[str], is_open: bool) -> Evaluation:
    """The figures of closed answers, open answers, unknown scores and yes-or-no answers, given with
    the labels.

    `is_open` says whether the test has unknown classes, which a single domain of it may not have.
    """
    closed, opened, unknown_scores, yes, labels = answers
    per_class = metrics.per_class_accuracy(closed, labels, len(classes))
    is_unknown = labels == UNKNOWN
    confusion = metrics.confusion(
        opened if is_open else closed, labels, len(classes), unknown=is_open
    )
    return Evaluation(
        samples=len(labels),
        unknown_samples=int(is_unknown.sum()),
        accuracy=_percent(metrics.accuracy(closed, labels)),
        balanced_accuracy=_percent(_mean_of(per_class)),
        f1=_percent(metrics.macro_f1(closed, labels, len(classes))),
        confusion=tuple(map(tuple, confusion.tolist())),
        per_class={name: _percent(share) for name, share in zip(classes, per_class, strict=True)},
        open=OpenFigures(
            auroc=_percent(metrics.auroc(unknown_scores, is_unknown)),
            fpr95=_percent(metrics.fpr_at_tpr(unknown_scores, is_unknown)),
            oscr=_percent(metrics.oscr(closed, labels, unknown_scores)),
            open_accuracy=_percent(metrics.open_accuracy(opened, labels)),
            known_refused=_percent(metrics.known_refused(opened, labels)),
            unknown_refused=_percent(metrics.unknown_refused(opened, labels)),
            balanced_accuracy=_percent(metrics.balanced_open_accuracy(opened, labels)),
        ),
        per_network={
            name: _percent(float((yes[:, k] == (labels == k)).double().mean()))
            for k, name in enumerate(classes[: yes.shape[1]])
        },
    )


def seen_by_parties(
    evaluation: Evaluation, party_class_counts: Mapping[int, Tensor]
) -> dict[int, float | None]:
    """Accuracy that each party would see, in percent, if its future samples came in the proportions
    of its own data: the mean of the per-class accuracies, weighted by the party's class counts. So
    the figure does not depend on a small local test set. With `Solo`, a party sees its own model.

    With domains, the counts are [domains, classes] and a class is judged on the samples
    of the domain it is counted in. Classes without test samples carry no weight. None for
    a party that has no samples of the tested classes, or, when models stand alone, no
    model of its own (it dropped out).
    """
    parts = evaluation.per_part
    if parts and not parts.keys() & party_class_counts.keys():
        raise DataError(
            f"none of the parties {list(party_class_counts)} has a model "
            f"of its own; models: {list(parts)}"
        )
    seen: dict[int, float | None] = {}
    for party, counts in party_class_counts.items():
        mine = parts.get(party) if parts else evaluation
        # with domains, every class of the first one, then of the second, and so on
        places = (mine.per_domain.values() or [mine]) if mine else []
        figures = [figure for place in places for figure in place.per_class.values()]
        seen[party] = _weighted(figures, counts.flatten().tolist()) if mine else None
    return seen


def _weighted(figures: Sequence[float | None], weights: Sequence[float]) -> float | None:
    if len(figures) != len(weights):
        raise DataError(
            f"{len(weights)} class counts were given for {len(figures)} "
            "classes; give one for each class"
        )
    tested = [(f, w) for f, w in zip(figures, weights, strict=True) if f is not None]
    total = sum(w for _, w in tested)
    return sum(f * w for f, w in tested) / total if total else None


def _alone(
    predictor: Solo, samples: Samples, classes: Sequence[str], chunk: int, domains: Domains | None
) -> Evaluation:
    if not predictor.alone:
        raise DataError("there is no model to evaluate: no party finished its training")
    parts: dict[int, Evaluation] = {}
    confusion: Confusion = ()
    # model by model, not chunk by chunk: a thousand models' answers at
    # once would not be bounded memory
    for party, model in predictor.alone.items():
        try:
            part = evaluate(model, samples, classes, chunk, domains)
        except DataError as error:
            raise DataError(
                f"the model of {predictor.name(party)} cannot be evaluated: {error}"
            ) from error
        confusion = _sum([confusion, part.confusion])
        places = {name: replace(place, confusion=()) for name, place in part.per_domain.items()}
        # nor would a thousand matrices
        parts[party] = replace(part, confusion=(), per_domain=places)
    return replace(_over_models(list(parts.values())), per_part=parts, confusion=confusion)


def _over_models(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The mean over models that met the same samples: these are counted once."""
    first = evaluations[0]
    per_domain = {
        name: _over_models([e.per_domain[name] for e in evaluations]) for name in first.per_domain
    }
    mean = _mean(evaluations)
    return replace(
        mean, samples=first.samples, unknown_samples=first.unknown_samples, per_domain=per_domain
    )


def _mean(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The mean of every figure over the evaluations that define it;
    counts of samples are summed.
    """
    return Evaluation(
        samples=sum(e.samples for e in evaluations),
        unknown_samples=sum(e.unknown_samples for e in evaluations),
        accuracy=_mean_of(e.accuracy for e in evaluations),
        balanced_accuracy=_mean_of(e.balanced_accuracy for e in evaluations),
        f1=_mean_of(e.f1 for e in evaluations),
        confusion=_sum([e.confusion for e in evaluations]),
        per_class=_means([e.per_class for e in evaluations]),
        open=OpenFigures(**_means([e.open.as_dict() for e in evaluations])),
        per_network=_means([e.per_network for e in evaluations]),
    )


def _means(figures: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    return {name: _mean_of(each[name] for each in figures) for name in figures[0]}


def _answers(
    predictor: Predictor, samples: Samples, classes: int, chunk: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Closed answers, open answers, unknown scores and yes-or-no answers [N, K] (else [N, 0]) of
    all samples, a chunk at a time.
    """
    closed, opened, unknown, yes = [], [], [], []
    with torch.no_grad():
        for part in samples.chunks(chunk):
            scores = predictor.scores(part.stored())
            if scores.known.shape[1] != classes:
                raise DataError(
                    f"the predictor scores {scores.known.shape[1]} classes, but {classes} are named"
                )
            bad = int((scores.known.isnan().any(dim=1) | scores.unknown.isnan()).sum())
            if bad:
                raise DataError(
                    f"the scores of {bad} of {len(scores.unknown)} samples are NaN; "
                    "training has probably diverged: try a smaller learning rate"
                )
            closed.append(scores.closed.cpu())
            opened.append(scores.open.cpu())
            unknown.append(scores.unknown.cpu())
            yes.append(scores.known[:, : classes if predictor.binary else 0].cpu() > 0)
    return torch.cat(closed), torch.cat(opened), torch.cat(unknown), torch.cat(yes)


def _sum(matrices: Iterable[Confusion]) -> Confusion:
    """Counts of several matrices together; empty ones add nothing."""
    counted = [np.array(matrix) for matrix in matrices if matrix]
    return tuple(map(tuple, np.sum(counted, axis=0).tolist())) if counted else ()


def _mean_of(figures: Iterable[float | None]) -> float | None:
    defined = [f for f in figures if f is not None]
    return fmean(defined) if defined else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
