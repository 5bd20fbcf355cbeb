"""Metrics against numbers derived by hand, scikit-learn,
and slow references that share no code with them.
"""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch import Tensor

from ostraka.errors import ConfigError, DataError
from ostraka.evaluation import metrics

# few distinct values, so that ties are frequent
SAMPLES = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-1, 2), st.integers(0, 2)), min_size=2, max_size=40
).filter(lambda rows: len({label == -1 for _, label, _ in rows}) == 2)


def columns(rows: list[tuple[int, int, int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, labels and closed answers of drawn rows."""
    scores, labels, answers = zip(*rows, strict=True)
    return torch.tensor(scores, dtype=torch.float32), torch.tensor(labels), torch.tensor(answers)


def slow_oscr(answers: Tensor, labels: Tensor, scores: Tensor) -> float:
    """The definition: walk the thresholds, measure CCR and FPR at each, add up trapezia."""
    known, unknown = labels != -1, labels == -1
    points = [(0.0, 0.0)]
    for threshold in sorted(set(scores.tolist())):
        accepted = scores <= threshold
        correct = int((accepted & known & (answers == labels)).sum())
        points.append(
            (int((accepted & unknown).sum()) / int(unknown.sum()), correct / int(known.sum()))
        )
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(points))


def test_accuracy_leaves_unknown_samples_out_and_open_accuracy_counts_them() -> None:
    """Known: 0, 1, 1, 2 answered 0, 1, 2, 2: 3 of 4.

    With the unknown sample called unknown: 4 of 5.
    """
    labels = torch.tensor([0, 1, 1, 2, -1])
    assert metrics.accuracy(torch.tensor([0, 1, 2, 2, 0]), labels) == 0.75
    assert metrics.open_accuracy(torch.tensor([0, 1, 2, 2, -1]), labels) == 0.8
    assert metrics.open_accuracy(torch.tensor([-1, 1, 2, 2, 0]), labels) == 0.4


def test_refused_samples_and_balanced_open_accuracy_by_hand() -> None:
    """Five known samples: two right, one wrong, two called unknown.

    Of four unknown ones three are called unknown. The known samples are right in 2 of 5, so
    balanced it is (0.4 + 0.75) / 2; plain it would be 5 of 9.
    """
    labels = torch.tensor([0, 1, 1, 2, 2, -1, -1, -1, -1])
    answers = torch.tensor([0, 1, 0, -1, -1, -1, -1, 2, -1])
    assert metrics.known_refused(answers, labels) == 0.4
    assert metrics.unknown_refused(answers, labels) == 0.75
    assert metrics.balanced_open_accuracy(answers, labels) == pytest.approx(0.575)
    assert metrics.open_accuracy(answers, labels) == 5 / 9


@pytest.mark.parametrize(
    ("answers", "known", "unknown"), [([0, 1, 0], 0.0, 0.0), ([-1, -1, -1], 1.0, 1.0)]
)
def test_never_and_always_unknown_are_half_right(
    answers: list[int], known: float, unknown: float
) -> None:
    """Every class is right, or every unknown sample is: one half in balance."""
    given, labels = torch.tensor(answers), torch.tensor([0, 1, -1])
    assert (metrics.known_refused(given, labels), metrics.unknown_refused(given, labels)) == (
        known,
        unknown,
    )
    assert metrics.balanced_open_accuracy(given, labels) == 0.5


def test_an_unknown_answer_to_an_unknown_sample_does_not_raise_closed_accuracy() -> None:
    """One of two known samples is right; the unknown one, answered -1, must not count."""
    assert metrics.accuracy(torch.tensor([0, 0, -1]), torch.tensor([0, 1, -1])) == 0.5


def test_per_class_accuracy() -> None:
    """Class 0: 1 of 2; class 1: 2 of 2; class 2: no sample; class 3: 0 of 1."""
    labels = torch.tensor([0, 0, 1, 1, 3, -1])
    answers = torch.tensor([0, 1, 1, 1, 2, 3])
    assert metrics.per_class_accuracy(answers, labels, 4) == [0.5, 1.0, None, 0.0]


@pytest.mark.parametrize("label", [-2, 3])
def test_labels_outside_the_classes_are_refused(label: int) -> None:
    with pytest.raises(DataError, match=f"label {label} does not fit 3 known classes"):
        metrics.per_class_accuracy(torch.tensor([0, 1]), torch.tensor([0, label]), 3)


def test_auroc_by_hand() -> None:
    """Known 1, 2, 3; unknown 2, 4.

    Of six pairs: (1<2), (2=2) a half, (3>2) none, three times below 4: 4.5 / 6.
    """
    scores = torch.tensor([1.0, 2.0, 3.0, 2.0, 4.0])
    assert metrics.auroc(scores, torch.tensor([False, False, False, True, True])) == 0.75


def test_auroc_direction() -> None:
    """Larger must mean more unknown: unknown samples that score high give 1,
    the flipped sign gives 0.
    """
    scores, is_unknown = (
        torch.tensor([-5.0, 0.0, 1.0, 9.0]),
        torch.tensor([False, False, True, True]),
    )
    assert metrics.auroc(scores, is_unknown) == 1.0
    assert metrics.auroc(-scores, is_unknown) == 0.0
    assert metrics.auroc(torch.zeros(4), is_unknown) == 0.5


@settings(max_examples=60, deadline=None)
@given(SAMPLES)
def test_auroc_equals_scikit_learn(rows: list[tuple[int, int, int]]) -> None:
    scores, labels, _ = columns(rows)
    ours = metrics.auroc(scores, labels == -1)
    assert ours == pytest.approx(roc_auc_score((labels == -1).numpy(), scores.numpy()), abs=1e-12)


def test_auroc_equals_scikit_learn_on_many_continuous_scores() -> None:
    rng = torch.Generator().manual_seed(5)
    is_unknown = torch.rand(100_000, generator=rng) < 0.3
    scores = torch.randn(100_000, generator=rng) + 0.7 * is_unknown
    expected = roc_auc_score(is_unknown.numpy(), scores.numpy())
    assert metrics.auroc(scores, is_unknown) == pytest.approx(expected, abs=1e-12)
    assert expected > 0.65  # far from one half, where a wrong sign could hide


def test_infinite_scores_rank_as_extremes() -> None:
    scores = torch.tensor([-math.inf, 0.0, math.inf])
    assert metrics.auroc(scores, torch.tensor([False, False, True])) == 1.0


def test_fpr95_by_hand() -> None:
    """Known 1..20: nineteen of them (95%) are accepted at t = 19.

    Unknown 5, 19, 19.5, 30: two are at most 19.
    """
    scores = torch.tensor([*range(1, 21), 5, 19, 19.5, 30], dtype=torch.float64)
    is_unknown = torch.arange(24) >= 20
    assert metrics.fpr_at_tpr(scores, is_unknown) == 0.5
    assert metrics.fpr_at_tpr(scores, is_unknown, tpr=1.0) == 0.75  # t = 20 accepts 19.5 too
    assert metrics.fpr_at_tpr(scores, is_unknown, tpr=0.2) == 0.0  # t = 4


def test_fpr_direction() -> None:
    """Unknown samples that all score above the known ones are never accepted.

    With the flipped sign always.
    """
    scores, is_unknown = (
        torch.tensor([0.0, 1.0, 2.0, 3.0]),
        torch.tensor([False, False, True, True]),
    )
    assert metrics.fpr_at_tpr(scores, is_unknown) == 0.0
    assert metrics.fpr_at_tpr(-scores, is_unknown) == 1.0


def test_fpr_rate_is_not_spoilt_by_floating_point() -> None:
    """7% of known 1..100 is seven samples, t = 7, although 0.07 * 100 > 7.

    The unknown sample at 7.5 stays out.
    """
    assert 0.07 * 100 > 7
    scores = torch.tensor([*range(1, 101), 7.5], dtype=torch.float64)
    assert metrics.fpr_at_tpr(scores, torch.arange(101) == 100, tpr=0.07) == 0.0


@pytest.mark.parametrize("rate", [0.0, 1.5, math.nan])
def test_an_impossible_rate_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match="true-positive rate"):
        metrics.fpr_at_tpr(torch.tensor([0.0, 1.0]), torch.tensor([False, True]), tpr=rate)


def test_oscr_by_hand() -> None:
    """Known scores 1 (right), 2 (wrong), 3 (right); unknown 2, 4.

    Pairs with a right known sample that scores lower: 1 < 2, 1 < 4, 3 < 4: 3 of 6. The wrong one,
    tied at 2, adds nothing.
    """
    labels, answers = torch.tensor([0, 1, 2, -1, -1]), torch.tensor([0, 0, 2, 1, 1])
    scores = torch.tensor([1.0, 2.0, 3.0, 2.0, 4.0])
    assert metrics.oscr(answers, labels, scores) == 0.5
    # one right tie: a half
    assert metrics.oscr(answers, labels, torch.tensor([2.0, 2.0, 3.0, 2.0, 4.0])) == 2.5 / 6


def test_oscr_limits() -> None:
    """Perfect answers and ranking give 1; the flipped sign or no right answer gives 0."""
    labels, scores = torch.tensor([0, 1, -1]), torch.tensor([0.0, 1.0, 2.0])
    assert metrics.oscr(torch.tensor([0, 1, 0]), labels, scores) == 1.0
    assert metrics.oscr(torch.tensor([0, 1, 0]), labels, -scores) == 0.0
    assert metrics.oscr(torch.tensor([1, 0, 0]), labels, scores) == 0.0


@settings(max_examples=100, deadline=None)
@given(SAMPLES)
def test_oscr_equals_its_definition_and_its_bounds(rows: list[tuple[int, int, int]]) -> None:
    scores, labels, answers = columns(rows)
    ours = metrics.oscr(answers, labels, scores)
    auroc, accuracy = metrics.auroc(scores, labels == -1), metrics.accuracy(answers, labels)
    assert ours is not None
    assert auroc is not None
    assert accuracy is not None
    assert ours == pytest.approx(slow_oscr(answers, labels, scores), abs=1e-12)
    assert ours <= min(auroc, accuracy) + 1e-12
    assert metrics.oscr(labels.clamp(min=0), labels, scores) == auroc  # every closed answer right


def test_undefined_figures_are_none() -> None:
    """Only known samples, only unknown ones, none at all."""
    scores, zeros = torch.tensor([0.0, 1.0]), torch.tensor([0, 0])
    for labels in (torch.tensor([0, 1]), torch.tensor([-1, -1])):
        assert metrics.auroc(scores, labels == -1) is None
        assert metrics.fpr_at_tpr(scores, labels == -1) is None
        assert metrics.oscr(zeros, labels, scores) is None
    assert metrics.accuracy(zeros, torch.tensor([-1, -1])) is None
    assert metrics.open_accuracy(zeros[:0], zeros[:0]) is None
    known, unknown = torch.tensor([0, 1]), torch.tensor([-1, -1])
    assert (metrics.known_refused(zeros, unknown), metrics.unknown_refused(zeros, known)) == (
        None,
        None,
    )
    assert (metrics.known_refused(zeros, known), metrics.unknown_refused(zeros, unknown)) == (
        0.0,
        0.0,
    )
    for labels in (known, unknown, zeros[:0]):
        assert metrics.balanced_open_accuracy(torch.zeros(len(labels)), labels) is None


def test_nan_scores_are_refused() -> None:
    scores, labels = torch.tensor([0.0, math.nan, 1.0]), torch.tensor([0, 0, -1])
    with pytest.raises(DataError, match="1 of 3 unknown scores are NaN"):
        metrics.auroc(scores, labels == -1)
    with pytest.raises(DataError, match="NaN"):
        metrics.fpr_at_tpr(scores, labels == -1)
    with pytest.raises(DataError, match="NaN"):
        metrics.oscr(labels, labels, scores)


def test_shapes_that_disagree_are_shown() -> None:
    with pytest.raises(DataError, match=r"answers \[2\], labels \[3\]"):
        metrics.accuracy(torch.zeros(2), torch.zeros(3))
    for figure in (metrics.known_refused, metrics.unknown_refused, metrics.open_accuracy):
        with pytest.raises(DataError, match=r"open_answers \[1\], labels \[3\]"):
            figure(torch.zeros(1), torch.zeros(3))
    with pytest.raises(DataError, match=r"unknown_scores \[2, 1\]"):
        metrics.auroc(torch.zeros(2, 1), torch.zeros(2, 1))


def test_confusion_by_hand() -> None:
    """Rows are true classes, columns answers; unknown is the last of both
    where it is counted, else left out.
    """
    answers, labels = torch.tensor([0, 1, 1, -1, 0]), torch.tensor([0, 0, 1, -1, -1])
    assert metrics.confusion(answers, labels, 2, unknown=True).tolist() == [
        [1, 1, 0],
        [0, 1, 0],
        [1, 0, 1],
    ]
    assert metrics.confusion(answers, labels, 3).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    with pytest.raises(DataError, match="an answer is unknown"):
        metrics.confusion(torch.tensor([-1]), torch.tensor([0]), 2)


def test_macro_f1_by_hand() -> None:
    """a: right 1, held 2, answered 1: 2/3. b: right 1, held 1,
    answered 1: 1. c has no samples: a miss of a.
    """
    answers, labels = torch.tensor([0, 2, 1]), torch.tensor([0, 0, 1])
    assert metrics.macro_f1(answers, labels, 3) == pytest.approx((2 / 3 + 1) / 2)
    assert metrics.macro_f1(torch.tensor([0]), torch.tensor([-1]), 3) is None
