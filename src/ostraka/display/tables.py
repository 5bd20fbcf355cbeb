"""Tables as values: built once, shown as rich, Markdown, CSV or JSON records, on a terminal of any
width.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ostraka.errors import DataError, printable

MISSING = "—"
"""Shown where there is no result; empty in CSV, null in JSON."""

COSTS = ("CPU time", "up", "down")
"""The last columns of a comparison."""


@dataclass(frozen=True)
class Mean:
    """A mean over `n` seeds with its sample standard deviation (None for one seed).

    `mark` points to a note.
    """

    mean: float
    std: float | None
    n: int
    best: bool = False
    mark: str = ""

    def text(self, digits: int) -> str:
        """`mean ± std`, or the mean alone for one seed."""
        spread = "" if self.std is None else f" ± {self.std:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}{self.mark}"


@dataclass(frozen=True)
class Number:
    """A value with the words it is shown in: people read `text`, CSV and JSON get `value`."""

    value: float | str
    text: str


Cell = str | Mean | Number


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells.

    `digits` is how many decimals of a mean are shown (never of what CSV and JSON get).
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    title: str = ""
    notes: tuple[str, ...] = ()
    digits: int = 2
    keys: int = 1
    """How many of the first columns it takes to name a row."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise DataError(
                    f"a row of {len(row)} cells does not fit {len(self.columns)} columns: {row}"
                )

    def head(self, rows: int) -> "Table":
        """The first `rows` rows, with a note that says how many were left out."""
        left_out = len(self.rows) - rows
        if left_out <= 0:
            return self
        return replace(
            self, rows=self.rows[:rows], notes=(f"{left_out} more rows are not shown", *self.notes)
        )

    def select(self, columns: Iterable[int]) -> "Table":
        """Some of the columns."""
        kept = list(columns)
        rows = [tuple(row[i] for i in kept) for row in self.rows]
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)

    def rich(self, width: int | None = None) -> RichTable:
        """For the terminal. Cells are `Text`, so brackets in a name are not taken for markup.

        Numbers are never broken. The first column names the row: it is broken only if it takes more
        than half of `width`, and then shows all of its name.
        """
        shown = RichTable(
            title=_inert(self.title) if self.title else None,
            caption=_inert("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
            title_justify="left",
            box=SIMPLE_HEAD,
        )
        for i, column in enumerate(self.columns):
            number = self.numeric(i)
            lines = [line for row in self.rows for line in self.text(row[i]).split("\n")]
            longest = max(map(len, lines), default=0)
            whole = i == 0 and (width is None or 2 * longest <= width)
            widest = width // 2 if width is not None and i == 0 and not whole else None
            justify: Literal["left", "right"] = "right" if number else "left"
            shown.add_column(
                _inert(column),
                justify=justify,
                no_wrap=whole or number,
                max_width=widest,
                overflow="fold",
            )
        for row in self.rows:
            shown.add_row(*(_inert(self.text(cell), "bold" if _best(cell) else "") for cell in row))
        return shown

    def markdown(self) -> str:
        """A GitHub-flavoured table, best cells bold, notes below as a list."""
        rules = ["---:" if self.numeric(i) else ":---" for i in range(len(self.columns))]
        lines = [_line(map(_escape, self.columns)), _line(rules)]
        for row in self.rows:
            texts = [_escape(self.text(cell)) for cell in row]
            lines.append(
                _line(f"**{t}**" if _best(c) else t for t, c in zip(texts, row, strict=True))
            )
        title = [f"**{_escape(self.title)}**", ""] if self.title else []
        notes = ["", *(f"- {_escape(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([*title, *lines, *notes]) + "\n"

    def csv(self) -> str:
        """Full precision; a column of means is followed by its `std` and `n` columns.

        Title and notes are left out.
        """
        spread = [
            any(isinstance(row[i], Mean) for row in self.rows) for i in range(len(self.columns))
        ]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        header: list[str] = []
        for column, wide in zip(self.columns, spread, strict=True):
            header += [column, f"{column} std", f"{column} n"] if wide else [column]
        writer.writerow(header)
        for row in self.rows:
            fields: list[object] = []
            for cell, wide in zip(row, spread, strict=True):
                fields += _csv_fields(cell) if wide else _csv_fields(cell)[:1]
            writer.writerow(fields)
        return out.getvalue()

    def records(self) -> list[dict[str, Any]]:
        """One dict for each row, ready for JSON: a mean is an object,
        a number its value, a missing cell None.
        """
        return [
            {c: _plain(cell) for c, cell in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]

    def text(self, cell: Cell) -> str:
        """What people read in a cell."""
        if isinstance(cell, Mean):
            return cell.text(self.digits)
        return cell.text if isinstance(cell, Number) else cell

    def numeric(self, column: int) -> bool:
        """Whether any cell of the column is a number."""
        return any(not isinstance(row[column], str) for row in self.rows)


def show_wide(console: Console, table: Table) -> None:
    """A table of figures; if it is too wide for the terminal,
    its columns in several tables one below the other.

    Costs go into a table of their own. A table whose rows need several
    columns to be named stays whole.
    """
    parts = [replace(table, notes=())]
    if table.keys == 1 and not fits(console, table):
        if table.columns[-len(COSTS) :] == COSTS:
            place = len(table.columns) - len(COSTS)
            costs = parts[0].select([0, *range(place, len(table.columns))])
            parts = [parts[0].select(range(place)), replace(costs, title="Costs")]
        parts = [narrow for part in parts for narrow in _narrowed(console, part)]
    for part in [*parts[:-1], replace(parts[-1], notes=table.notes)]:
        console.print(part.rich(console.width))


def _narrowed(console: Console, table: Table) -> list[Table]:
    """The table, or, if it is too wide, its columns in as few tables as fit.

    Each begins with the first column.
    """
    if fits(console, table):
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
    """A long name of a row on several lines, broken behind commas and colons,
    the later ones indented.
    """
    lines = [""]
    for part in re.findall(r"[^,:]*[,:]?", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("  ")
        lines[-1] += part
    return "\n".join(lines)


def show_lines(console: Console, lines: Sequence[Text]) -> None:
    """Lines of text, broken only where they are wider than the terminal."""
    for line in lines:
        console.print(line, no_wrap=line.cell_len <= console.width, highlight=False)


def fits(console: Console, table: Table) -> bool:
    """Whether the terminal can show every cell on one line.

    A column takes three characters at the least.
    """
    return 3 * len(table.columns) <= console.width and _width(console, table) <= console.width


def _width(console: Console, table: Table) -> int:
    """Columns of the terminal that the table needs to show every cell on one line, whatever the
    notes below it need.
    """
    unbounded = console.options.update(max_width=10_000)
    return console.measure(replace(table, notes=()).rich(), options=unbounded).maximum


def mean_over(values: Sequence[float], mark: str = "") -> Mean:
    """The mean over seeds; fmean sums exactly, so equal sets of seeds tie whatever their order."""
    return Mean(fmean(values), stdev(values) if len(values) > 1 else None, len(values), mark=mark)


def cut(text: str, width: int) -> str:
    """The text, shortened in its middle to at most `width` characters:
    names differ at either end.
    """
    if len(text) <= width:
        return text
    kept = max(width - 2, 1)
    return f"{text[: kept - kept // 2]}..{text[len(text) - kept // 2 :]}"[: max(width, 1)]


def human_bytes(count: float) -> str:
    """`1.2 MB`: decimal units."""
    for unit in ("B", "kB", "MB", "GB"):
        # 999.95 is where one decimal would round up to 1000.0
        if count < (1000 if unit == "B" else 999.95):
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def human_seconds(seconds: float) -> str:
    """`12.3 s`, `4 min 05 s`, `2 h 07 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _best(cell: Cell) -> bool:
    return isinstance(cell, Mean) and cell.best


def _csv_fields(cell: Cell) -> list[object]:
    """Value, std, n."""
    if isinstance(cell, Mean):
        return [cell.mean, "" if cell.std is None else cell.std, cell.n]
    if isinstance(cell, Number):
        return [cell.value, "", ""]
    return ["" if cell == MISSING else cell, "", ""]


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Mean):
        return {"mean": cell.mean, "std": cell.std, "n": cell.n, "best": cell.best}
    if isinstance(cell, Number):
        return cell.value
    return None if cell == MISSING else cell


def _inert(text: str, style: str = "") -> Text:
    """Text in which nothing is markup, and nothing makes a terminal do anything."""
    return Text(printable(text, keep="\n"), style=style)
