"""Counts as lines of characters, for a terminal of any width: shaded blocks,
and a line of words where none fit.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from ostraka.display.tables import cut

Counts = NDArray[np.integer]

CELLS = (2, 1)
"""Characters that a block may be wide, the best first."""

NAME_SHARE = 4
"""The names of the rows take at most this fraction of the width (one part in four)."""

BAR = 10
"""Characters of a party's bar."""

ROOM_FOR_BAR = 60
"""Narrower terminals leave the bar out."""


class Pen(NamedTuple):
    """The characters to draw with: nothing, light to dark, and the empty part of a bar."""

    none: str
    shades: str
    empty: str


UNICODE = Pen("·", "░▒▓█", "░")
ASCII = Pen(".", "-+*#", "-")


def blocks(
    counts: Counts,
    rows: Sequence[str],
    columns: Sequence[str],
    width: int,
    pen: Pen,
    total: str = "",
) -> list[Text] | None:
    """A line for each row, a block for each column, the darker the larger its count;
    None where they do not fit.

    Above stands a ruler: the names of the columns if these are single characters, else their
    numbers. `total` heads a column with the sums of the rows. The legend below says which shade
    stands for which counts.
    """
    names = [cut(name, max(width // NAME_SHARE, 5)) for name in rows]
    indent = max(map(len, names)) + 1
    sums = [str(value) for value in counts.sum(axis=1).tolist()] if total else []
    right = max((len(text) for text in (total, *sums)), default=0) + 1 if total else 0
    cell = next((cell for cell in CELLS if indent + cell * len(columns) + right <= width), None)
    if cell is None:
        return None
    lines = [Text(" " * indent + line, style="bold") for line in _ruler(columns, cell)]
    if total:
        lines[-1].append(total.rjust(right))
    most = int(counts.max())
    for i, (name, row) in enumerate(zip(names, counts.tolist(), strict=True)):
        line = Text(name.ljust(indent))
        for count in row:
            line.append(*_block(count, most, cell, pen))
        lines.append(line.append(sums[i].rjust(right)) if total else line)
    return [*lines, Text(""), *_legend(most, pen, width)]


def per_party(
    counts: Counts, names: Sequence[str], classes: Sequence[str], width: int, pen: Pen
) -> list[Text]:
    """For more classes than a terminal has columns: of each party its samples, classes,
    their mix and the largest.
    """
    names = [cut(name, max(width // NAME_SHARE, 5)) for name in names]
    columns = [("party", names), ("samples", [str(n) for n in counts.sum(axis=1).tolist()])]
    columns.append(("classes", [str(n) for n in (counts > 0).sum(axis=1).tolist()]))
    if width >= ROOM_FOR_BAR:
        full = [round(BAR * _evenness(row)) for row in counts]
        bars = [pen.shades[-1] * n + pen.empty * (BAR - n) for n in full]
        columns.append(("mix".ljust(BAR), bars))
    widths = [max(map(len, (title, *texts))) for title, texts in columns]
    rest = width - sum(widths) - 2 * len(widths)
    columns.append(("largest classes"[:rest], [_largest(row, classes, rest) for row in counts]))
    lines = []
    for i in range(-1, len(names)):
        texts = [title if i < 0 else column[i] for title, column in columns]
        aligned = [
            texts[0].ljust(widths[0]),
            *(t.rjust(w) for t, w in zip(texts[1:-1], widths[1:], strict=True)),
        ]
        lines.append(Text("  ".join([*aligned, texts[-1]]), style="bold" if i < 0 else ""))
    if width >= ROOM_FOR_BAR:
        lines += [
            Text(""),
            Text("mix: empty for a single class, full for all classes in equal shares (entropy)"),
        ]
    return lines


def whole(counts: Counts, classes: Sequence[str]) -> list[Text]:
    """The division as a whole: smallest, median and largest of what
    parties hold and of who holds a class.
    """
    held = counts > 0
    owners = held.sum(axis=0)
    lines = [Text(f"{'':17}{'min':>7}{'median':>7}{'max':>7}", style="bold")]
    for name, values in (
        ("classes per party", held.sum(axis=1)),
        ("samples per party", counts.sum(axis=1)),
        ("parties per class", owners),
    ):
        line = f"{name:17}{values.min():>7}{np.median(values):>7g}{values.max():>7}"
        lines.append(Text(line))
    single = [classes[k] for k in np.flatnonzero(owners == 1).tolist()]
    said = f" ({', '.join(single)})" if 0 < len(single) <= 5 else ""
    alone = f"classes that one party alone holds: {len(single)} of {len(classes)}{said}"
    return [*lines, Text(alone)]


def _ruler(columns: Sequence[str], cell: int) -> list[str]:
    """What stands above the blocks: the names,
    or the number of every fifth or tenth block and all last digits.
    """
    if all(len(name) == 1 for name in columns):
        return ["".join(name.ljust(cell) for name in columns)]
    every = 10 // cell
    marks = "".join(str(k).ljust(every * cell) for k in range(0, len(columns), every))
    digits = "".join(str(k % 10).ljust(cell) for k in range(len(columns)))
    return [marks.rstrip(), digits] if len(columns) > 10 else [digits]


def _block(count: int, most: int, cell: int, pen: Pen) -> tuple[str, str]:
    """The characters of one block and their style.

    Shades follow the root of the count, as the colours of a plot.
    """
    if not count:
        return pen.none.ljust(cell), "dim"
    # how many quarters of the way the root of the count has come to that of the largest one
    level = sum(16 * count >= i * i * most for i in (1, 2, 3))
    return pen.shades[level] * cell, ""


def _legend(most: int, pen: Pen, width: int) -> list[Text]:
    """Which shade stands for which counts; a shade and its counts stay on one line."""
    parts = [f"{pen.none} none"]
    for i, shade in enumerate(pen.shades):
        low = max(math.ceil(i * i * most / 16), 1)
        high = most if i == 3 else math.ceil((i + 1) ** 2 * most / 16) - 1
        if low <= high:
            parts.append(f"{shade} {low}" if low == high else f"{shade} {low}-{high}")
    lines = [parts[0]]
    for part in parts[1:]:
        fits = len(lines[-1]) + 3 + len(part) <= width
        lines = [*lines[:-1], f"{lines[-1]}   {part}"] if fits else [*lines, part]
    return [Text(line) for line in lines]


def _evenness(row: Counts) -> float:
    """Entropy of the classes over the largest it can be: 0 for one class,
    1 for all in equal shares.
    """
    shares = row[row > 0] / max(int(row.sum()), 1)
    return float(-(shares * np.log(shares)).sum() / math.log(len(row))) if len(row) > 1 else 0.0


def _largest(row: Counts, classes: Sequence[str], width: int) -> str:
    """The largest classes with their shares, as many as fit; the first is cut if it must be."""
    total, text = max(int(row.sum()), 1), ""
    for k in np.argsort(-row, kind="stable").tolist():
        share = f" ({100 * row[k] / total:.0f}%)"
        named = cut(classes[k], width - len(share)) if not text else f"{text}, {classes[k]}"
        one = named + share
        if not row[k] or len(one) > width:
            break
        text = one
    return text
