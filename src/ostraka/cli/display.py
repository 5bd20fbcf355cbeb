"""What a person sees when a run has ended: tables of figures and of who holds what."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from ostraka.evaluation.evaluate import OpenFigures
from ostraka.report.comparison import COSTS
from ostraka.report.confusion import (
    TITLE,
    Confusion,
    confusion_blocks,
    confusion_table,
    stored_confusion,
    worst_pairs,
)
from ostraka.report.heatmap import division_size, party_class_table
from ostraka.report.mosaic import ASCII, UNICODE, blocks, per_party, whole
from ostraka.report.tables import Cell, Number, Table, human_bytes, human_seconds
from ostraka.runs.plan import Division
from ostraka.runs.promise import NEVER
from ostraka.runs.results import Summary

SHOWN = 16
"""Parties or classes that a summary lists; the rest is in summary.json."""

PARTIES = 30
"""Parties that a division lists."""

NAMED = 40
"""Classes that are named below a division."""


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
    _show_suspects(console, summary.trust)
    for note in [*summary.notes, *_unpromised(summary)]:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    console.print(f"Results: {summary.out}", soft_wrap=True, highlight=False)


def _show_suspects(console: Console, trust: Mapping[str, Any]) -> None:
    """Members that the vote found unusual; nothing where there are none."""
    for what in trust.get("panel", ()):
        console.print(
            f"Most members {what}; the vote makes up for it as far as it can.", soft_wrap=True
        )
    suspects: Mapping[str, Sequence[str]] = trust.get("suspects", {})
    if not suspects:
        return
    console.print(
        f"The vote found {len(suspects)} of {len(trust['parties'])} members unusual:",
        highlight=False,
    )
    for name, words in list(suspects.items())[:SHOWN]:
        console.print(f"  {name} {'; '.join(words)}", soft_wrap=True, highlight=False)
    if len(suspects) > SHOWN:
        console.print(f"  ... and {len(suspects) - SHOWN} more, in summary.json", highlight=False)


def _show_confusion(console: Console, found: Confusion) -> None:
    """Who is taken for whom: numbers where they fit, else shaded blocks, else the most frequent mistakes."""
    table = confusion_table(found)
    pen = ASCII if console.options.ascii_only else UNICODE
    if _fits(console, table):
        console.print(table.rich())
    elif shown := confusion_blocks(found, console.width, pen):
        _lines(console, [Text(""), Text(TITLE, style="italic"), *shown, Text("")])
    else:
        console.print(worst_pairs(found).rich(console.width))


def show_wide(console: Console, table: Table) -> None:
    """A table of figures; if it is too wide for the terminal, its columns in several tables one below the other.

    Costs go into a table of their own. A table whose rows need several columns to be named stays whole.
    """
    parts = [replace(table, notes=())]
    if table.keys == 1 and not _fits(console, table):
        if table.columns[-len(COSTS) :] == COSTS:
            place = len(table.columns) - len(COSTS)
            costs = parts[0].select([0, *range(place, len(table.columns))])
            parts = [parts[0].select(range(place)), replace(costs, title="Costs")]
        parts = [narrow for part in parts for narrow in _narrowed(console, part)]
    for part in [*parts[:-1], replace(parts[-1], notes=table.notes)]:
        console.print(part.rich(console.width))


def _narrowed(console: Console, table: Table) -> list[Table]:
    """The table, or, if it is too wide, its columns in as few tables as fit; each begins with the first column."""
    if _fits(console, table):
        return [table]
    rows: list[tuple[Cell, ...]] = [
        (_folded(str(row[0]), console.width * 2 // 5), *row[1:]) for row in table.rows
    ]
    broken = replace(
        table, columns=tuple(name.replace(" / ", " /\n") for name in table.columns), rows=rows
    )
    groups: list[list[int]] = [[]]
    for column in range(1, len(table.columns)):
        if groups[-1] and _width(console, broken.select([0, *groups[-1], column])) > console.width:
            groups.append([])
        groups[-1].append(column)
    return [broken.select([0, *group]) for group in groups]


def _folded(name: str, width: int) -> str:
    """A long name of a row on several lines, broken behind commas and colons, the later ones indented."""
    lines = [""]
    for part in re.findall(r"[^,:]*[,:]?", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("  ")
        lines[-1] += part
    return "\n".join(lines)


def show_division(console: Console, division: Division) -> None:
    """Who holds what: numbers where they fit, else shaded blocks, else a line of words for each party.

    Long class names are listed below numbers and blocks. Where not every number is shown, figures of the whole follow.
    """
    names, classes = division.partition.names[:PARTIES], division.data.classes
    counts, more = division.counts[:PARTIES], len(division.counts) - PARTIES
    short = max(map(len, classes)) <= 4
    table = party_class_table(counts, names, classes if short else _numbered(classes))
    pen = ASCII if console.options.ascii_only else UNICODE
    numbers = _fits(console, table)
    shown = None if numbers else blocks(counts, names, classes, console.width, pen, "all")
    if numbers:
        console.print(replace(table, notes=()).rich())
    else:
        _lines(console, shown or per_party(counts, names, classes, console.width, pen))
    if more > 0:
        console.print(
            f"... and {more} more parties; --plot draws them all, --json lists them",
            highlight=False,
        )
    console.print(division_size(division.counts) + "\n", highlight=False)
    if (shown and max(map(len, classes)) > 1) or (numbers and not short):
        _name_classes(console, classes)
    if not numbers or more > 0:
        _lines(console, [*whole(division.counts, classes), Text("")])
    for note in division.notes:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)


def _numbered(classes: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(str, range(len(classes))))


def _name_classes(console: Console, classes: Sequence[str]) -> None:
    """Which number is which class, unless the names are the numbers themselves."""
    if tuple(classes) == _numbered(classes):
        return
    legend = ", ".join(f"{number} {name}" for number, name in enumerate(classes[:NAMED]))
    more = f", ... (--json lists all {len(classes)})" if len(classes) > NAMED else ""
    console.print(f"classes: {legend}{more}\n", highlight=False)


def _lines(console: Console, lines: Sequence[Text]) -> None:
    for line in lines:
        console.print(line, no_wrap=line.cell_len <= console.width, highlight=False)


def _fits(console: Console, table: Table) -> bool:
    """Whether the terminal can show every cell on one line; a column takes three characters at the least."""
    return 3 * len(table.columns) <= console.width and _width(console, table) <= console.width


def _width(console: Console, table: Table) -> int:
    """Columns of the terminal that the table needs to show every cell on one line, whatever the notes below it need."""
    unbounded = console.options.update(max_width=10_000)
    return console.measure(replace(table, notes=()).rich(), options=unbounded).maximum


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
        if value is not None:  # older versions did not measure them
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
    if summary.dropped:
        rows.append(("dropped parties", ", ".join(map(str, summary.dropped))))
    return rows


def _open_figures(opened: OpenFigures) -> dict[str, float | None]:
    """The open-set figures to print, by their names in OPEN_NAMES.

    Where all classes are known, and of older versions, which measured fewer, those that are defined;
    none if no sample was called unknown: the rows of a closed-set run would say nothing that the
    accuracy does not.
    """
    told = {**opened.as_dict(), "open_balanced_accuracy": opened.balanced_accuracy}
    shown = {name: told[name] for name in OPEN_NAMES}
    if opened.unknown_refused is not None:
        return shown
    if opened.auroc is None and not opened.known_refused:
        return {}
    return {name: value for name, value in shown.items() if value is not None}


def _promised(summary: Summary) -> str:
    """The rate that was promised, behind the one that came out; of older runs nothing."""
    answer = summary.answer
    return f" (promised: {100 * answer.rate:g} %)" if answer and answer.rate else ""


def _unpromised(summary: Summary) -> list[str]:
    """Why the result answers unknown without a promise of how often."""
    answer = summary.answer
    if answer is None or not answer.why or answer.rate is not None or answer.why == NEVER.why:
        return []
    if not _open_figures(summary.open):
        return []
    return [f"nothing is promised of how often a known sample is called unknown: {answer.why}"]


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
