"""Tables of the selection study: means, seconds, and who is beaten by none; and that every part
of it runs on a tiny grid.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import selection_study
from benchmarks.selection_tables import pareto, table
from ostraka.runs.grid import Grid, run_grid


def record(method: str, partition: str, accuracy: float, **spent: float) -> dict[str, Any]:
    return {
        "method": method,
        "data": "d",
        "partition": partition,
        "accuracy": accuracy,
        "status": "ok",
        "spent": spent,
    }


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    records = [
        record("all", "p", 80.0, inference=4.0),
        record("all", "p", 82.0, inference=2.0),
        record("few", "p", 80.5, inference=1.0, selection=0.5),
        record("few", "q", 70.0, inference=2.0, selection=0.3),
        record("slow", "p", 79.0, inference=3.5),
        {"method": "few", "status": "failed"},
    ]
    (tmp_path / "results.json").write_text(json.dumps(records))
    return tmp_path


def test_the_table_by_hand(grid: Path) -> None:
    """80 and 82: mean 81, standard deviation sqrt(2)."""
    assert list(table(grid)) == [
        "| method | d / p | d / q | choice (s) | answers (s) |",
        "|---|---|---|---|---|",
        "| all | 81.00 ± 1.41 | - | - | 3.00 |",
        "| few | 80.50 | 70.00 | 0.40 | 1.50 |",
        "| slow | 79.00 | - | - | 3.50 |",
    ]


def test_pareto_by_hand(grid: Path) -> None:
    """Few are cheaper, all are better; slow is worse than both."""
    lines = list(pareto(grid, grid / "pareto.svg"))
    assert lines[:5] == [
        "| d / p | seconds | accuracy (%) | against all | beaten by none |",
        "|---|---|---|---|---|",
        "| few | 1.00 | 80.50 | -0.50 | yes |",
        "| all | 3.00 | 81.00 | +0.00 | yes |",
        "| slow | 3.50 | 79.00 | -2.00 |  |",
    ]
    assert (grid / "pareto.svg").exists()


def test_every_part_runs_on_a_tiny_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {
        "parties": 4,
        "train_per_class": 10,
        "net": {"name": "mlp", "options": {"hidden": [4]}},
        "engine": "serial",
        "set": {"local": {"epochs": 1}},
    }
    methods = ("dedes:select.size=2",)
    run_grid(Grid(methods, ("digits",), ("iid", "labels:3"), (0,), base, {}), tmp_path)
    cells = sorted(map(str, (tmp_path / "cells").iterdir()))
    words = {
        "table": [str(tmp_path)],
        "ablation": cells,
        "sizes": cells,
        "bad": [cells[0], "--party", "1"],
        "pareto": [str(tmp_path), "--figure", str(tmp_path / "pareto.svg")],
        "time": ["--members", "4"],
        "mixed": ["--parties", "4", "--seeds", "0"],
    }
    assert words.keys() == selection_study.VERBS.keys()
    for verb, given in words.items():
        out = tmp_path / f"{verb}.md"
        monkeypatch.setattr("sys.argv", ["selection_study", verb, *given, "--out", str(out)])
        selection_study.main()
        lines = [line for line in out.read_text().splitlines() if line.startswith("|")]
        assert len(lines) > 2, verb
    rows = (tmp_path / "sizes.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in rows[2:]] == [
        *(f"| {size}" for size in (1, 2, 3, 4)),
        *(f"| {name}" for name in (*selection_study.AUTO, "all members")),
        "| the best team, by the labels",
    ]
    best = rows[-1].split(" | ")
    assert best[2] == best[5] == "1"
