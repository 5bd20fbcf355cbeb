"""What a person sees while a run goes on and when it ends. Quiet when the output is not a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from ostraka.report.heatmap import party_class_table
from ostraka.report.tables import Cell, Number, Table, human_bytes, human_seconds
from ostraka.runs.plan import Division
from ostraka.runs.watch import Watch

SHOWN = 16
"""Parties or classes that a summary lists; the rest is in summary.json."""


class Display(Watch):
    """Progress bars: rounds, parties, loss and the remaining time."""

    def __init__(self, title: str, names: Sequence[str], quiet: bool = False) -> None:
        console = Console(stderr=True)
        self.names = names
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )
        self.rounds = self.progress.add_task(f"{title}: rounds", total=None, note="")
        self.parties = self.progress.add_task("parties", total=None, note="")
        self.done: dict[int, float] = {}

    def __enter__(self) -> "Display":
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """Show the round."""
        self.done, self.ready = {}, ready
        self.progress.update(self.rounds, total=rounds, completed=index - 1)
        self.progress.reset(self.parties, total=parties, completed=ready)

    def party_at(self, party: int, done: float, loss: float | None) -> None:
        """Show how far the parties are, and the latest loss."""
        self.done[party] = done
        note = "" if loss is None else f"{self.names[party]}: loss {loss:.3f}"
        self.progress.update(self.parties, completed=self.ready + sum(self.done.values()), note=note)

    def party_ends(self, party: int, failed: bool) -> None:
        """Count a party."""
        self.party_at(party, 1.0, None)
        if failed:
            self.progress.console.print(f"[red]{self.names[party]} failed[/red]")

    def evaluated(self, index: int, accuracy: float | None) -> None:
        """Show the newest accuracy."""
        note = "" if accuracy is None else f"accuracy {accuracy:.1f} %"
        self.progress.update(self.rounds, completed=index, note=note)


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
