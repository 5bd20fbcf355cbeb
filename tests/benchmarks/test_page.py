"""The tables of docs/results/speed.md are made of the committed figures, and say what they say."""

import json
from typing import Any

import pytest

from benchmarks.speed.__main__ import JSON, PAGE
from benchmarks.speed.page import MARKED, best, fill, markdown
from benchmarks.speed.table import BEFORE, OURS, Job, Table
from benchmarks.speed.tables import TABLES

PLAIN, KEPT = "plain", "kept"


def table(**changes: Any) -> Table:
    given: dict[str, Any] = {
        "name": "toy",
        "title": "Toys",
        "unit": "toys",
        "cells": {"red": "red toys"},
        "variants": (PLAIN, KEPT, OURS),
        "opponents": (PLAIN, KEPT),
        "job": lambda cell, variant, small: Job(lambda lap: None),
    }
    return Table(**{**given, **changes})


def figures(**cpu: list[float]) -> dict[str, Any]:
    cells = {name: {"cpu": c, "wall": [2 * s for s in c], "memory": 70} for name, c in cpu.items()}
    return {"date": "2026-01-02", "machine": "abacus", "matmul": 8.0, "cells": {"red": cells}}


FOUND = figures(
    plain=[0.002, 0.008, 0.006], kept=[0.003, 0.003, 0.006], ostraka=[0.001, 0.002, 0.001]
)


def last_row(made: str) -> list[str]:
    return [cell.strip() for cell in made.splitlines()[-1].strip("|").split("|")]


def test_the_tables_of_the_page_are_those_of_the_committed_figures() -> None:
    kept, page = json.loads(JSON.read_text()), PAGE.read_text()
    assert set(kept) == set(TABLES)
    assert fill(page, TABLES, kept) == page


def test_the_page_has_a_place_for_every_table() -> None:
    assert {match["name"] for match in MARKED.finditer(PAGE.read_text())} == set(TABLES)


def test_a_ratio_is_to_the_variant_with_the_best_median_round_by_round() -> None:
    """Medians 0.006 and 0.003: the second, although the first was once faster.

    0.003/0.001, 0.003/0.002, 0.006/0.001 are 3, 1.5 and 6; rates are 1 over the medians.
    """
    assert best(table(), FOUND["cells"]["red"]) == KEPT
    assert last_row(markdown(table(), FOUND)) == [
        "red toys", "167", "333", "1,000", "**3.00** (1.50 to 6.00)",
    ]  # fmt: skip


def test_seconds_are_ours_over_theirs() -> None:
    less = table(counts="less", opponents=(PLAIN,))
    made = figures(plain=[2.0, 2.0, 4.0], ostraka=[3.0, 5.0, 2.0])
    ratio = "**1.50** (0.50 to 2.50)"
    assert last_row(markdown(less, made)) == [
        "red toys",
        "2.00 (4.00)",
        "3.00 (6.00)",
        ratio,
        ratio,
    ]


def test_another_checkout_memory_and_the_share_of_matmul() -> None:
    """4 million operations in a median of 0.001 s are 4 GFLOP/s, half of 8."""
    made = figures(plain=[0.004] * 3, **{BEFORE: [0.002, 0.003, 0.002], OURS: [0.001] * 3})
    rich = table(memory=True, effort={"red": 4.0})
    assert last_row(markdown(rich, made)) == [
        "red toys", "250 (70 MB)", "500 (70 MB)", "1,000 (70 MB)",
        "**4.00** (4.00 to 4.00)", "**2.00** (2.00 to 3.00)", "50",
    ]  # fmt: skip


def test_only_what_lies_between_markers_is_written() -> None:
    page = "a\n<!-- bench: toy -->\nold\n<!-- end of bench: toy -->\nb <!-- bench: other -->\n"
    made = fill(page, {"toy": table()}, {"toy": FOUND})
    assert made.startswith(
        "a\n<!-- bench: toy -->\n\n2026-01-02, abacus; matmul 8 GFLOP/s; 3 rounds."
    )
    assert made.endswith("|\n<!-- end of bench: toy -->\nb <!-- bench: other -->\n")
    assert "old" not in made
    assert fill(made, {"toy": table()}, {"toy": FOUND}) == made
    assert fill(page, {"toy": table()}, {}) == page


def test_figures_without_a_place_are_not_lost_silently() -> None:
    with pytest.raises(ValueError, match="no markers for toy"):
        fill("nothing", {"toy": table()}, {"toy": FOUND})
