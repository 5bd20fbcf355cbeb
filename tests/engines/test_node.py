"""A party's memory at its node: two rounds of it, chosen by the round that is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ostraka.core.party import Party
from ostraka.engines.brief import brief_of
from ostraka.engines.letters import Letter
from ostraka.engines.node import Kept, Own, answer
from ostraka.errors import DataError, StoreError
from ostraka.registry import METHODS
from ostraka.store import codec
from ostraka.store.desk import Desk, seal
from tests.engines.toy_line import own
from tests.engines.toy_work import Odd, parties, work


@pytest.fixture(autouse=True)
def odd_is_a_method() -> Iterator[None]:
    METHODS.add("odd")(Odd)
    yield
    METHODS.remove("odd")


def memory(index: int, run: str = "ab12", party: int = 1) -> bytes:
    return codec.encode({"round": index}, seal("memory", run, index, party))


def kept_after(*rounds: int) -> Kept:
    kept = Kept()
    for index in rounds:
        kept = kept.after("ab12", index, memory(index))
    return kept


def found(kept: Kept, index: int, run: str = "ab12") -> int | None:
    data = kept.before(run, index, 1)
    return None if data is None else int(codec.decode(data)["round"])


@pytest.mark.parametrize(
    ("rounds", "asked", "expected"),
    [
        ((), 1, None),
        ((1,), 2, 1),
        ((1, 2), 3, 2),
        ((1, 2, 3), 3, 2),  # the server went back one round
        ((1, 2, 3), 4, 3),
        ((2, 5), 9, 5),  # a party is not drawn in every round
        ((2, 5), 5, 2),
        ((4,), 4, None),  # its first round comes again
        ((1, 2, 3, 2), 3, 2),  # gone back, done again, and on
        ((1, 2, 3, 2), 4, 2),  # and not drawn in round 3 when that came again
    ],
)
def test_the_memory_is_that_of_the_last_round_before(
    rounds: tuple[int, ...], asked: int, expected: int | None
) -> None:
    assert found(kept_after(*rounds), asked) == expected


def test_a_server_that_went_back_too_far_is_refused_and_not_served_nothing() -> None:
    with pytest.raises(
        StoreError, match=r"round 2 needs .* holds only rounds 2, 3, the first .* was round 1"
    ):
        kept_after(1, 2, 3).before("ab12", 2, 1)
    assert found(kept_after(1, 2, 3), 1) is None, "round 1 needs none"


@pytest.mark.parametrize("asked", [2, 3, 4])
def test_however_far_it_went_back(asked: int) -> None:
    """As from an old copy of its folder: of five rounds the party holds two."""
    with pytest.raises(StoreError, match="went back too far"):
        kept_after(1, 2, 3, 4, 5).before("ab12", asked, 1)
    assert found(kept_after(1, 2, 3, 4, 5), 5) == 4


def test_a_run_that_is_begun_anew_is_not_held_up_by_what_was_before_it() -> None:
    """The same settings give the same run; here the party is drawn in rounds 1 and 9 alone."""
    again = kept_after(1, 2, 3, 4, 5).after("ab12", 1, None)
    assert (again.rounds, again.gone) == ({}, 0)
    assert found(again, 9) is None
    assert kept_after(2, 3, 4, 5).after("ab12", 3, memory(3)).gone == 2


def test_a_round_that_comes_again_replaces_its_memory() -> None:
    again = kept_after(1, 2, 3).after("ab12", 3, memory(3)).after("ab12", 4, memory(4))
    assert sorted(again.rounds) == [3, 4]


def test_memories_of_another_run_do_not_count() -> None:
    kept = kept_after(1, 2)
    assert found(kept, 3, run="ff00") is None
    other = kept.after("ff00", 1, memory(1, "ff00"))
    assert (other.run, sorted(other.rounds), other.gone) == ("ff00", [1], 0)


def test_memories_survive_as_bytes() -> None:
    kept = kept_after(1, 2, 3)
    assert Kept.of(kept.stored()) == kept
    assert Kept.of(None) == Kept()
    with pytest.raises(StoreError):
        Kept.of(kept.stored()[:-1] + b"x")


def test_the_memory_of_another_party_is_refused() -> None:
    with pytest.raises(StoreError, match="party 1"):
        kept_after(1).before("ab12", 2, 3)


def order(method: Odd, index: int) -> Letter:
    facts = {"party": 1, "round": index, "seed": "5", "run": "ab12"}
    message = codec.encode(method.init(work(method).task, 5))
    return Letter(7, "order", facts, {"brief": brief_of(work(method)), "message": message})


def times(stored: bytes | None) -> dict[int, int]:
    return {i: codec.decode(data)["times"] for i, data in Kept.of(stored).rounds.items()}


def test_rounds_build_on_what_the_party_kept() -> None:
    method, stored = Odd(keeps=True), None
    for index in (1, 2, 3):
        told, stored = answer(order(method, index), own(1), stored)
        assert set(told.parts) == {"report"}, "the memory does not leave the party"
    assert times(stored) == {2: 2, 3: 3}
    _, stored = answer(order(method, 3), own(1), stored)
    assert times(stored) == {2: 2, 3: 3}, "the same round again is the same"


def test_a_failed_order_leaves_the_memory_as_it_was() -> None:
    _, stored = answer(order(Odd(keeps=True), 1), own(1), None)
    told, after = answer(order(Odd(bad=1, deed="raise", keeps=True), 2), own(1), stored)
    assert told.facts["reason"] == "ZeroDivisionError: a slip"
    assert times(after) == times(stored)


def test_a_server_that_went_back_too_far_hears_why() -> None:
    told, after = answer(order(Odd(keeps=True), 2), own(1), kept_after(1, 2, 3).stored())
    assert "the server went back too far" in str(told.facts["reason"])
    assert Kept.of(after) == kept_after(1, 2, 3)


def test_an_order_of_another_party_is_not_done() -> None:
    with pytest.raises(DataError, match="an order of party 1 came to party 2"):
        answer(order(Odd(), 1), own(2), None)


def test_half_finished_training_is_kept_where_the_node_says(tmp_path: Path) -> None:
    """And removed once the order is carried out."""
    at_home = Own(1, "east", own(1).samples, tmp_path)
    method = Odd(bad=1, deed="raise")
    left = Desk(tmp_path / "work", "ab12").progress(1, 1).inside("fit")
    left.path.parent.mkdir(parents=True)
    answer(order(method, 1), at_home, None)
    assert left.path.parent.exists(), "a failed order may come again"
    answer(order(Odd(), 1), at_home, None)
    assert not left.path.parent.exists()


def test_samples_of_another_shape_are_refused() -> None:
    strange = Own(1, "east", lambda brief: parties()[1].samples.take(slice(0, 0)))
    with pytest.raises(DataError, match="east holds no samples"):
        answer(order(Odd(), 1), strange, None)


def test_training_begun_on_other_data_is_not_gone_on_with(tmp_path: Path) -> None:
    """A party that was started with the wrong file, ended, and started with the right one."""
    method, at_work = Asleep(bad=1), Desk(tmp_path / "work", "ab12").progress(1, 1).path
    rows = parties()[1].samples
    wrong = Own(1, "east", lambda brief: rows.take(slice(0, 5)), tmp_path)
    right = Own(1, "east", lambda brief: rows, tmp_path)
    METHODS.add("asleep")(Asleep)
    try:
        answer(order(method, 1), wrong, None)
        (begun,) = at_work.iterdir()
        answer(order(method, 1), wrong, None)
        assert [*at_work.iterdir()] == [begun], "the same order on the same data goes on"
        answer(order(method, 1), right, None)
        assert len([*at_work.iterdir()]) == 2
    finally:
        METHODS.remove("asleep")


@dataclass(frozen=True)
class Asleep(Odd):
    """Saves something half-finished, and fails."""

    def _misbehave(self, party: Party) -> None:
        party.progress.save("asleep", {})
        raise ZeroDivisionError("a slip")


def test_an_answer_that_is_too_large_is_not_sent_and_it_is_said_why() -> None:
    """The server would not take it; what the party remembers is as before."""
    letter = order(Odd(keeps=True), 1)
    small = replace(letter, facts={**letter.facts, "largest": 1e-4})
    with pytest.raises(DataError, match=r"its answer has 0\.0 MB.*at most 0\.0001.*largest"):
        answer(small, own(1), None)
    told, _ = answer(replace(letter, facts={**letter.facts, "largest": 1.0}), own(1), None)
    assert set(told.parts) == {"report"}


def test_a_round_that_comes_again_replaces_what_was_kept_of_it() -> None:
    """Also where nothing is kept of it now, and where it was given up before."""
    again = kept_after(1, 2).after("ab12", 2, None)
    assert (sorted(again.rounds), found(again, 3)) == ([1], 1)
    assert Kept("ab12", {}, gone=2).after("ab12", 2, None).gone == 0
    assert Kept("ab12", {}, gone=1).after("ab12", 2, None).gone == 1
