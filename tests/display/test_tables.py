"""Tables rendered from hand-made cells, and the comparison of methods."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from ostraka.display.comparison import comparison, open_answers, per_domain
from ostraka.display.tables import MISSING, Mean, Number, Table, human_bytes, human_seconds
from ostraka.errors import DataError
from ostraka.evaluation.evaluate import OpenFigures
from ostraka.runs.results import DomainFigures, Record, Summary

OPEN = {
    "auroc": "auroc",
    "known_refused": "known_refused",
    "unknown_refused": "unknown_refused",
    "open_balanced_accuracy": "balanced_accuracy",
}


def cell(method: str, seed: int, accuracy: float | None, **more: Any) -> Record:
    """One finished cell of a grid; figures of the open answer among the others."""
    opened = OpenFigures(**{name: more.pop(key) for key, name in OPEN.items() if key in more})
    costs = {"seconds": 10.0, "cpu_seconds": 20.0, "bytes_up": 1_500_000, "bytes_down": 500}
    place = {"data": "fashion", "partition": "classes:2", "parties": 3, "rounds": 1}
    values = {**place, **costs, "open": opened, **more}
    return Record.of(Summary(method=method, seed=seed, accuracy=accuracy, **values))


def failed(method: str, seed: int, error: str, **more: Any) -> Record:
    """One cell that did not finish."""
    return replace(cell(method, seed, None, **more), summary=None, error=error)


SMALL = Table(
    ("name", "score", "size"),
    (
        ("a|b", Mean(1 / 3, 0.125, 3, best=True), Number(2048, "2 kB")),
        ("[red]c", Mean(0.25, None, 1), MISSING),
    ),
    title="Small",
    notes=("a note",),
)


def shown(table: Table) -> str:
    """What a wide terminal without colours shows."""
    console = Console(width=200, file=io.StringIO(), color_system=None)
    console.print(table.rich())
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_markdown() -> None:
    """The best cell is bold, a bar in a name does not end its cell, and one seed has no spread."""
    assert SMALL.markdown().splitlines() == [
        "**Small**",
        "",
        "| name | score | size |",
        "| :--- | ---: | ---: |",
        "| a\\|b | **0.33 ± 0.12** | 2 kB |",
        "| [red]c | 0.25 | — |",
        "",
        "- a note",
    ]


def test_csv_keeps_full_precision_and_puts_the_spread_in_its_own_column() -> None:
    rows = list(csv.reader(io.StringIO(SMALL.csv())))
    assert rows[0] == ["name", "score", "score std", "score n", "size"]
    assert rows[1] == ["a|b", repr(1 / 3), "0.125", "3", "2048"]
    assert rows[2] == ["[red]c", "0.25", "", "1", ""]


def test_records_are_strict_json() -> None:
    records = json.loads(json.dumps(SMALL.records(), allow_nan=False))
    assert records[0] == {
        "name": "a|b",
        "score": {"mean": 1 / 3, "std": 0.125, "n": 3, "best": True},
        "size": 2048,
    }
    assert records[1]["score"] == {"mean": 0.25, "std": None, "n": 1, "best": False}
    assert records[1]["size"] is None


def test_rich_shows_every_cell_and_takes_no_name_for_markup() -> None:
    text = shown(SMALL)
    for expected in ("Small", "a|b", "0.33 ± 0.12", "2 kB", "[red]c", "a note"):
        assert expected in text


def test_rich_makes_only_the_best_bold() -> None:
    scores = list(SMALL.rich().columns[1].cells)
    assert [str(text.style) for text in scores] == ["bold", ""]  # type: ignore[union-attr]


def test_head_says_what_it_left_out() -> None:
    first = SMALL.head(1)
    assert len(first.rows) == 1
    assert first.notes == ("1 more rows are not shown", "a note")
    assert SMALL.head(2) is SMALL


def test_a_row_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(DataError, match="1 cells does not fit 2 columns"):
        Table(("a", "b"), (("x",),))


def test_comparison_by_hand() -> None:
    """Seeds 70, 72, 77: mean 73, sample variance (9 + 1 + 16) / 2 = 13.

    CPU times 20, 20, 40: median 20. The time on the clock, which shared training makes small, is
    not compared.
    """
    cells = [cell("fedov", 0, 70.0), cell("fedov", 1, 72.0)]
    cells += [cell("fedov", 2, 77.0, cpu_seconds=40.0)]
    cells += [cell("solo", 0, 40.0)]
    (table,) = comparison(cells)
    assert table.title == "Accuracy (%)"
    assert table.columns[:2] == ("method", "fashion / classes:2")
    assert table.columns[2:] == ("CPU time", "up", "down")
    fedov, solo = table.rows
    assert isinstance(fedov[1], Mean)
    assert (fedov[1].mean, fedov[1].n, fedov[1].best) == (73.0, 3, True)
    assert fedov[1].std == pytest.approx(13**0.5)
    assert solo[1] == Mean(40.0, None, 1)
    assert fedov[2:] == (
        Number(20.0, "20.0 s"),
        Number(1_500_000, "1.5 MB"),
        Number(500, "500 B"),
    )
    assert "| fedov | **73.00 ± 3.61** | 20.0 s |" in table.markdown()


def test_a_note_says_when_members_were_reused() -> None:
    cells = [cell("fedov", 0, 70.0), cell("solo", 0, 40.0, reused=10)]
    said = (
        "trained once and shared: solo took members that another row or call had trained; the CPU "
        "time of each row counts all training that its result needs"
    )
    assert said in comparison(cells)[0].notes
    assert not any("shared" in note for note in comparison(cells[:1])[0].notes)
    assert not any("another cell" in note for note in comparison(cells[:1])[0].notes)


def test_ties_are_all_best_and_unrounded_means_decide() -> None:
    """a and b have the same seeds in another order; c looks the same when rounded, but is lower."""
    cells = [cell("a", 0, 70.1), cell("a", 1, 80.2), cell("a", 2, 0.3)]
    cells += [
        cell("b", 0, 0.3),
        cell("b", 1, 80.2),
        cell("b", 2, 70.1),
        cell("c", 0, 150.6 / 3 - 1e-9),
    ]
    column = [row[1] for row in comparison(cells)[0].rows]
    assert all(isinstance(c, Mean) and c.text(2).startswith("50.20") for c in column)
    assert [c.best for c in column if isinstance(c, Mean)] == [True, True, False]


def test_best_is_judged_within_each_column() -> None:
    cells = [cell("a", 0, 90.0), cell("b", 0, 80.0)]
    cells += [cell("a", 0, 10.0, data="digits"), cell("b", 0, 20.0, data="digits")]
    (table,) = comparison(cells)
    assert table.columns[1:3] == ("fashion / classes:2", "digits / classes:2")
    best = [[c.best for c in row[1:3] if isinstance(c, Mean)] for row in table.rows]
    assert best == [[True, False], [False, True]]


def test_failed_and_missing_cells() -> None:
    """b failed outright in one place and was not run in the other.

    A lost one seed of two, and says so.
    """
    cells = [
        cell("a", 0, 60.0),
        failed("a", 1, "party 3: out of memory"),
        failed("b", 0, "no public data"),
    ]
    cells.append(cell("a", 0, 50.0, data="digits"))
    (table,) = comparison(cells)
    a, b = table.rows
    assert a[1] == Mean(60.0, None, 1, best=True, mark=" [1]")
    assert b[1:] == ("failed [2]", MISSING, MISSING, MISSING, MISSING)
    assert table.notes[:2] == (
        "[1] a on fashion / classes:2 failed: seed 1: party 3: out of memory",
        "[2] b on fashion / classes:2 failed: seed 0: no public data",
    )
    assert "failed [2]" in shown(table)
    assert "no public data" in table.markdown()


def test_a_figure_that_is_not_a_number_counts_as_failed() -> None:
    (table,) = comparison([cell("a", 0, float("nan")), cell("b", 0, 50.0)])
    assert table.rows[0][1] == "failed [1]"
    assert "its accuracy is nan" in table.notes[0]
    assert table.rows[1][1] == Mean(50.0, None, 1, best=True)


def test_auroc_has_its_own_table_where_it_was_measured() -> None:
    accuracy, auroc = comparison(
        [cell("a", 0, 90.0, auroc=60.0), cell("b", 0, 80.0, auroc=70.0), cell("c", 0, 70.0)]
    )
    assert accuracy.rows[0][1] == Mean(90.0, None, 1, best=True)
    assert auroc.title == "AUROC (%)"
    assert [row[1] for row in auroc.rows] == [
        Mean(60.0, None, 1),
        Mean(70.0, None, 1, best=True),
        MISSING,
    ]


def test_a_seed_counts_only_once() -> None:
    with pytest.raises(DataError, match="two results for a / fashion / classes:2, seed 0"):
        comparison([cell("a", 0, 1.0), cell("a", 0, 2.0)])


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_960, "1.0 MB"),
        (2_340_000_000, "2.3 GB"),
        (5e12, "5.0 TB"),
    ],
)
def test_human_bytes(count: float, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min 00 s"),
        (245, "4 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7620, "2 h 07 min"),
    ],
)
def test_human_seconds(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


def opened(method: str, seed: int, *figures: float | None, **more: Any) -> Record:
    """A cell with shares of refused known and unknown samples,
    and the balanced accuracy of the open answer.
    """
    names = ("known_refused", "unknown_refused", "open_balanced_accuracy")
    return cell(method, seed, 1.0, **dict(zip(names, figures, strict=True)), **more)


def test_open_answers_have_a_table_for_each_place() -> None:
    """Only the balanced accuracy has a best one: refusing nothing, or everything,
    would win the other two columns.
    """
    cells = [
        opened("a", 0, 4.0, 60.0, 78.0),
        opened("a", 1, 6.0, 62.0, 80.0),
        opened("b", 0, 0.0, 0.0, 45.0),
    ]
    cells += [failed("b", 1, "no"), cell("old", 0, 1.0)]
    [table] = open_answers([*cells, opened("a", 0, 3.0, None, None, data="all known")])
    assert table.title == "Open answers (%): fashion / classes:2"
    assert table.columns == ("method", "balanced", "known refused", "unknown refused")
    std = 2**0.5
    assert table.rows[0] == (
        "a",
        Mean(79.0, std, 2, best=True),
        Mean(5.0, std, 2),
        Mean(61.0, std, 2),
    )
    assert table.rows[1] == (
        "b",
        *(Mean(value, None, 1, mark=" [1]") for value in (45.0, 0.0, 0.0)),
    )
    assert table.rows[2] == ("old", MISSING, MISSING, MISSING)
    assert table.notes[0] == "[1] b on fashion / classes:2 failed: seed 1: no"
    assert "called unknown" in table.notes[1]
    assert len(table.notes) == 2
    two = open_answers([*cells, opened("a", 0, 1.0, 2.0, 3.0, data="other")])
    assert [table.title for table in two] == [
        f"Open answers (%): {data} / classes:2" for data in ("fashion", "other")
    ]


def of_domains(method: str, seed: int, photo: float, sketch: float, **more: Any) -> Record:
    """A cell of data with two domains and no unknown classes."""
    domains = {"photo": DomainFigures(accuracy=photo), "sketch": DomainFigures(accuracy=sketch)}
    values = {"per_domain": domains, "notes": ("a stand-in",), **more}
    return cell(method, seed, (photo + sketch) / 2, **values)


def test_a_table_per_domain() -> None:
    """One of seeds 0 and 1; the method that failed has no figures, and its note stands once."""
    cells = [
        of_domains("a", 0, 90.0, 40.0),
        of_domains("a", 1, 92.0, 42.0),
        of_domains("b", 0, 80.0, 60.0),
    ]
    [table] = per_domain([*cells, failed("c", 0, "no"), cell("a", 0, 1.0, data="plain")])
    assert table.title == "Accuracy (%) per domain: fashion / classes:2"
    assert table.columns == ("method", "photo", "sketch", "average")
    assert table.rows[0] == (
        "a", Mean(91.0, 2**0.5, 2, best=True), Mean(41.0, 2**0.5, 2), Mean(66.0, 2**0.5, 2)
    )  # fmt: skip
    assert table.rows[1] == (
        "b",
        Mean(80.0, None, 1),
        Mean(60.0, None, 1, best=True),
        Mean(70.0, None, 1, best=True),
    )
    assert table.rows[2] == ("c", MISSING, MISSING, "failed [1]")
    assert table.notes == (
        "[1] c on fashion / classes:2 failed: seed 0: no",
        "fashion: plain average over 2 domains", "a stand-in"
    )  # fmt: skip
    assert "a stand-in" in comparison(cells)[0].notes
    assert per_domain([cell("a", 0, 1.0)]) == []


def test_auroc_per_domain_where_there_is_one() -> None:
    domains = {
        "photo": DomainFigures(accuracy=90.0, auroc=70.0),
        "sketch": DomainFigures(accuracy=40.0),
    }
    tables = per_domain([of_domains("a", 0, 90.0, 40.0, auroc=55.0, per_domain=domains)])
    assert [table.title.split(" per")[0] for table in tables] == ["Accuracy (%)", "AUROC (%)"]
    assert tables[1].rows == (
        ("a", Mean(70.0, None, 1, best=True), MISSING, Mean(55.0, None, 1, best=True)),
    )


def test_a_run_that_has_hardly_trained_is_marked_and_the_note_says_which_and_why() -> None:
    bad = ("at chance; try more", "few steps; try longer")
    records = [
        cell("fedpd", 0, 10.0, rounds=20, hardly_trained=bad),
        cell("fedpd", 1, 90.0, rounds=20),
        cell("fedov", 0, 95.0),
    ]
    [table] = comparison(records)
    rows = {row[0]: row for row in table.rows}
    assert str(rows["fedpd"][1].mark) == " \u2020"  # type: ignore[union-attr]
    assert str(rows["fedov"][1].mark) == ""  # type: ignore[union-attr]
    [note] = [note for note in table.notes if "hardly" in note]
    assert note == (
        "\u2020 fedpd: hardly trained in 1 of 2 runs (fashion / classes:2, seed 0): "
        "at chance; try more; few steps; try longer"
    )
    plain = comparison(
        [replace(one, summary=replace(one.summary, hardly_trained=())) for one in records]
    )  # type: ignore[type-var]
    assert not any("hardly" in note for note in plain[0].notes)


def test_one_exchange_beside_many_rounds_is_shown_and_equal_rounds_are_not() -> None:
    once, often = cell("fedov", 0, 95.0), cell("fedavg", 0, 90.0, rounds=20)
    [table] = comparison([once, often, cell("fedavg", 1, 91.0, rounds=20)])
    assert table.columns[:3] == ("method", "fashion / classes:2", "rounds")
    assert [row[2] for row in table.rows] == [Number(1, "1"), Number(20, "20")]
    [table] = comparison([once, cell("solo", 0, 20.0)])
    assert "rounds" not in table.columns
