"""The guarded ballot: calibrated where it can be, and each defence against what it is for."""

from dataclasses import replace
from math import log

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.attackers import ATTACKERS, attacked, without
from ostraka.core.card import Card
from ostraka.store import codec
from ostraka.testing import check_ballot
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Sum, Votes
from ostraka.voting.calibrated import Calibrated, counts_of
from ostraka.voting.guarded import Guarded
from ostraka.voting.trust import trust

CLASSES, SAMPLES = 10, 400
LABELS = torch.arange(SAMPLES) % CLASSES


def panel(
    members: int = 10, skill: float = 6.0, unknown: float = 0.0, doubt: float = -2.0, seed: int = 0
) -> Votes:
    """Members that own two neighbouring classes each, so that every class has two owners.

    Their logits are noise, plus `skill` for the true class if they own
    it and for unknown if they do not.
    """
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(members, SAMPLES, CLASSES + 1, generator=rng)
    cards = []
    for m in range(members):
        mine = [m % CLASSES, (m + 1) % CLASSES]
        owned = (mine[0] == LABELS) | (mine[1] == LABELS)
        right = torch.where(owned, LABELS, torch.full_like(LABELS, CLASSES))
        logits[m] += skill * F.one_hot(right, CLASSES + 1)
        logits[m, :, [c for c in range(CLASSES) if c not in mine]] -= 3.0
        logits[m, :, -1] += unknown
        counts = tuple(200 if c in mine else 0 for c in range(CLASSES))
        cards.append(Card(m, 400, counts, calibration={"doubt": doubt}, name=f"p{m}"))
    return Votes(logits, cards, junk=(0.05,) * members)


def accuracy(ballot: Guarded | Calibrated | Sum, votes: Votes, look: bool = True) -> float:
    seen = ballot.assess(votes) if look else None
    answers = ballot.count(replace(votes, assessment=seen)).closed
    return 100 * float((answers == LABELS).double().mean())


def test_it_keeps_the_contract_of_ballots() -> None:
    check_ballot(Guarded())


def test_without_an_assessment_trained_members_are_counted_as_calibrated() -> None:
    """Nobody tells more than the median, no doubt, no junk: the same scores, to the last bit."""
    votes = panel()
    guarded, calibrated = Guarded().count(votes), Calibrated().count(votes)
    assert torch.equal(guarded.known, calibrated.known)
    assert torch.equal(guarded.unknown, calibrated.unknown)
    assert guarded.threshold == calibrated.threshold == log(2)


def test_a_sound_panel_is_counted_as_calibrated_after_looking() -> None:
    """All owners agree, nobody claims too much: no scale, no shift,
    equal weights within a class; the same answers.
    """
    votes = panel(skill=12.0)
    seen = Guarded().assess(votes)
    assert seen is not None
    assert seen.size == SAMPLES
    owned = torch.tensor([card.counts for card in votes.cards]) > 0
    assert (seen.weight[owned] > 0.99).all()
    assert (seen.scale == 1).all()
    assert (seen.shift == 0).all()
    counted = Guarded().count(replace(votes, assessment=seen))
    torch.testing.assert_close(counted.known, Calibrated().count(votes).known, rtol=1e-5, atol=1e-5)


def by_hand(logits: list[list[float]]) -> Votes:
    """One sample; member 0 owns class 0, member 1 class 1, with 100 samples each."""
    cards = [
        Card(0, 100, (100, 0), calibration={"doubt": 0.0}),
        Card(1, 100, (0, 100), calibration={"doubt": 0.0}),
    ]
    return Votes(torch.tensor(logits).log().unsqueeze(1), cards)


def test_an_assessment_is_applied_by_hand() -> None:
    """Member 0 says .8 of class 0, member 1 .5 of class 1;
    scale 2 and shift -log 4 for the first pair.

    Its log odds log 4 become 2 log 4 - log 4 = log 4 again: .8. With a shift of -2 log
    4 they become 0: .5. The weight of a sole owner does not matter. doubt=False: a
    doubt of 0 would lean on the sum.
    """
    votes = by_hand([[0.8, 0.1, 0.1], [0.3, 0.5, 0.2]])
    plain = torch.ones(2, 2)
    seen = Assessment(50, 0.5 * plain, plain.clone(), 0 * plain, plain, plain, torch.eye(2))
    seen.scale[0, 0] = 2.0
    for shift, claim in ((-log(4), 0.8), (-2 * log(4), 0.5)):
        seen.shift[0, 0] = shift
        known = Guarded(doubt=False).count(replace(votes, assessment=seen)).known
        torch.testing.assert_close(known, torch.tensor([[claim, 0.5]]).log(), rtol=1e-4, atol=1e-4)


def test_weights_of_an_assessment_count() -> None:
    """Two owners of class 0 say .9 and .1.

    With weights 3 to 1 the mean log is (3 log .9 + log .1) / 4.
    """
    cards = [Card(i, 100, (100,), calibration={"doubt": -9.0}) for i in range(2)]
    votes = Votes(torch.tensor([[0.9, 0.1], [0.1, 0.9]]).log().unsqueeze(1), cards)
    one = torch.ones(2, 1)
    seen = Assessment(50, torch.tensor([[0.3], [0.1]]), one, 0 * one, one, one, torch.eye(2))
    known = Guarded(share=0.0).count(replace(votes, assessment=seen)).known
    assert known.item() == pytest.approx((3 * log(0.9) + log(0.1)) / 4, abs=1e-5)


def test_leaning_on_the_sum_by_hand() -> None:
    """Junk at 1: wholly the sum.

    Sum (1.1, .6), shares 11/17 and 6/17, the least doubt .1: 0.9 of each. After looking at 300
    samples, 100 / 400 of it: a quarter, and three quarters of the owners' claims .8 and .5.
    """
    votes = replace(by_hand([[0.8, 0.1, 0.1], [0.3, 0.5, 0.2]]), junk=(1.0, 1.0))
    leaned = torch.tensor([[0.9 * 11 / 17, 0.9 * 6 / 17]]).log()
    torch.testing.assert_close(Guarded().count(votes).known, leaned, rtol=1e-4, atol=1e-4)
    one = torch.ones(2, 2)
    seen = Assessment(300, one, one, 0 * one, one, one, torch.eye(2))
    known = Guarded().count(replace(votes, assessment=seen)).known
    torch.testing.assert_close(
        known, 0.25 * leaned + 0.75 * torch.tensor([[0.8, 0.5]]).log(), rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(
        Guarded(rescale=False).count(replace(votes, assessment=seen)).known, leaned
    )


def test_one_sample_is_no_batch() -> None:
    votes = panel()
    assert Guarded().assess(replace(votes, logits=votes.logits[:, :1])) is None


def test_few_samples_tell_little() -> None:
    """Ten samples count by half: noise keeps at least half of its weight, with 400 it does not."""
    votes = attacked(panel(), "noise", 1)
    few = Guarded().assess(replace(votes, logits=votes.logits[:, :10]))
    many = Guarded().assess(votes)
    assert few is not None
    assert many is not None
    assert few.weight.min() >= 0.5
    assert many.weight.min() < 0.1


def test_an_assessment_survives_the_codec() -> None:
    votes = attacked(panel(), "constant", 2)
    seen = Guarded().assess(votes)
    back = codec.decode(codec.encode(seen))
    assert isinstance(back, Assessment)
    again = Guarded().count(replace(votes, assessment=back))
    assert torch.equal(again.known, Guarded().count(replace(votes, assessment=seen)).known)


def test_an_answer_depends_on_its_own_votes_and_the_assessment() -> None:
    """One sample alone scores as it does among all."""
    votes = attacked(panel(), "never unknown", 2)
    votes = replace(votes, assessment=Guarded().assess(votes))
    whole = Guarded().count(votes)
    alone = Guarded().count(replace(votes, logits=votes.logits[:, 7:8]))
    torch.testing.assert_close(alone.known[0], whole.known[7])


def test_the_order_of_members_and_samples_does_not_matter() -> None:
    votes = attacked(panel(), "constant", 1)
    members, rows = torch.randperm(10), torch.randperm(SAMPLES)
    turned = Votes(
        votes.logits[members][:, rows],
        [votes.cards[m] for m in members],
        junk=[votes.junk[m] for m in members],
    )
    a, b = Guarded().assess(votes), Guarded().assess(turned)
    assert a is not None
    assert b is not None
    torch.testing.assert_close(a.weight[members], b.weight, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(a.shift[members], b.shift, rtol=1e-3, atol=1e-3)


def test_a_copied_member_changes_nothing() -> None:
    """A member that is there three times has the say of one:
    within what 400 samples leave open (omega below 1).
    """
    votes = panel(skill=3.0)
    order = [0, 0, 0, *range(1, 10)]
    tripled = Votes(votes.logits[order], [votes.cards[m] for m in order], junk=(0.05,) * 12)
    one, three = (Guarded().assess(v) for v in (votes, tripled))
    assert one is not None
    assert three is not None
    total = three.weight[:3, 0].sum() / three.weight[3:, 0].max()
    assert total == pytest.approx(float(one.weight[0, 0] / one.weight[1:, 0].max()), rel=0.1)
    off = Guarded(copies=False).assess(tripled)
    assert off is not None
    assert (off.copies == torch.eye(12)).all()


DEFENCES = [
    ("constant, true counts", 3, "agreement", 3.0),
    ("flip", 3, "agreement", 3.0),
    ("noise", 3, "agreement", 3.0),
    ("random sure class", 3, "agreement", 3.0),
    ("biased", 3, "budget", 3.0),
    ("copied noise", 3, "copies", 3.0),
]


@pytest.mark.parametrize(("attack", "number", "part", "gain"), DEFENCES, ids=lambda v: str(v))
def test_each_defence_is_worth_its_place(attack: str, number: int, part: str, gain: float) -> None:
    """With the part, the vote is better by some points than without it,
    on average over two draws of attackers, who see through noise probes.
    """
    with_it, without_it = 0.0, 0.0
    whole = Guarded(agreement=part != "budget")  # which flags those that claim too much as well
    for seed in range(2):
        votes = attacked(panel(skill=4.0, seed=seed), attack, number, seed)
        votes = replace(votes, junk=(0.05,) * 10)
        with_it += accuracy(whole, votes) / 2
        without_it += accuracy(replace(whole, **{part: False}), votes) / 2
    assert with_it > without_it + gain


def test_the_cap_is_worth_its_place_without_a_look() -> None:
    votes = attacked(panel(skill=4.0), "adaptive on junk", 1)
    without = accuracy(Guarded(cap=False), votes, look=False)
    assert accuracy(Guarded(), votes, look=False) > without + 3


GATED = {
    "doubt": panel(skill=1.5, unknown=5.0, doubt=2.0),
    "junk": replace(panel(skill=2.0, unknown=-9.0), junk=(1.0,) * 10),
}


@pytest.mark.parametrize("part", GATED)
def test_gated_panels_lean_on_the_sum(part: str) -> None:
    """Without a look their answers are the sum's; with one, rescaled claims are no worse.

    Without the part neither.
    """
    votes = GATED[part]
    assert torch.equal(Guarded().count(votes).closed, Sum().count(votes).closed)
    off = replace(Guarded(), **{part: False})
    assert not torch.equal(off.count(votes).closed, Sum().count(votes).closed)
    assert accuracy(Guarded(), votes) >= accuracy(Sum(), votes) - 1
    seen = Guarded().assess(votes)
    assert seen is not None
    assert (seen.shift != 0).all()


def test_one_liar_and_three_of_ten() -> None:
    """Every attack leaves the vote far above calibrated where that
    breaks, and never far below it.
    """
    for how in ATTACKERS:
        votes = attacked(panel(skill=5.0), how, 1)
        assert accuracy(Guarded(), votes) > accuracy(Calibrated(), votes) - 2, how
    for how in ("constant", "noise", "random sure class"):
        votes = attacked(panel(skill=5.0), how, 3)
        assert accuracy(Guarded(), votes) > accuracy(Calibrated(), votes) + 10, how


def test_told_numbers_that_are_faked_move_nothing() -> None:
    votes = panel()
    faked = attacked(votes, "told numbers faked", 3)
    assert torch.equal(Guarded().count(votes).closed, Guarded().count(faked).closed)


def test_attackers_are_those_that_without_leaves_out() -> None:
    votes = panel()
    changed = (attacked(votes, "noise", 3, seed=5).logits != votes.logits).any(dim=2).any(dim=1)
    left = without(votes, 3, seed=5)
    assert changed.sum() == 3
    assert [card.party for card in left.cards] == [m for m in range(10) if not changed[m]]


def test_typicality_is_used_as_calibrated_does() -> None:
    votes = replace(panel(), typicality=torch.randn(10, SAMPLES, CLASSES))
    torch.testing.assert_close(Guarded().count(votes).known, Calibrated().count(votes).known)
    plain = Guarded().assess(replace(votes, typicality=None))
    usual = Guarded().assess(votes)
    assert plain is not None
    assert usual is not None
    assert not torch.equal(plain.agreement, usual.agreement)


@pytest.mark.parametrize("ballot", [Guarded(), Calibrated()], ids=str)
def test_without_any_counts_votes_are_counted_as_the_plain_sum(
    ballot: Guarded | Calibrated,
) -> None:
    votes = panel(skill=2.0)
    for counts in (None, (0,) * CLASSES):
        cards = [replace(card, counts=counts) for card in votes.cards]
        silent = replace(votes, cards=cards)
        assert ballot.assess(silent) is None
        assert torch.equal(ballot.count(silent).closed, Sum().count(votes).closed)
        assert torch.equal(ballot.say(silent), Sum().say(votes))
        assert "so votes are counted by the plain sum" in ballot.notes(cards)[0]
    assert ballot.notes(votes.cards) == ()


def test_who_discloses_no_counts_is_taken_to_have_some_of_every_class() -> None:
    """A tenth of 400 samples over ten classes: 4 of each, 4 / 104 beside two owners' 200 / 300."""
    votes = panel()
    mixed = replace(votes, cards=[*votes.cards[:9], replace(votes.cards[9], counts=None)])
    weights = [200 / 300, 200 / 300, 4 / 104]
    said = Guarded().say(mixed)[[0, 1, 9], 0, 1].tolist()
    assert said == pytest.approx([weight / sum(weights) for weight in weights])
    assert "1 of 10 members disclose no class counts (p9)" in Guarded().notes(mixed.cards)[0]
    assert accuracy(Guarded(), mixed) >= accuracy(Guarded(), votes) - 2


def test_who_discloses_no_counts_has_none_of_a_class_that_it_does_not_know() -> None:
    """A tenth of 400 samples over the five classes that it knows: 8 of each."""
    votes = panel()
    logits = votes.logits.clone()
    logits[9, :, 5:10] = -torch.inf
    cards = [*votes.cards[:9], replace(votes.cards[9], counts=None)]
    assert counts_of(replace(votes, logits=logits, cards=cards))[9].tolist() == [8.0] * 5 + [0] * 5


def closed(votes: Votes) -> Votes:
    logits: Tensor = votes.logits.clone()
    logits[..., -1] = -torch.inf
    return replace(votes, logits=logits, junk=(1.0,) * len(votes.cards))


def test_closed_members_are_rescaled_and_never_unknown() -> None:
    votes = closed(panel(skill=3.0))
    seen = Guarded().assess(votes)
    scores = Guarded().count(replace(votes, assessment=seen))
    assert scores.threshold == float("inf")
    assert bool(scores.known.isfinite().all())
    assert accuracy(Guarded(), votes) >= accuracy(Sum(), votes)


def shouting(votes: Votes, who: int, scale: float) -> Votes:
    """The votes, those of one member replaced by random ones times `scale`."""
    logits = votes.logits.clone()
    rng = torch.Generator().manual_seed(7)
    logits[who] = scale * torch.randn(logits[who].shape, generator=rng)
    return replace(votes, logits=logits)


@pytest.mark.parametrize("scale", [1e3, 1e10])
@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("ballot", [Guarded(), Guarded(junk=False), Calibrated()], ids=str)
def test_huge_weights_count_no_more_than_a_certain_no(
    ballot: Guarded | Calibrated, look: bool, scale: float
) -> None:
    """A claim ends at -30 for doubt and -30 for the class, of which what lies beyond the veto of
    8 counts a hundredth: no class of a mean falls below -8 - 0.01 * 52.
    """
    votes = shouting(panel(skill=4.0), 0, scale)
    seen = ballot.assess(votes) if look else None
    assert float(ballot.count(replace(votes, assessment=seen)).known.min()) >= -8.0 - 0.01 * 52
    usual = accuracy(ballot, shouting(panel(skill=4.0), 0, 30.0))
    assert accuracy(ballot, votes) == pytest.approx(usual, abs=5.0)


def test_a_member_that_takes_noise_for_classes_does_not_lead_without_a_look() -> None:
    """Two owners of 200 samples of a class, 200 / 300 each: of the one that is sure of noise a
    hundredth counts, so it has 1 / 101 of the say.
    """
    votes, plain = panel(), Guarded()
    odd = replace(votes, junk=(0.05, 0.6, *[0.05] * 8))
    assert float(plain.say(votes)[1, 0, 1]) == pytest.approx(1 / 2)
    assert float(plain.say(odd)[1, 0, 1]) == pytest.approx(1 / 101)
    assert float(plain.say(odd)[0, 0, 1]) == pytest.approx(100 / 101)
    at_the_line = replace(votes, junk=(0.05, 0.5, *[0.05] * 8))
    assert float(plain.say(at_the_line)[1, 0, 1]) == pytest.approx(1 / 2)
    off = replace(plain, junk=False)
    assert float(off.say(odd)[1, 0, 1]) == pytest.approx(1 / 2)
    torch.testing.assert_close(
        plain.count(odd).known[:, 1],
        (100 * own(plain, votes, 0, 1) + own(plain, votes, 1, 1)) / 101,
    )


def test_distances_without_end_count_no_more_than_a_certain_no() -> None:
    """Typicality ends at -30 as well: no class falls below -8 - 0.01 * 82."""
    usual = torch.zeros(10, SAMPLES, CLASSES)
    usual[0] = -1e9
    for ballot in (Guarded(), Calibrated()):
        scores = ballot.count(replace(panel(), typicality=usual))
        assert float(scores.known.min()) >= -8 - 0.01 * 82


def own(ballot: Guarded, votes: Votes, member: int, label: int) -> Tensor:
    """What one member alone says of a class."""
    cards = [
        card if m == member else replace(card, counts=(0,) * CLASSES)
        for m, card in enumerate(votes.cards)
    ]
    return replace(ballot, cap=False).count(replace(votes, cards=cards)).known[:, label]


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e10])
def test_who_is_flagged_does_not_lead_in_any_class(scale: float) -> None:
    """A member that answers at random has a hundredth of what it would have, in all its classes,
    and the vote is what it is without it.
    """
    for who in range(4):
        votes = shouting(panel(members=20, skill=5.0), who, 5 * scale)
        seen = Guarded().assess(votes)
        assert seen is not None
        assert f"p{who}" in trust(votes.cards, seen, votes.junk)["suspects"]
        sure = SAMPLES / (SAMPLES + 10)
        assert float(seen.weight[who].max()) <= 1 - sure + 0.01 * sure + 1e-6
        assert float(seen.weight[[m for m in range(20) if m != who]].min()) > 0.01
        others = [m for m in range(20) if m != who]
        left = replace(
            votes,
            logits=votes.logits[others],
            cards=[votes.cards[m] for m in others],
            junk=votes.junk[1:],
        )
        assert accuracy(Guarded(), votes) >= accuracy(Guarded(), left) - 1


def test_only_a_classs_owners_are_what_agreement_is_measured_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has no sample of a class must not raise the reference for those that have."""
    held: list[Tensor] = []

    def trusted(found: Tensor, owners: Tensor) -> Tensor:
        held.append(owners)
        return torch.ones_like(found)

    monkeypatch.setattr("ostraka.voting.guards.trusted", trusted)
    cards = [Card(i, 10, counts) for i, counts in enumerate([(10, 0), (5, 5), (0, 10)])]
    logits = torch.randn(3, 8, 3, generator=torch.Generator().manual_seed(0))
    Guarded().assess(Votes(logits, cards))
    assert held
    owners = [[True, False], [True, True], [False, True]]
    assert all(found.tolist() == owners for found in held)
