"""The simulated electorate: thresholds in closed form,
against an independent simulation, and against liars.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.objective import Objective
from ostraka.core.predictor import Placed, Promise, Scores, open_scores
from ostraka.core.samples import View
from ostraka.core.told import LEVELS, quantiles
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Ballot, Plurality, Sum, TopK
from ostraka.voting.calibrated import Calibrated
from ostraka.voting.electorate import _clipped, _familiarity, _together, draws, unkept
from ostraka.voting.ensemble import Ensemble, Voter
from ostraka.voting.guarded import Guarded
from ostraka.voting.union import Standing

RAMP = tuple(10 * level - 2 for level in LEVELS)
"""Log odds that are uniform between -2 and 8: the quantile at u is 10 u - 2."""


MANY = 10**6
"""Samples of a class, in units of which cards are made:
so many that a class is known as well as told.
"""


def card(
    party: int, counts: Sequence[int], claims: Sequence[float] | None = RAMP, **more: float
) -> Card:
    counts = [int(more.get("unit", MANY)) * n for n in counts]
    told = {} if claims is None else {"claims": tuple(claims), "held": more.get("held", 50)}
    return Card(
        party, sum(counts), tuple(counts), calibration={"doubt": more.get("doubt", -4.0), **told}
    )


class Reading:
    """A model whose logits are part `place` of the input [B, members, outputs]."""

    view = View()

    def __init__(self, place: int, objective: Objective | None = None) -> None:
        self.place, self.objective = place, objective or OpenVoting()

    def inputs(self, x: Tensor) -> Tensor:
        return x

    def answers(self, inputs: Tensor) -> Scores:
        return open_scores(inputs[:, self.place])


def ensemble(ballot: Ballot, *cards: Card) -> Ensemble:
    names = tuple(map(str, range(max(len(card.counts or ()) for card in cards))))
    standing = Standing.of(names, names)
    voters = [Voter(Reading(i), card, standing) for i, card in enumerate(cards)]  # type: ignore[arg-type]
    return Ensemble(voters, names, ballot)


def line(ballot: Ballot, *cards: Card, rate: float = 0.05) -> float:
    placed, promise = ensemble(ballot, *cards).keeping(rate)
    assert isinstance(placed, Placed)
    if not promise.why.startswith("party 9"):  # the liar of some tests
        assert promise == Promise(rate, "told", placed.threshold)
    return placed.threshold


def sigmoid(value: float) -> float:
    return 1 / (1 + exp(-value))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_one_owner_for_each_class_in_closed_form(rate: float) -> None:
    """Every class has one owner, with log odds 10 u - 2, u uniform.

    Refused is who has u below the rate. Sum: the only owner's doubt is 1 - sigmoid(10 u - 2), so
    the line is 1 - sigmoid(10 rate - 2). Calibrated, nothing forgiven: minus its log probability,
    -log sigmoid(10 rate - 2). 2,000 draws leave about 0.1 of log odds open.
    """
    owners = [card(0, (100, 0)), card(1, (0, 100))]
    odds = 10 * rate - 2
    assert line(Sum(), *owners, rate=rate) == pytest.approx(1 - sigmoid(odds), abs=0.03)
    plain = Calibrated(share=0.0)
    assert line(plain, *owners, rate=rate) == pytest.approx(-log(sigmoid(odds)), abs=0.06)


def test_a_forgiven_doubt_moves_the_line_with_it() -> None:
    """Half of a median doubt of -4 adds -2 to all log odds: -log sigmoid(10 * .05 - 2 - 2)."""
    owners = [card(0, (100, 0)), card(1, (0, 100))]
    assert line(Calibrated(share=0.5), *owners) == pytest.approx(-log(sigmoid(-3.5)), abs=0.12)


def slow(owners: int, rate: float, score: str, draws: int = 40_000) -> float:
    """The same line by plain loops and numpy's generator: `owners` with the ramp, one class."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(draws):
        shared = rng.standard_normal()
        odds = []
        for _ in range(owners):
            z = 0.5**0.5 * shared + 0.5**0.5 * rng.standard_normal()
            u = 0.5 * (1 + float(torch.erf(torch.tensor(z / 2**0.5, dtype=torch.float64))))
            odds.append(10 * u - 2)
        chances = [sigmoid(o) for o in odds]
        found.append(
            min(1 - p for p in chances) if score == "sum" else -sum(map(log, chances)) / owners
        )
    return float(np.quantile(found, 1 - rate))


@pytest.mark.parametrize("score", ["sum", "calibrated"])
def test_three_owners_of_a_class_against_plain_loops(score: str) -> None:
    """The sum refuses when all owners doubt, the calibrated ballot when they do on average."""
    ballot = Sum() if score == "sum" else Calibrated(share=0.0)
    owners = [card(i, (60, 0)) for i in range(3)]
    assert line(ballot, *owners, card(3, (0, 1), claims=None)) == pytest.approx(
        slow(3, 0.05, score), abs=0.05
    )


def test_classes_count_by_their_size() -> None:
    """One class in ten is never certain (log odds -2), the others always are (8): at 5 %, half of
    the hard class's samples may be refused, which all have one score: none is, and the line is
    theirs. At 15 % all of them may.
    """
    hard, easy = card(0, (10, 0), (-2.0,) * len(LEVELS)), card(1, (0, 90), (8.0,) * len(LEVELS))
    plain = Calibrated(share=0.0, kappa=0.0)
    middling = [
        card(2, (0, 0), (8.0,) * len(LEVELS)),
        card(3, (0, 0), (-2.0,) * len(LEVELS)),
    ]  # so that nobody is out of the ordinary
    assert line(plain, hard, easy, *middling) == pytest.approx(-log(sigmoid(-2)), abs=1e-4)
    assert line(plain, hard, easy, *middling, rate=0.15) == pytest.approx(
        -log(sigmoid(8)), abs=1e-4
    )


def test_a_higher_rate_draws_a_lower_line() -> None:
    owners = [card(i, (50, 50)) for i in range(4)]
    for ballot in (Sum(), TopK(2), Calibrated()):
        lines = [line(ballot, *owners, rate=rate) for rate in (0.01, 0.05, 0.1, 0.3)]
        assert lines == sorted(lines, reverse=True)
        assert lines[0] > lines[-1]


def test_plurality_refuses_nobody_rather_than_too_many() -> None:
    """Its scores are shares of members that abstain.

    With the ramp one owner of one abstains on a fifth of its samples. 5 % cannot be kept by
    refusing a fifth, so none is refused; a rate of 30 % can.
    """
    owner = ensemble(Plurality(), card(0, (100,)))
    x = torch.tensor([[[-9.0, 0.0]]])  # it abstains
    kept, _ = owner.keeping(0.05)
    assert kept.scores(x).open.tolist() == [0]
    kept, _ = owner.keeping(0.3)
    assert kept.scores(x).open.tolist() == [-1]


def test_one_who_tells_of_extreme_doubt_moves_the_line_little() -> None:
    """Nine honest members, the ramp and a little more or less,
    and one that tells of log odds of -8 throughout.

    As an owner of both classes it would, with a tenth of the weight,
    lower the mean log chance by about 0.7.
    """
    honest = [card(i, (50, 50), [q + 0.2 * (i - 4) for q in RAMP]) for i in range(9)]
    before = line(Calibrated(share=0.0), *honest, card(9, (50, 50)))
    after = line(Calibrated(share=0.0), *honest, card(9, (50, 50), (-8.0,) * len(LEVELS)))
    assert before < after < before + 0.2


def test_the_clip_by_hand() -> None:
    """Chances .1, .2, .4, .8 and .8: the quartile is .2 and the median .4,
    as logs log .2 and log .4.

    The least that counts is then 2 log .2 - log .4 = log .1: it is left as it is. A chance of .001
    in its place: the quartile and the median stay, so it is lifted to .1.
    """
    chances = torch.tensor([0.1, 0.2, 0.4, 0.8, 0.8], dtype=torch.float64)
    told = torch.logit(chances).unsqueeze(1).repeat(1, len(LEVELS))
    torch.testing.assert_close(_clipped(told), told)
    told[0] = torch.logit(torch.tensor(0.001))
    assert _clipped(told)[0].sigmoid().tolist() == pytest.approx([0.1] * len(LEVELS))


def test_one_who_is_told_to_be_certain_moves_the_line_little() -> None:
    """Over-sure quantiles are not clipped: one of ten owners then takes its
    tenth of the doubt away, no more.
    """
    honest = [card(i, (50, 50)) for i in range(9)]
    before = line(Calibrated(share=0.0), *honest, card(9, (50, 50)))
    after = line(Calibrated(share=0.0), *honest, card(9, (50, 50), (30.0,) * len(LEVELS)))
    assert before - 0.3 < after < before


def test_familiarity_by_hand() -> None:
    """h = log(n / (n + 30)): log(1/2) for 30 samples, log(3/4) for 90, log(3/4)
    again where a class is alone.

    30 and 90 samples: their mean is log(1/2)/4 + 3 log(3/4)/4 = -0.3890; 2.5
    (-0.6931 + 0.3890) = -0.7603 and 2.5 (-0.2877 + 0.3890) = 0.2534. Who has classes
    of one size only knows them as it told.
    """
    found = _familiarity(torch.tensor([[30.0, 90.0, 0.0], [90.0, 0.0, 0.0], [7.0, 7.0, 7.0]]))
    assert found[0, :2].tolist() == pytest.approx([-0.7603, 0.2534], abs=1e-4)
    assert found[1, 0].item() == pytest.approx(0.0)
    assert found[2].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_a_class_of_few_samples_is_known_less_well() -> None:
    """Half of the draws of a class of 30 samples, beside one of a million,
    are 1.733 lower than the ramp's median.
    """
    few, many = draws([card(0, (30, MANY), unit=1)], typical=False)
    assert few.logits[0, :, 0].median().item() == pytest.approx(3 - 1.733, abs=1.5)
    assert few.logits[0, :, 0].max().item() < 8 - 1.7
    assert many.logits[0, :, 1].max().item() == pytest.approx(8, abs=0.1)


def test_curves_are_put_together_by_hand() -> None:
    """Uniform log odds from -2 to 8 and from 8 to 18, equally many samples:
    together uniform from -2 to 18.

    With a third member that tells of a thousand times the samples, all at 100: it counts as the
    median member does, and has a third of all: a fifth of them lies below 20 * 0.3 - 2 = 4, half
    below 20 * 0.75 - 2 = 13.
    """
    first, second = torch.tensor(RAMP), torch.tensor(RAMP) + 10
    expected = [20 * level - 2 for level in LEVELS]
    found = _together(torch.stack([first, second]).double(), torch.tensor([10.0, 10.0]))
    assert found.tolist() == pytest.approx(expected, abs=0.06)
    liar = torch.full((len(LEVELS),), 100.0)
    found = _together(torch.stack([first, second, liar]).double(), torch.tensor([10.0, 10.0, 1e4]))
    assert found[[4, 5, 6]].tolist() == pytest.approx([4.0, 13.0, 100.0], abs=0.1)


def test_who_tells_little_or_nothing_gets_the_curve_of_all_together() -> None:
    """Beside two members with the ramp, one that is silent, and one that rests on three samples,
    draw by the ramp as well (those three samples weigh as much as they are: 3 of 103); one that
    rests on ten draws by its own.
    """
    two = [card(i, (1, 1)) for i in range(2)]
    expected = [draw.logits[2] for draw in draws([*two, card(2, (1, 1))], typical=False)]
    low = (-6.0,) * len(LEVELS)
    for other, likeness in (
        (card(2, (1, 1), claims=None), 0.1),
        (card(2, (1, 1), low, held=3), 0.8),
    ):
        found = [draw.logits[2] for draw in draws([*two, other], typical=False)]
        assert all(
            (a - b)[:, :-1].abs().median() < likeness for a, b in zip(expected, found, strict=True)
        )
    own = next(draws([*two, *[card(i, (1, 1), low, held=10) for i in (2, 3, 4)]], typical=False))
    assert own.logits[2, :, 0].max() == -6.0


def test_strangers_say_unknown() -> None:
    """Member 1 does not own class 0: on its samples it is certain of unknown."""
    first, _ = draws([card(0, (5, 0)), card(1, (0, 5))], typical=False)
    assert first.logits[1].argmax(dim=1).unique().tolist() == [2]
    assert first.logits[0].argmax(dim=1).unique().tolist() == [0, 2]
    assert first.share == 0.5


def test_typicality_is_drawn_at_the_same_level_as_the_claim() -> None:
    """With claims and standings that are both the ramp, both are alike on every draw;
    classes not drawn are usual.
    """
    told = Card(
        0,
        MANY,
        (0, MANY),
        calibration={"claims": RAMP, "standing": RAMP, "held": 50, "doubt": -4.0},
    )
    (draw,) = draws([told], typical=True)
    assert draw.typicality is not None
    torch.testing.assert_close(draw.typicality[0, :, 1], draw.logits[0, :, 1], atol=1e-3, rtol=0)
    assert draw.typicality[0, :, 0].abs().max() == 0


def test_members_that_tell_no_counts_or_too_little_promise_nothing() -> None:
    assert "tell=counts" in unkept([Card(0, 9, None), Card(1, 9, None)], 0.05)
    for cards, why in (
        (
            [card(0, (5, 5), claims=None), card(1, (5, 5), RAMP, held=39)],
            "tell of 0 samples that they were not trained on, none",
        ),
        ([card(i, (5, 5), held=13) for i in range(3)], "tell of 39 samples"),
        # 2 * 10 and not 2 * 10 + 10 ** 6; of two members the smaller
        ([card(0, (5, 5), held=10**6), *[card(i, (5, 5), held=10) for i in (1, 2)]], "tell of 30"),
        ([card(0, (5, 5), held=10**6), card(1, (5, 5), held=10)], "tell of 20"),
    ):
        kept, promise = ensemble(Sum(), *cards).keeping(0.05)
        assert isinstance(kept, Ensemble), "the ballot's own threshold stays"
        assert promise.rate is None
        assert why in promise.why


def test_members_that_have_hardly_learnt_get_a_line_and_a_warning() -> None:
    kept, promise = ensemble(
        Sum(), card(0, (5, 5), doubt=-0.4), card(1, (5, 5), doubt=-0.2)
    ).keeping(0.05)
    assert isinstance(kept, Placed)
    assert promise.rate is None
    assert promise.threshold == kept.threshold
    assert "median log odds of unknown -0.3" in promise.why


def test_who_cannot_answer_unknown_or_is_contradicted_gets_a_line_and_no_promise() -> None:
    """A closed-set member claims samples of unknown classes whatever the line is; one that the
    others contradict has not what its card says. The line is where it would be.
    """
    cards = [card(i, (5, 5)) for i in range(3)]
    sound = ensemble(Guarded(), *cards)
    placed, promise = sound.keeping(0.05)
    assert isinstance(placed, Placed)
    assert promise.rate == 0.05
    closed = Voter(Reading(2, CrossEntropy()), cards[2], sound.voters[2].standing)  # type: ignore[arg-type]
    kept, promise = replace(sound, voters=[*sound.voters[:2], closed]).keeping(0.05)
    assert isinstance(kept, Placed)
    assert promise.rate is None
    assert promise.threshold == kept.threshold == placed.threshold
    assert "1 of 3 members cannot answer unknown (party 2)" in promise.why
    one = torch.ones(3, 2)
    agreed = torch.tensor([[0.9, 0.9], [0.8, 0.8], [0.1, 0.8]])
    seen = Assessment(100, one, one, 0 * one, agreed, one, torch.eye(3))
    _, promise = sound.remembering(seen).keeping(0.05)
    assert promise.rate is None
    assert "the vote contradicts what party 2 disclosed" in promise.why
    sound_seen = replace(seen, agreement=torch.full((3, 2), 0.9))
    assert sound.remembering(sound_seen).keeping(0.05)[1].rate == 0.05


@pytest.mark.parametrize(("low", "told"), [(-30.0, True), (-5.1, True), (-5.0, False)])
def test_quantiles_that_no_member_can_have_promise_nothing(low: float, told: bool) -> None:
    liar = card(1, (5, 5), (low,) * len(LEVELS))
    kept, promise = ensemble(Sum(), card(0, (5, 5)), liar, card(2, (5, 5))).keeping(0.05)
    assert isinstance(kept, Placed)
    assert (promise.rate is None) == told
    words = f"party 1 discloses that it does not recognise .* samples .median log odds {low}"
    assert bool(re.search(words, promise.why)) == told


def test_a_member_without_class_counts_gets_a_line_and_no_promise() -> None:
    silent = Card(2, 100, None)
    kept, promise = ensemble(Sum(), card(0, (5, 5)), card(1, (5, 5)), silent).keeping(0.05)
    assert isinstance(kept, Placed)
    assert promise.rate is None
    assert promise.why == "1 of 3 members disclose no class counts (party 2)"


def test_one_who_tells_of_extreme_doubt_moves_the_curve_of_all_together_little() -> None:
    """Ten members of three held-out samples each draw by the curve of all together; one that
    discloses -30 is clipped before it has a tenth of it.
    """
    honest = [card(i, (1, 1), held=5) for i in range(10)]
    liar = card(9, (1, 1), (-30.0,) * len(LEVELS), held=5)
    plain = Calibrated(share=0.0)
    fair, moved = line(plain, *honest), line(plain, *honest[:9], liar)
    assert moved == pytest.approx(fair, abs=0.3)


def votes_of(counts: Tensor, labels: Tensor, sharpness: Tensor, rng: torch.Generator) -> Tensor:
    """[B, M, K + 1]: owners answer with normal log odds,
    alike for all owners of a sample by half; others unknown.
    """
    shared = torch.randn(len(labels), 1, generator=rng)
    z = 0.5**0.5 * shared + 0.5**0.5 * torch.randn(len(labels), len(counts), generator=rng)
    odds = sharpness * (2 + z)
    logits = torch.full((len(labels), len(counts), counts.shape[1] + 1), -30.0)
    logits[:, :, -1] = 0.0
    for b, label in enumerate(labels.tolist()):
        owners = counts[:, label] > 0
        logits[b, owners, label] = odds[b, owners]
    return logits


@pytest.mark.parametrize("ballot", [Sum(), TopK(3), Calibrated()], ids=str)
@pytest.mark.parametrize(("rate", "within"), [(0.05, 0.015), (0.2, 0.03)])
def test_the_promise_is_kept_where_samples_are_as_told(
    ballot: Ballot, rate: float, within: float
) -> None:
    """Eight parties with two to four of five classes tell quantiles of 200 own samples; 4,000 new
    ones are refused at the promised rate, but for a few points: between the nine levels, quantiles
    are taken to be straight lines.
    """
    rng = torch.Generator().manual_seed(3)
    counts = (torch.rand(8, 5, generator=rng) < 0.6).long() * torch.randint(
        20, 200, (8, 5), generator=rng
    )
    sharpness = 1 + torch.rand(8, generator=rng)
    cards = []
    for m in range(8):
        own = sharpness[m] * (2 + torch.randn(200, generator=rng))
        cards.append(card(m, counts[m].tolist(), quantiles(own), doubt=-2.0))
    labels = torch.multinomial(counts.sum(dim=0).float(), 4000, replacement=True, generator=rng)
    kept, promise = ensemble(ballot, *cards).keeping(rate)
    refused = float(
        (kept.scores(votes_of(counts, labels, sharpness, rng)).open == -1).double().mean()
    )
    assert promise.rate == rate
    assert refused == pytest.approx(rate, abs=within)
