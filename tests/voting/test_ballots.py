"""Ballots on votes that are small enough to count by hand."""

from math import log

import pytest
import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.errors import ConfigError
from ostraka.voting.ballots import Plurality, Sum, TopK, Votes
from ostraka.voting.calibrated import Calibrated, owner_weights
from ostraka.voting.calibration import log_odds


def logits_of(*rows: list[float]) -> Tensor:
    """One sample, one member per row of probabilities (known..., unknown)."""
    return torch.tensor(rows).log().unsqueeze(1)


def cards(*counts: tuple[int, ...], doubt: float = 0.0) -> list[Card]:
    return [Card(i, sum(c), c, calibration={"doubt": doubt}) for i, c in enumerate(counts)]


THREE = logits_of([0.6, 0.1, 0.3], [0.1, 0.2, 0.7], [0.2, 0.75, 0.05])
"""Member 0 says class 0, member 1 says unknown, member 2 says class 1."""
ANYONE = cards((5, 5), (5, 5), (5, 5))


def test_sum_by_hand() -> None:
    """Class 0: .6 + .1 + .2 = .9; class 1: .1 + .2 + .75 = 1.05; the least doubt is .05."""
    scores = Sum().count(Votes(THREE, ANYONE))
    torch.testing.assert_close(scores.known, torch.tensor([[0.9, 1.05]]))
    assert scores.unknown.item() == pytest.approx(0.05)
    assert scores.open.item() == 1


@pytest.mark.parametrize(("how", "expected"), [("min", 0.05), ("mean", 0.35), ("product", 0.0105)])
def test_doubt_of_the_ensemble(how: str, expected: float) -> None:
    """(.3 + .7 + .05) / 3 = .35 and .3 * .7 * .05 = .0105."""
    assert Sum(how).count(Votes(THREE, ANYONE)).unknown.item() == pytest.approx(expected)  # type: ignore[arg-type]


def test_top_k_by_hand() -> None:
    """k = 2 keeps members 0 and 2 (doubts .3 and .05): class 0 has .8, class 1 has .85;
    k = 1 keeps member 2 alone.
    """
    two = TopK(2).count(Votes(THREE, ANYONE))
    torch.testing.assert_close(two.known, torch.tensor([[0.8, 0.85]]))
    one = TopK(1).count(Votes(THREE, ANYONE))
    torch.testing.assert_close(one.known, torch.tensor([[0.2, 0.75]]))


def test_top_k_of_all_is_the_sum() -> None:
    everyone, more = TopK(3).count(Votes(THREE, ANYONE)), TopK(99).count(Votes(THREE, ANYONE))
    torch.testing.assert_close(everyone.known, Sum().count(Votes(THREE, ANYONE)).known)
    torch.testing.assert_close(more.known, everyone.known)


def test_plurality_by_hand() -> None:
    """Voices 1 : 1 with one abstention.

    The tie goes to class 1, whose summed probability is 1.05 against .9.
    """
    scores = Plurality().count(Votes(THREE, ANYONE))
    assert scores.closed.item() == 1
    assert scores.known.floor().tolist() == [[1.0, 1.0]]
    two_to_one = logits_of([0.6, 0.1, 0.3], [0.5, 0.2, 0.3], [0.0, 1.0, 0.0])
    assert Plurality().count(Votes(two_to_one, ANYONE)).closed.item() == 0, (
        "two voices beat one, however sure it is"
    )


def test_plurality_answers_unknown_only_when_all_abstain() -> None:
    doubtful = logits_of([0.1, 0.2, 0.7], [0.3, 0.1, 0.6])
    assert Plurality().count(Votes(doubtful, ANYONE[:2])).open.item() == -1
    assert Plurality().count(Votes(THREE, ANYONE)).open.item() == 1


def test_plurality_by_size() -> None:
    """Class 0 has 30 samples, class 1 has 50: in units of a mean member (100 / 3), 0.9 and 1.5."""
    sized = [Card(0, 30), Card(1, 20), Card(2, 50)]
    scores = Plurality(voice="size").count(Votes(THREE, sized))
    torch.testing.assert_close(scores.known, torch.tensor([[0.9, 1.5]]), atol=0.02, rtol=0)
    assert scores.unknown.item() == pytest.approx(0.2)
    assert scores.closed.item() == 1
    two_to_one = logits_of([0.6, 0.1, 0.3], [0.5, 0.2, 0.3], [0.0, 1.0, 0.0])
    outvoted = [Card(0, 20), Card(1, 20), Card(2, 50)]
    assert Plurality(voice="size").count(Votes(two_to_one, outvoted)).closed.item() == 1
    equal = [Card(i, 7) for i in range(3)]
    doubtful = logits_of([0.1, 0.2, 0.7], [0.3, 0.1, 0.6], [0.1, 0.1, 0.8])
    assert Plurality(voice="size").count(Votes(doubtful, equal)).open.item() == -1


def test_lots_are_seeded_and_fair() -> None:
    """One voice for each of two classes, the first always surer: by probability it wins all of
    200 samples, by lot about half, others with another seed; two voices still beat one.
    """
    rng = torch.Generator().manual_seed(0)
    sure = 0.7 + 0.2 * torch.rand(200, generator=rng)
    rest = 0.6 - 0.05 * torch.rand(200, generator=rng)
    zero = torch.full_like(sure, 1e-9)
    first = torch.stack([sure, 1 - sure, zero], dim=1)
    second = torch.stack([1 - rest, rest, zero], dim=1)
    votes = Votes(torch.stack([first, second]).log(), ANYONE[:2])
    assert not Plurality().count(votes).closed.any()
    drawn = [Plurality(ties="lot", lot=seed).count(votes).closed for seed in (0, 0, 1)]
    assert 70 < int(drawn[0].sum()) < 130
    assert torch.equal(drawn[0], drawn[1])
    assert 60 < int((drawn[0] != drawn[2]).sum()) < 140
    three = Votes(torch.stack([first, second, second]).log(), ANYONE)
    assert Plurality(ties="lot").count(three).closed.all()


def test_closed_members_never_answer_unknown() -> None:
    closed = THREE.clone()
    closed[:, :, -1] = float("-inf")
    for ballot in (Sum(), TopK(2), Plurality(), Calibrated()):
        scores = ballot.count(Votes(closed, ANYONE))
        assert scores.threshold == float("inf")
        assert scores.known.isfinite().all()
        assert scores.unknown.isfinite().all()


def test_calibrated_by_hand() -> None:
    """Two owners of class 0 (weights 100/200 and 300/400), one of class 1.

    No doubt is forgiven (share 0). l_mc = log sigmoid(-g) + log q(c) = log P(known) + log(p_c /
    P(known)) = log p_c. So S_0 = (.5 log .6 + .75 log .1) / 1.25 and S_1 = log .75.
    """
    members = cards((100, 0), (300, 0), (0, 50), doubt=-4.0)
    scores = Calibrated(share=0.0).count(Votes(THREE, members))
    expected = [(0.5 * log(0.6) + 0.75 * log(0.1)) / 1.25, log(0.75)]
    torch.testing.assert_close(scores.known, torch.tensor([expected]))
    assert scores.unknown.item() == pytest.approx(-log(0.75))
    assert scores.open.item() == 1


def test_calibrated_forgives_a_share_of_a_members_own_doubt() -> None:
    """g = log(.05 / .95), a = 2: b = 1 and S_1 = log sigmoid(1 - g) + log(.75 / .95)."""
    scores = Calibrated(share=0.5).count(Votes(THREE[2:], cards((0, 50), doubt=2.0)))
    odds = log_odds(THREE[2:])
    torch.testing.assert_close(odds, torch.tensor([[log(0.05 / 0.95)]]))
    expected = torch.nn.functional.logsigmoid(1 - odds) + log(0.75 / 0.95)
    torch.testing.assert_close(scores.known[0, 1], expected[0, 0])


def test_a_common_offset_is_half_the_median_doubt_and_one_liar_cannot_move_it_far() -> None:
    """Doubts -4, -2, 0 have the median -2: b = -1 for all.

    A liar's -1000 in place of -4 leaves the median at -2.
    """
    told = [Card(i, 9, (9, 9), calibration={"doubt": d}) for i, d in enumerate((-4.0, -2.0, 0.0))]
    liar = [Card(0, 9, (9, 9), calibration={"doubt": -1000.0}), *told[1:]]
    fixed = [Card(i, 9, (9, 9), calibration={"doubt": -2.0}) for i in range(3)]
    expected = Calibrated(doubt="own").count(Votes(THREE, fixed)).known
    torch.testing.assert_close(Calibrated().count(Votes(THREE, told)).known, expected)
    torch.testing.assert_close(Calibrated().count(Votes(THREE, liar)).known, expected)
    own = Calibrated(doubt="own").count(Votes(THREE, told)).known
    assert not torch.allclose(own, expected)


def test_one_member_can_take_only_so_much_from_a_class() -> None:
    """Two members are sure of class 0 (.99, .005), one gives it 1e-9 and class 1 .99.

    The mean log probabilities are (2 log .99 + log 1e-9) / 3 = -6.9 and (2 log .005 + log .99) /
    3 = -3.5, so the one would have its way; with a veto of 8, beyond which a hundredth counts,
    class 0 gets (2 log .99 - 8 + (8 + log 1e-9) / 100) / 3 = -2.7.
    """
    votes = Votes(logits_of([0.99, 0.005, 0.005], [0.99, 0.005, 0.005], [1e-9, 0.99, 0.01]), ANYONE)
    limited, free = (
        Calibrated(share=0.0).count(votes),
        Calibrated(share=0.0, veto=float("inf")).count(votes),
    )
    second = (2 * log(0.005) + log(0.99)) / 3
    torch.testing.assert_close(
        limited.known, torch.tensor([[(2 * log(0.99) - 8 + (8 + log(1e-9)) / 100) / 3, second]])
    )
    torch.testing.assert_close(
        free.known, torch.tensor([[(2 * log(0.99) + log(1e-9)) / 3, second]])
    )
    assert (limited.closed.item(), free.closed.item()) == (0, 1)
    with pytest.raises(ConfigError, match=r"'veto' is 0.0; it must be above 0 \(inf: no limit\)"):
        Calibrated(veto=0.0)


def test_the_veto_never_changes_the_order_of_single_owners() -> None:
    """Both owners are nearly sure of unknown, beyond the veto:
    the class that is doubted less wins all the same.
    """
    votes = Votes(logits_of([1e-6, 0.0, 1.0], [0.0, 1e-5, 1.0]), cards((9, 0), (0, 9)))
    limited, free = Calibrated().count(votes), Calibrated(veto=float("inf")).count(votes)
    assert limited.closed.item() == free.closed.item() == 1
    assert float(limited.known[0, 1] - limited.known[0, 0]) == pytest.approx(
        0.01 * log(10), rel=1e-3
    )


def test_calibrated_with_one_owner_per_class_is_the_sum_over_owned_classes() -> None:
    """One owner per class and no offset: S_c is the log probability that c's owner gives c."""
    members = cards((7, 0), (0, 0), (0, 9))
    known = Calibrated(share=0.0).count(Votes(THREE, members)).known
    torch.testing.assert_close(known.exp(), torch.tensor([[0.6, 0.75]]))


def test_calibrated_is_the_same_for_permuted_or_doubled_members() -> None:
    torch.manual_seed(0)
    votes = torch.randn(4, 50, 6)
    members = cards(
        (9, 1, 0, 0, 40), (0, 30, 2, 0, 0), (0, 0, 0, 80, 5), (3, 0, 60, 1, 0), doubt=1.5
    )
    plain = Calibrated().count(Votes(votes, members))
    order = [2, 0, 3, 1]
    permuted = Calibrated().count(Votes(votes[order], [members[i] for i in order]))
    doubled = Calibrated().count(Votes(torch.cat([votes, votes]), members * 2))
    torch.testing.assert_close(permuted.known, plain.known)
    torch.testing.assert_close(doubled.known, plain.known)


def test_calibrated_rules_a_class_that_nobody_has_out() -> None:
    scores = Calibrated().count(Votes(THREE, cards((5, 0), (5, 0), (5, 0))))
    assert scores.closed.item() == 0


def test_single_samples_own_a_class_only_where_nobody_has_more_than_ten() -> None:
    """Of the classes the largest owner has 100, 11, 10, 1, and a told half."""
    counts = [[100.0, 11.0, 10.0, 1.0, 0.5], [1.0, 1.0, 1.0, 1.0, 0.5], [2.0, 0.0, 0.0, 0.0, 0.0]]
    one, half = 1 / 101, 0.5 / 100.5
    expected = [
        [0.5, 11 / 111, 10 / 110, one, half], [0.0, 0.0, one, one, half], [2 / 102, 0, 0, 0, 0],
    ]  # fmt: skip
    torch.testing.assert_close(owner_weights(torch.tensor(counts), 100.0), torch.tensor(expected))


def test_owners_of_one_sample_each_vote_together() -> None:
    """Nineteen of twenty members, each with one sample of both classes, see the second one."""
    logits = torch.tensor([[2.0, 0.0, -3.0]] + 19 * [[0.0, 2.0, -3.0]]).unsqueeze(1)
    scores = Calibrated().count(Votes(logits, cards(*20 * [(1, 1)])))
    assert scores.closed.item() == 1


def test_an_unusual_sample_is_less_credible() -> None:
    """Typicality 0 costs log 2 for each class, a far sample costs more: sign and size."""
    members = cards((9, 9), (9, 9), (9, 9))
    plain = Calibrated().count(Votes(THREE, members))
    usual = Calibrated().count(Votes(THREE, members, torch.zeros(3, 1, 2)))
    far = Calibrated().count(Votes(THREE, members, torch.full((3, 1, 2), -5.0)))
    torch.testing.assert_close(usual.known, plain.known - log(2))
    assert far.unknown.item() > usual.unknown.item() > plain.unknown.item()


def test_tuned_offset_claims_the_expected_share() -> None:
    """Each of two members owns one of two equally large classes:
    it should claim half of the public samples.
    """
    torch.manual_seed(1)
    public = Votes(3 * torch.randn(2, 400, 3), cards((20, 0), (0, 20)))
    found = Calibrated(public="probe").tune(public)
    for offset, odds in zip(found, log_odds(public.logits), strict=True):
        assert torch.sigmoid(offset - odds).mean().item() == pytest.approx(0.5, abs=1e-4)


def test_typicality_on_needs_statistics() -> None:
    with pytest.raises(ConfigError, match="tell=statistics"):
        Calibrated(typicality="on").wants_typicality(ANYONE)
    assert Calibrated().wants_typicality(ANYONE) is False


def test_shares_for_a_student_sum_to_one() -> None:
    """Of the sum's .9 and 1.05 a student learns .9 / 1.95 and 1.05 / 1.95.

    Of log probabilities, their softmax.
    """
    shares = Sum().shares(Sum().count(Votes(THREE, ANYONE)))
    torch.testing.assert_close(shares, torch.tensor([[0.9 / 1.95, 1.05 / 1.95]]))
    scores = Calibrated(share=0.0).count(Votes(THREE, cards((7, 0), (0, 0), (0, 9))))
    torch.testing.assert_close(
        Calibrated().shares(scores), torch.tensor([[0.6 / 1.35, 0.75 / 1.35]])
    )


def test_mix_is_half_of_what_public_samples_say_and_half_of_what_members_tell() -> None:
    """One owner, told doubt 2 with share .5: own offset 1.

    Public samples say 3: probe has 3, mix (3 + 1) / 2 = 2.
    """
    votes, odds = Votes(THREE[2:], cards((0, 50), doubt=2.0), tuned=(3.0,)), log(0.05 / 0.95)
    for public, offset in (("none", 1.0), ("mix", 2.0), ("probe", 3.0)):
        known = Calibrated(public=public).count(votes).known  # type: ignore[arg-type]
        expected = torch.nn.functional.logsigmoid(torch.tensor(offset - odds)) + log(0.75 / 0.95)
        torch.testing.assert_close(known[0, 1], expected)
