"""What a node may write, and what becomes of it at the server."""

from pathlib import Path
from typing import Any

import pytest

from ostraka.engines.base import Job
from ostraka.engines.letters import Letter, number, shown
from ostraka.engines.remote import DETAILS, Correspondence, outcome_of
from ostraka.store import codec
from ostraka.store.desk import Desk, seal
from tests.engines.test_remote import NAMES, Post
from tests.engines.toy_line import ToyLine


@pytest.mark.parametrize(
    ("given", "told"),
    [(1.5, 1.5), (2, 2.0), ("3", None), (float("nan"), None), (float("inf"), None), (True, None),
     (None, None), ([1.0], None), (b"x", None)],
)  # fmt: skip
def test_only_numbers_are_numbers(given: object, told: float | None) -> None:
    assert number(given) == told


def test_words_of_a_node_are_harmless_and_short() -> None:
    assert shown("plain words\nof two lines") == "plain words\nof two lines"
    assert shown("\x1b]0;owned\x07\x1b[2J") == "\ufffd]0;owned\ufffd\ufffd[2J"
    assert shown("abcdef", 3) == "abc ..."
    assert shown(7) == "7"


def job(tmp_path: Path) -> Job:
    desk = Desk(tmp_path, "ab12")
    return Job(1, 1, 5, "ab12", desk.message(1, None), None, desk.progress(1, 1))


@pytest.mark.parametrize("seconds", ["soon", float("nan"), [1.0], b"1"])
def test_an_answer_with_nonsense_for_a_number_still_counts(seconds: Any, tmp_path: Path) -> None:
    report = codec.encode({}, seal("report", "ab12", 1, 1))
    facts = {"seconds": seconds, "loss": seconds}
    outcome = outcome_of(Letter(7, "order", facts, {"report": report}), job(tmp_path))
    assert (outcome.failure, outcome.seconds, outcome.loss) == (None, None, None)


def test_the_largest_answer_that_is_taken(tmp_path: Path) -> None:
    """A megabyte has 10^6 bytes, and all parts of an answer count."""
    report = codec.encode({}, seal("report", "ab12", 1, 1))
    parts = {"report": report, "more": bytes(1000 - len(report))}
    fits, above = (Letter(7, "order", {}, {**parts, "x": x}) for x in (b"", b"x"))
    assert outcome_of(fits, job(tmp_path), 1e-3).failure is None
    assert outcome_of(above, job(tmp_path), 1e-3).failure is not None


def test_a_failure_cannot_fill_the_servers_log_nor_its_terminal(tmp_path: Path) -> None:
    facts = {"reason": "\x1b[2J" + "x" * 10**6, "details": "y" * 10**7, "seconds": 1.0}
    failure = outcome_of(Letter(7, "order", facts), job(tmp_path)).failure
    assert failure is not None
    assert "\x1b" not in failure.reason
    assert len(failure.reason) < 600
    assert len(failure.details) < DETAILS + 10


def seated(facts: dict[str, Any], node: int = 103) -> tuple[Correspondence, list[str]]:
    """A server whose fourth node told these facts of itself."""
    line, said = ToyLine(), list[str]()
    crew = Correspondence(
        line,
        b"",
        Post(join=0.0, min_parties=1).expected(None),
        Post(join=0.0),
        said.append,  # type: ignore[arg-type]
    )
    crew._seat(line.there[103].node, Letter(node, "party", facts))
    return crew, said


def test_a_party_is_called_what_the_server_calls_it() -> None:
    crew, said = seated({"party": 3, "size": 5, "name": "north\x1b[2J"})
    assert crew.seats[3].ref.name == NAMES[3] == "west"
    assert "\x1b" not in "".join(said)


def test_nobody_tells_for_another_node_who_it_is() -> None:
    crew, said = seated({"party": 3, "size": 5, "name": "west"}, node=101)
    assert crew.seats == {}
    assert said == ["node 103 cannot take part: node 101 answered in its place"]
