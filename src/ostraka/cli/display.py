"""What a person sees when a run has ended: tables of figures and of who holds what."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from ostraka.report.heatmap import party_class_table
from ostraka.report.tables import Cell, Number, Table, human_bytes, human_seconds
from ostraka.runs.plan import Division

SHOWN = 16
"""Parties or classes that a summary lists; the rest is in summary.json."""


def show_summary(console: Console, summary: Mapping[str, Any]) -> None:
    """The figures of a finished run."""
    console.print(
        Table(("figure", "value"), _figures(summary), title=f"{summary['method']} on {summary['data']}").rich()
    )
    for key, title, column in (
        ("per_class", "accuracy per class", "class"),
        ("per_part", "each model alone", "model"),
    ):
        rows = [(name, Number(value or 0.0, _number(value))) for name, value in summary[key].items()]
        if rows:
            console.print(Table((column, "accuracy (%)"), rows, title=title).head(SHOWN).rich())
    if summary.get("per_domain"):
        console.print(_domains(summary["per_domain"], summary))
    for note in summary.get("notes", ()):
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    console.print(f"Results: {summary['out']}", soft_wrap=True, highlight=False)


def show_wide(console: Console, table: Table) -> None:
    """A comparison; if it is too wide for the terminal, figures and costs one below the other."""
    if table.columns[-len(COSTS) :] != COSTS or _width(console, table) <= console.width:
        console.print(table.rich())
        return
    cut = len(table.columns) - len(COSTS)
    figures = replace(table, columns=table.columns[:cut], rows=[row[:cut] for row in table.rows], notes=())
    costs = replace(
        table, columns=(table.columns[0], *COSTS), rows=[(row[0], *row[cut:]) for row in table.rows], title="Costs"
    )
    for part in (figures, costs):
        console.print(part.rich())


def show_division(console: Console, division: Division, rows: int = 40) -> None:
    """Who holds what; long class names are listed below the table, so that it fits a terminal."""
    names, classes = division.partition.names, division.data.classes
    short = max(map(len, classes)) <= 4
    columns = classes if short else tuple(map(str, range(len(classes))))
    console.print(party_class_table(division.counts, names, columns).head(rows).rich())
    if not short:
        legend = ", ".join(f"{number} {name}" for number, name in enumerate(classes))
        console.print(f"classes: {legend}\n", highlight=False)
    for note in division.notes:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)


def _width(console: Console, table: Table) -> int:
    """Columns of the terminal that the table needs to show every cell on one line, whatever the notes below it need."""
    unbounded = console.options.update(max_width=10_000)
    return console.measure(replace(table, notes=()).rich(), options=unbounded).maximum


def _domains(per_domain: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any]) -> RichTable:
    """The figures on each domain, and their plain average."""
    average = {"accuracy": summary["accuracy"], **(summary["open"] or {})}
    rows: list[tuple[Cell, ...]] = [
        (name, *(Number(part[key] or 0.0, _number(part[key])) for key in average))
        for name, part in [*per_domain.items(), ("average", average)]
    ]
    columns = ("domain", *(DOMAIN_COLUMNS[key] for key in average))
    return Table(columns, rows, title="per domain (%)", notes=("the average counts every domain the same",)).rich()


def _figures(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    domains = len(summary.get("per_domain", ()))
    rows = [(f"accuracy, average of {domains} domains" if domains else "accuracy", f"{_number(summary['accuracy'])} %")]
    if summary["rounds"] > 1:
        rows.append(("best", f"{_number(summary['best']['accuracy'])} % (round {summary['best']['round']})"))
        rows.append(("mean of the last 20 rounds", f"{_number(summary['mean_last_20'])} %"))
    if summary["best_on_validation"]:
        best = summary["best_on_validation"]
        rows.append(("best on validation", f"{_number(best['accuracy'])} % (round {best['round']})"))
    for name, value in (summary["open"] or {}).items():
        rows.append((OPEN_NAMES[name], f"{_number(value)} %"))
    rows.append(("division", f"{summary['partition']}, {summary['parties']} parties, seed {summary['seed']}"))
    rows.append(("time", f"{human_seconds(summary['seconds'])} ({human_seconds(summary['cpu_seconds'])} of CPU)"))
    rows.append(("sent up / down", f"{human_bytes(summary['bytes_up'])} / {human_bytes(summary['bytes_down'])}"))
    if summary["dropped"]:
        rows.append(("dropped parties", ", ".join(map(str, summary["dropped"]))))
    return rows


COSTS = ("time", "CPU time", "up", "down")
"""The last columns of a comparison."""

OPEN_NAMES = {
    "auroc": "AUROC of unknown",
    "fpr95": "FPR95 (lower is better)",
    "oscr": "OSCR",
    "open_accuracy": "accuracy, unknown as a class",
}


DOMAIN_COLUMNS = {
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "fpr95": "FPR95",
    "oscr": "OSCR",
    "open_accuracy": "unknown as a class",
}


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"
