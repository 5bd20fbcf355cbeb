"""Scores: what they mean, and their signs."""

import pytest
import torch
from torch import Tensor

from ostraka.core.predictor import (
    UNKNOWN,
    Placed,
    Predictor,
    Promise,
    Scores,
    Solo,
    closed_scores,
    join,
    open_scores,
    threshold_for,
)

LOGITS = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 3.5]])
"""Two known outputs and the unknown one: sample 0 is class 0 by 1, sample 1 is unknown by 0.5."""


def test_open_scores_by_hand() -> None:
    scores = open_scores(LOGITS)
    assert scores.unknown.tolist() == [-1.0, 0.5]
    assert scores.threshold == 0.0
    assert scores.closed.tolist() == [0, 1]
    assert scores.open.tolist() == [0, UNKNOWN]


def test_open_logits_come_back() -> None:
    assert torch.allclose(open_scores(LOGITS).logits(), LOGITS)


def test_closed_logits_come_back_with_an_impossible_unknown() -> None:
    known = LOGITS[:, :2]
    logits = closed_scores(known).logits()
    assert torch.equal(logits[:, :2], known)
    assert logits[:, 2].isneginf().all()
    assert torch.allclose(logits.softmax(dim=1)[:, :2], known.softmax(dim=1))


def test_closed_scores_never_answer_unknown_but_rank() -> None:
    """Minus the largest probability: (0, 0) is less sure than (5, 0), so more unknown."""
    scores = closed_scores(torch.tensor([[0.0, 0.0], [5.0, 0.0]]))
    assert scores.unknown.tolist() == pytest.approx(
        [-0.5, -1 / (1 + torch.tensor(-5.0).exp().item())]
    )
    assert scores.unknown[0] > scores.unknown[1]
    assert scores.open.tolist() == scores.closed.tolist()


def test_the_threshold_decides() -> None:
    """Unknown where the score exceeds it, not where it equals it."""
    unknown = torch.tensor([0.2, 0.3])
    known = torch.zeros(2, 2)
    assert Scores(known, unknown, 0.2).open.tolist() == [0, UNKNOWN]
    assert Scores(known, unknown, 0.1).open.tolist() == [UNKNOWN, UNKNOWN]
    assert Scores(known, unknown, 0.3).open.tolist() == [0, 0]


def test_logits_carry_the_threshold() -> None:
    """On the common scale the unknown logit is the larger one
    exactly where the answer is unknown.
    """
    scores = Scores(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0.6, 0.4]), 0.5)
    assert scores.logits().argmax(dim=1).tolist() == [2, 0]
    assert open_scores(scores.logits()).open.tolist() == scores.open.tolist()


def test_far_from_everything_is_more_unknown() -> None:
    """Outputs of distances to two centres and a constant:
    a far sample loses on every known output.
    """
    x = torch.tensor([[0.0], [10.0]])
    logits = torch.cat([-(x - 0.5).abs(), -(x + 0.5).abs(), torch.full((2, 1), -2.0)], dim=1)
    scores = open_scores(logits)
    assert scores.unknown[1] > scores.unknown[0]
    assert scores.open.tolist() == [0, UNKNOWN]


def test_join() -> None:
    whole = open_scores(LOGITS)
    joined = join([open_scores(LOGITS[:1]), open_scores(LOGITS[1:])])
    assert torch.equal(joined.known, whole.known)
    assert torch.equal(joined.unknown, whole.unknown)
    assert joined.threshold == 0.0


def test_solo_gives_the_mean_probability() -> None:
    """Two closed models with probabilities (0.8, 0.2) and (0.4, 0.6): mean (0.6,
    0.4), unknown score -0.6.
    """

    class Fixed(Predictor):
        def __init__(self, *shares: float) -> None:
            self.shares = shares

        def scores(self, x: torch.Tensor) -> Scores:
            return closed_scores(torch.tensor([self.shares]).log().repeat(len(x), 1))

    scores = Solo({0: Fixed(0.8, 0.2), 1: Fixed(0.4, 0.6)}).scores(torch.zeros(1, 1))
    assert scores.known[0].tolist() == pytest.approx([0.6, 0.4])
    assert scores.unknown.tolist() == pytest.approx([-0.6])


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.05, 95.0), (0.10, 90.0), (0.001, 100.0), (0.5, 50.0)]
)
def test_threshold_for_a_rate_by_hand(rate: float, expected: float) -> None:
    """Scores 1 to 100: above 95 lie exactly five, which is 5 %.

    One in a thousand of a hundred is none.
    """
    scores = torch.arange(1.0, 101.0)[torch.randperm(100)]
    assert threshold_for(rate, scores) == expected


def test_tied_scores_are_refused_together_or_not_at_all() -> None:
    """Three of four share the highest score: refusing them would be 75 %,
    so with 50 % none is; with 80 %, all.
    """
    scores = torch.tensor([1.0, 2.0, 2.0, 2.0])
    assert threshold_for(0.5, scores) == 2.0
    assert threshold_for(0.8, scores) == 1.0


def test_weights_count_as_so_many_samples() -> None:
    """The score 2 has a tenth of the weight: it may be refused at 10 %, not at 9 %."""
    scores, weights = torch.tensor([1.0, 2.0]), torch.tensor([9.0, 1.0])
    assert threshold_for(0.10, scores, weights) == 1.0
    assert threshold_for(0.09, scores, weights) == 2.0


class Ranked(Predictor):
    """Its unknown score is the input."""

    def scores(self, x: Tensor) -> Scores:
        return Scores(torch.zeros(len(x), 2), x, 0.0)


def test_a_placed_predictor_ranks_as_before_and_answers_by_the_new_line() -> None:
    x = torch.tensor([-1.0, 1.0, 3.0])
    placed = Placed(Ranked(), 2.0).scores(x)
    assert placed.unknown.tolist() == x.tolist()
    assert placed.open.tolist() == [0, 0, UNKNOWN]
    assert Ranked().scores(x).open.tolist() == [0, UNKNOWN, UNKNOWN]


def test_who_is_told_nothing_promises_nothing() -> None:
    kept, promise = Ranked().keeping(0.05)
    assert (promise.rate, promise.threshold, promise.basis) == (None, None, "none")
    assert "nothing of held-out samples" in promise.why
    assert isinstance(kept, Ranked)


class Keeps(Ranked):
    """Can keep any promise."""

    def keeping(self, rate: float) -> tuple[Predictor, Promise]:
        return Placed(self, 10 * rate), Promise(rate, "told", 10 * rate)


def test_models_alone_promise_only_together() -> None:
    kept, promise = Solo({3: Keeps(), 4: Keeps()}).keeping(0.2)
    assert promise == Promise(0.2, "told")
    assert isinstance(kept, Solo)
    assert [model.scores(torch.zeros(1)).threshold for model in kept.alone.values()] == [2.0, 2.0]
    kept, promise = Solo({3: Keeps(), 4: Ranked()}, {4: "ward"}).keeping(0.2)
    assert promise.rate is None
    assert promise.why.startswith("ward: ")
    assert "1 of 2 models" in promise.why
