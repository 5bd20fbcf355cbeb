"""Parties by letter: who joins, who is counted, what is refused, and that every wait ends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.party import PartyRef
from ostraka.core.settings import values_of
from ostraka.core.task import Commons
from ostraka.engines.base import Outcome, Work
from ostraka.engines.brief import brief_of, read_brief
from ostraka.engines.letters import Letter, Node
from ostraka.engines.remote import SENDINGS, SHOWN, Correspondence, Expected, Remote, shares_of
from ostraka.engines.serial import Serial
from ostraka.errors import ConfigError, PartyFailed, StoreError
from ostraka.registry import METHODS
from ostraka.store import codec
from ostraka.store.desk import Desk
from tests.engines.toy_line import ToyLine
from tests.engines.toy_work import Odd, jobs, parties, work

NAMES = ["north", "east", "south", "west"]


@dataclass(frozen=True)
class Post(Remote):
    def line(self, work: Work) -> Any: ...
    def expected(self, work: Work) -> Expected:
        return Expected(NAMES)


@pytest.fixture(autouse=True)
def odd_is_a_method() -> Iterator[None]:
    METHODS.add("odd")(Odd)
    yield
    METHODS.remove("odd")


class Server:
    """A correspondence whose clock moves when it sleeps."""

    def __init__(self, method: Odd, line: ToyLine, post: Post, keys: Any = None) -> None:
        self.now, self.words, self.line, self.method = 0.0, list[str](), line, method
        self.while_asleep: list[Any] = []
        self.crew = Correspondence(
            line, brief_of(work(method)), Expected(NAMES, keys or {}), post, say=self.words.append,
            clock=lambda: self.now, sleep=self.sleep,
        )  # fmt: skip

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.while_asleep:
            self.while_asleep.pop(0)()

    def round(self, desk: Desk, index: int = 1) -> dict[int, Outcome]:
        self.crew.roster()
        given = [replace(job, memory=None) for job in jobs(desk, self.method, index)]
        return {outcome.party: outcome for outcome in self.crew.run(given)}


def server(method: Odd | None = None, line: ToyLine | None = None, **settings: Any) -> Server:
    return Server(method or Odd(), line or ToyLine(), Post(**settings))


def reports(outcomes: dict[int, Outcome]) -> dict[int, bytes]:
    """What the parties' reports hold, without the times in them."""
    found = {}
    for party, outcome in sorted(outcomes.items()):
        assert outcome.answer is not None, outcome.failure
        report = outcome.answer.report
        opened = codec.Opened.of(report) if isinstance(report, bytes) else report
        found[party] = codec.encode(opened.value().report)
    return found


def reasons(outcomes: dict[int, Outcome]) -> dict[int, str]:
    return {party: o.failure.reason for party, o in sorted(outcomes.items()) if o.failure}


def test_answers_by_letter_are_those_of_this_process(tmp_path: Path) -> None:
    method, desk = Odd(), Desk(tmp_path, "ab12")
    with Serial().open(work(method)) as crew:
        here = {o.party: o for o in crew.run(jobs(desk, method))}
    there = server(method).round(desk)
    assert reports(there) == reports(here)
    assert all(o.answer and o.answer.memory is None for o in there.values()), "it stays there"


def test_who_has_joined_is_who_told_so() -> None:
    crew = server().crew
    assert [(ref.id, ref.size, ref.name) for ref in crew.roster()] == [
        (0, 6, "north"), (1, 9, "east"), (2, 7, "south"), (3, 8, "west")
    ]  # fmt: skip
    sent = len(crew.line.sent)  # type: ignore[attr-defined]
    crew.roster()
    assert len(crew.line.sent) == sent, "nobody is asked twice"  # type: ignore[attr-defined]


def test_a_round_waits_for_all_and_no_longer_than_its_limit() -> None:
    line = ToyLine(3)
    given = server(line=line, join=20.0)
    with pytest.raises(PartyFailed, match=r"3 of 4 parties .* 20 seconds.* missing: west"):
        given.crew.roster()
    assert 20 <= given.now <= 22
    assert any("waiting for west to join, up to 20 seconds" in words for words in given.words)


def test_enough_parties_begin_and_one_that_comes_late_joins_the_next_round(tmp_path: Path) -> None:
    """The absent one is waited for once, not in every round."""
    line = ToyLine(4)
    late = line.there.pop(103)
    given = server(line=line, join=20.0, min_parties=3)
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2]
    waited = given.now
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2]
    assert given.now == waited
    line.there[103] = late
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2, 3]


def test_one_that_came_late_and_went_away_again_is_waited_for_again() -> None:
    line = ToyLine(4)
    late = line.there.pop(103)
    given = server(line=line, join=20.0, min_parties=3)
    given.crew.roster()
    line.there[103] = late
    assert len(given.crew.roster()) == 4
    del line.there[103]
    before = given.now
    assert len(given.crew.roster()) == 3
    assert 20 <= given.now - before <= 22


def test_whoever_comes_while_it_is_waited_for_is_there() -> None:
    line = ToyLine(4)
    late = line.there.pop(103)
    given = server(line=line, join=20.0)
    given.while_asleep = [lambda: None, lambda: line.there.update({103: late})]
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2, 3]
    assert given.now == 2


def test_two_nodes_cannot_be_one_party() -> None:
    line = ToyLine(4)
    line.there[104] = replace(line.there[103], node=Node(104, b"key 104"))
    given = server(line=line)
    assert len(given.crew.roster()) == 4
    assert any("node 104 cannot take part" in w and "node 103 is that already" in w
               for w in given.words)  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({b"key 100": 0, b"key 101": 1, b"key 102": 2, b"key 103": 0}, "its key is that of north"),
        ({b"key 100": 0, b"key 101": 1, b"key 102": 2, b"key 9": 3}, "its key is of no party"),
    ],
)
def test_a_node_is_who_its_key_says(keys: dict[bytes, int], words: str) -> None:
    given = Server(Odd(), ToyLine(), Post(join=5.0, min_parties=3), keys=keys)
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2]
    assert any("node 103 cannot take part: it says that it is west" in w and words in w
               for w in given.words)  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"party": 7, "size": 5}, "party 7; there are 0 to 3"),
        ({"party": "3", "size": 5}, "party 3; there are"),
        ({"size": 5}, "party None"),
        ({"party": 3, "size": 0}, "holds 0 samples"),
        ({"party": 3, "size": 1.5}, "holds 1.5 samples"),
        ({"party": 3, "size": 10}, "holds 10 samples; at most 9 are taken (engine.most_samples)"),
    ],
)
def test_a_node_that_tells_nonsense_does_not_take_part(
    facts: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ToyLine()
    monkeypatch.setattr(line.there[103], "honest", lambda letter: Letter(103, "party", facts))
    given = server(line=line, join=3.0, min_parties=1, most_samples=9)
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2]
    assert any(words in said for said in given.words), given.words


def test_a_party_that_joins_again_cannot_have_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size bounds what it counts: west joined with 8 samples, and 800 are not taken."""
    line = ToyLine()
    given = server(line=line, join=3.0, min_parties=3)
    assert len(given.crew.roster()) == 4
    line.restart(103)
    told = Letter(103, "party", {"party": 3, "size": 800})
    monkeypatch.setattr(line.there[103], "honest", lambda letter: told)
    assert [ref.id for ref in given.crew.roster()] == [0, 1, 2]
    assert any("holds 800 samples, and joined with 8" in said for said in given.words)


def test_shares_of_the_mean_are_shown_before_round_1_and_when_they_change() -> None:
    """Sizes 6, 9, 7 and 8: 20, 30, 23.3 and 26.7 %."""
    line = ToyLine(4)
    late = line.there.pop(103)
    given = server(line=line, join=5.0, min_parties=3)
    given.crew.roster()
    line.there[103] = late
    given.crew.roster()
    given.crew.roster()
    assert [said for said in given.words if "shares" in said] == [
        "shares of a mean by size: east 40.9 %, south 31.8 %, north 27.3 %",
        "shares of a mean by size: east 30.0 %, west 26.7 %, south 23.3 %, north 20.0 %",
    ]


def test_more_than_half_of_the_mean_comes_with_a_warning() -> None:
    small, half, large = PartyRef(0, 5, "north"), PartyRef(1, 5, "east"), PartyRef(2, 6, "west")
    assert "Warning" not in shares_of([small, half])
    assert "Warning" not in shares_of([large])
    said = shares_of([small, large])
    assert said.startswith("shares of a mean by size: west 54.5 %, north 45.5 %. Warning: west")
    assert "engine.most_samples" in said


def test_many_shares_are_the_largest_ones() -> None:
    many = [PartyRef(k, k + 1) for k in range(SHOWN + 2)]
    said = shares_of(many)
    assert said.startswith(f"shares of a mean by size: party {SHOWN + 1} 3.8 %, ")
    assert said.endswith("party 2 0.2 % and 2 more, at most 0.2 % each")


def test_what_a_node_cannot_read_is_said_and_it_is_not_there() -> None:
    line = ToyLine()
    line.there[103].party = 9  # it holds no such share
    given = server(line=line, join=3.0, min_parties=3)
    given.crew.roster()
    assert any("node 103 cannot take part: " in words for words in given.words)


def test_the_failure_of_a_party_comes_with_its_reason(tmp_path: Path) -> None:
    outcomes = server(Odd(bad=1, deed="refuse")).round(Desk(tmp_path, "ab12"))
    assert reasons(outcomes) == {1: "these samples are of no use"}
    assert not outcomes[1].failure.storage  # type: ignore[union-attr]
    outcomes = server(Odd(bad=2, deed="raise")).round(Desk(tmp_path, "ab12"))
    assert reasons(outcomes) == {2: "ZeroDivisionError: a slip"}
    assert "Traceback" in outcomes[2].failure.details  # type: ignore[union-attr]


def test_a_silent_party_is_given_up_after_the_limit(tmp_path: Path) -> None:
    line = ToyLine()
    line.there[102].spoil = lambda letter: []
    given = server(line=line, limit=50.0)
    assert reasons(given.round(Desk(tmp_path, "ab12"))) == {
        2: "no answer within the limit of 50 seconds"
    }
    assert 50 <= given.now <= 52
    assert any("waiting for the answer of south, up to 50 seconds" in w for w in given.words)


def test_a_party_whose_node_has_gone_is_given_up_sooner(tmp_path: Path) -> None:
    line = ToyLine()
    line.there[102].spoil = lambda letter: []
    given = server(line=line, away=9.0)
    given.while_asleep = [lambda: line.there.pop(102)]
    assert reasons(given.round(Desk(tmp_path, "ab12"))) == {2: "its node went away for 9 seconds"}
    assert given.now < 15


def test_a_node_that_is_there_is_not_away_however_long_it_works(tmp_path: Path) -> None:
    line = ToyLine()
    line.there[102].spoil = lambda letter: []
    given = server(line=line, away=9.0, limit=40.0)
    assert reasons(given.round(Desk(tmp_path, "ab12")))[2].startswith("no answer within")


def test_an_order_that_went_down_with_its_node_is_sent_again(tmp_path: Path) -> None:
    line = ToyLine()
    lost = line.there[101]
    lost.spoil = lambda letter: []

    def restart() -> None:
        line.restart(101)
        lost.spoil = None

    given = server(line=line)
    given.while_asleep = [restart]
    outcomes = given.round(Desk(tmp_path, "ab12"))
    assert reasons(outcomes) == {}
    assert lost.orders == [1, 1]
    assert any(
        "the order of east was lost with its node or process; it is sent again" in words
        for words in given.words
    )


def test_an_order_that_the_carrier_lost_is_sent_again_to_the_same_node(tmp_path: Path) -> None:
    line = ToyLine()
    node = line.there[101]

    def lose(letter: Letter) -> Sequence[Letter]:
        node.spoil = None
        return [Letter(101, "order", error="it is gone", lost=True)]

    node.spoil = lose
    assert reasons(server(line=line).round(Desk(tmp_path, "ab12"))) == {}
    assert node.orders == [1, 1]


def test_a_question_that_was_lost_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ToyLine()
    node, usual = line.there[103], line.there[103].honest
    answers = iter([Letter(103, "party", lost=True)])
    monkeypatch.setattr(node, "honest", lambda letter: next(answers, None) or usual(letter))
    assert len(server(line=line).crew.roster()) == 4


def test_an_order_is_not_sent_again_for_ever(tmp_path: Path) -> None:
    line = ToyLine()
    line.there[101].spoil = lambda letter: []
    given = server(line=line)
    given.while_asleep = [lambda i=i: line.restart(101, f"time {i}") for i in range(9)]
    assert reasons(given.round(Desk(tmp_path, "ab12"))) == {
        1: f"its order was lost {SENDINGS} times with its node or process"
    }
    assert line.there[101].orders == [1] * SENDINGS


def test_an_answer_that_comes_twice_counts_once(tmp_path: Path) -> None:
    line = ToyLine()
    node = line.there[101]
    node.spoil = lambda letter: [node.honest(letter)] * 2
    given = server(line=line)
    parties_of = [outcome.party for outcome in _run(given, Desk(tmp_path, "ab12"))]
    assert sorted(parties_of) == [0, 1, 2, 3]
    assert any("east answered twice in round 1; one is counted" in words for words in given.words)


def test_an_answer_that_comes_after_its_order_was_given_up_is_not_counted(tmp_path: Path) -> None:
    line = ToyLine()
    node, held = line.there[101], list[Letter]()
    node.spoil = lambda letter: held.append(node.honest(letter)) or []
    given = server(line=line, limit=5.0)
    desk = Desk(tmp_path, "ab12")
    assert list(reasons(given.round(desk))) == [1]
    (name,) = [n for n, sent in line.sent.items() if sent.about == "order" and sent.node == 101]
    line.waiting[name] = held
    node.spoil = None
    outcomes = given.round(desk, 2)
    assert sorted(outcomes) == [0, 1, 2, 3]
    assert any("answer of east in round 1 came too late; it is not counted" in words
               for words in given.words)  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"party": 2}, "an order of party 2 came to party 1"),
        ({"round": 2}, "but it is the report of run ab12, round 2"),
        ({"run": "ff00"}, "but it is the report of run ff00"),
    ],
)
def test_an_answer_to_another_order_is_refused(
    facts: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """The party does what it likes with its letter: the seal of its answer tells."""
    line = ToyLine()
    node = line.there[101]
    node.spoil = lambda letter: [node.honest(replace(letter, facts={**letter.facts, **facts}))]
    found = reasons(server(line=line).round(Desk(tmp_path, "ab12")))
    assert list(found) == [1]
    assert words in found[1]


def test_a_party_is_told_how_large_its_answer_may_be(tmp_path: Path) -> None:
    found = reasons(server(largest=1e-4).round(Desk(tmp_path, "ab12")))
    assert sorted(found) == [0, 1, 2, 3]
    assert "the server takes at most 0.0001" in found[0]


def test_a_party_that_does_not_count_is_refused_before_its_answer_is_kept(tmp_path: Path) -> None:
    """An honest node counts by itself; this one was told another limit, and sends more."""
    line = ToyLine()
    node = line.there[101]
    node.spoil = lambda letter: [node.honest(replace(letter, facts={**letter.facts, "largest": 9}))]
    outcomes = server(line=line, largest=1e-4).round(Desk(tmp_path, "ab12"))
    failure = outcomes[1].failure
    assert (outcomes[1].answer, failure is None) == (None, False)
    assert failure is not None
    assert "the server takes at most 0.0001. Raise engine.largest at the server" in failure.reason


def test_a_damaged_answer_is_the_failure_of_its_party_and_not_of_the_disk(tmp_path: Path) -> None:
    line = ToyLine()
    node = line.there[101]

    def damage(letter: Letter) -> Sequence[Letter]:
        told = node.honest(letter)
        data = bytearray(told.parts["report"])
        data[-1] ^= 1
        return [replace(told, parts={"report": bytes(data)})]

    node.spoil = damage
    outcomes = server(line=line).round(Desk(tmp_path, "ab12"))
    assert "its answer is refused" in reasons(outcomes)[1]
    assert not outcomes[1].failure.storage  # type: ignore[union-attr]


def test_a_node_cannot_answer_for_another(tmp_path: Path) -> None:
    line = ToyLine()
    node = line.there[101]
    node.spoil = lambda letter: [replace(node.honest(letter), node=100)]
    given = server(line=line, limit=5.0)
    assert list(reasons(given.round(Desk(tmp_path, "ab12")))) == [1]
    assert any("node 100 answered an order of east, which went to node 101; it is refused" in words
               for words in given.words)  # fmt: skip


def test_an_order_that_is_not_taken_is_a_failure(tmp_path: Path) -> None:
    line = ToyLine()
    given = server(line=line)
    given.crew.roster()
    line.taken = False
    found = reasons({o.party: o for o in given.crew.run(jobs(Desk(tmp_path, "a"), Odd()))})
    assert found == dict.fromkeys(range(4), "its order could not be sent")


def test_a_message_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    given, desk = server(), Desk(tmp_path, "ab12")
    given.crew.roster()
    lying = jobs(desk, Odd())
    desk.message(1, None).unlink()
    outcomes = {o.party: o for o in given.crew.run(lying)}
    assert sorted(reasons(outcomes)) == [0, 1, 2, 3]
    assert all(o.failure and o.failure.storage for o in outcomes.values())


def test_the_brief_is_the_method_and_the_task_without_data() -> None:
    given = work(Odd(bad=3, deed="refuse", keeps=True))
    brief = read_brief(brief_of(given))
    assert brief.method == given.method
    assert (brief.task.classes, brief.task.shape) == (given.task.classes, given.task.shape)
    assert values_of(brief.task.net) == values_of(given.task.net)
    assert brief.view == given.parties.samples.view
    stored = parties().samples.x.numpy().tobytes()
    assert stored[:64] not in brief_of(given)


def test_the_brief_brings_what_all_may_see() -> None:
    given = work(Odd())
    some = parties()[1].samples
    commons = Commons(
        some.unlabelled(), some, {"start": {"w": torch.ones(2)}}, torch.tensor([0.25, 0.75])
    )
    given = replace(given, task=replace(given.task, commons=commons))
    found = read_brief(brief_of(given)).task.commons
    assert found.public is not None
    assert found.public.y is None
    assert found.shared is not None
    assert torch.equal(found.shared.labels, some.labels)
    assert {key: value.tolist() for key, value in found.tensors().items()} == {
        key: value.tolist() for key, value in commons.tensors().items()
    }


def test_a_method_that_is_not_installed_is_refused_by_name() -> None:
    data = brief_of(work(Odd()))
    METHODS.remove("odd")
    try:
        with pytest.raises(ConfigError, match="unknown method 'odd'"):
            read_brief(data)
    finally:
        METHODS.add("odd")(Odd)


def test_a_damaged_brief_is_refused() -> None:
    data = bytearray(brief_of(work(Odd())))
    data[len(data) // 2] ^= 1
    with pytest.raises(StoreError):
        read_brief(bytes(data))


def _run(given: Server, desk: Desk) -> list[Outcome]:
    given.crew.roster()
    return list(given.crew.run(jobs(desk, given.method)))
