"""Cover: members that together know every class, added one by one."""

from dataclasses import replace
from math import sqrt

import pytest
import torch

from ostraka.core.member import Member
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError
from ostraka.voting.ballots import Plurality, Sum
from ostraka.voting.cover import Cover, added_in_turn, known_by_answers, known_by_counts
from ostraka.voting.selectors import Pool
from ostraka.voting.sizing import asked
from tests.voting.pool import answering, member, pool

INSECTS = ("ant", "bee", "cat")
EACH = Samples(torch.eye(3).repeat(10, 1))
"""Ten public samples of each class."""


def knowing(number: int, *own: int) -> Member:
    """Knows the samples of these classes, and calls those of all others unknown."""
    last = torch.zeros(4, 3)
    for label in range(3):
        last[label if label in own else 3, label] = 9.0
    return answering(number, INSECTS, last)


def claiming(number: int, label: int) -> Member:
    """Gives every sample the same class."""
    last = torch.zeros(4, 3)
    last[label] = 9.0
    return answering(number, INSECTS, last)


def test_each_adds_what_the_others_lack() -> None:
    """Alone the first adds 1, the second 0.9, the third 0.5. Behind the first, the second adds
    sqrt(1.81) - 1 = 0.345 and the third still 0.5.
    """
    known = torch.tensor([[1.0, 0.0], [0.81, 0.0], [0.0, 0.25]], dtype=torch.float64)
    order, gains = added_in_turn(known, [0, 1, 2])
    assert order == [0, 2, 1]
    assert gains == pytest.approx([1.0, 0.5, sqrt(1.81) - 1])


def test_equal_ones_go_by_lot() -> None:
    known = torch.ones(3, 2, dtype=torch.float64)
    assert added_in_turn(known, [2, 0, 1])[0] == [1, 2, 0]
    assert added_in_turn(known, [1, 2, 0])[0] == [2, 0, 1]


def test_overlap_of_answers_by_hand() -> None:
    """The vote gives each class its ten. Who knows the ants gives them those ten: 2 * 10 / 20. Who
    calls all thirty ants shares ten of them: 2 * 10 / 40.
    """
    members = [knowing(0, 0), knowing(1, 1), knowing(2, 2), knowing(3, 2), knowing(4, 0, 1),
               claiming(5, 0)]  # fmt: skip
    found = Pool(members, INSECTS, public=EACH, ballot=Sum())
    known = known_by_answers(asked(found), found)
    wanted = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 1, 0], [0.5, 0, 0]]
    assert known.tolist() == [pytest.approx(row) for row in wanted]


def test_shares_of_counts_by_hand() -> None:
    found = pool([member(0, counts=(30, 0)), member(1, counts=(10, 5))])
    assert known_by_counts(found).tolist() == [[0.75, 0.0], [0.25, 1.0]]


@pytest.mark.parametrize("seed", range(4))
def test_no_class_is_left_out_and_who_claims_everything_comes_last(seed: int) -> None:
    """Three who know the ants, one each for the others, and one who claims that all are cats."""
    members = [knowing(0, 0), knowing(1, 0), knowing(2, 0), knowing(3, 1), knowing(4, 2),
               claiming(5, 2)]  # fmt: skip
    found = Pool(members, INSECTS, seed, EACH, Sum())
    choice = Cover(3).choose(found)
    assert choice.chosen[1:] == (3, 4)
    assert choice.chosen[0] in (0, 1, 2)
    assert choice.why[5].startswith("place 6 of 6, adds 0.22")  # sqrt(1.5) - 1
    assert choice.why[3].endswith("knows bee best")
    assert choice.notes == ("by answers",)


def test_by_counts_no_class_is_left_out() -> None:
    counts = [(9, 0), (8, 0), (7, 0), (0, 1)]
    found = pool([member(i, counts=own) for i, own in enumerate(counts)])
    assert Cover(2).choose(found).chosen == (0, 3)
    assert Cover(2, by="counts").choose(replace(found, public=Samples(torch.ones(3, 4)))).notes == (
        "by class counts",
    )


def test_the_fewest_that_answer_as_all_do() -> None:
    """Two for each class: any two lack a class, the first three of the order lack none."""
    members = [knowing(i, i // 2) for i in range(6)]
    choice = Cover().choose(Pool(members, INSECTS, public=EACH, ballot=Sum()))
    assert [i // 2 for i in choice.chosen] == [0, 1, 2]
    assert choice.notes == ("by answers", "size 3: answers 100 % of the probes as all do")


def test_without_public_samples_half_or_more_that_hold_every_class() -> None:
    """Half of four are two; the largest two would both hold ants."""
    counts = [(9, 0), (8, 0), (7, 0), (0, 1)]
    choice = Cover().choose(pool([member(i, counts=own) for i, own in enumerate(counts)]))
    assert choice.chosen == (0, 3)
    assert choice.notes == ("by class counts", "size 2: half or more")


def test_more_than_there_are() -> None:
    choice = Cover(9).choose(pool([member(i, counts=(1, 1)) for i in range(2)]))
    assert choice.chosen == (0, 1)
    assert "9 were asked for, 2 are there" in choice.notes[-1]


def test_what_is_missing_is_said() -> None:
    silent = Cover(1).choose(pool([member(0, size=5), member(1, size=6)]))
    assert silent.chosen == (1,)
    assert "no member discloses class counts, so the largest come first" in silent.notes
    one = Cover(1).choose(pool([member(0, size=40), member(1, counts=(1, 1))]))
    assert one.chosen == (0,), "a tenth of 20 and 20 beside 1 and 1"
    assert "1 of 2 members disclose no class counts (party 0)" in one.notes[1]
    with pytest.raises(ConfigError, match=r"select\.by=answers.*--public"):
        Cover(1, by="answers").choose(pool([member(0, counts=(1, 1))]))


def test_the_vote_of_all_is_that_of_the_ballot_in_use() -> None:
    """Two vote for ants with 0.6, one for bees with certainty: voices say ants, sums bees."""
    sides = torch.tensor([[1.5], [1.0]]).log()
    members = [answering(i, ("ant", "bee"), sides) for i in range(2)]
    members.append(answering(2, ("ant", "bee"), torch.tensor([[-20.0], [0.0]])))
    found = Pool(members, ("ant", "bee"), 0, Samples(torch.ones(10, 1)), Plurality())
    assert Cover(1).choose(found).chosen != (2,)
    assert Cover(1).choose(replace(found, ballot=Sum())).chosen == (2,)


def test_a_class_that_no_public_sample_is_of_is_not_left_out() -> None:
    """One who knows ants would do for the samples that are there; counts tell of other classes."""
    told = [(5, 0, 0), (5, 0, 0), (0, 5, 0), (0, 5, 0), (0, 0, 5), (0, 0, 5)]
    members = [knowing(i, i // 2) for i in range(6)]
    members = [replace(m, card=replace(m.card, counts=told[i])) for i, m in enumerate(members)]
    found = Pool(members, INSECTS, public=Samples(torch.eye(3)[:1].repeat(10, 1)), ballot=Sum())
    chosen = Cover().choose(found).chosen
    assert {i // 2 for i in chosen} == {0, 1, 2}
    assert len(chosen) < 6
