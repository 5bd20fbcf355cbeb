"""What a party may send as its report: whatever it is, the run goes on, and the party is named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.core.card import Card
from ostraka.core.method import Report
from ostraka.engines.base import Answer, Outcome
from ostraka.methods.fedavg import FedAvg
from ostraka.runs.arrivals import Arrivals
from ostraka.runs.summary import Totals
from ostraka.store import codec
from ostraka.store.desk import Desk, Envelope
from tests.engines.toy_work import TASK, Odd

PARAMS = Odd().init(TASK, 5)
GOOD = Envelope(Report(PARAMS, 1.0, Card(1, 9), {}), 1.0, 1.0, 10)


def arrived(value: Any, root: Path, size: int = 9) -> Arrivals:
    desk = Desk(root, "ab12")
    arrivals = Arrivals(FedAvg(rounds=2), TASK, desk, 1, Totals(), {1: size})
    data = codec.encode(value, desk.report(1, 1).seal)
    arrivals.store(Outcome(1, answer=Answer(data, None)))
    return arrivals


def test_a_report_is_counted(tmp_path: Path) -> None:
    arrivals = arrived(GOOD, tmp_path)
    assert arrivals.refused == {}
    assert (arrivals.totals.cpu_seconds, arrivals.totals.bytes_up) == (1.0, 10)


def test_a_weight_may_be_as_large_as_the_party_and_one_where_it_is_empty(tmp_path: Path) -> None:
    heavy = replace(GOOD, report=replace(GOOD.report, weight=9.0))
    assert arrived(heavy, tmp_path / "a").refused == {}
    empty = replace(GOOD, report=replace(GOOD.report, card=Card(1, 0)))
    assert arrived(empty, tmp_path / "b", size=0).refused == {}


@pytest.mark.parametrize(("spare", "written"), [(0, False), (-1, True)])
def test_a_report_is_held_where_there_is_room_for_its_last_byte(
    spare: int, written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Desk(tmp_path, "ab12").report(1, 1)
    data = codec.encode(GOOD, place.seal)
    monkeypatch.setattr("ostraka.runs.arrivals.HELD", len(data) + spare)
    arrivals = Arrivals(FedAvg(rounds=2), TASK, Desk(tmp_path, "ab12"), 1, Totals(), {1: 9}, 3600.0)
    arrivals.store(Outcome(1, answer=Answer(data, None)))
    assert place.exists() == written


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"report": 1}, "is no report"),
        (None, "is no report"),
        (Card(1, 9), "is no report"),
        (replace(GOOD, report=Card(1, 9)), "is no report"),
        (replace(GOOD, cpu_seconds=float("nan")), "CPU-seconds"),
        (replace(GOOD, cpu_seconds="long"), "CPU-seconds"),
        (replace(GOOD, bytes_up=-5), "-5 bytes"),
        (replace(GOOD, bytes_up=0.5), "0.5 bytes"),
        (replace(GOOD, report=replace(GOOD.report, card=Card(2, 9))), "of party 2"),
        (replace(GOOD, report=replace(GOOD.report, card=None)), "no card"),
        (replace(GOOD, report=replace(GOOD.report, weight="heavy")), "cannot be used"),
        (replace(GOOD, report=replace(GOOD.report, payload=[1, 2])), "cannot be used"),
        (replace(GOOD, report=replace(GOOD.report, weight=1e15)), "its weight is 1e+15; it must"),
        (replace(GOOD, report=replace(GOOD.report, weight=9.5)), "at most 9, for its party joined"),
        (
            replace(GOOD, report=replace(GOOD.report, card=Card(1, 10))),
            "its size is 10; it must be",
        ),
    ],
)
def test_what_is_no_report_is_the_failure_of_its_party(
    value: Any, words: str, tmp_path: Path
) -> None:
    arrivals = arrived(value, tmp_path)
    assert list(arrivals.refused) == [1]
    assert words in arrivals.refused[1].reason
    assert (arrivals.totals.cpu_seconds, arrivals.totals.bytes_up) == (0.0, 0)
    assert not arrivals.desk.report(1, 1).path.exists()
