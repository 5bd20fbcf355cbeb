"""The steps of the guarded ballot, on numbers that are small enough to work out by hand."""

from math import exp, log

import pytest
import torch

from ostraka.core.card import Card
from ostraka.voting import guards


def test_ramp_goes_from_the_low_to_the_high_end() -> None:
    """Between 2 and 6: 1 is below, 3 is a quarter of the way, 7 is above."""
    torch.testing.assert_close(
        guards.ramp(torch.tensor([1.0, 3.0, 7.0]), (2.0, 6.0)), torch.tensor([0.0, 0.25, 1.0])
    )


def test_counts_are_capped_at_the_median_total() -> None:
    """Totals 10, 20 and 1000 have the median 20: the last party's (900, 100) becomes
    (18, 2), the others stay.
    """
    counts = torch.tensor([[4.0, 6.0], [20.0, 0.0], [900.0, 100.0]])
    torch.testing.assert_close(
        guards.capped(counts), torch.tensor([[4.0, 6.0], [20.0, 0.0], [18.0, 2.0]])
    )


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((-3.0, -0.25, 9.0), 0.5),
        ((-3.0, -2.0, 9.0), 0.0),
        ((1.0, 2.0, 3.0), 1.0),
        ((2.0, None, None), 0.0),
    ],
    ids=["halfway from -0.5 to 0", "one absurd number of three", "all doubt", "most tell nothing"],
)
def test_doubt_gates_by_the_median(told: tuple[float | None, ...], expected: float) -> None:
    cards = [Card(i, 1, calibration={} if d is None else {"doubt": d}) for i, d in enumerate(told)]
    assert guards.doubting(cards) == pytest.approx(expected)


def test_junk_gates_by_the_median() -> None:
    """0.4 is halfway from 0.3 to 0.5.

    One member that knows all junk changes nothing; no probes, no gate.
    """
    assert guards.claims_junk([0.0, 0.4, 1.0]) == pytest.approx(0.5)
    assert guards.claims_junk([0.0, 0.1, 1.0]) == 0.0
    assert guards.claims_junk([0.6, 0.1, 1.0]) == 1.0
    assert guards.claims_junk(()) == 0.0


def test_who_takes_junk_is_found_unless_most_members_do() -> None:
    assert guards.taking_junk([0.5, 0.51, 0.0, 0.9]) == [1, 3]
    assert guards.taking_junk([0.6, 0.7, 0.0]) == []
    assert guards.taking_junk([]) == []


def test_log_odds_of_log_probabilities() -> None:
    """Of 1/2: 0; of 3/4: log 3; certainty stays finite and on its side."""
    found = guards.log_odds_of(torch.tensor([0.5, 0.75]).log())
    torch.testing.assert_close(found, torch.tensor([0.0, log(3)]), rtol=1e-5, atol=1e-6)
    ends = guards.log_odds_of(torch.tensor([0.0, -1e9]))
    assert 10 < ends[0] < 20
    assert ends[1] == pytest.approx(-30, abs=1e-3)


def test_overlap_makes_copies() -> None:
    """Members 0 and 1 share 0.85 of 0.95 + 0.05: ramp((.85 / 1) ; .8, .95) = 1/3;
    member 2 shares nothing.

    Known probabilities (.85, .05) and (.95, -) ... written out:
    min = .85 and .0 sum to .85, max = .95 + .05 = 1.
    """
    shares = torch.tensor([[[0.85, 0.05, 0.0]], [[0.95, 0.0, 0.0]], [[0.0, 0.0, 0.9]]])
    third = (0.85 - 0.8) / 0.15
    expected = torch.tensor([[1.0, third, 0.0], [third, 1.0, 0.0], [0.0, 0.0, 1.0]])
    torch.testing.assert_close(guards.alike(shares), expected, rtol=1e-4, atol=1e-5)


CLAIMS = torch.tensor([[[-1.0, -2.0]], [[-3.0, -4.0]], [[-5.0, -9.0]]])
WEIGHTS = torch.tensor([[1.0, 1.0], [1.0, 0.0], [2.0, 0.0]])


def test_others_are_asked_without_the_member() -> None:
    """Class 0 without member 0: (-3 - 2 * 5) / 3 = -13/3; without 1: (-1 - 10) / 3.

    Without 2: (-1 - 3) / 2. Class 1 is owned by member 0 alone: without it nobody is left;
    to the others it says -2.
    """
    others, voice = guards.said_by_others(CLAIMS, WEIGHTS, torch.eye(3))
    inf = torch.inf
    torch.testing.assert_close(
        others[:, 0], torch.tensor([[-13 / 3, -inf], [-11 / 3, -2.0], [-2.0, -2.0]])
    )
    assert voice.tolist() == [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]


def test_copies_are_not_asked_about_each_other() -> None:
    """Members 0 and 1 are one: both hear of class 0 only from member 2, which says -5,
    and member 2 hears both.
    """
    copies = torch.eye(3)
    copies[0, 1] = copies[1, 0] = 1.0
    others, voice = guards.said_by_others(CLAIMS, WEIGHTS, copies)
    torch.testing.assert_close(others[:, 0, 0], torch.tensor([-5.0, -5.0, -2.0]))
    assert voice[:, 1].tolist() == [0.0, 0.0, 1.0], "a copy of the only owner hears nobody"


def test_agreement_is_a_correlation_with_the_others_share() -> None:
    """The others give class 0 the shares .9 and .1: who claims .6 and .2 agrees (1), who claims .2
    and .6 does not (-1), who claims .5 twice says nothing (0).
    """
    others = torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log().expand(3, 2, 2)
    claims = torch.tensor(
        [[[0.6, 0.5], [0.2, 0.5]], [[0.2, 0.5], [0.6, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]
    ).log()
    found = guards.agreement(claims, others, torch.ones(3, 2))
    torch.testing.assert_close(found[:, 0], torch.tensor([1.0, -1.0, 0.0]), rtol=1e-4, atol=1e-5)


def test_a_sole_owner_is_asked_for_what_others_leave_unclaimed() -> None:
    """The others own class 0 only and claim .8, .1 and .1 of it;
    class 1's owner should claim the last two samples.
    """
    others = torch.tensor([[0.8, 0.1, 0.1]]).log().unsqueeze(2)
    others = torch.cat([others, torch.full_like(others, -torch.inf)], dim=2)
    voice = torch.tensor([[1.0, 0.0]])
    right = torch.tensor([[[0.5, 0.2], [0.5, 0.9], [0.5, 0.9]]]).log()
    wrong = torch.tensor([[[0.5, 0.9], [0.5, 0.2], [0.5, 0.2]]]).log()
    assert guards.agreement(right, others, voice)[0, 1] == pytest.approx(1.0, abs=1e-4)
    assert guards.agreement(wrong, others, voice)[0, 1] == pytest.approx(-1.0, abs=1e-4)


def test_who_has_a_handful_of_samples_is_no_measure_for_the_main_owner() -> None:
    """Member 1 has a weight of .05 in member 0's class:
    a tenth of the half with which it would be heard.

    So nine tenths of the measure are what is left unclaimed, where nobody else claims anything:
    member 1 claims the wrong sample, and member 0, who claims the other, still agrees; with a
    weight of .5 it would not (-1).
    """
    claims = torch.tensor(
        [[[0.9, 0.1], [0.1, 0.1]], [[0.1, 0.1], [0.9, 0.1]], [[0.1, 0.2], [0.1, 0.9]]]
    ).log()
    weights = torch.tensor([[1.0, 0.0], [0.05, 0.0], [0.0, 1.0]])
    others, voice = guards.said_by_others(claims, weights, torch.eye(3))
    assert voice[0].tolist() == pytest.approx([0.1, 1.0])
    assert guards.agreement(claims, others, voice)[0, 0] > 0.9
    weights[1, 0] = 0.5
    assert (
        guards.agreement(claims, *guards.said_by_others(claims, weights, torch.eye(3)))[0, 0] < -0.9
    )


def test_trust_is_measured_against_the_best_owner() -> None:
    """Best owner .8: .4 is half of it and has all its weight, .2 has half, -.1 the least.

    In the second class the best owner has .1, below the reference of .3: 2 * .1 / .3 = 2/3. Member
    3's .9 does not count, as it does not own that class.
    """
    found = torch.tensor([[0.8, 0.1], [0.4, 0.0], [0.2, 0.0], [-0.1, 0.9]])
    owners = torch.tensor([[True, True], [True, True], [True, True], [True, False]])
    trusted = guards.trusted(found, owners)
    torch.testing.assert_close(trusted[:, 0], torch.tensor([1.0, 1.0, 0.5, 0.01]))
    torch.testing.assert_close(trusted[:, 1], torch.tensor([2 / 3, 0.01, 0.01, 1.0]))


def test_contradiction_is_by_the_others_best_other_class() -> None:
    """The others say (.9, .2) and (.1, .6). Claims (.5, .5) and (.5, .1).

    Class 0: (.5 * .2 + .5 * .6) / 1 = .4; class 1: (.5 * .9 + .1 * .1) / .6 = .46 / .6.
    """
    others = torch.tensor([[[0.9, 0.2], [0.1, 0.6]]]).log()
    claims = torch.tensor([[[0.5, 0.5], [0.5, 0.1]]]).log()
    torch.testing.assert_close(
        guards.contradicted(claims, others), torch.tensor([[0.4, 0.46 / 0.6]])
    )


def test_claims_are_counted_in_multiples_of_the_share() -> None:
    """Mean claims .5 and .1 of classes with the shares .25 and .75: 2 and 2/15."""
    claims = torch.tensor([[[0.8, 0.1], [0.2, 0.1]]]).log()
    found = guards.overclaimed(claims, torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(found, torch.tensor([[2.0, 2 / 15]]))


def test_flat_odds_are_spread_and_steep_ones_left() -> None:
    """Standard deviations of (-1, 0, 1) times 1, 6 and 0.01: 1 grows threefold,
    6 stays, 0.01 would need 300.
    """
    base = torch.tensor([-1.0, 0.0, 1.0])
    odds = torch.stack([base, 6 * base, 0.01 * base], dim=1).unsqueeze(0)
    torch.testing.assert_close(guards.spread_up(odds), torch.tensor([[3.0, 1.0, 9.0]]))


def test_the_budget_is_met_on_average() -> None:
    """A constant log odds of 5 needs log(.2/.8) - 5 to claim a fifth;
    mixed ones claim just a fifth afterwards.
    """
    odds = torch.tensor([[5.0, 5.0, 5.0], [3.0, -1.0, 0.5]])
    shift = guards.budget_shift(odds, torch.tensor([0.2, 0.2]))
    assert shift[0] == pytest.approx(log(0.25) - 5.0, abs=1e-4)
    assert torch.sigmoid(odds[1] + shift[1]).mean() == pytest.approx(0.2, abs=1e-4)
    assert exp(float(shift[1])) < 1.0
