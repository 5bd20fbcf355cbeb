"""What fits a terminal of any width: divisions, confusion matrices and comparisons."""

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ostraka.cli.main import PLAIN, locale_name
from ostraka.display.heatmap import show_division
from ostraka.display.summary import show_summary
from ostraka.display.tables import Mean, Number, Table, show_wide
from ostraka.runs.results import Summary
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka


def terminal(width: int) -> Console:
    return Console(width=width, file=io.StringIO(), color_system=None)


def text_of(console: Console) -> str:
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def division(parties: int, classes: int, names: tuple[str, ...] = ()) -> Any:
    """Every party holds its number plus one of the class with its own number,
    and one of the class after.
    """
    counts = np.zeros((parties, classes), int)
    for party in range(parties):
        counts[party, party % classes] = party + 1
        counts[party, (party + 1) % classes] = 1
    data = SimpleNamespace(classes=names or tuple(f"kind {k}" for k in range(classes)))
    named = SimpleNamespace(names=tuple(f"party-{i}" for i in range(parties)))
    return SimpleNamespace(data=data, partition=named, counts=counts, notes=("a stand-in",))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(
    ("parties", "classes"), [(5, 10), (10, 26), (10, 200), (1000, 26), (1000, 200), (1, 1)]
)
def test_a_division_fits_any_terminal(width: int, parties: int, classes: int) -> None:
    console = terminal(width)
    show_division(console, division(parties, classes))
    found = text_of(console)
    assert all(len(line) <= width for line in found.splitlines())
    assert f"{parties} parties, {classes} classes" in found
    assert "party-0" in found
    assert ("970 more parties" in found) == (parties == 1000)
    assert "a stand-in" in found


def test_numbers_where_they_fit_blocks_where_not_words_last() -> None:
    found = {}
    for width, classes in ((80, 10), (80, 26), (80, 200)):
        console = terminal(width)
        show_division(console, division(10, classes))
        found[classes] = text_of(console)
    assert "·" in found[10]
    assert "█" not in found[10]
    assert "parties per class" not in found[10]
    assert "classes: 0 kind 0, 1 kind 1" in found[26]
    assert "██" in found[26]
    assert "party-9 · · " in found[26]
    assert "parties per class" in found[26]
    assert "kind 9 (91%), kind 10 (9%)" in found[200]
    assert "kind 199" not in found[200]


def test_single_letters_name_their_own_blocks() -> None:
    console = terminal(50)
    show_division(console, division(10, 26, tuple("abcdefghijklmnopqrstuvwxyz")))
    assert "        abcdefghijklmnopqrstuvwxyz all" in text_of(console)
    assert "classes:" not in text_of(console)


MANY = Table(
    (
        "method",
        *(f"{data} / dirichlet:0.1" for data in ("fashion-4k", "digits", "usps")),
        "time",
        "CPU time",
        "up",
        "down",
    ),
    [
        (
            name,
            *(Mean(91.25, 11.5, 3) for _ in range(3)),
            *(Number(1, "1 min 05 s") for _ in range(4)),
        )
        for name in (
            "fedavg:local.lr=0.01",
            "fedavg:local.lr=0.1,local.epochs=20,local.batch=64",
            "fedov",
        )
    ],
    title="Accuracy (%)",
    notes=("a note",),
)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_comparison_never_breaks_a_number(width: int) -> None:
    console = terminal(width)
    show_wide(console, MANY)
    found = text_of(console)
    assert all(len(line.rstrip()) <= width for line in found.splitlines())
    assert found.count("91.25 ± 11.50") == 9
    assert found.count("1 min 05 s") == 12
    assert found.count("a note") == 1
    assert "local.batch=64" in found
    assert "…" not in found


def test_a_table_that_fits_stays_whole() -> None:
    console = terminal(200)
    show_wide(console, MANY)
    assert text_of(console).count("Accuracy (%)") == 1
    assert "Costs" not in text_of(console)
    whole = replace(MANY, keys=2)
    narrow = terminal(60)
    show_wide(narrow, whole)
    assert text_of(narrow).count("Accuracy (%)") == 1


def test_a_summary_shows_balanced_accuracy_f1_and_the_confusion_matrix(ostraka: Ostraka) -> None:
    done = ostraka("run", "closed-voting", *TINY, *ONE_EPOCH, "--known", "6", "--out", "mine")
    for expected in (
        "balanced accuracy",
        "F1 (macro)",
        "% of each true class by answer",
        "6 unknown",
    ):
        assert expected in done.out
    assert {"balanced_accuracy", "f1"} <= ostraka(
        "run", "--resume", "--out", "mine", "--json"
    ).json().keys()
    assert ostraka("figure", "confusion", "--run", "mine", "--out", "c.pdf").code == 0
    assert Path("c.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("classes", [10, 28, 200])
def test_a_summary_fits_any_terminal(width: int, classes: int) -> None:
    """Numbers for 10 classes at 80 columns, blocks for 28, and where nothing fits,
    the most frequent mistakes.
    """
    names = [f"kind {k}" for k in range(classes)]
    matrix = np.eye(classes, dtype=int) + np.eye(classes, k=1, dtype=int) * 2
    summary = {
        "method": "fedov", "data": "digits", "partition": "labels:2", "parties": 3, "seed": 0,
        "rounds": 1, "accuracy": 50.0, "balanced_accuracy": 40.0, "f1": 30.0, "open": None,
        "best_on_validation": None, "seconds": 1.0, "cpu_seconds": 1.0, "bytes_up": 1,
        "bytes_down": 1, "dropped": [], "out": "x", "per_class": dict.fromkeys(names, 50.0),
        "per_part": {}, "confusion": matrix.tolist(),
    }  # fmt: skip
    console = terminal(width)
    show_summary(console, Summary.from_json(summary))
    found = text_of(console)
    assert all(len(line.rstrip()) <= width for line in found.splitlines())
    assert ("most frequent mistakes" in found) == (classes == 200)
    old = {
        key: value
        for key, value in summary.items()
        if key not in ("balanced_accuracy", "f1", "confusion")
    }
    show_summary(
        terminal(width), Summary.from_json(old)
    )  # of a run that was made before there were these


def finished(opened: dict[str, float | None] | None, **more: Any) -> Summary:
    """A summary with these open-set figures."""
    return Summary.from_json({
        "method": "fedov", "data": "digits", "partition": "labels:2", "parties": 3,
        "seed": 0, "rounds": 1, "accuracy": 50.0, "balanced_accuracy": 40.0, "f1": 30.0,
        "open": opened, "best_on_validation": None, "seconds": 1.0, "cpu_seconds": 1.0,
        "bytes_up": 1, "bytes_down": 1, "dropped": [], "out": "x",
        "per_class": {"ant": 50.0}, "per_part": {}, **more,
    })  # fmt: skip


def printed(summary: Summary, width: int = 80) -> dict[str, str]:
    """What is printed in two columns: the words of the first, and the second."""
    console = terminal(width)
    show_summary(console, summary)
    pairs = (
        line.strip().split("  ", 1)
        for line in text_of(console).splitlines()
        if "  " in line.strip()
    )
    return {words: value.strip() for words, value in pairs}


def test_who_was_dropped_in_which_round_and_why_is_printed_once() -> None:
    """Words of a party are no markup, and many rounds are counted."""
    gone = [{"party": "west", "round": index, "why": "it is [red]gone\n"} for index in range(1, 21)]
    dropped = [*gone, {"party": "east", "round": 2, "why": "no disk"}]
    console = terminal(80)
    show_summary(console, finished(None, dropped=dropped))
    found = text_of(console)
    first = ", ".join(map(str, range(1, 17)))
    assert f"west, round {first} and 4 more: it is [red]gone\n" in found
    assert "east, round 2: no disk" in found
    assert found.count("west") == 1
    assert "ropped" not in str(printed(finished(None)))


OLD_FIGURES: dict[str, float | None] = {
    "auroc": 90.0,
    "fpr95": 10.0,
    "oscr": 80.0,
    "open_accuracy": 70.0,
}
REFUSED = {"known_refused": 4.8, "unknown_refused": 61.2, "balanced_accuracy": 75.5}
ALL_KNOWN: dict[str, float | None] = {
    **dict.fromkeys([*OLD_FIGURES, *REFUSED]), "open_accuracy": 70.0, "known_refused": 4.8
}  # fmt: skip


def test_how_the_open_answer_does_is_printed() -> None:
    found = printed(finished({**OLD_FIGURES, **REFUSED}))
    assert found["known samples called unknown"] == "4.80 %"
    assert found["unknown samples called unknown"] == "61.20 %"
    assert found["accuracy, known and unknown alike"] == "75.50 %"
    assert (found["balanced accuracy"], found["AUROC of unknown"]) == ("40.00 %", "90.00 %")


def test_where_all_classes_are_known_only_what_is_defined_is_printed() -> None:
    found = printed(finished(ALL_KNOWN))
    assert (found["known samples called unknown"], found["accuracy, unknown as a class"]) == (
        "4.80 %",
        "70.00 %",
    )
    assert not any("—" in value for value in found.values())
    assert "unknown samples called unknown" not in found


def test_closed_set_runs_are_printed_without_what_they_do_not_have() -> None:
    """A run that never calls a known sample unknown says nothing of it,
    unless there are unknown classes too.
    """
    closed = printed(finished({**ALL_KNOWN, "known_refused": 0.0}))
    assert not any("unknown" in words for words in closed)
    among_unknown = printed(finished({**OLD_FIGURES, **dict.fromkeys(REFUSED, 0.0)}))
    assert among_unknown["known samples called unknown"] == "0.00 %"


@pytest.mark.parametrize("width", [40, 80, 160])
def test_domains_have_columns_of_the_open_answer(width: int) -> None:
    """Photos have no unknown samples; of sketches nobody counted them."""
    photo = {"accuracy": 50.0, **OLD_FIGURES, "known_refused": 3.25, "unknown_refused": None}
    domains = {
        "photo": photo | {"open_balanced_accuracy": 71.5},
        "sketch": {"accuracy": 50.0, **OLD_FIGURES},
    }
    console = terminal(width)
    show_summary(console, finished({**OLD_FIGURES, **REFUSED}, per_domain=domains))
    found = text_of(console)
    assert all(len(line.rstrip()) <= width for line in found.splitlines())
    assert all(
        text in found
        for text in ("3.25", "71.50", "75.50", "61.20", "known refused", "unknown refused")
    )
    closed = terminal(width)
    show_summary(
        closed,
        finished({**ALL_KNOWN, "known_refused": 0.0}, per_domain={"photo": photo, "sketch": photo}),
    )
    assert "refused" not in text_of(closed)


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"LC_ALL": "C", "LANG": "de_CH.UTF-8"}, "C"),
        ({"LC_ALL": "", "LANG": "POSIX"}, "POSIX"),
        ({}, ""),
    ],
)
def test_the_locale_that_counts(
    environment: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert locale_name() == name


def test_the_locale_c_gets_plain_ascii(ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("COLUMNS", "60")
    done = ostraka("partition", "labels:2")
    assert done.code == 0
    assert done.out.isascii()
    assert ". none   - 1-24   + 25-99   * 100-224   # 225-400" in done.out
    monkeypatch.setenv("COLUMNS", "100")
    done = ostraka("partition", "labels:2")
    assert done.out.isascii()
    assert "|   . |" in done.out


def test_columns_stay_where_they_are_in_plain_ascii(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plus-minus sign is one character wide, and so is what stands for it."""
    monkeypatch.setenv("LC_ALL", "C")
    done = ostraka("compare", "solo", *TINY, *ONE_EPOCH, "--seeds", "2")
    table = [line for line in done.out.splitlines() if line.startswith(("|", "+"))]
    assert len(table) == 5
    assert len({len(line) for line in table}) == 1
    assert " ~ " in table[3]
    assert {len(plain) for plain in PLAIN.values()} == {1}


def test_numbers_stay_whole_where_names_are_broken() -> None:
    console = terminal(40)
    rows = [
        (
            "fedavg",
            "a place with a long name of many words",
            Mean(91.25, 11.5, 3),
            Number(1, "1 min 05 s"),
        )
    ]
    show_wide(console, Table(("method", "data / partition", "ours", "time"), rows, keys=2))
    assert "91.25 ± 11.50" in text_of(console)
    assert "1 min 05 s" in text_of(console)


def test_a_promise_stands_behind_what_came_out() -> None:
    """5 % were promised and 12.5 % came out.

    Without a promise the reason is a note; a closed result needs neither.
    """
    kept = {"rate": 0.05, "basis": "told", "threshold": 1.0, "why": ""}
    broken = {"rate": None, "basis": "told", "threshold": 1.0, "why": "members have hardly learnt"}
    figures = {**OLD_FIGURES, **REFUSED}
    assert printed(finished(figures, answer=kept))["known samples called unknown"].endswith(
        "(promised: 5 %)"
    )
    console = terminal(80)
    show_summary(console, finished(figures, answer=broken))
    assert "promised:" not in text_of(console)
    assert (
        "Note: nothing is promised of how often a known sample is called unknown: "
        "members have hardly learnt"
    ) in (text_of(console))
    closed = terminal(80)
    never = {**broken, "why": "it never answers unknown"}
    show_summary(closed, finished({**ALL_KNOWN, "known_refused": 0.0}, answer=never))
    assert "promised" not in text_of(closed)
