"""Who votes: all, the best, the largest, or some by lot."""

from dataclasses import dataclass, replace

import pytest

from ostraka.core.card import Card
from ostraka.errors import ConfigError
from ostraka.registry import FILTERS, SELECTORS
from ostraka.testing import ContractBroken, check_selector
from ostraka.voting.choice import Choice, told
from ostraka.voting.dedes import DeDES
from ostraka.voting.outliers import Box, Floor, KeepAll, Learnt
from ostraka.voting.selectors import (
    All,
    Best,
    BestValidation,
    MostData,
    Pool,
    Random,
    Selector,
    chosen,
)
from tests.voting.pool import CLASSES, member, pool


def test_names_and_the_papers_names() -> None:
    assert set(SELECTORS) == {"all", "cv", "ds", "rs", "ld", "dedes", "cover"}
    assert SELECTORS.get("as") is All
    assert set(FILTERS) == {"none", "box", "floor", "learnt"}


def test_all() -> None:
    assert All().choose(pool([member(i) for i in range(3)])).chosen == (0, 1, 2)


def test_the_best_by_score_and_by_size() -> None:
    scores, sizes = [0.5, 0.9, 0.7, 0.8], [40, 10, 30, 20]
    both = zip(scores, sizes, strict=True)
    found = pool([member(i, score=s, size=n) for i, (s, n) in enumerate(both)])
    assert BestValidation(2).choose(found).chosen == (1, 3)
    assert BestValidation(2, score="confidence").choose(found).chosen == (0, 2)
    choice = MostData(1).choose(found)
    assert choice.chosen == (0,)
    assert choice.why[1] == "samples 10: place 4 of 4"


@pytest.mark.parametrize(("count", "half"), [(1, 1), (4, 2), (5, 3)])
def test_auto_is_half_and_more_than_there_are_is_all(count: int, half: int) -> None:
    found = pool([member(i, size=i + 1) for i in range(count)])
    assert len(MostData().choose(found).chosen) == half
    assert len(MostData(99).choose(found).chosen) == count


def test_a_missing_score_is_named() -> None:
    with pytest.raises(ConfigError, match=r"none of 2 members tells one; .*scored=true"):
        BestValidation(1).choose(pool([member(0), member(1)]))


def test_who_tells_no_score_comes_last() -> None:
    """A party with too few samples to hold any out: even a score of 0 is before it."""
    members = [member(0), member(1, score=0.0), member(2, score=0.5)]
    for seed in range(9):  # no lot decides
        assert BestValidation(2).choose(pool(members, seed)).chosen == (1, 2)
    found = pool(members)
    choice = BestValidation(2).choose(found)
    assert choice.chosen == (1, 2)
    assert choice.why[0] == "no validation score: place 3 of 3"
    assert choice.notes == ("1 of 3 members tell no validation score and come last",)
    assert BestValidation(3).choose(found).chosen == (0, 1, 2)


def test_equal_ones_go_by_lot_not_by_number() -> None:
    """Ten equal members, one is chosen: over 40 seeds it is many different ones."""
    equal = [member(i) for i in range(10)]
    winners = {MostData(1).choose(pool(equal, seed)).chosen for seed in range(40)}
    assert len(winners) > 6
    assert MostData(1).choose(pool(equal, 3)) == MostData(1).choose(pool(equal, 3))


def test_random_depends_on_seed_and_draw() -> None:
    members = [member(i) for i in range(12)]
    teams = {Random(6, draw).choose(pool(members, seed)).chosen
             for draw in range(3) for seed in range(3)}  # fmt: skip
    assert len(teams) > 6
    assert all(len(set(team)) == 6 for team in teams)


@pytest.mark.parametrize("cls", [MostData, BestValidation, Random])
@pytest.mark.parametrize("size", [0, -1, "many", True])
def test_no_other_size(cls: type[Best], size: object) -> None:
    with pytest.raises(ConfigError):
        cls(size)  # type: ignore[arg-type]


def test_box_filter_by_hand() -> None:
    """Eleven scores 0.0, 0.1 .. 1.0: a tenth lies at 0.1, three quarters between 0.7 and 0.8."""
    scores = [i / 10 for i in range(11)]
    assert Box(scale=0.1).least(scores) == pytest.approx(0.1 - 0.1 * 0.7)
    assert Box().least(scores) == pytest.approx(0.1 - 1.5 * 0.7)


@pytest.mark.parametrize(
    ("score", "asked", "excused"),
    [(5 / 6, 6, True), (4 / 6, 6, False), (50 / 60, 60, False), (1.0, 6, True), (0.2, 0, False)],
)
def test_what_chance_excuses_by_hand(score: float, asked: int, excused: bool) -> None:
    """Two errors add 2 right and 2 wrong ones: 5 of 6 is 7 of 10, 0.7, with an error of
    sqrt(.7 * .3 / 10) = 0.145; 0.833 + 0.29 reaches 1. 4 of 6: 0.667 + 2 * sqrt(.6 * .4 / 10) =
    0.976. 50 of 60: 0.833 + 2 * sqrt(.8125 * .1875 / 64) = 0.931.
    """
    card = member(0).card
    told = replace(card, calibration={"held": asked} if asked else {})
    assert Box().excuses(score, told, [1.0, 1.0, 1.0]) == excused
    assert not Floor().excuses(score, told, [1.0, 1.0, 1.0])


def test_the_interval_is_measured_against_the_lower_quantile() -> None:
    """Scores 0.0, 0.1 .. 1.0: their tenth is 0.1, and 6 samples all wrong may be chance beside it
    (2 of 10: 0 + 2 * 0.126), but not beside 0.3.
    """
    told = replace(member(0).card, calibration={"held": 6})
    scores = [i / 10 for i in range(11)]
    assert Box().excuses(0.0, told, scores)
    assert not Box(low=0.3).excuses(0.0, told, scores)


@dataclass(frozen=True)
class Odd(Selector):
    """Chooses what it is told to."""

    places: tuple[int, ...] = ()
    reasons: int = 3

    def choose(self, pool: Pool) -> Choice:
        return Choice(self.places, ("because",) * self.reasons)


COUNTED = [(9, 0), (0, 5), (0, 9)]


def counted() -> Pool:
    members = [member(i, score=0.5) for i in range(3)]
    each = zip(members, COUNTED, strict=True)
    return Pool([replace(m, card=replace(m.card, counts=c)) for m, c in each], CLASSES)


@pytest.mark.parametrize("odd", [Odd((7,)), Odd(()), Odd((-1,)), Odd((1, 0)), Odd((0,), 2)])
def test_members_that_do_not_exist_are_refused_by_name(
    odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SELECTORS, "name_of", lambda cls: "odd")
    with pytest.raises(ConfigError, match=r"the selector odd chose .* of 3 members .* from 0 to 2"):
        chosen(odd, counted())
    with pytest.raises(ContractBroken, match="Odd"):
        check_selector(odd)


def test_no_class_is_left_without_an_owner_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bees the third member has most."""
    found, pool_ = chosen(Odd((0,)), counted()), counted()
    assert found.chosen == (0, 2)
    assert found.why == ("because", "because", "added for class bee; because")
    assert found.notes == ("1 added, so that every class has an owner",)
    assert chosen(Odd((0,), every_class=False), pool_).chosen == (0,)
    whole = Odd((0, 2))
    assert chosen(whole, pool_) == whole.choose(pool_)
    silent = replace(pool_.members[1], card=replace(pool_.members[1].card, counts=None))
    mixed = replace(pool_, members=[pool_.members[0], silent, pool_.members[2]])
    assert chosen(Odd((1,)), mixed).chosen == (0, 1, 2), "what a silent member has is not known"


def test_floor_filter_by_hand() -> None:
    """Quantiles 0.25 and 0.75 of 0.0 .. 1.0; the least score plus half."""
    assert Floor().least([i / 10 + 0.2 for i in range(11)]) == pytest.approx(0.2 + 0.5)
    assert KeepAll().least([0.1]) == float("-inf")


def test_the_party_of_the_papers_figure_is_an_outlier() -> None:
    """A rate that is too large: 20.9 % where nine others have about 90 %."""
    scores = [0.90, 0.91, 0.89, 0.92, 0.88, 0.90, 0.91, 0.209, 0.93, 0.90]
    for rule in (Box(), Floor()):
        assert scores[7] < rule.least(scores)
    assert sum(score < Box().least(scores) for score in scores) == 1


def test_what_is_told_of_a_choice() -> None:
    cards = [member(i, counts=c).card for i, c in enumerate([(5, 0), (0, 5), (5, 0)])]
    found = told(Choice((0, 2), ("a", "b", "c"), (0, 1, 0)), cards)
    assert found["chosen"] == ["party 0", "party 2"]
    assert found["why"]["party 1"] == "b"
    assert found["notes"] == ["no selected member is known to have samples of class 1"]
    assert told(Choice((0, 1), ("a", "b", "c")), cards)["notes"] == []


def test_every_selector_chooses_of_one() -> None:
    alone = pool([member(0, score=0.5, counts=(5, 5))])
    for name in SELECTORS:
        selector: Selector = SELECTORS.get(name)()
        assert selector.choose(alone).chosen == (0,), name


@pytest.mark.parametrize(
    ("score", "counts", "size", "out"),
    [
        (0.6, (60, 40), 100, True),
        (0.69, (60, 40), 100, True),
        (0.71, (60, 40), 100, False),
        (1.0, (100, 0), 100, False),
        (0.5, (100, 0), 100, False),
        (0.4, (10, 10), 100, False),
        (None, (60, 40), 100, False),
        (0.1, None, 100, False),
    ],
)
def test_learnt_by_hand(
    score: float | None, counts: tuple[int, ...] | None, size: int, out: bool
) -> None:
    """60 of 100 are of one class; with 24 held-out samples chance makes sqrt(.6 * .4 / 24) = 0.1.
    Who has one class cannot do better than it; bands of 10 say that a tenth at least is of one,
    and chance makes sqrt(.1 * .9 / 24) = 0.06.
    """
    scores = {} if score is None else {"validation": score}
    card = Card(0, size, counts, scores, {"held": 24})
    assert bool(Learnt().dismisses(card)) == out
    assert Box().dismisses(card) == ""


def test_dedes_leaves_out_who_has_learnt_nothing() -> None:
    """Scores so far apart that none is an outlier: 0.64 - 1.5 * (0.9 - 0.64) = 0.25."""
    scores = [0.3, 0.64, 0.7, 0.8, 0.9, 0.95]
    found = pool([member(i, float(i), 10, s, (3, 7)) for i, s in enumerate(scores)])
    assert 0 in DeDES(6).choose(found).chosen
    choice = DeDES(6, filter=Learnt()).choose(found)
    assert choice.chosen == (3, 4, 5)
    assert choice.why[0].startswith("left out: validation score 0.3, and 0.7 of its samples")
    assert "3 left out by their own cards" in choice.notes
    hopeless = pool([member(i, float(i), 10, 0.3, (3, 7)) for i in range(3)])
    assert DeDES(3, filter=Learnt()).choose(hopeless).chosen == (0, 1, 2)
