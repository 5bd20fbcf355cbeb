"""The figures of a finished run, on a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ostraka.display.confusion import (
    TITLE,
    Confusion,
    confusion_blocks,
    confusion_table,
    stored_confusion,
    worst_pairs,
)
from ostraka.display.mosaic import ASCII, UNICODE
from ostraka.display.tables import Cell, Number, Table, human_bytes, human_seconds
from ostraka.display.wide import fits, show_lines, show_wide
from ostraka.errors import counted
from ostraka.evaluation.evaluate import OpenFigures
from ostraka.runs.results import Summary
from ostraka.runs.summary import notes_of

SHOWN = 16
"""Parties or classes that a summary lists; the rest is in summary.json."""


def show_summary(console: Console, summary: Summary) -> None:
    """The figures of a finished run."""
    title = f"{summary.method} on {summary.data}"
    console.print(Table(("figure", "value"), _figures(summary), title=title).rich(console.width))
    for figures, title, column in (
        (summary.per_class, "accuracy per class", "class"),
        (summary.per_part, "each model alone", "model"),
    ):
        rows = [(name, Number(value or 0.0, _number(value))) for name, value in figures.items()]
        if rows:
            console.print(
                Table((column, "accuracy (%)"), rows, title=title).head(SHOWN).rich(console.width)
            )
    if summary.confusion:
        _show_confusion(console, stored_confusion(summary))
    if summary.per_domain:
        show_wide(console, _domains(summary))
    _show_selection(console, summary.selection)
    _show_suspects(console, summary.trust)
    _show_dropped(console, summary.dropped)
    for note in notes_of(summary):
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    console.print(f"Results: {summary.out}", soft_wrap=True, highlight=False)


def _listed(console: Console, title: str, lines: Sequence[str]) -> None:
    """A title and the first of its lines, whose names and reasons are no markup."""
    left = len(lines) - SHOWN
    more = [f"... and {left} more, in summary.json"] if left > 0 else []
    for line in [title, *(f"  {line}" for line in [*lines[:SHOWN], *more])]:
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _show_selection(console: Console, selection: Mapping[str, Any]) -> None:
    """Who votes and why; nothing where everybody does."""
    if not selection:
        return
    chosen, why = selection["chosen"], selection["why"]
    count = f"{len(chosen)} of {counted(len(selection['parties']), 'member')} vote"
    title = f"{count}, chosen by {selection['selector']}:"
    _listed(console, title, [f"{name}: {why[name]}" for name in chosen])
    for note in selection["notes"]:
        console.print(f"  ({note})", soft_wrap=True, highlight=False)


def _show_suspects(console: Console, trust: Mapping[str, Any]) -> None:
    """Members that the vote found unusual; nothing where there are none."""
    for what in trust.get("panel", ()):
        console.print(
            f"Most members {what}; the vote makes up for it as far as it can.", soft_wrap=True
        )
    suspects: Mapping[str, Sequence[str]] = trust.get("suspects", {})
    if suspects:
        count = f"{len(suspects)} of {counted(len(trust['parties']), 'member')}"
        lines = [f"{name} {'; '.join(words)}" for name, words in suspects.items()]
        _listed(console, f"The vote found {count} unusual:", lines)


def _show_dropped(console: Console, dropped: Sequence[Mapping[str, Any]]) -> None:
    """Which parties were dropped, in which rounds and why, each with the same reason once."""
    rounds: dict[tuple[str, str], list[str]] = {}
    for one in dropped:
        rounds.setdefault((one["party"], " ".join(one["why"].split())), []).append(
            str(one["round"])
        )
    lines = [
        f"{party}, round {', '.join(where[:SHOWN])}"
        f"{f' and {len(where) - SHOWN} more' if where[SHOWN:] else ''}: {why}"
        for (party, why), where in rounds.items()
    ]
    if lines:
        _listed(console, "Dropped parties (failures.log has the tracebacks):", lines)


def _show_confusion(console: Console, found: Confusion) -> None:
    """Who is taken for whom: numbers where they fit, else shaded blocks,
    else the most frequent mistakes.
    """
    table = confusion_table(found)
    pen = ASCII if console.options.ascii_only else UNICODE
    if fits(console, table):
        console.print(table.rich())
    elif shown := confusion_blocks(found, console.width, pen):
        show_lines(console, [Text(""), Text(TITLE, style="italic"), *shown, Text("")])
    else:
        console.print(worst_pairs(found).rich(console.width))


def _domains(summary: Summary) -> Table:
    """The figures on each domain, and their plain average."""
    average = {"accuracy": summary.accuracy, **_open_figures(summary.open)}
    parts = {name: part.to_json() for name, part in summary.per_domain.items()}
    rows: list[tuple[Cell, ...]] = [
        (name, *(Number(part[key] or 0.0, _number(part[key])) for key in average))
        for name, part in [*parts.items(), ("average", average)]
    ]
    columns = ("domain", *(DOMAIN_COLUMNS[key] for key in average))
    return Table(
        columns, rows, title="per domain (%)", notes=("the average counts every domain the same",)
    )


def _figures(summary: Summary) -> list[tuple[str, str]]:
    domains, best = len(summary.per_domain), summary.best
    rows = [
        (
            f"accuracy, average of {domains} domains" if domains else "accuracy",
            f"{_number(summary.accuracy)} %",
        )
    ]
    if summary.rounds > 1 and best is not None:
        rows.append(("best", f"{_number(best.accuracy)} % (round {best.round})"))
        rows.append(("mean of the last 20 rounds", f"{_number(summary.mean_last_20)} %"))
    if summary.best_on_validation is not None:
        best = summary.best_on_validation
        rows.append(("best on validation", f"{_number(best.accuracy)} % (round {best.round})"))
    balanced = {"balanced accuracy": summary.balanced_accuracy, "F1 (macro)": summary.f1}
    for name, value in balanced.items():
        if value is not None:
            rows.append((name, f"{_number(value)} %"))
    for name, value in _open_figures(summary.open).items():
        promised = _promised(summary) if name == "known_refused" else ""
        rows.append((OPEN_NAMES[name], f"{_number(value)} %{promised}"))
    return [*rows, *_division_and_costs(summary)]


def _division_and_costs(summary: Summary) -> list[tuple[str, str]]:
    cpu = human_seconds(summary.cpu_seconds)
    rows = [
        ("division", f"{summary.partition}, {summary.parties} parties, seed {summary.seed}"),
        ("time", f"{human_seconds(summary.seconds)} ({cpu} of CPU)"),
        ("sent up / down", f"{human_bytes(summary.bytes_up)} / {human_bytes(summary.bytes_down)}"),
    ]
    if "selection" in summary.spent:
        took = [f"{summary.spent[part]:.3f} s" for part in ("selection", "inference")]
        rows.append(("selection / inference", f"{' / '.join(took)} of CPU"))
    return rows


def _open_figures(opened: OpenFigures) -> dict[str, float | None]:
    """The open-set figures to print, by their names in OPEN_NAMES.

    Where all classes are known, those that are defined; none if no sample was called unknown: the
    rows of a closed-set run would say nothing that the accuracy does not.
    """
    told = {**opened.as_dict(), "open_balanced_accuracy": opened.balanced_accuracy}
    shown = {name: told[name] for name in OPEN_NAMES}
    if opened.unknown_refused is not None:
        return shown
    if opened.auroc is None and not opened.known_refused:
        return {}
    return {name: value for name, value in shown.items() if value is not None}


def _promised(summary: Summary) -> str:
    """The rate that was promised, behind the one that came out."""
    answer = summary.answer
    return f" (promised: {100 * answer.rate:g} %)" if answer and answer.rate else ""


OPEN_NAMES = {
    "auroc": "AUROC of unknown",
    "fpr95": "FPR95 (lower is better)",
    "oscr": "OSCR",
    "open_accuracy": "accuracy, unknown as a class",
    "open_balanced_accuracy": "accuracy, known and unknown alike",
    "known_refused": "known samples called unknown",
    "unknown_refused": "unknown samples called unknown",
}
"""Figures of `open` as they are printed, in this order."""


DOMAIN_COLUMNS = {
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "fpr95": "FPR95",
    "oscr": "OSCR",
    "open_accuracy": "unknown as a class",
    "open_balanced_accuracy": "balanced",
    "known_refused": "known refused",
    "unknown_refused": "unknown refused",
}


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"
