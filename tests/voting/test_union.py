"""Members that know different classes, see samples differently and are
different networks vote together.
"""

from math import log

import pytest
import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import View
from ostraka.errors import DataError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.ballots import Ballot, Plurality, Sum, TopK, Votes
from ostraka.voting.calibrated import Calibrated
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.guarded import Guarded
from ostraka.voting.union import Standing, all_classes

INF = float("inf")


def votes_of(*members: tuple[list[str], list[float], list[int]], asked: list[str]) -> Votes:
    """One sample: each member's classes, its probabilities of them
    and of unknown, and its counts.
    """
    logits, cards = [], []
    for number, (names, shares, counts) in enumerate(members):
        standing = Standing.of(names, asked)
        logits.append(standing.votes(torch.tensor([shares]).log()))
        cards.append(standing.card(Card(number, sum(counts), tuple(counts))))
    return Votes(torch.stack(logits), cards)


CAT_DOG = (["cat", "dog"], [0.6, 0.1, 0.3], [50, 50])
OWL_CAT = (["owl", "cat"], [0.2, 0.3, 0.5], [80, 20])
ASKED = ["cat", "dog", "owl"]


def test_classes_are_joined_in_the_order_in_which_they_come() -> None:
    assert all_classes([["cat", "dog"], ["owl", "cat"]]) == ("cat", "dog", "owl")


def test_votes_and_counts_stand_where_their_class_does() -> None:
    votes = votes_of(CAT_DOG, OWL_CAT, asked=ASKED)
    expected = torch.tensor([[[0.6, 0.1, 0.0, 0.3]], [[0.3, 0.0, 0.2, 0.5]]])
    torch.testing.assert_close(votes.logits.exp(), expected)
    assert [card.counts for card in votes.cards] == [(50, 50, 0), (20, 0, 80)]


def test_the_sum_by_hand() -> None:
    """cat .6 + .3, dog .1, owl .2; the least doubt is .3."""
    scores = Sum().count(votes_of(CAT_DOG, OWL_CAT, asked=ASKED))
    torch.testing.assert_close(scores.known, torch.tensor([[0.9, 0.1, 0.2]]))
    torch.testing.assert_close(scores.unknown, torch.tensor([0.3]))


def test_top_1_by_hand() -> None:
    """Only the less doubting member counts, and says nothing of owls."""
    scores = TopK(1).count(votes_of(CAT_DOG, OWL_CAT, asked=ASKED))
    torch.testing.assert_close(scores.known, torch.tensor([[0.6, 0.1, 0.0]]))


def test_plurality_by_hand() -> None:
    """One voice for cat, one abstains; ties are broken by (sum of probabilities) / 3."""
    scores = Plurality().count(votes_of(CAT_DOG, OWL_CAT, asked=ASKED))
    torch.testing.assert_close(scores.known, torch.tensor([[1 + 0.9 / 3, 0.1 / 3, 0.2 / 3]]))
    torch.testing.assert_close(scores.unknown, torch.tensor([0.5]))


def test_the_calibrated_ballot_asks_owners_by_hand() -> None:
    """No doubt is told, so no offset: an owner's claim is its plain log probability.

    Weights n / (n + 100): cat 1/3 and 1/6, dog 1/3,
    owl 4/9. Who does not know a class has no weight in it.
    """
    scores = Calibrated().count(votes_of(CAT_DOG, OWL_CAT, asked=ASKED))
    cat = (log(0.6) / 3 + log(0.3) / 6) / (1 / 3 + 1 / 6)
    torch.testing.assert_close(scores.known, torch.tensor([[cat, log(0.1), log(0.2)]]))


@pytest.mark.parametrize(
    "ballot", [Sum(), TopK(1), Plurality(), Calibrated(), Guarded()], ids=lambda b: type(b).__name__
)
def test_who_does_not_know_a_class_says_nothing_of_it(ballot: Ballot) -> None:
    """Without the owls' only owner the score of owls is that of a class
    without any; others keep theirs.

    A third member that knows only dogs, and is sure that it is none,
    changes nothing for cat and owl.
    """
    both = ballot.count(votes_of(CAT_DOG, OWL_CAT, asked=ASKED))
    silent = (["dog"], [1e-12, 1.0], [100])
    three = ballot.count(votes_of(CAT_DOG, OWL_CAT, silent, asked=ASKED))
    assert three.known.isfinite().all()
    if isinstance(ballot, Plurality):  # its tie-breaker is a share of all members
        assert three.closed.tolist() == both.closed.tolist()
    elif isinstance(ballot, Guarded):  # its cap on told samples is by the median member
        assert three.known.argsort().tolist()[0][-1] == both.known.argsort().tolist()[0][-1]
    else:
        torch.testing.assert_close(three.known[:, [0, 2]], both.known[:, [0, 2]])


def test_a_class_that_was_not_asked_for_is_unknown() -> None:
    """OWL_CAT asked about cats alone: its owl is none of those, so unknown is .2 + .5."""
    standing = Standing.of(OWL_CAT[0], ["cat"])
    found = standing.votes(torch.tensor([OWL_CAT[1]]).log()).exp()
    torch.testing.assert_close(found, torch.tensor([[0.3, 0.7]]))
    assert standing.card(Card(0, 100, (80, 20))).counts == (20,)


def test_a_closed_member_can_then_answer_unknown() -> None:
    """It has no unknown output, but an owl is no cat: e^0 of owl against e^1 of cat."""
    found = Standing.of(["owl", "cat"], ["cat"]).votes(torch.tensor([[0.0, 1.0, -INF]]))
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0]]))


def test_the_same_classes_are_left_as_they_are() -> None:
    logits = torch.randn(4, 3)
    standing = Standing.of(["cat", "dog"], ["cat", "dog"])
    card = Card(0, 9, (4, 5))
    assert standing.votes(logits) is logits
    assert standing.card(card) is card
    assert not Standing.of(["dog", "cat"], ["cat", "dog"]).same, "another order is not the same"


def test_lists_that_cannot_be_joined_are_refused() -> None:
    with pytest.raises(DataError, match="lists the class 'cat' twice"):
        Standing.of(["cat", "cat"], ["cat"])
    with pytest.raises(DataError, match="knows emu, and none of the ensemble's classes cat, dog"):
        Standing.of(["emu"], ["cat", "dog"])


def test_counts_that_were_not_told_stay_untold() -> None:
    assert Standing.of(["dog"], ["cat", "dog"]).card(Card(0, 9, None)).counts is None


def member(number: int, model: Model) -> Member:
    from ostraka.core.learner import build_net

    counts = tuple(range(10, 10 + len(model.classes)))
    params = params_of(build_net(model.task, model.objective, seed=number))
    return Member(Card(number, sum(counts), counts, name=f"p{number}"), model, params)


OPEN = OpenVoting(outliers="none")


def test_different_networks_objectives_and_views_vote_together() -> None:
    """Each member by itself, on its own inputs, then put together by name."""
    models = [
        Model(("cat", "dog"), (1, 28, 28), Recipe("mlp", {"hidden": [5]}), OPEN, View(1 / 255)),
        Model(
            ("owl", "cat"),
            (1, 28, 28),
            Recipe("lenet5"),
            CrossEntropy(),
            View(1 / 255, (0.5,), (0.2,)),
        ),
    ]
    members = [member(i, model) for i, model in enumerate(models)]
    ensemble = Ensemble.of(members, Sum())
    assert ensemble.classes == ("cat", "dog", "owl")
    rng = torch.Generator().manual_seed(3)
    x = torch.randint(0, 256, (5, 1, 28, 28), generator=rng).byte()
    by_hand = torch.zeros(5, 3)
    with torch.no_grad():
        first = members[0].predictor().net(x / 255.0).softmax(dim=1)
        second = members[1].predictor().net((x / 255.0 - 0.5) / 0.2).softmax(dim=1)
    by_hand[:, 0] = first[:, 0] + second[:, 1]
    by_hand[:, 1], by_hand[:, 2] = first[:, 1], second[:, 0]
    torch.testing.assert_close(ensemble.scores(x).known, by_hand)


def test_the_view_is_applied_once_for_all_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[View] = []
    apply = View.apply

    def counted(self: View, values: Tensor) -> Tensor:
        calls.append(self)
        return apply(self, values)

    monkeypatch.setattr(View, "apply", counted)
    model = Model(("cat", "dog"), (4,), Recipe("mlp", {"hidden": [3]}), OPEN, View(0.5))
    other = Model(("cat", "dog"), (4,), Recipe("mlp", {"hidden": [3]}), OPEN, View(0.25))
    members = [member(0, model), member(1, other), member(2, model)]
    Ensemble.of(members, Sum()).scores(torch.ones(3, 4))
    assert [view.scale for view in calls] == [0.5, 0.25]


def test_samples_of_different_shapes_cannot_vote() -> None:
    small = Model(("cat", "dog"), (4,), Recipe("mlp", {"hidden": [3]}), OPEN, View())
    large = Model(("cat", "dog"), (5,), Recipe("mlp", {"hidden": [3]}), OPEN, View())
    with pytest.raises(DataError, match=r"p0: \[4\]; p1: \[5\]"):
        Ensemble.of([member(0, small), member(1, large)], Sum())
    with pytest.raises(DataError, match="no member was given"):
        Ensemble.of([], Sum())


def test_grey_images_may_come_without_their_channel() -> None:
    model = Model(("cat", "dog"), (1, 4, 4), Recipe("mlp", {"hidden": [3]}), OPEN, View())
    alone = Ensemble.of([member(0, model)], Sum())
    x = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(2))
    assert torch.equal(alone.scores(x[:, 0]).known, alone.scores(x).known)
    with pytest.raises(DataError, match=r"\[3, 4\] were given; .* \[1, 4, 4\] \(images with"):
        alone.scores(x[:, 0, 0])


def test_values_that_were_scaled_before_are_refused() -> None:
    """Bytes are asked as bytes: x / 255 would be taken for nearly black images, and answered."""
    model = Model(("cat", "dog"), (4,), Recipe("mlp", {"hidden": [3]}), OPEN, View(1 / 255))
    alone = Ensemble.of([member(0, model)], Sum())
    x = torch.tensor([[0, 51, 102, 255]], dtype=torch.uint8)
    assert torch.equal(alone.scores(x).known, alone.scores(x.float()).known)
    alone.predict(torch.zeros(1, 4))
    with pytest.raises(DataError, match=r"values up to 1 .* go up to 255: do not scale"):
        alone.predict(x / 255)


def test_what_is_asked_is_checked() -> None:
    model = Model(("cat", "dog"), (4,), Recipe("mlp", {"hidden": [3]}), OPEN, View())
    alone = Ensemble.of([member(0, model)], Sum())
    with pytest.raises(
        DataError, match=r"shape \[2, 5\] were given; .* takes samples of shape \[4\]"
    ):
        alone.scores(torch.ones(2, 5))
    with pytest.raises(DataError, match=r"torch.int64 were given; .*astype\('uint8'\)"):
        alone.predict([[1, 2, 3, 4]])
    double = torch.ones(2, 4, dtype=torch.float64)
    assert torch.equal(alone.predict(double.numpy()), alone.predict(double.float()))
