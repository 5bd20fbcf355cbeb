"""Who is taken for whom: the confusion matrix of a finished run,
for the terminal and as a drawing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.heatmap import FEW_CLASSES, finish, name_axes, separate, write_numbers
from ostraka.display.mosaic import ASCII, UNICODE, Pen, blocks
from ostraka.display.tables import Cell, Number, Table, cut, fits, show_lines
from ostraka.errors import StoreError
from ostraka.runs.results import Summary

UNKNOWN = "unknown"
"""How the last row and column are called where the test has unknown classes."""

TITLE = "confusion: % of each true class by answer"

WORST = 10
"""Pairs that are named where the matrix does not fit."""


class Confusion(NamedTuple):
    """Samples by true class (rows) and answer (columns), with the names of both."""

    counts: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def percent(self) -> NDArray[np.float64]:
        """Of each true class, the share of every answer; zeros for a class without samples."""
        whole = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(100 * self.counts / np.maximum(whole, 1))


def stored_confusion(summary: Summary, where: str = "this run") -> Confusion:
    """The matrix in a run's summary; refused where there is none or it does not fit the classes."""
    classes, kept = tuple(summary.per_class), summary.confusion
    names = classes if _square(kept, len(classes)) else (*classes, UNKNOWN)
    if not classes or not _square(kept, len(names)):
        raise StoreError(
            f"the confusion matrix of {where} is damaged: it must be counts of {len(classes)} "
            "classes (one more with unknown) in as many lines; run it again in a new folder"
        )
    return Confusion(np.array(kept), names)


def _square(kept: Any, size: int) -> bool:
    """Whether these are `size` lines of as many counts."""
    lines = kept if isinstance(kept, list | tuple) else ()
    return len(lines) == size and all(
        isinstance(line, list | tuple)
        and len(line) == size
        and all(isinstance(n, int) and n >= 0 for n in line)
        for line in lines
    )


def confusion_table(found: Confusion) -> Table:
    """Percent of each true class; columns are numbered, as their names seldom fit,
    and the rows say which is which.
    """
    rows: list[tuple[Cell, ...]] = []
    for number, (name, row) in enumerate(zip(found.names, found.percent.tolist(), strict=True)):
        shown = [Number(value, f"{value:.0f}" if value >= 0.5 else "·") for value in row]
        rows.append((f"{number} {cut(name, 16)}" if name != str(number) else name, *shown))
    return Table(("true class", *map(str, range(len(found.names)))), rows, title=TITLE)


def confusion_blocks(found: Confusion, width: int, pen: Pen) -> list[Text] | None:
    """The same as shaded blocks; None where these do not fit either."""
    rows = [
        f"{number} {name}" if name != str(number) else name
        for number, name in enumerate(found.names)
    ]
    columns = tuple(map(str, range(len(rows))))
    return blocks(np.rint(found.percent).astype(int), rows, columns, width, pen)


def worst_pairs(found: Confusion) -> Table:
    """The most frequent mistakes: which class was taken for which other one."""
    wrong = np.where(np.eye(len(found.names), dtype=bool), 0, found.counts)
    order = np.argsort(-wrong, axis=None, kind="stable")[:WORST].tolist()
    places = [divmod(place, len(found.names)) for place in order if wrong.flat[place]]
    rows: Sequence[tuple[Cell, ...]] = [
        (
            found.names[true],
            found.names[said],
            Number(found.counts[true, said], str(found.counts[true, said])),
            Number(found.percent[true, said], f"{found.percent[true, said]:.0f}"),
        )
        for true, said in places
    ]
    return Table(
        ("true class", "answer", "samples", "% of the class"), rows, title="most frequent mistakes"
    )


def show_confusion(console: Console, found: Confusion) -> None:
    """Numbers where they fit, else shaded blocks, else the most frequent mistakes."""
    table = confusion_table(found)
    pen = ASCII if console.options.ascii_only else UNICODE
    if fits(console, table):
        console.print(table.rich())
    elif shown := confusion_blocks(found, console.width, pen):
        show_lines(console, [Text(""), Text(TITLE, style="italic"), *shown, Text("")])
    else:
        console.print(worst_pairs(found).rich(console.width))


def draw_confusion(found: Confusion, path: Path, title: str = "") -> None:
    """Draw the shares of each true class; numbers are written in where there is room."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    check_suffix(path)
    size = len(found.names)
    inches = min(max(0.42 * size, 3), 11)
    figure = new_figure(inches + 2.2, inches + 1.2)
    axes = figure.add_subplot()
    colours, norm = colormaps["Blues"], Normalize(0, 100)
    image = axes.imshow(found.percent, cmap=colours, norm=norm, interpolation="nearest")
    name_axes(axes, found.names, found.names, ("answer", "true class"))
    if size <= FEW_CLASSES:
        separate(axes, size, size)
        write_numbers(axes, np.rint(found.percent).astype(int), colours, norm)
    if len(found.names) > 1 and found.names[-1] == UNKNOWN:
        axes.axhline(size - 1.5, color="0.3", linewidth=1)
        axes.axvline(size - 1.5, color="0.3", linewidth=1)
    finish(figure, image, title, "% of the true class")
    save(figure, path)
