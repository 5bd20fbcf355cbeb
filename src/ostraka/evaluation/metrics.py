"""Figures of merit as pure functions of tensors.

Score direction: larger `unknown_scores` = more unknown, everywhere. Labels and open answers use
UNKNOWN (-1) for a sample of no known class. Every figure is a share in [0, 1].

A figure that the samples cannot define (no known samples, or no unknown ones where both are
compared) is None. Tensors that do not match, or scores that are NaN, raise DataError: NaN has no
place in a ranking. Infinite scores do.
"""

import math

import torch
from torch import Tensor

from ostraka.core.predictor import UNKNOWN
from ostraka.errors import ConfigError, DataError


def accuracy(answers: Tensor, labels: Tensor) -> float | None:
    """Share of correct answers among the samples of known classes; None when there are none."""
    _same_length(answers=answers, labels=labels)
    known = labels != UNKNOWN
    return _share((answers == labels) & known, int(known.sum()))


def open_accuracy(open_answers: Tensor, labels: Tensor) -> float | None:
    """Share of correct answers with unknown as one more class: a known sample called unknown is
    wrong, and so is an unknown sample called anything else. None without samples.
    """
    _same_length(open_answers=open_answers, labels=labels)
    return _share(open_answers == labels, len(labels))


def known_refused(open_answers: Tensor, labels: Tensor) -> float | None:
    """Share of the samples of known classes that are called unknown.

    Lower = better; None without known samples.
    """
    _same_length(open_answers=open_answers, labels=labels)
    return _refused(open_answers, labels != UNKNOWN)


def unknown_refused(open_answers: Tensor, labels: Tensor) -> float | None:
    """Share of the samples of unknown classes that are called unknown.

    None without unknown samples.
    """
    _same_length(open_answers=open_answers, labels=labels)
    return _refused(open_answers, labels == UNKNOWN)


def balanced_open_accuracy(open_answers: Tensor, labels: Tensor) -> float | None:
    """Mean of two shares: of the known samples answered with their class,
    and of the unknown ones called unknown.

    However many samples of either kind there are, both count the same: a predictor
    that never answers unknown, or always, cannot reach more than one half. None unless
    both kinds of sample are present.
    """
    known, unknown = accuracy(open_answers, labels), unknown_refused(open_answers, labels)
    return None if known is None or unknown is None else (known + unknown) / 2


def per_class_accuracy(answers: Tensor, labels: Tensor, classes: int) -> list[float | None]:
    """Share of correct answers for each of the `classes` known classes;
    None for a class without samples.
    """
    _same_length(answers=answers, labels=labels)
    check_labels(labels, classes)
    known = labels != UNKNOWN
    total = torch.bincount(labels[known], minlength=classes)
    right = torch.bincount(labels[known & (answers == labels)], minlength=classes)
    return [r / t if t else None for r, t in zip(right.tolist(), total.tolist(), strict=True)]


def confusion(answers: Tensor, labels: Tensor, classes: int, unknown: bool = False) -> Tensor:
    """Samples by true class (rows) and answer (columns), [classes, classes].

    With `unknown`, unknown is one more class, the last row and column; else samples of no known
    class are left out, and an answer of unknown is an error, as it would have no column.
    """
    _same_length(answers=answers, labels=labels)
    check_labels(labels, classes)
    if not unknown:
        kept = labels != UNKNOWN
        answers, labels = answers[kept], labels[kept]
        if (answers == UNKNOWN).any():
            raise DataError(
                "an answer is unknown, for which this confusion matrix "
                "has no column; count unknown too"
            )
    size = classes + unknown
    cells = labels % size * size + answers % size  # -1 % size: unknown is the last one
    return torch.bincount(cells, minlength=size * size).reshape(size, size)


def macro_f1(answers: Tensor, labels: Tensor, classes: int) -> float | None:
    """F1 of each class (harmonic mean of precision and recall), then their plain mean.

    Over the samples and classes that accuracy is over: those of known classes, and of these the
    ones that have samples. An answer that names a class without samples is a miss of its true class
    and no more. None without known samples.
    """
    table = confusion(answers, labels, classes)
    right, held, answered = (
        table.diagonal().tolist(),
        table.sum(dim=1).tolist(),
        table.sum(dim=0).tolist(),
    )
    shares = [2 * r / (h + a) for r, h, a in zip(right, held, answered, strict=True) if h]
    return sum(shares) / len(shares) if shares else None


def auroc(unknown_scores: Tensor, is_unknown: Tensor) -> float | None:
    """Probability that a random unknown sample scores more unknown than a random known one.

    A tie counts one half. Exact: pairs are counted in integers. None unless
    both kinds of sample are present.
    """
    known, unknown = _by_kind(unknown_scores, is_unknown)
    pairs = len(known) * len(unknown)
    return _twice_ordered_pairs(known, unknown) / (2 * pairs) if pairs else None


def fpr_at_tpr(unknown_scores: Tensor, is_unknown: Tensor, tpr: float = 0.95) -> float | None:
    """FPR95: share of the unknown samples accepted as known when `tpr` of the known samples are.

    Lower = better. The positives are the *known* samples, as is usual for FPR95: a sample is
    accepted when its unknown score is at most t, and t is the smallest known score that accepts at
    least `tpr` of the known samples. An unknown sample tied with t is accepted. None unless both
    kinds of sample are present.
    """
    if not 0 < tpr <= 1:
        raise ConfigError(f"the true-positive rate must lie above 0 and at most 1; {tpr} was given")
    known, unknown = _by_kind(unknown_scores, is_unknown)
    if not len(known) or not len(unknown):
        return None
    # 0.07 * 100 is 7.000000000000001 in floating point:
    # without the margin it would ask for an eighth sample
    accepted = max(1, math.ceil(tpr * len(known) - 1e-9))
    threshold = known.sort().values[accepted - 1]
    return _share(unknown <= threshold, len(unknown))


def oscr(closed_answers: Tensor, labels: Tensor, unknown_scores: Tensor) -> float | None:
    """Open-set classification rate: area under CCR(t) against FPR(t) over all thresholds t.

    CCR(t) is the share of the known samples that are answered correctly *and* have an unknown
    score of at most t; FPR(t) is the share of the unknown samples with an unknown score of at
    most t (Dhamija, Guenther and Boult, 2018, with one score for both axes). Tied samples
    enter together, by the trapezium rule, so the area is the share of (known, unknown) pairs
    in which the known sample is correct and scores lower, a tie counting one half. It is
    therefore AUROC when every closed answer is correct, and never exceeds the closed accuracy.
    None unless both kinds of sample are present.
    """
    _same_length(closed_answers=closed_answers, labels=labels, unknown_scores=unknown_scores)
    known, unknown = _by_kind(unknown_scores, labels == UNKNOWN)
    correct = _ranked(unknown_scores)[((closed_answers == labels) & (labels != UNKNOWN)).cpu()]
    pairs = len(known) * len(unknown)
    return _twice_ordered_pairs(correct, unknown) / (2 * pairs) if pairs else None


def check_labels(labels: Tensor, classes: int) -> None:
    """Refuse labels that are neither UNKNOWN nor one of the known classes."""
    strange = labels[(labels < UNKNOWN) | (labels >= classes)]
    if len(strange):
        raise DataError(
            f"label {int(strange[0])} does not fit {classes} known classes; "
            f"labels run from 0 to {classes - 1}, and {UNKNOWN} marks a sample of no known class"
        )


def _twice_ordered_pairs(low: Tensor, high: Tensor) -> int:
    """Twice the number of pairs with low < high, plus the number of ties:
    an integer, so nothing is rounded.
    """
    order = low.sort().values
    below = torch.searchsorted(order, high, right=False)
    up_to = torch.searchsorted(order, high, right=True)
    return int((below + up_to).sum())


def _by_kind(scores: Tensor, is_unknown: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of the known samples, and of the unknown ones."""
    _same_length(unknown_scores=scores, is_unknown=is_unknown)
    ranked, flags = _ranked(scores), is_unknown.bool().cpu()
    return ranked[~flags], ranked[flags]


def _ranked(scores: Tensor) -> Tensor:
    values = scores.detach().to("cpu", torch.float64)
    bad = int(values.isnan().sum())
    if bad:
        raise DataError(
            f"{bad} of {len(values)} unknown scores are NaN, so the samples cannot be ranked; "
            "training has probably diverged: try a smaller learning rate"
        )
    return values


def _refused(open_answers: Tensor, among: Tensor) -> float | None:
    return _share((open_answers == UNKNOWN) & among, int(among.sum()))


def _share(hits: Tensor, total: int) -> float | None:
    return int(hits.sum()) / total if total else None


def _same_length(**tensors: Tensor) -> None:
    if len({tuple(t.shape) for t in tensors.values()}) > 1 or any(
        t.dim() != 1 for t in tensors.values()
    ):
        shapes = ", ".join(f"{name} {list(t.shape)}" for name, t in tensors.items())
        raise DataError(
            f"one value for each sample is needed in every tensor, but the shapes are {shapes}"
        )
