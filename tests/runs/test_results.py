"""Summaries, records and lines of metrics: written as they always were, read from any version."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ostraka.core.predictor import Promise
from ostraka.errors import StoreError
from ostraka.evaluation.evaluate import Evaluation, OpenFigures
from ostraka.runs.results import (
    BesidePublished,
    Best,
    DomainFigures,
    MetricsRow,
    Record,
    StartFigures,
    Summary,
)

OPENED: dict[str, float | None] = {
    "auroc": 90.0, "fpr95": 10.0, "oscr": 80.0, "open_accuracy": 70.0, "known_refused": 5.0,
    "unknown_refused": 60.0, "balanced_accuracy": 75.0,
}  # fmt: skip
PHOTO: dict[str, Any] = {
    "samples": 9, "unknown_samples": 2, "accuracy": 50.0, "balanced_accuracy": 1.0, "f1": 2.0,
    "auroc": None, "fpr95": None, "oscr": None, "open_accuracy": None, "known_refused": 4.0,
    "unknown_refused": None, "open_balanced_accuracy": None,
}  # fmt: skip
SUMMARY: dict[str, Any] = {
    "run": "ab",
    "method": "fedov",
    "data": "digits",
    "partition": "iid",
    "parties": 2,
    "seed": 3,
    "rounds": 1,
    "accuracy": 50.0,
    "balanced_accuracy": 40.0,
    "f1": 30.0,
    "auroc": 90.0,
    "known_refused": 5.0,
    "unknown_refused": 60.0,
    "open_balanced_accuracy": 75.0,
    "open": OPENED,
    "answer": {"rate": 0.05, "basis": "told", "threshold": 1.5, "why": ""},
    "best": {"accuracy": 55.0, "round": 1},
    "best_on_validation": {"accuracy": 50.0, "round": 1, "validation": 44.0},
    "mean_last_20": 50.0,
    "reached": {"50": 3},
    "per_class": {"ant": 50.0, "bee": None},
    "per_party": {"a": 1.0, "b": None},
    "per_part": {"a": 2.0},
    "per_domain": {"photo": PHOTO},
    "confusion": [[1, 2], [3, 4]],
    "notes": ["a note"],
    "hardly_trained": ["a sign"],
    "seconds": 1.5,
    "cpu_seconds": 2.5,
    "bytes_up": 10,
    "bytes_down": 20,
    "dropped": [{"party": "a", "round": 1, "why": "it is gone"}],
    "reused": 2,
    "start": {
        "method": "fedkt",
        "digest": "cd",
        "out": "x",
        "bytes_up": 1,
        "bytes_down": 2,
        "cpu_seconds": 3.0,
        "accuracy": 33.0,
    },
    "out": "runs/mine",
    "looked": {"samples": 9, "of": "test"},
    "trust": {"parties": ["a"]},
    "selection": {"chosen": ["a"]},
    "spent": {"inference": 0.5},
    "digest": "ef",
}
OLDEST = {
    key: SUMMARY[key]
    for key in ("method", "data", "partition", "parties", "seed", "rounds", "accuracy")
}


def test_a_summary_is_read_into_its_parts() -> None:
    found = Summary.from_json(SUMMARY)
    assert found.open == OpenFigures(90.0, 10.0, 80.0, 70.0, 5.0, 60.0, 75.0)
    assert found.answer == Promise(0.05, "told", 1.5)
    assert (found.best, found.best_on_validation) == (Best(55.0, 1), Best(50.0, 1, 44.0))
    assert found.per_domain == {"photo": DomainFigures(9, 2, 50.0, 1.0, 2.0, known_refused=4.0)}
    assert found.start == StartFigures("fedkt", "cd", "x", 1, 2, 3.0, 33.0)
    assert (found.confusion, found.notes) == (((1, 2), (3, 4)), ("a note",))
    assert found.hardly_trained == ("a sign",)
    assert found.dropped == ({"party": "a", "round": 1, "why": "it is gone"},)
    assert (found.auroc, found.known_refused, found.unknown_refused) == (90.0, 5.0, 60.0)
    assert (found.balanced_accuracy, found.open_balanced_accuracy) == (40.0, 75.0)


def test_a_summary_is_written_to_the_letter() -> None:
    """The same keys in the same order, and the same values."""
    assert json.dumps(Summary.from_json(SUMMARY).to_json()) == json.dumps(SUMMARY)


def test_what_was_not_measured_is_nothing() -> None:
    found = Summary.from_json({**OLDEST, "open": None, "answer": None})
    assert (found.open, found.answer, found.start) == (OpenFigures(), None, None)
    assert (found.f1, found.per_class, found.confusion, found.run) == (None, {}, (), "")
    assert not found.to_json().keys() & {"run", "digest"}
    four = {name: OPENED[name] for name in ("auroc", "fpr95", "oscr", "open_accuracy")}
    assert Summary.from_json({**OLDEST, "open": four}).open == OpenFigures(90.0, 10.0, 80.0, 70.0)


def test_keys_of_a_later_version_are_left_alone() -> None:
    assert Summary.from_json({**SUMMARY, "to_come": 1}) == Summary.from_json(SUMMARY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": "high"}, "'accuracy' of mine is 'high'"),
        ({"parties": 2.5}, "'parties' of mine is 2.5"),
        ({"seed": True}, "'seed' of mine is True"),
        ({"method": None}, "'method' of mine is None"),
        ({"per_class": [1]}, "'per_class' of mine is"),
        ({"open": {"auroc": "x"}}, "'auroc' of mine, 'open' is 'x'"),
        ({"best": {"accuracy": 1.0}}, "mine, 'best' lacks 'round'"),
        ({"per_domain": {"photo": 3}}, "mine, domain 'photo' is no JSON object"),
        ({"start": {"method": "x"}}, "mine, 'start' lacks 'digest'"),
        ({"answer": {"rate": "often"}}, "'rate' of mine, 'answer' is 'often'"),
        ({"notes": "one"}, "'notes' of mine is 'one'"),
    ],
)
def test_what_is_no_summary_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Summary.from_json({**SUMMARY, **change}, "mine")


@pytest.mark.parametrize("key", OLDEST)
def test_a_summary_needs_what_every_version_wrote(key: str) -> None:
    with pytest.raises(StoreError, match=f"mine lacks '{key}'; it was changed"):
        Summary.from_json({name: value for name, value in SUMMARY.items() if name != key}, "mine")


TOLD = {
    "value": 80.0, "std": None, "table": "fedov-1", "ours": 50.0, "difference": -30.0,
    "differs": ["epochs: 3 for 200"],
}  # fmt: skip
SETTINGS = {"method": "fedov", "local.lr": 0.1, "net.options.hidden": [3]}


def test_a_finished_cell_is_its_summary_with_a_status() -> None:
    """A method with settings of its own stands under the name that the grid gives it."""
    own = {"method": "fedov:lr=0.1", "settings": SETTINGS, "status": "ok"}
    stored = {**SUMMARY, **own, "published": {"accuracy": TOLD}}
    found = Record.from_json(stored)
    assert found.cell == (found.row, "digits", "iid", 3)
    assert found.settings == SETTINGS
    assert found.status == "ok"
    assert found.summary is not None
    assert found.summary.accuracy == 50.0
    told = BesidePublished(80.0, None, "fedov-1", 50.0, -30.0, ("epochs: 3 for 200",))
    assert found.published == {"accuracy": told}
    assert json.dumps(found.to_json()) == json.dumps(stored)


def test_a_failed_cell_has_its_reason() -> None:
    stored = {
        "method": "solo", "data": "digits", "partition": "iid", "seed": 0,
        "settings": SETTINGS, "status": "failed", "error": "no room"
    }  # fmt: skip
    found = Record.from_json(stored)
    assert (found.status, found.error, found.summary) == ("failed", "no room", None)
    assert found.settings == SETTINGS
    assert json.dumps(found.to_json()) == json.dumps(stored)
    assert Record.from_json({**stored, "error": None}).error == "no reason was recorded"


def test_the_record_of_a_finished_run_goes_by_its_own_names() -> None:
    summary = Summary.from_json(SUMMARY)
    expected = Record("fedov", "digits", "iid", 3, summary, settings=SETTINGS)
    assert Record.of(summary, SETTINGS) == expected


def test_a_row_is_its_whole_configuration() -> None:
    """Names and the order of settings say nothing, every value does; 1 is 1.0."""
    one = Record.of(Summary.from_json(SUMMARY), {"method": "fedov", "local.lr": 1.0, "known": 6})
    same = [
        replace(one, method="fedov:lr=1"),
        replace(one, settings={"known": 6, "method": "fedov", "local.lr": 1}),
        replace(one, seed=7, data="wine"),
    ]
    assert {other.row for other in same} == {one.row}
    assert same[2].cell != one.cell
    for changed in ({"local.lr": 2.0}, {"known": 7}, {"parties": 3}, {"method": "solo"}):
        assert replace(one, settings={**one.settings, **changed}).row != one.row
    assert replace(one, settings={"method": "fedov", "local.lr": 1.0}).row != one.row


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([], "mine is no JSON object"),
        ({"method": "solo"}, "mine lacks 'data'"),
        ({**OLDEST, "status": "ok", "accuracy": "x"}, "'accuracy' of mine is 'x'"),
        ({**OLDEST, "published": {"accuracy": {}}}, "mine, 'published' lacks 'value'"),
    ],
)
def test_what_is_no_record_is_refused(held: Any, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Record.from_json(held, "mine")


def evaluated(accuracy: float, **more: Any) -> dict[str, Any]:
    """What a line holds of one evaluation."""
    return {
        "samples": 9, "unknown_samples": 2, "accuracy": accuracy,
        "balanced_accuracy": 1.0, "f1": None, "per_class": {"ant": 50.0}, "open": OPENED,
        "per_part": {}, "per_domain": {}, **more,
    }  # fmt: skip


LINE: dict[str, Any] = {
    "run": "ab",
    "round": 2,
    "test": evaluated(50.0, per_part={"7": evaluated(1.0)}, per_domain={"photo": evaluated(2.0)}),
    "validation": 44.0,
    "answer": SUMMARY["answer"],
    "confusion": [[1]],
    "per_party": {"0": 1.0, "7": None},
    "bytes_up": 3,
    "bytes_down": 4,
}


def test_a_line_of_metrics_there_and_back() -> None:
    found = MetricsRow.from_json(LINE)
    assert isinstance(found.test.per_part[7], Evaluation)
    assert found.test.per_domain["photo"].accuracy == 2.0
    assert (found.per_party, found.confusion) == ({0: 1.0, 7: None}, ((1,),))
    assert json.dumps(found.to_json()) == json.dumps(LINE)


def test_all_lines_but_the_last_have_no_tables() -> None:
    short = {key: value for key, value in LINE.items() if key not in ("confusion", "per_party")}
    assert json.dumps(MetricsRow.from_json(short).to_json()) == json.dumps(short)
    pooled = {**LINE, "per_party": {}}
    assert json.dumps(MetricsRow.from_json(pooled).to_json()) == json.dumps(pooled)


@pytest.mark.parametrize(
    "change", [{"round": "2"}, {"round": True}, {"test": {}}, {"test": {"accuracy": "x"}}]
)
def test_what_is_no_line_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="make it anew"):
        MetricsRow.from_json({**LINE, **change})
