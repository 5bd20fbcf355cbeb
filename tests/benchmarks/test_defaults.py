"""The sample of cells that defaults are tried on, and what is shown of them."""

import json
from pathlib import Path

import pytest

from benchmarks import defaults

CELL = {"data": "digits", "partition": "iid", "parties": 2, "train_per_class": 10, "known": None}


def test_cells_can_be_divided_and_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten classes: labels:2 needs five parties. digits has 140 images of each class."""
    monkeypatch.setattr(defaults, "DATA", ("digits", "wine"))
    found = defaults.cells()
    assert found == defaults.cells()
    digits = [cell for cell in found if cell["data"] == "digits"]
    assert {cell["train_per_class"] for cell in digits} == {10, 30, 100, 140}
    assert {cell["known"] for cell in digits} == {None, 6}
    assert {cell["known"] for cell in found if cell not in digits} == {None}
    for cell in found:
        name, _, held = str(cell["partition"]).partition(":")
        known = cell["known"] or (10 if cell in digits else 3)
        assert name != "labels" or int(held) * cell["parties"] >= known


def row(variant: str, seed: int, accuracy: float | None) -> dict[str, object]:
    return {**CELL, "variant": variant, "seed": seed, "accuracy": accuracy}


def test_a_gap_is_that_to_the_best_rival_in_the_same_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """80 beside 85 and 70; 90 beside 85 alone, as the other rival failed."""
    rows = [
        row("default", 1, 80.0),
        row("epochs-200", 1, 85.0),
        row("closed-voting", 1, 70.0),
        row("default", 2, 90.0),
        row("epochs-200", 2, 85.0),
        row("closed-voting", 2, None),
    ]
    assert defaults.gaps(rows) == {("default", "digits"): [-5.0, 5.0]}
    path = tmp_path / "before.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    defaults.show([path], tmp_path / "gaps.png")
    assert "| before | default | digits | 2 | 0.0 | 5.0 | -5.0 | 50 % |" in capsys.readouterr().out
    assert (tmp_path / "gaps.png").stat().st_size > 1000


def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(cell: dict[str, object], values: dict[str, object]) -> dict[str, float]:
        asked.append(values["method"])
        return {"accuracy": 50.0}

    monkeypatch.setattr(defaults, "cells", lambda: [{**CELL, "seed": 1}])
    monkeypatch.setattr(defaults, "run", run)
    out = tmp_path / "rows.jsonl"
    for _ in range(2):
        defaults.run_all("one-shot", out, 1.0, None)
    assert asked == ["fedov", "fedov", "closed-voting"]
    assert [one["variant"] for one in defaults.rows_of(out)] == list(defaults.ONE_SHOT)
