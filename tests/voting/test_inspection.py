"""All teams of a few members, and how different their members are, by hand."""

import pytest
import torch

from ostraka.core.card import Card
from ostraka.errors import ConfigError
from ostraka.voting.ballots import Ballot, Plurality, Sum, Votes
from ostraka.voting.diversity import MEASURES, diversity
from ostraka.voting.guarded import Guarded
from ostraka.voting.inspection import inspect_teams, team_accuracy, votes_of


def votes(answers: list[list[int]], sure: list[float]) -> Votes:
    """Members that give these answers to samples of two classes, each as sure as it is."""
    logits = torch.zeros(len(answers), len(answers[0]), 3)
    logits[..., 2] = float("-inf")
    for m, row in enumerate(answers):
        for b, answer in enumerate(row):
            logits[m, b, answer] = sure[m]
    return Votes(logits, [Card(m, 10 * (m + 1), (5, 5)) for m in range(len(answers))])


LABELS = torch.tensor([0, 0, 1, 1])
THREE = votes([[0, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]], [1.0, 2.0, 5.0])
"""Three of four right, three of four right, none; the last one is the surest."""


def test_all_teams_by_hand() -> None:
    """By plurality the two good ones outvote the third, and of two the surer one decides."""
    found = inspect_teams(THREE, LABELS, Plurality())
    wanted = {(0,): 0.75, (1,): 0.75, (2,): 0.0, (0, 1): 0.75, (0, 2): 0.0, (1, 2): 0.0,
              (0, 1, 2): 0.5}  # fmt: skip
    assert found.accuracy == wanted
    assert found.best in ((0,), (1,))
    assert [found.rank(team) for team in ((0,), (1, 0), (0, 1, 2), (2,))] == [1, 1, 4, 5]


def test_unknown_samples_do_not_count_and_teams_are_counted_without_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(Guarded, "assess")
    monkeypatch.setattr(Ballot, "assess", lambda ballot, votes: pytest.fail("it looked"))
    labels = torch.tensor([0, -1, 1, -1])
    assert team_accuracy(THREE, labels, Sum(), (0,)) == 1.0
    assert 0.0 <= team_accuracy(THREE, labels, Guarded(), (0, 1)) <= 1.0
    assert [card.party for card in votes_of(THREE, (2, 0)).cards] == [2, 0]


def test_too_many_members() -> None:
    twelve = inspect_teams(votes([[0]] * 12, [1.0] * 12), torch.tensor([0]), Sum())
    assert len(twelve.accuracy) == 2**12 - 1
    with pytest.raises(ConfigError, match="13 members make"):
        inspect_teams(votes([[0]] * 13, [1.0] * 13), torch.tensor([0]), Sum())


def test_diversity_by_hand() -> None:
    """Two members on ten samples: both right 4, only the first 3, only the second 2, none 1."""
    right = torch.tensor([[1] * 7 + [0] * 3, [1] * 4 + [0] * 3 + [1] * 2 + [0]])
    found = diversity(right.bool())
    assert list(found) == list(MEASURES)
    wanted = {
        "disagreement": 0.5,
        "q_statistic": (4 * 1 - 3 * 2) / (4 * 1 + 3 * 2),
        "correlation": (4 * 1 - 3 * 2) / (7 * 3 * 6 * 4) ** 0.5,
        "double_fault": 0.1,
        "entropy": 0.5,
        "kohavi_wolpert": 0.5 * 0.25,
    }
    assert found == pytest.approx(wanted)
    three = torch.cat([right, right[:1]]).bool()
    assert diversity(three, [0, 1]) == pytest.approx(wanted)
    assert diversity(three, [0, 2])["disagreement"] == 0.0
    assert diversity(three, [0]) == {}
    # of three, one dissents on 3 + 2 of the ten samples, which is as even as three can be
    assert diversity(three)["entropy"] == pytest.approx(0.5)


def test_members_that_are_always_right_count_as_independent() -> None:
    found = diversity(torch.ones(3, 5, dtype=torch.bool))
    assert all(value == 0.0 for value in found.values())
