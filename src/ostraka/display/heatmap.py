"""Who holds what: counts of each party and class as a table, on a terminal and as a drawing."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.mosaic import ASCII, UNICODE, blocks, per_party, whole
from ostraka.display.tables import Cell, Number, Table, cut, fits, show_lines
from ostraka.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from ostraka.runs.division import Division

Counts = NDArray[np.integer]

PARTIES = 30
"""Parties that a division lists."""

NAMED = 40
"""Classes that are named below a division."""

FEW_PARTIES = 20
"""Up to here parties are rows with their counts written in; beyond,
they are thin columns from left to right.
"""

FEW_CLASSES = 30
"""Up to here there is room to write the counts, and to name every class."""

NAMED_PARTIES = 100
"""Up to here parties stand in their own order; beyond,
a name means little and they are ordered by largest class.
"""

MOST_ROWS = 40
"""Names that fit one above the other."""

NAME = 24
"""Characters of a name beside an axis; longer ones are cut."""

DIGIT = 0.07
"""Width of a written digit in inches."""


def party_class_table(
    table: Counts, party_names: Sequence[str], class_names: Sequence[str]
) -> Table:
    """One row for each party: its count of each class, and all its samples."""
    counts = _checked(table, party_names, class_names)
    rows: list[tuple[Cell, ...]] = []
    for name, row in zip(party_names, counts.tolist(), strict=True):
        held = [Number(count, str(count) if count else "·") for count in row]
        rows.append((name, *held, Number(sum(row), str(sum(row)))))
    return Table(("party", *class_names, "all"), tuple(rows), notes=(division_size(counts),))


def division_size(counts: Counts) -> str:
    """`10 parties, 10 classes, 4000 samples`."""
    return f"{counts.shape[0]} parties, {counts.shape[1]} classes, {int(counts.sum())} samples"


def show_division(console: Console, division: "Division") -> None:
    """Who holds what: numbers where they fit, else shaded blocks,
    else a line of words for each party.

    Long class names are listed below numbers and blocks. Where not every number is shown, figures
    of the whole follow.
    """
    names, classes = division.partition.names[:PARTIES], division.data.classes
    counts, more = division.counts[:PARTIES], len(division.counts) - PARTIES
    short = max(map(len, classes)) <= 4
    table = party_class_table(counts, names, classes if short else _numbered(classes))
    pen = ASCII if console.options.ascii_only else UNICODE
    numbers = fits(console, table)
    shown = None if numbers else blocks(counts, names, classes, console.width, pen, "all")
    if numbers:
        console.print(replace(table, notes=()).rich())
    else:
        show_lines(console, shown or per_party(counts, names, classes, console.width, pen))
    if more > 0:
        console.print(
            f"... and {more} more parties; --plot draws them all, --json lists them",
            highlight=False,
        )
    console.print(division_size(division.counts) + "\n", highlight=False)
    unclear = (shown and max(map(len, classes)) > 1) or (numbers and not short)
    if unclear and tuple(classes) != _numbered(classes):  # names may be the numbers themselves
        legend = ", ".join(f"{number} {name}" for number, name in enumerate(classes[:NAMED]))
        left = f", ... (--json lists all {len(classes)})" if len(classes) > NAMED else ""
        console.print(f"classes: {legend}{left}\n", highlight=False)
    if not numbers or more > 0:
        show_lines(console, [*whole(division.counts, classes), Text("")])
    for note in division.notes:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)


def _numbered(classes: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(str, range(len(classes))))


def heatmap_svg(
    table: Counts,
    party_names: Sequence[str],
    class_names: Sequence[str],
    path: Path,
    title: str = "",
) -> None:
    """Draw the counts into `path`. A blank cell is a class that the party does not hold.

    More than NAMED_PARTIES parties are ordered by their largest class and its share;
    the axis then counts them.
    """
    check_suffix(path)
    counts = _checked(table, party_names, class_names)
    few, crowd = len(party_names) <= FEW_PARTIES, len(party_names) > NAMED_PARTIES
    if crowd:
        counts = counts[_by_largest_class(counts)]
        party_names = [str(n) for n in range(len(party_names))]
    # rows read best when there are few; a thousand parties fit the width of a page, not its height
    grid, rows, columns = (
        (counts, party_names, class_names) if few else (counts.T, class_names, party_names)
    )
    party = "parties, ordered by their largest class" if crowd else "party"
    labels = ("class", party) if few else (party, "class")
    width = min(max(0.62 * len(columns), 3), 11)
    figure = new_figure(width + 1.8, min(max(0.28 * len(rows), 1.6), 12) + 1.4)
    axes = figure.add_subplot()
    colours, norm = _colours(counts)
    image = axes.imshow(
        np.ma.masked_equal(grid, 0), cmap=colours, norm=norm, aspect="auto", interpolation="nearest"
    )
    name_axes(axes, rows, columns, labels)
    if few:
        separate(axes, *grid.shape)
        roomy = DIGIT * len(str(counts.max())) < width / len(columns)
        if len(class_names) <= FEW_CLASSES and roomy:
            write_numbers(axes, grid, colours, norm)
    bar = finish(figure, image, title, "samples (blank: none)", _ticks(int(counts.max())))
    bar.outline.set_visible(False)
    save(figure, path)


def finish(
    figure: "Figure", image: "AxesImage", title: str, label: str, ticks: list[int] | None = None
) -> "Colorbar":
    """Set the title of a grid of numbers, and a bar beside it that says what its colours mean."""
    if title:
        image.axes.set_title(title, loc="left", fontsize=11)
    bar = figure.colorbar(image, ax=image.axes, pad=0.015, aspect=30, ticks=ticks)
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return bar


def _checked(table: Counts, party_names: Sequence[str], class_names: Sequence[str]) -> Counts:
    counts = np.asarray(table)
    expected = (len(party_names), len(class_names))
    if counts.shape != expected or not counts.size:
        raise DataError(
            f"a table of shape {counts.shape} does not fit {expected[0]} parties and "
            f"{expected[1]} classes; give one row for each party and one column for "
            "each class, at least one of each"
        )
    if counts.min() < 0:
        raise DataError(f"counts cannot be negative, but the smallest is {counts.min()}")
    return counts


def _colours(counts: Counts) -> "tuple[Colormap, Normalize]":
    """Light to dark and safe for colour-blind eyes.

    A root scale keeps a count of 1 apart from a 20 beside a 500.
    """
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, PowerNorm

    # the palest shades are left out, as they could be taken for blank;
    # the darkest are hard to tell apart
    shades = ListedColormap(colormaps["YlGnBu"](np.linspace(0.18, 0.92, 256))).with_extremes(
        bad="white"
    )
    most = int(counts.max())
    return shades, PowerNorm(0.5, vmin=1 if most > 1 else 0, vmax=max(most, 1))


def _ticks(most: int) -> list[int]:
    """For the colour bar: those of 1, 2, 5, 10, 20,
    ... that do not crowd on its root scale, and the largest count.
    """
    ticks, apart = [1], 0.12 * math.sqrt(most)
    for tick in (factor * 10**power for power in range(len(str(most))) for factor in (1, 2, 5)):
        below, above = math.sqrt(tick) - math.sqrt(ticks[-1]), math.sqrt(most) - math.sqrt(tick)
        if below >= apart and above >= apart:
            ticks.append(tick)
    return [*ticks, most] if most > 1 else ticks


def name_axes(
    axes: "Axes", rows: Sequence[str], columns: Sequence[str], labels: tuple[str, str]
) -> None:
    """Names beside both axes, as many as fit; `labels` are what the columns and the rows are."""
    for axis, names, most, label in (
        (axes.xaxis, columns, FEW_CLASSES, labels[0]),
        (axes.yaxis, rows, MOST_ROWS, labels[1]),
    ):
        step = _round_step(-(-len(names) // most))
        shown = range(0, len(names), step)
        axis.set_ticks(list(shown), [cut(names[i], NAME) for i in shown])
        named = f" (one in {step} of {len(names)} is named)" if step > 1 else ""
        named = "" if names[0].isdigit() else named
        axis.set_label_text(label + named, fontsize=9)
    longest = max(len(text.get_text()) for text in axes.get_xticklabels())
    if longest * len(axes.get_xticks()) > 100:  # about what fits side by side on the page
        axes.tick_params(axis="x", rotation=40)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_color("0.75")


def _by_largest_class(counts: Counts) -> NDArray[np.intp]:
    """The parties in the order of their largest class.

    Those of one class by its share, the largest first.
    """
    shares = counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return np.lexsort((-shares, counts.argmax(axis=1)))


def _round_step(step: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ...: labels at round positions."""
    rounds: Iterator[int] = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return next(one for one in rounds if step <= one)


def separate(axes: "Axes", rows: int, columns: int) -> None:
    """Thin lines between cells, so that a blank one is still seen as a cell."""
    axes.set_xticks(np.arange(-0.5, columns), minor=True)
    axes.set_yticks(np.arange(-0.5, rows), minor=True)
    axes.grid(which="minor", color="0.88", linewidth=0.8)
    axes.tick_params(which="minor", length=0)


def write_numbers(axes: "Axes", grid: Counts, colours: "Colormap", norm: "Normalize") -> None:
    """Every number but 0 into its cell, in black or white, whichever is seen better."""
    for row, column in np.argwhere(grid > 0).tolist():
        value = int(grid[row, column])
        red, green, blue, _ = colours(float(norm(value)))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue <= 0.55
        place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        axes.text(column, row, str(value), color="white" if dark else "black", **place)
