"""Tables on a terminal of any width."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from ostraka.display.tables import COSTS, Cell, Table


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
