"""Tables as values: built once, shown as rich, Markdown, CSV or JSON records; and the comparison of methods."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from ostraka.errors import DataError

MISSING = "—"
"""Shown where there is no result; empty in CSV, null in JSON."""


@dataclass(frozen=True)
class Mean:
    """A mean over `n` seeds with its sample standard deviation (None for one seed); `mark` points to a note."""

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

    value: float
    text: str


Cell = str | Mean | Number


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells; `digits` is how many decimals of a mean are shown (never of what CSV and JSON get)."""

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

        Numbers are never broken. The first column names the row: it is broken only if it takes more than half of
        `width`, and then shows all of its name.
        """
        shown = RichTable(
            title=Text(self.title) if self.title else None,
            caption=Text("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
            title_justify="left",
            box=SIMPLE_HEAD,
        )
        for i, column in enumerate(self.columns):
            number = self._numeric(i)
            whole = i == 0 and (width is None or 2 * self._longest(i) <= width)
            widest = width // 2 if width is not None and i == 0 and not whole else None
            justify: Literal["left", "right"] = "right" if number else "left"
            shown.add_column(
                Text(column),
                justify=justify,
                no_wrap=whole or number,
                max_width=widest,
                overflow="fold",
            )
        for row in self.rows:
            shown.add_row(
                *(Text(self._text(cell), style="bold" if _best(cell) else "") for cell in row)
            )
        return shown

    def markdown(self) -> str:
        """A GitHub-flavoured table, best cells bold, notes below as a list."""
        rules = ["---:" if self._numeric(i) else ":---" for i in range(len(self.columns))]
        lines = [_line(map(_escape, self.columns)), _line(rules)]
        for row in self.rows:
            texts = [_escape(self._text(cell)) for cell in row]
            lines.append(
                _line(f"**{t}**" if _best(c) else t for t, c in zip(texts, row, strict=True))
            )
        title = [f"**{_escape(self.title)}**", ""] if self.title else []
        notes = ["", *(f"- {_escape(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([*title, *lines, *notes]) + "\n"

    def csv(self) -> str:
        """Full precision; a column of means is followed by its `std` and `n` columns. Title and notes are left out."""
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
        """One dict for each row, ready for JSON: a mean is an object, a number its value, a missing cell None."""
        return [
            {c: _plain(cell) for c, cell in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]

    def _text(self, cell: Cell) -> str:
        if isinstance(cell, Mean):
            return cell.text(self.digits)
        return cell.text if isinstance(cell, Number) else cell

    def _longest(self, column: int) -> int:
        return max(
            (len(line) for row in self.rows for line in self._text(row[column]).split("\n")),
            default=0,
        )

    def _numeric(self, column: int) -> bool:
        return any(not isinstance(row[column], str) for row in self.rows)


FIGURES = (("accuracy", "Accuracy (%)"), ("auroc", "AUROC (%)"))
"""What there are tables of; that of AUROC only if a cell has one."""


def comparison(cells: Sequence[Mapping[str, Any]]) -> list[Table]:
    """A row for each method, a column for each data / partition: the accuracy table, and AUROC's if any cell has it.

    A cell is a dict with method, data, partition, seed, status ("ok", or anything else with its error), accuracy,
    auroc, seconds, cpu_seconds, bytes_up, bytes_down. Means run over the seeds that finished; a note names those that
    did not. Time and traffic are medians over the method's finished cells. Order: first come.
    """
    _refuse_repeats(cells)
    return [_compared(cells, figure, title) for figure, title in FIGURES if _shown(cells, figure)]


def per_domain(cells: Sequence[Mapping[str, Any]]) -> list[Table]:
    """For data with domains: a row for each method, a column for each domain and the plain average over them.

    `per_domain` of a cell holds the figures of each domain by its name. A table for each data / partition, and AUROC's
    if any cell has it.
    """
    tables = []
    for place in dict.fromkeys(_place(cell) for cell in cells):
        mine = [cell for cell in cells if _place(cell) == place]
        domains = list(
            dict.fromkeys(name for cell in mine for name in cell.get("per_domain") or {})
        )
        shown = [(figure, title) for figure, title in FIGURES if domains and _shown(mine, figure)]
        tables += [
            _by_domain(mine, domains, figure, f"{title} per domain: {place}")
            for figure, title in shown
        ]
    return tables


OPEN_ANSWERS = {
    "open_balanced_accuracy": "balanced",
    "known_refused": "known refused",
    "unknown_refused": "unknown refused",
}
"""Figures of the open answer that a comparison shows, and their columns."""

OPEN_NOTE = (
    "known / unknown refused: samples of known / unknown classes that are called unknown; balanced: mean of the known "
    "samples answered with their class and the unknown ones refused"
)


def open_answers(cells: Sequence[Mapping[str, Any]]) -> list[Table]:
    """For tests with unknown classes: a row for each method, a column for each figure of the open answer.

    A table for each data / partition. Neither share of refused samples marks a best method: one that never answers
    unknown has the lowest share of both, one that always does the highest.
    """
    tables = []
    for place in dict.fromkeys(_place(cell) for cell in cells):
        mine = [cell for cell in cells if _place(cell) == place]
        if any(cell.get("unknown_refused") is not None for cell in mine):
            tables.append(_opened(mine, f"Open answers (%): {place}"))
    return tables


def mean_over(values: Sequence[float], mark: str = "") -> Mean:
    """The mean over seeds; fmean sums exactly, so equal sets of seeds tie whatever their order."""
    return Mean(fmean(values), stdev(values) if len(values) > 1 else None, len(values), mark=mark)


def cut(text: str, width: int) -> str:
    """The text, shortened in its middle to at most `width` characters: names differ at either end."""
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


_COSTS = (
    ("time", "seconds", human_seconds),
    ("CPU time", "cpu_seconds", human_seconds),
    ("up", "bytes_up", human_bytes),
    ("down", "bytes_down", human_bytes),
)


def _shown(cells: Sequence[Mapping[str, Any]], figure: str) -> bool:
    return figure == "accuracy" or any(cell.get(figure) is not None for cell in cells)


def _place(cell: Mapping[str, Any]) -> str:
    return f"{cell['data']} / {cell['partition']}"


def _by_domain(
    cells: Sequence[Mapping[str, Any]], domains: Sequence[str], figure: str, title: str
) -> Table:
    methods = list(dict.fromkeys(str(cell["method"]) for cell in cells))
    groups = [[cell for cell in cells if str(cell["method"]) == method] for method in methods]
    columns: list[list[Cell]] = []
    for domain in domains:
        parts = [
            [c["per_domain"][domain].get(figure) for c in mine if _has(c, domain)]
            for mine in groups
        ]
        defined = ([float(value) for value in values if value is not None] for values in parts)
        columns.append(_mark_best([mean_over(values) if values else MISSING for values in defined]))
    notes: list[str] = []
    columns.append(_mark_best([_summary(mine, figure, notes) for mine in groups]))
    notes += _said(cells)
    return Table(
        ("method", *domains, "average"),
        tuple(zip(methods, *columns, strict=True)),
        title,
        tuple(notes),
    )


def _opened(cells: Sequence[Mapping[str, Any]], title: str) -> Table:
    methods = list(dict.fromkeys(str(cell["method"]) for cell in cells))
    groups = [[cell for cell in cells if str(cell["method"]) == method] for method in methods]
    notes: list[list[str]] = [
        [] for _ in OPEN_ANSWERS
    ]  # a failure has the same number in every column
    columns = [
        [_summary(mine, figure, said) for mine in groups]
        for figure, said in zip(OPEN_ANSWERS, notes, strict=True)
    ]
    rows = tuple(zip(methods, _mark_best(columns[0]), *columns[1:], strict=True))
    told = dict.fromkeys(note for said in notes for note in said)
    return Table(("method", *OPEN_ANSWERS.values()), rows, title, (*told, *_said(cells), OPEN_NOTE))


def _has(cell: Mapping[str, Any], domain: str) -> bool:
    return domain in (cell.get("per_domain") or {})


def _said(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the data itself says must stand beside its figures, and which figures are averages over domains."""
    several = {str(c["data"]): len(c["per_domain"]) for c in cells if c.get("per_domain")}
    averages = [f"{data}: plain average over {count} domains" for data, count in several.items()]
    return list(
        dict.fromkeys([*averages, *(note for cell in cells for note in cell.get("notes") or ())])
    )


def _compared(cells: Sequence[Mapping[str, Any]], figure: str, title: str) -> Table:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for c in cells:
        groups.setdefault((str(c["method"]), _place(c)), []).append(c)
    methods = list(dict.fromkeys(method for method, _ in groups))
    settings = list(dict.fromkeys(setting for _, setting in groups))
    notes: list[str] = []
    columns = [
        _mark_best([_summary(groups.get((m, s), []), figure, notes) for m in methods])
        for s in settings
    ]
    for name, key, show in _COSTS:
        done = (
            [c for c in cells if str(c["method"]) == m and _failure(c, figure) is None]
            for m in methods
        )
        settings.append(name)
        columns.append([_median(mine, key, show) for mine in done])
    notes += _said(cells)
    notes.append(
        "time, CPU time and bytes sent up and down: medians over the method's finished cells"
    )
    if any(cell.get("reused") for cell in cells):
        notes.append(
            "time leaves out members that another cell had trained already; CPU time counts them"
        )
    return Table(
        ("method", *settings), tuple(zip(methods, *columns, strict=True)), title, tuple(notes)
    )


def _mark_best(column: list[Cell]) -> list[Cell]:
    """The same cells, the highest mean (all of them, if several tie) marked as best; unrounded means decide."""
    highest = max((c.mean for c in column if isinstance(c, Mean)), default=None)
    return [
        replace(c, best=True) if isinstance(c, Mean) and c.mean == highest else c for c in column
    ]


def _summary(cells: Sequence[Mapping[str, Any]], figure: str, notes: list[str]) -> Cell:
    """One cell of the comparison; a failure adds a note and its number marks the cell."""
    reasons = [
        f"seed {c['seed']}: {reason}" for c in cells if (reason := _failure(c, figure)) is not None
    ]
    mark = ""
    if reasons:
        first = cells[0]
        mark = f" [{len(notes) + 1}]"
        notes.append(
            f"{mark.strip()} {first['method']} on {_place(first)} failed: {'; '.join(reasons)}"
        )
    finished = [c for c in cells if _failure(c, figure) is None]
    values = [float(c[figure]) for c in finished if c.get(figure) is not None]
    if values:
        return mean_over(values, mark)
    return f"failed{mark}" if reasons else MISSING


def _failure(cell: Mapping[str, Any], figure: str) -> str | None:
    """Why a cell has no result to show, or None."""
    if cell.get("status", "ok") != "ok":
        return str(cell.get("error") or "no reason was recorded")
    value = cell.get(figure)
    return f"its {figure} is {value}" if value is not None and not math.isfinite(value) else None


def _median(cells: Sequence[Mapping[str, Any]], key: str, show: Callable[[float], str]) -> Cell:
    values = [c[key] for c in cells if c.get(key) is not None]
    return Number(middle := median(values), show(middle)) if values else MISSING


def _refuse_repeats(cells: Sequence[Mapping[str, Any]]) -> None:
    seen = set()
    for cell in cells:
        key = tuple(str(cell[k]) for k in ("method", "data", "partition", "seed"))
        if key in seen:
            raise DataError(
                f"two results for {' / '.join(key[:3])}, seed {key[3]}; a seed may count only once"
            )
        seen.add(key)


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
