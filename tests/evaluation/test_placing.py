"""A threshold placed on samples: by hand, without unknown classes, for models alone,
and when there are too few.
"""

import pytest
import torch
from torch import Tensor

from ostraka.core.predictor import Placed, Predictor, Promise, Scores, Solo
from ostraka.core.samples import Samples
from ostraka.evaluation.placing import placed_on


class Scale(Predictor):
    """Its unknown score is the input, times a factor."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor, self.asked = factor, list[int]()

    def scores(self, x: Tensor) -> Scores:
        self.asked.append(len(x))
        return Scores(torch.zeros(len(x), 2), self.factor * x[:, 0], 0.0)


def samples(count: int, unknown: int = 0, labelled: bool = True) -> Samples:
    """Inputs 1, 2, ...; the last `unknown` of them are of no known class."""
    labels = torch.zeros(count + unknown, dtype=torch.long)
    labels[count:] = -1
    return Samples(
        torch.arange(1.0, count + unknown + 1).unsqueeze(1), labels if labelled else None
    )


def test_five_of_a_hundred_lie_above_the_line() -> None:
    placed, promise = placed_on(Scale(), samples(100), 0.05, "validation")
    assert promise == Promise(0.05, "validation", 95.0)
    assert placed.scores(samples(100).inputs()).open.eq(-1).sum() == 5


def test_samples_of_unknown_classes_have_no_part_in_it() -> None:
    """The hundred unknown ones score highest; with them the line would be at 190."""
    assert placed_on(Scale(), samples(100, unknown=100), 0.05, "validation")[1].threshold == 95.0
    assert (
        placed_on(Scale(), samples(100, unknown=100, labelled=False), 0.05, "public")[1].threshold
        == 190.0
    )


def test_more_samples_than_fit_are_asked_in_parts() -> None:
    predictor = Scale()
    assert placed_on(predictor, samples(2500), 0.1, "validation")[1].threshold == 2250.0
    assert predictor.asked == [1000, 1000, 500]


def test_every_model_alone_gets_its_own_line() -> None:
    placed, promise = placed_on(Solo({0: Scale(), 7: Scale(2.0)}), samples(100), 0.05, "validation")
    assert promise == Promise(0.05, "validation")
    assert isinstance(placed, Solo)
    lines = {
        party: model.threshold for party, model in placed.alone.items() if isinstance(model, Placed)
    }
    assert lines == {0: 95.0, 7: 190.0}


@pytest.mark.parametrize(
    ("count", "rate", "needed"), [(19, 0.05, 20), (0, 0.05, 20), (99, 0.01, 100), (3, 0.3, 4)]
)
def test_too_few_samples_place_nothing(count: int, rate: float, needed: int) -> None:
    predictor = Scale()
    placed, promise = placed_on(predictor, samples(count), rate, "validation")
    assert placed is predictor
    assert promise.rate is None
    assert (
        f"there are {count} validation samples; {needed} or more are needed for a rate of {rate:g}"
        in promise.why
    )


def test_just_enough_samples_refuse_one() -> None:
    assert placed_on(Scale(), samples(20), 0.05, "validation")[1].threshold == 19.0
