"""Evaluation of predictors whose scores are written down by hand."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import Tensor

from ostraka.core.predictor import Placed, Predictor, Scores, Solo
from ostraka.core.samples import Samples
from ostraka.errors import DataError
from ostraka.evaluation.evaluate import Evaluation, OpenFigures, evaluate, seen_by_parties

CLASSES = ("ant", "bee", "cat")


@dataclass(frozen=True)
class Written(Predictor):
    """Answers sample number x with `answers[x]`, and calls it unknown where `unknown[x] > 0`."""

    answers: Sequence[int]
    unknown: Sequence[float]
    batches: list[int] = field(default_factory=list)
    gradients: list[bool] = field(default_factory=list)

    def scores(self, x: Tensor) -> Scores:
        """Scores looked up by the value of the input."""
        self.batches.append(len(x))
        self.gradients.append(torch.is_grad_enabled())
        index = x[:, 0].long()
        known = torch.nn.functional.one_hot(torch.tensor(self.answers)[index], len(CLASSES)).float()
        return Scores(known, torch.tensor(self.unknown)[index], 0.0)


def numbered(labels: Sequence[int]) -> Samples:
    """Samples whose input is their own number."""
    return Samples(
        torch.arange(len(labels), dtype=torch.float32).unsqueeze(1), torch.tensor(labels)
    )


# 0 ant right, 1 ant right but called unknown, 2 bee right, 3 bee wrong,
# 4 unknown and called so, 5 unknown called bee
LABELS = (0, 0, 1, 1, -1, -1)
GOOD = Written((0, 0, 1, 2, 0, 1), (-4.0, 1.0, -3.0, -2.0, 2.0, -1.0))


def test_every_figure_by_hand() -> None:
    """Known scores -4 -2 -3 (wrong at -2) and 1; unknown 2 and -1.

    AUROC: all four are below 2, three below -1: 7 of 8. OSCR: without the wrong one (-2): 3 + 2 = 5
    of 8. FPR95: all four known samples must be accepted, t = 1; of the unknown ones only -1 is: 1
    of 2. Open answers right: samples 0, 2, 4: 3 of 6. Called unknown: 1 of the four known samples,
    4 of the two unknown ones. Balanced: 2 of 4 known samples right, 1 of 2 unknown ones.
    """
    result = evaluate(GOOD, numbered(LABELS), CLASSES)
    assert (result.samples, result.unknown_samples) == (6, 2)
    assert result.accuracy == 75.0
    assert result.per_class == {"ant": 100.0, "bee": 50.0, "cat": None}
    assert (result.open.auroc, result.open.oscr) == (87.5, 62.5)
    assert (result.open.fpr95, result.open.open_accuracy) == (50.0, 50.0)
    assert (result.open.known_refused, result.open.unknown_refused) == (25.0, 50.0)
    assert result.open.balanced_accuracy == 50.0


def test_balanced_accuracy_f1_and_confusion_by_hand() -> None:
    """Closed answers: ants both right, bees one of two, so 75 balanced.

    F1 of ant 1, of bee 2 * 1 / (2 + 1): 5/6. The matrix has the open answers, as the test has
    unknown classes: one ant and one unknown sample are called unknown. Cat has no samples: an empty
    row, and no part in the means.
    """
    result = evaluate(GOOD, numbered(LABELS), CLASSES)
    assert result.balanced_accuracy == 75.0
    assert result.f1 == pytest.approx(500 / 6)
    assert result.confusion == ((1, 0, 0, 1), (0, 1, 1, 0), (0, 0, 0, 0), (0, 1, 0, 1))
    closed = evaluate(GOOD, numbered(LABELS[:4]), CLASSES)
    assert closed.confusion == ((2, 0, 0), (0, 1, 1), (0, 0, 0))
    assert sum(map(sum, closed.confusion)) == closed.samples


def test_balanced_accuracy_counts_a_rare_class_like_a_frequent_one() -> None:
    """Three ants, one bee, always ant: 75, balanced (100 + 0) / 2; F1 of ant 6/7, of bee 0."""
    result = evaluate(Written((0,) * 4, (0.0,) * 4), numbered((0, 0, 0, 1)), CLASSES)
    assert (result.accuracy, result.balanced_accuracy) == (75.0, 50.0)
    assert result.f1 == pytest.approx(300 / 7)


def test_figures_over_models_and_domains_are_means_and_the_matrix_their_sum() -> None:
    """Photos have no unknown sample here, sketches one:
    every matrix has a place for unknown, so they add up.

    Photos: ants right (one called unknown), a bee right; sketches: a bee called cat,
    an unknown one called so.
    """
    samples = numbered(LABELS).take(torch.tensor([0, 1, 2, 3, 4]))
    domains = {"photo": torch.tensor([0, 1, 2]), "sketch": torch.tensor([3, 4])}
    result = evaluate(GOOD, samples, CLASSES, domains=domains)
    assert result.per_domain["photo"].confusion == (
        (1, 0, 0, 1),
        (0, 1, 0, 0),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
    )
    assert result.confusion == ((1, 0, 0, 1), (0, 1, 1, 0), (0, 0, 0, 0), (0, 0, 0, 1))
    assert (result.balanced_accuracy, result.f1) == (50.0, 50.0)
    twice = evaluate(Solo({0: GOOD, 1: GOOD}), samples, CLASSES, domains=domains)
    assert (twice.balanced_accuracy, twice.f1) == (50.0, 50.0)
    assert twice.confusion == ((2, 0, 0, 2), (0, 2, 2, 0), (0, 0, 0, 0), (0, 0, 0, 2))
    assert all(part.confusion == () for part in twice.per_part.values())


def test_parties_with_one_name_are_both_counted() -> None:
    """Three models with 75, 50 and 50, two of them of parties with the
    same name: the mean is over three.
    """
    dull = Written((0,) * 6, (0.0,) * 6)
    alone = Solo({0: GOOD, 1: dull, 2: dull}, {0: "clinic", 1: "clinic", 2: "ward"})
    result = evaluate(alone, numbered(LABELS), CLASSES)
    assert result.accuracy == pytest.approx((75 + 50 + 50) / 3)
    assert list(result.per_part) == [0, 1, 2]


def test_chunks_bound_the_batch_and_change_nothing() -> None:
    small = Written(GOOD.answers, GOOD.unknown)
    assert evaluate(small, numbered(LABELS), CLASSES, chunk=4) == evaluate(
        GOOD, numbered(LABELS), CLASSES
    )
    assert small.batches == [4, 2]
    assert small.gradients == [False, False]


def test_a_subset_is_judged_by_its_own_rows() -> None:
    """Rows 3 and 2 only: one bee wrong, one right."""
    result = evaluate(GOOD, numbered(LABELS).take(torch.tensor([3, 2])), CLASSES)
    assert (result.samples, result.accuracy, result.per_class["ant"]) == (2, 50.0, None)


UNDEFINED = {"auroc": None, "fpr95": None, "oscr": None, "balanced_accuracy": None}


def test_without_unknown_samples_the_known_ones_called_unknown_are_counted() -> None:
    """One of four known samples is called unknown,
    and with the wrong bee two open answers are not right.
    """
    opened = evaluate(GOOD, numbered(LABELS[:4]), CLASSES).open
    assert opened.as_dict() == {
        **UNDEFINED,
        "unknown_refused": None,
        "known_refused": 25.0,
        "open_accuracy": 50.0,
    }


def test_a_predictor_with_an_infinite_threshold_refuses_nothing() -> None:
    """Its open answers are its closed ones: right in 3 of 4 known samples,
    in none of the two unknown ones.
    """

    class Closed(Written):
        def scores(self, x: Tensor) -> Scores:
            return replace(super().scores(x), threshold=float("inf"))

    opened = evaluate(Closed(GOOD.answers, GOOD.unknown), numbered(LABELS), CLASSES).open
    assert (opened.known_refused, opened.unknown_refused, opened.balanced_accuracy) == (
        0.0,
        0.0,
        37.5,
    )


def test_with_only_unknown_samples_undefined_figures_are_none() -> None:
    result = evaluate(GOOD, numbered(LABELS).take(torch.tensor([4, 5])), CLASSES)
    assert result.accuracy is None
    assert result.open.as_dict() == {
        **UNDEFINED,
        "known_refused": None,
        "unknown_refused": 50.0,
        "open_accuracy": 50.0,
    }


def test_as_dict_is_strict_json_and_complete() -> None:
    result = evaluate(Solo({4: GOOD}), numbered(LABELS), CLASSES)
    back = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert back["accuracy"] == 75.0
    assert back["per_class"]["cat"] is None
    assert back["open"]["auroc"] == 87.5
    assert back["open"]["known_refused"] == 25.0
    assert back["per_part"]["4"]["open"]["oscr"] == 62.5


def test_models_that_stand_alone_are_judged_each_and_averaged() -> None:
    """The other model answers ant always and scores everything 0: accuracy 50, AUROC 50, OSCR 2 *
    2 / 2 of 8 = 25, FPR95 100, open accuracy 2 of 6, nothing called unknown. Its mean with the good
    one (75, 87.5, 62.5, 50, 50; 25 of the known and 50 of the unknown called unknown) is the
    headline, which the mean of their probabilities (one voter) would not give.
    """
    dull = Written((0,) * 6, (0.0,) * 6)
    result = evaluate(Solo({0: GOOD, 1: dull}), numbered(LABELS), CLASSES)
    assert result.per_part[0] == replace(evaluate(GOOD, numbered(LABELS), CLASSES), confusion=())
    assert result.per_part[1].accuracy == 50.0
    assert (result.samples, result.unknown_samples) == (6, 2)
    assert result.accuracy == 62.5
    assert result.per_class == {"ant": 100.0, "bee": 25.0, "cat": None}
    assert (result.open.auroc, result.open.oscr, result.open.fpr95) == (68.75, 43.75, 75.0)
    assert result.open.open_accuracy == pytest.approx((50 + 100 / 3) / 2)
    assert (result.open.known_refused, result.open.unknown_refused) == (12.5, 25.0)
    assert result.open.balanced_accuracy == (50.0 + 25.0) / 2


def test_a_partys_accuracy_weighs_classes_by_the_partys_own_mix() -> None:
    """Ant 100, bee 50: three ants to one bee give 87.5; cats are not tested,
    so they carry no weight.
    """
    mixes = {0: torch.tensor([3, 1, 0]), 1: torch.tensor([0, 2, 9]), 2: torch.tensor([0, 0, 5])}
    assert seen_by_parties(evaluate(GOOD, numbered(LABELS), CLASSES), mixes) == {
        0: 87.5,
        1: 50.0,
        2: None,
    }


def test_a_partys_accuracy_uses_a_partys_own_model_when_models_stand_alone() -> None:
    """On bees the good model has 50, the dull one 0; a party that dropped out has no figure."""
    alone = Solo({0: GOOD, 1: Written((0,) * 6, (0.0,) * 6)})
    bees = torch.tensor([0, 1, 0])
    found = evaluate(alone, numbered(LABELS), CLASSES)
    assert seen_by_parties(found, dict.fromkeys(range(3), bees)) == {
        0: 50.0,
        1: 0.0,
        2: None,
    }
    with pytest.raises(
        DataError, match=r"none of the parties \[7\] has a model of its own; models: \[0, 1\]"
    ):
        seen_by_parties(found, {7: bees})


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="2 class counts were given for 3 classes"):
        seen_by_parties(evaluate(GOOD, numbered(LABELS), CLASSES), {0: torch.ones(2)})


def by_name(*figures: float) -> dict[str, float]:
    """Open-set figures, all of them, in the order of this list."""
    names = (
        "auroc",
        "fpr95",
        "oscr",
        "open_accuracy",
        "known_refused",
        "unknown_refused",
        "balanced_accuracy",
    )
    return dict(zip(names, figures, strict=True))


@dataclass(frozen=True)
class YesOrNo(Written):
    """Each class has an answer of its own: yes for the one that is written down."""

    @property
    def binary(self) -> bool:
        return True


def test_yes_or_no_answers_are_judged_over_all_samples() -> None:
    """Ant: yes to 0, 1 and wrongly 4. Bee: yes to 2 and wrongly 5, no wrongly to 3. Cat: yes
    wrongly to 3. An unknown sample is a no for all.
    """
    answers = YesOrNo(GOOD.answers, GOOD.unknown)
    result = evaluate(Placed(answers, 9.0), numbered(LABELS), CLASSES)
    by_hand = {"ant": 500 / 6, "bee": 400 / 6, "cat": 500 / 6}
    assert result.per_network == pytest.approx(by_hand)
    assert result.as_dict()["per_network"] == pytest.approx(by_hand)
    assert "per_network" not in evaluate(GOOD, numbered(LABELS), CLASSES).as_dict()
    parts = evaluate(answers, numbered(LABELS), CLASSES, domains={"a": PHOTO, "b": SKETCH})
    # of the photos 0, 1, 2, 4 ant is wrong at one; of the sketches 5, 3 at none
    assert parts.per_network["ant"] == pytest.approx((75 + 100) / 2)


PHOTO, SKETCH = torch.tensor([0, 1, 2, 4]), torch.tensor([5, 3])


def test_domains_are_judged_alone_and_count_the_same() -> None:
    """Photo: known -4, 1, -3, all right, unknown 2: accuracy 100, AUROC 100, FPR95 0,
    open answers right 3 of 4.

    Sketch: known -2, wrong, unknown -1 called bee: accuracy 0, AUROC 100, OSCR 0, FPR95 0, none
    right. Together they would have 75 and, as -1 would be ranked against the photos' 1 as well, an
    AUROC of 87.5. Called unknown: one known photo of three and the unknown one, no sketch; together
    it would be one known sample of four.
    """
    result = evaluate(GOOD, numbered(LABELS), CLASSES, domains={"photo": PHOTO, "sketch": SKETCH})
    photo, sketch = result.per_domain["photo"], result.per_domain["sketch"]
    assert (photo.samples, photo.unknown_samples, sketch.samples, sketch.unknown_samples) == (
        4,
        1,
        2,
        1,
    )
    assert (photo.accuracy, sketch.accuracy, result.accuracy) == (100.0, 0.0, 50.0)
    assert photo.open.as_dict() == pytest.approx(
        by_name(100.0, 0.0, 100.0, 75.0, 100 / 3, 100.0, 250 / 3)
    )
    assert sketch.open.as_dict() == by_name(100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert result.open.as_dict() == pytest.approx(
        by_name(100.0, 0.0, 50.0, 37.5, 100 / 6, 50.0, 250 / 6)
    )
    assert result.per_class == {"ant": 100.0, "bee": 50.0, "cat": None}
    assert (result.samples, result.unknown_samples) == (6, 2)
    assert json.loads(json.dumps(result.as_dict()))["per_domain"]["sketch"]["open"]["oscr"] == 0.0


def test_a_predictor_that_ranks_backwards_keeps_its_low_auroc() -> None:
    """Scores with the sign turned: 0, not 100."""
    backwards = Written(GOOD.answers, [-score for score in GOOD.unknown])
    result = evaluate(
        backwards, numbered(LABELS), CLASSES, domains={"photo": PHOTO, "sketch": SKETCH}
    )
    assert result.open.auroc == 0.0


def test_domains_of_models_that_stand_alone() -> None:
    """The dull model answers ant: right on photos in 2 of 3, on sketches in none."""
    models = {0: GOOD, 1: Written((0,) * 6, (0.0,) * 6)}
    result = evaluate(
        Solo(models), numbered(LABELS), CLASSES, domains={"photo": PHOTO, "sketch": SKETCH}
    )
    assert result.per_part[1].per_domain["photo"].accuracy == pytest.approx(200 / 3)
    assert result.per_domain["photo"].accuracy == pytest.approx((100 + 200 / 3) / 2)
    assert result.per_domain["photo"].samples == 4
    assert result.accuracy == pytest.approx((100 + 200 / 3) / 4)
    assert result.samples == 6


def test_a_party_sees_the_classes_of_its_own_domain() -> None:
    """Bees: 100 on photos, 0 on sketches; ants 100 on photos, none among the sketches."""
    result = evaluate(GOOD, numbered(LABELS), CLASSES, domains={"photo": PHOTO, "sketch": SKETCH})
    mixes = [[1, 1, 0], [0, 0, 0]], [[0, 0, 0], [5, 1, 0]], [[0, 3, 0], [0, 1, 0]]
    assert seen_by_parties(result, dict(enumerate(map(torch.tensor, mixes)))) == {
        0: 100.0,
        1: 0.0,
        2: 75.0,
    }


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        ({"photo": PHOTO}, "list 4 samples; every one of the 6"),
        ({"photo": PHOTO, "sketch": torch.tensor([5, 4])}, "exactly one domain"),
        ({"photo": torch.arange(6), "sketch": torch.arange(0)}, "the domain sketch has no samples"),
    ],
)
def test_domains_that_do_not_divide_the_samples_are_refused(
    domains: dict[str, torch.Tensor], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(GOOD, numbered(LABELS), CLASSES, domains=domains)


def test_nan_scores_name_the_model() -> None:
    broken = Written((0,) * 6, (0.0, float("nan"), 0.0, 0.0, 0.0, 0.0))
    with pytest.raises(DataError, match="1 of 6 samples are NaN"):
        evaluate(broken, numbered(LABELS), CLASSES)
    with pytest.raises(DataError, match="the model of clinic cannot be evaluated"):
        evaluate(Solo({3: broken}, {3: "clinic"}), numbered(LABELS), CLASSES)


def test_inputs_that_make_no_sense_are_refused() -> None:
    samples = numbered(LABELS)
    with pytest.raises(DataError, match="no samples"):
        evaluate(GOOD, samples.take(torch.tensor([], dtype=torch.long)), CLASSES)
    with pytest.raises(DataError, match="scores 3 classes, but 2 are named"):
        evaluate(GOOD, samples, CLASSES[:2])
    with pytest.raises(DataError, match="label 1 does not fit 1 known classes"):
        evaluate(GOOD, samples, CLASSES[:1])
    with pytest.raises(DataError, match="differ"):
        evaluate(GOOD, samples, ("ant", "ant", "cat"))
    with pytest.raises(DataError, match="no party finished"):
        evaluate(Solo({}), samples, CLASSES)


@pytest.mark.parametrize(("rejected", "said"), [(None, False), (5.0, False), (95.0, True)])
def test_a_result_that_rejects_almost_everything_says_so(
    rejected: float | None, said: bool
) -> None:
    found = Evaluation(10, 0, 90.0, 90.0, 90.0, {}, OpenFigures(known_refused=rejected))
    assert [note.startswith("95 % of the samples of known classes") for note in found.notes] == (
        [True] * said
    )


def test_chance_is_two_standard_errors_around_guessing() -> None:
    """400 known samples of four classes: an error is 2.165 points."""
    classes = {name: 1.0 for name in "abcd"} | {"none": None}
    for balanced, words in ((29.3, "balanced accuracy 29.3 %; guessing: 25.0 %"), (29.4, "")):
        figures = Evaluation(500, 100, balanced, balanced, per_class=classes)
        assert figures.at_chance == words
    assert not Evaluation(500, 100, 1.0, 1.0, per_class={"a": 1.0}).at_chance
    assert not Evaluation(5, 5, None, None, per_class=classes).at_chance


def test_a_class_without_one_right_answer_counts_from_ten_samples_on() -> None:
    classes = {"a": 0.0, "b": 0.0, "c": 0.1, "d": None}
    matrix = ((0, 10, 0, 0), (0, 0, 9, 0), (5, 4, 1, 0), (0, 0, 0, 0))
    assert Evaluation(29, 0, 3.0, per_class=classes, confusion=matrix).never_right == ["a"]
    assert Evaluation(29, 0, 3.0, per_class=classes).never_right == ["a", "b"]
