"""Scores: what they mean, and their signs."""

import pytest
import torch

from ostraka.core.predictor import UNKNOWN, Predictor, Scores, Solo, closed_scores, join, open_scores

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
    assert scores.unknown.tolist() == pytest.approx([-0.5, -1 / (1 + torch.tensor(-5.0).exp().item())])
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
    """On the common scale the unknown logit is the larger one exactly where the answer is unknown."""
    scores = Scores(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0.6, 0.4]), 0.5)
    assert scores.logits().argmax(dim=1).tolist() == [2, 0]
    assert open_scores(scores.logits()).open.tolist() == scores.open.tolist()


def test_far_from_everything_is_more_unknown() -> None:
    """Outputs of distances to two centres and a constant: a far sample loses on every known output."""
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
    """Two closed models with probabilities (0.8, 0.2) and (0.4, 0.6): mean (0.6, 0.4), unknown score -0.6."""

    class Fixed(Predictor):
        def __init__(self, *shares: float) -> None:
            self.shares = shares

        def scores(self, x: torch.Tensor) -> Scores:
            return closed_scores(torch.tensor([self.shares]).log().repeat(len(x), 1))

    scores = Solo({0: Fixed(0.8, 0.2), 1: Fixed(0.4, 0.6)}).scores(torch.zeros(1, 1))
    assert scores.known[0].tolist() == pytest.approx([0.6, 0.4])
    assert scores.unknown.tolist() == pytest.approx([-0.6])
