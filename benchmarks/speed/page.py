"""Tables of a page from the figures: what lies between two markers is written anew.

A table stands between `<!-- bench: NAME -->` and `<!-- end of bench: NAME -->`.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.speed.table import BEFORE, OURS, Table

MARKED = re.compile(
    r"(<!-- bench: (?P<name>[a-z]+) -->\n)(.*?)(<!-- end of bench: (?P=name) -->)", re.S
)


def fill(page: str, tables: Mapping[str, Table], figures: Mapping[str, Any]) -> str:
    """The page with every marked table made of the figures; one without figures stays as it is."""
    missing = set(figures) - {match["name"] for match in MARKED.finditer(page)}
    if missing:
        raise ValueError(f"the page has no markers for {', '.join(sorted(missing))}")

    def write(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in figures:
            return match[0]
        return f"{match[1]}\n{markdown(tables[name], figures[name])}\n{match[4]}"

    return MARKED.sub(write, page)


def markdown(table: Table, figures: Mapping[str, Any]) -> str:
    """One table, with a line above it that says when and where."""
    cells = figures["cells"]
    variants = list(next(iter(cells.values())))
    rows = [_row(table, cell, found, figures["matmul"]) for cell, found in cells.items()]
    head = [table.title, *variants, *_ratio_names(table, variants)]
    head += ["% of matmul"] if table.effort else []
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        [
            f"{figures['date']}, {figures['machine']}; matmul {figures['matmul']:.0f} GFLOP/s; "
            f"{_rounds(cells)} rounds. {_unit(table)}",
            "",
            *("| " + " | ".join(line) + " |" for line in lines),
        ]
    )


def _rounds(cells: Mapping[str, Any]) -> int:
    """How often every variant did every cell."""
    return min(len(turn["cpu"]) for found in cells.values() for turn in found.values())


def _unit(table: Table) -> str:
    if table.counts == "less":
        return "CPU-seconds, and wall seconds in brackets."
    memory = ", and peak memory in brackets" if table.memory else ""
    return f"{table.unit[0].upper()}{table.unit[1:]} per CPU-second{memory}."


def _ratio_names(table: Table, variants: Sequence[str]) -> list[str]:
    before = ["times before"] if BEFORE in variants else []
    if table.counts == "less":
        return ["times the CPU", "times the wall time", *before]
    return ["times the best other", *before]


def _row(table: Table, cell: str, found: Mapping[str, Any], limit: float) -> list[str]:
    texts = [_figure(table, values) for values in found.values()]
    ours = found[OURS]
    if table.counts == "less":
        other = found[table.opponents[0]]
        ratios = [_ratio(ours[what], other[what]) for what in ("cpu", "wall")]
    else:
        ratios = [_ratio(found[best(table, found)]["cpu"], ours["cpu"])]
    if BEFORE in found:
        ratios.append(_ratio(found[BEFORE]["cpu"], ours["cpu"]))
    share = []
    if table.effort:
        rate = table.effort[cell] / 1e3 / median(ours["cpu"])
        share = [f"{100 * rate / limit:.0f}"]
    return [table.cells[cell], *texts, *ratios, *share]


def best(table: Table, found: Mapping[str, Any]) -> str:
    """The opponent with the least median of CPU-seconds."""
    return min(
        (variant for variant in table.opponents if variant in found),
        key=lambda variant: median(found[variant]["cpu"]),
    )


def _ratio(more: Sequence[float], less: Sequence[float]) -> str:
    """The median of the ratios round by round, and their range."""
    ratios = [a / b for a, b in zip(more, less, strict=True)]
    return f"**{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})"


def _figure(table: Table, values: Mapping[str, Any]) -> str:
    cpu = median(values["cpu"])
    if table.counts == "less":
        return f"{cpu:.2f} ({median(values['wall']):.2f})"
    rate = 1 / cpu
    text = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
    return f"{text} ({values['memory']:,} MB)" if table.memory else text
