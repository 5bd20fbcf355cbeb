"""What a predictor is shown before it is evaluated: never labels,
and the same samples in whatever order they lie.
"""

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from ostraka.core.predictor import Predictor, Scores
from ostraka.core.samples import Samples
from ostraka.evaluation import sight
from ostraka.evaluation.evaluate import evaluate


@dataclass(frozen=True)
class Onlooker(Predictor):
    """Answers class 1 where a sample's first value is above the mean of those that it was shown."""

    shown: list[Tensor] = field(default_factory=list)
    level: float = 1e9

    @property
    def looks(self) -> bool:
        return True

    def seeing(self, x: Tensor) -> "Onlooker":
        self.shown.append(x)
        return Onlooker(self.shown, float(x[:, 0].mean()))

    def scores(self, x: Tensor) -> Scores:
        above = (x[:, 0] > self.level).float()
        return Scores(torch.stack([1 - above, above], dim=1), torch.zeros(len(x)), float("inf"))


def make(count: int) -> Samples:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(0))
    return Samples(x, (x[:, 0] > 0).long())


def test_evaluation_shows_a_predictor_nothing_beforehand() -> None:
    """Samples of which half are above their mean: all are below the level of one that saw none."""
    watcher, held = Onlooker(), make(100)
    first = 100 * float((held.labels == 0).double().mean())
    assert evaluate(watcher, held, ("a", "b")).accuracy == pytest.approx(first)
    assert watcher.shown == []
    seeing = sight.after_looking(watcher, held)
    assert (evaluate(seeing, held, ("a", "b")).accuracy or 0) > 90
    assert len(watcher.shown) == 1
    assert watcher.shown[0].shape == (100, 3)


def test_the_order_of_the_samples_does_not_matter() -> None:
    """2,500 samples sorted by class, in their order and turned:
    the same 1,000 are shown, of both classes.
    """
    samples = make(2500)
    for order in (
        samples.labels.argsort(),
        torch.randperm(2500, generator=torch.Generator().manual_seed(3)),
    ):
        mixed = samples.take(order)
        shown = mixed.take(sight.drawn(mixed, chunk=700))
        assert len(shown) == sight.MOST
        assert abs(float(shown.labels.float().mean()) - 0.5) < 0.1
        straight = samples.take(sight.drawn(samples))
        assert torch.equal(shown.inputs(), straight.inputs())


def test_a_predictor_that_does_not_look_is_left_alone() -> None:
    class Blind(Predictor):
        def scores(self, x: Tensor) -> Scores:
            raise AssertionError

    blind = Blind()
    assert sight.after_looking(blind, make(5)) is blind
    assert blind.seeing(torch.ones(1)) is blind
    assert blind.seen is None
    assert blind.trust() == {}
