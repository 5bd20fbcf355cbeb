"""Every row of the published file is found by a configuration, or listed here with the reason."""

from collections import Counter
from typing import Any

import pytest

from ostraka.data.sources.domains import NAMED
from ostraka.display.published import PAPERS_NAME, SOFTMAX, published, rows, with_published
from ostraka.registry import METHODS, OBJECTIVES, PRESETS, SELECTORS
from ostraka.runs.config import make
from ostraka.runs.results import Record

Row = dict[str, str]

DIGITS = NAMED["hdr-fl"]

NOT_FOUND: dict[str, tuple[int, str]] = {
    "time": (9, "hours and minutes on the authors' machine are not compared"),
    "rank": (6, "a rank among all teams is of a complete inspection (figure teams)"),
    "mean": (9, "a mean over ten runs with one known class each is no run"),
    "dd-paste": (5, "one half of our operation cut"),
    "dd-swap": (5, "one half of our operation cut"),
    "fedpd-split-none": (2, "prints the figures of FedMA again"),
    "again": (110, "an earlier table of the paper has the same cell"),
}
"""Rows that no configuration finds: how many, and why."""


def reason(row: Row) -> str:
    """The key of NOT_FOUND of a row that nothing can find; empty for the others."""
    if "rtx3090" in row["metric"]:
        return "time"
    if row["metric"] == "rank-of-1024":
        return "rank"
    if row["known"] == "1":
        return "mean"
    return row["method"] if row["method"] in NOT_FOUND else ""


def method_of(row: Row) -> dict[str, Any]:
    """The method of ours that a row is about, and its settings."""
    name, _, tuned = row["method"].partition(" ")
    pooled = row["partition"] == "centralised"
    if tuned:
        scaling, lr = (part.partition("=")[2] for part in tuned.split())
        shown = {"raw": "raw", "scaled": "off", "standardized": "on"}[scaling]
        return {"method": name, "standardise": shown, "set": {"local": {"lr": float(lr)}}}
    if name in SELECTORS.names():
        return {"method": "dedes", "set": {"select": name}}
    if name == "as":
        return {"method": "closed-voting"}
    if name == SOFTMAX or (name in OBJECTIVES.names() and (pooled or name not in METHODS.names())):
        base = "centralised" if pooled else "fedavg"
        return {"method": base, "set": {"objective": name.replace(SOFTMAX, "cross-entropy")}}
    back = {theirs: ours for ours, theirs in PAPERS_NAME.items() if theirs not in PRESETS.names()}
    known = name in METHODS.names() or name in PRESETS.names()
    name = name if known else back[name]
    if pooled and name in PRESETS.names():
        changes = PRESETS.get(name).settings["objective"]
        return {"method": "centralised", "set": {"objective": {"name": "fedov", **changes}}}
    return {"method": name}


def found(row: Row) -> list[tuple[float, str]]:
    """What stands beside a run with the row's own configuration."""
    values = method_of(row)
    data, _, domain = row["dataset"].partition("/")
    known = row["known"].removeprefix("class ")
    if row["known"]:
        values |= (
            {"known_classes": [int(known)]} if known != row["known"] else {"known": int(known)}
        )
    elif domain:
        values |= {"known": 6}
    if row["metric"] == "accuracy-best-top-k":
        values["set"] = {"ballot": "top-k"}
    partition = "iid" if row["partition"] == "centralised" else row["partition"]
    place = {"data": data, "partition": partition, "net": row["net"] or "mlp", **values}
    figures = {"accuracy": 50.0, "auroc": 50.0}
    record = {
        **{key: place[key] for key in ("method", "data", "partition")},
        "seed": 0, "rounds": int(row["rounds"] or 7), "parties": int(row["parties"]),
        "accuracy": 50.0, "mean_last_20": 50.0, "open": {"auroc": 50.0, "open_accuracy": 50.0},
        "per_domain": {name: figures for name in DIGITS} if domain else {},
        "selection": {"chosen": ["x"] * int(row["size"])} if row["size"] else {},
    }  # fmt: skip
    [told] = with_published([make(place)], [Record.from_json(record)])
    return [
        (one.value, one.table)
        for one in told.published.values()
        if not [
            said for said in one.differs if said.startswith(("parties:", "rounds:", "network:"))
        ]
    ]


def test_every_row_is_found_or_has_its_reason() -> None:
    missing: Counter[str] = Counter()
    cells: dict[tuple[str, ...], str] = {}
    for row in rows():
        held = "size", "dataset", "partition", "known", "parties", "net", "method", "rounds"
        cell = tuple(row[name] for name in (*held, "metric"))
        paper = row["table"].partition("-")[0]
        if reason(row):
            missing[reason(row)] += 1
        elif row["metric"] == "relative-accuracy":
            place = (row["dataset"], row["partition"], row["net"], row["method"])
            milestone = published(
                *place, int(row["parties"]), int(row["rounds"]), row["metric"], exact=("rounds",)
            )
            assert milestone == (float(row["value"]), None, row["table"], ())
        elif cells.setdefault((paper, *cell), row["table"]) != row["table"]:
            missing["again"] += 1
        else:
            assert (float(row["value"]), row["table"]) in found(row), row
    assert missing == {key: count for key, (count, _) in NOT_FOUND.items()}


def test_what_stands_beside_another_experiment_says_so() -> None:
    """The same rows under a small network, three parties and two rounds."""
    for row in rows()[::40]:
        if reason(row) or row["metric"] == "relative-accuracy":
            continue
        other = {**row, "net": "linear", "parties": "3", "rounds": "2"}
        assert found(row)
        if "centralised" not in (row["partition"], row["method"]) and row["net"]:
            assert not found(other), row


@pytest.mark.parametrize("key", NOT_FOUND)
def test_every_reason_is_said(key: str) -> None:
    assert NOT_FOUND[key][1]
