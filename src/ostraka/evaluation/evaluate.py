"""What a predictor is worth on labelled samples; all figures in percent, None where the samples cannot define one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from ostraka.core.predictor import UNKNOWN, Predictor, Solo
from ostraka.core.samples import Samples
from ostraka.errors import DataError
from ostraka.evaluation import metrics


@dataclass(frozen=True)
class OpenFigures:
    """Open-set figures in percent; see `metrics` for what each one means. FPR95 alone is better when lower."""

    auroc: float | None
    fpr95: float | None
    oscr: float | None
    open_accuracy: float | None

    def as_dict(self) -> dict[str, float | None]:
        """Plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Evaluation:
    """Figures of one predictor. `open` is None when no sample is of an unknown class.

    `per_part` holds the figures of each model that stands alone (`Solo`); the other figures are then means of theirs.
    """

    samples: int
    unknown_samples: int
    accuracy: float | None
    per_class: dict[str, float | None]
    open: OpenFigures | None = None
    per_part: "dict[str, Evaluation]" = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: no NaN, None where undefined."""
        return {
            "samples": self.samples,
            "unknown_samples": self.unknown_samples,
            "accuracy": self.accuracy,
            "per_class": dict(self.per_class),
            "open": self.open.as_dict() if self.open else None,
            "per_part": {name: part.as_dict() for name, part in self.per_part.items()},
        }


@dataclass(frozen=True)
class DomainEvaluation:
    """Figures on each domain, and their plain mean: every domain counts the same, however many samples it has."""

    per_domain: dict[str, Evaluation]
    average: Evaluation

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        per_domain = {name: one.as_dict() for name, one in self.per_domain.items()}
        return {"per_domain": per_domain, "average": self.average.as_dict()}


def evaluate(predictor: Predictor, samples: Samples, classes: Sequence[str], chunk: int = 1000) -> Evaluation:
    """Figures of `predictor` on `samples`; a label of UNKNOWN marks a sample of no known class.

    Closed-set figures use the samples of known classes only. At most `chunk` samples are turned into inputs at a time,
    and only the answers and unknown scores of one model are kept.
    """
    if not len(samples):
        raise DataError("there are no samples to evaluate on; give at least one")
    if len(set(classes)) != len(classes):
        raise DataError(f"class names must differ from each other, but they are {', '.join(classes)}")
    metrics.check_labels(samples.labels, len(classes))
    if isinstance(predictor, Solo):
        return _alone(predictor, samples, classes, chunk)
    labels = samples.labels.cpu()
    closed, opened, unknown_scores = _answers(predictor, samples, len(classes), chunk)
    per_class = metrics.per_class_accuracy(closed, labels, len(classes))
    unknown = int((labels == UNKNOWN).sum())
    return Evaluation(
        samples=len(labels),
        unknown_samples=unknown,
        accuracy=_percent(metrics.accuracy(closed, labels)),
        per_class={name: _percent(share) for name, share in zip(classes, per_class, strict=True)},
        open=_open_figures(closed, opened, unknown_scores, labels) if unknown else None,
    )


def evaluate_domains(
    predictor: Predictor, domains: Mapping[str, Samples], classes: Sequence[str], chunk: int = 1000
) -> DomainEvaluation:
    """`evaluate` on the samples of each domain, and the mean over domains (its `per_part` stays empty)."""
    if not domains:
        raise DataError("there are no domains to evaluate on; give at least one")
    per_domain = {name: evaluate(predictor, samples, classes, chunk) for name, samples in domains.items()}
    return DomainEvaluation(per_domain, _mean(list(per_domain.values())))


def per_party(
    predictor: Predictor, samples: Samples, party_class_counts: Mapping[str, Tensor], chunk: int = 1000
) -> dict[str, float | None]:
    """Accuracy that each party would see, in percent, if its future samples came in the proportions of its own data.

    That is the mean of the per-class accuracies, weighted by the party's class counts: the same shared test samples
    serve every party, so the figure does not depend on a small local test set. With `Solo`, a party sees its own model.
    """
    sizes = {len(counts) for counts in party_class_counts.values()}
    if len(sizes) != 1:
        raise DataError(f"every party needs one count for each class, but the numbers of counts are {sorted(sizes)}")
    evaluation = evaluate(predictor, samples, [str(k) for k in range(sizes.pop())], chunk)
    return seen_by_parties(evaluation, party_class_counts)


def seen_by_parties(evaluation: Evaluation, party_class_counts: Mapping[str, Tensor]) -> dict[str, float | None]:
    """As `per_party`, from an evaluation already made.

    Classes without test samples carry no weight. None for a party that has no samples of the tested classes, or, when
    models stand alone, no model of its own (it dropped out).
    """
    parts = evaluation.per_part
    if parts and not parts.keys() & party_class_counts.keys():
        raise DataError(f"none of the parties {list(party_class_counts)} has a model of its own; models: {list(parts)}")
    seen: dict[str, float | None] = {}
    for party, counts in party_class_counts.items():
        mine = parts.get(party) if parts else evaluation
        seen[party] = _weighted(list(mine.per_class.values()), counts.tolist()) if mine else None
    return seen


def _weighted(figures: Sequence[float | None], weights: Sequence[float]) -> float | None:
    if len(figures) != len(weights):
        raise DataError(f"{len(weights)} class counts were given for {len(figures)} classes; give one for each class")
    tested = [(f, w) for f, w in zip(figures, weights, strict=True) if f is not None]
    total = sum(w for _, w in tested)
    return sum(f * w for f, w in tested) / total if total else None


def _alone(predictor: Solo, samples: Samples, classes: Sequence[str], chunk: int) -> Evaluation:
    if not predictor.alone:
        raise DataError("there is no model to evaluate: no party finished its training")
    parts = {}
    # model by model, not chunk by chunk: a thousand models' answers at once would not be bounded memory
    for name, part in predictor.alone.items():
        try:
            parts[name] = evaluate(part, samples, classes, chunk)
        except DataError as error:
            raise DataError(f"the model of {name} cannot be evaluated: {error}") from error
    first = next(iter(parts.values()))
    # every model met the same samples: they are counted once
    mean = _mean(list(parts.values()))
    return replace(mean, samples=first.samples, unknown_samples=first.unknown_samples, per_part=parts)


def _mean(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The mean of every figure over the evaluations that define it; counts of samples are summed."""
    opens = [e.open.as_dict() for e in evaluations if e.open]
    figures = {name: _mean_of(o[name] for o in opens) for name in opens[0]} if opens else None
    return Evaluation(
        samples=sum(e.samples for e in evaluations),
        unknown_samples=sum(e.unknown_samples for e in evaluations),
        accuracy=_mean_of(e.accuracy for e in evaluations),
        per_class={name: _mean_of(e.per_class[name] for e in evaluations) for name in evaluations[0].per_class},
        open=OpenFigures(**figures) if figures else None,
    )


def _answers(predictor: Predictor, samples: Samples, classes: int, chunk: int) -> tuple[Tensor, Tensor, Tensor]:
    """Closed answers, open answers and unknown scores of all samples, a chunk at a time."""
    closed, opened, unknown = [], [], []
    with torch.no_grad():
        for start in range(0, len(samples), chunk):
            scores = predictor.scores(samples.inputs(slice(start, start + chunk)))
            if scores.known.shape[1] != classes:
                raise DataError(f"the predictor scores {scores.known.shape[1]} classes, but {classes} are named")
            bad = int((scores.known.isnan().any(dim=1) | scores.unknown.isnan()).sum())
            if bad:
                raise DataError(
                    f"the scores of {bad} of {len(scores.unknown)} samples are NaN; "
                    "training has probably diverged: try a smaller learning rate"
                )
            closed.append(scores.closed.cpu())
            opened.append(scores.open.cpu())
            unknown.append(scores.unknown.cpu())
    return torch.cat(closed), torch.cat(opened), torch.cat(unknown)


def _open_figures(closed: Tensor, opened: Tensor, unknown_scores: Tensor, labels: Tensor) -> OpenFigures:
    is_unknown = labels == UNKNOWN
    return OpenFigures(
        auroc=_percent(metrics.auroc(unknown_scores, is_unknown)),
        fpr95=_percent(metrics.fpr_at_tpr(unknown_scores, is_unknown)),
        oscr=_percent(metrics.oscr(closed, labels, unknown_scores)),
        open_accuracy=_percent(metrics.open_accuracy(opened, labels)),
    )


def _mean_of(figures: Iterable[float | None]) -> float | None:
    defined = [f for f in figures if f is not None]
    return fmean(defined) if defined else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
