"""Who holds what, on a terminal."""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from ostraka.display.heatmap import division_size, party_class_table
from ostraka.display.mosaic import ASCII, UNICODE, blocks, per_party, whole
from ostraka.display.tables import fits, show_lines
from ostraka.runs.division import Division

PARTIES = 30
"""Parties that a division lists."""

NAMED = 40
"""Classes that are named below a division."""


def show_division(console: Console, division: Division) -> None:
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
    if (shown and max(map(len, classes)) > 1) or (numbers and not short):
        _name_classes(console, classes)
    if not numbers or more > 0:
        show_lines(console, [*whole(division.counts, classes), Text("")])
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
