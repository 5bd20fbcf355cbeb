"""Tables of grids that compare selectors: accuracy, seconds, and who is beaten by none."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ostraka.display.curves import Curve, accuracy_curves

Lines = Iterator[str]


def head(*cells: object) -> Lines:
    """The first two lines of a table."""
    line = row(*cells)
    yield line
    yield "|" + "---|" * (line.count("|") - 1)


def row(*cells: object) -> str:
    """One line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def finished(grid: Path) -> list[dict[str, Any]]:
    """The records of a grid's finished cells."""
    found: list[dict[str, Any]] = json.loads((grid / "results.json").read_text())
    return [record for record in found if record["status"] == "ok"]


def table(grid: Path) -> Lines:
    """Accuracy (%) of every method on every division, mean and standard deviation over seeds, and
    the CPU-seconds of its choice and of all its answers, means over all its cells.
    """
    records = finished(grid)
    divisions = list(dict.fromkeys(_division(record) for record in records))
    yield from head("method", *divisions, "choice (s)", "answers (s)")
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        cells = [
            _spread([record["accuracy"] for record in own if _division(record) == division])
            for division in divisions
        ]
        yield row(method, *cells, *(_seconds(own, what) for what in ("selection", "inference")))


def pareto(grid: Path, figure: Path) -> Lines:
    """Accuracy against the CPU-seconds of all answers to the test set, means over seeds: drawn,
    a panel for each division, and as a table that says how far each method is from the first one
    and who is beaten in both by none.
    """
    panels = {}
    records = [record for record in finished(grid) if "inference" in record.get("spent", {})]
    for division in dict.fromkeys(_division(record) for record in records):
        found: dict[str, list[tuple[float, float]]] = {}
        for record in records:
            if _division(record) == division:
                point = (record["spent"]["inference"], record["accuracy"])
                found.setdefault(record["method"], []).append(point)
        means = {
            name: (fmean(s for s, _ in f), fmean(a for _, a in f)) for name, f in found.items()
        }
        panels[division] = [
            Curve(name, [means[name][0]], [[accuracy] for _, accuracy in points])
            for name, points in found.items()
        ]
        yield from _costs(division, means)
    accuracy_curves(panels, figure, xlabel="CPU-seconds of all answers")


def _costs(division: str, means: dict[str, tuple[float, float]]) -> Lines:
    first = next(iter(means))
    yield from head(division, "seconds", "accuracy (%)", f"against {first}", "beaten by none")
    for name, (seconds, accuracy) in sorted(means.items(), key=lambda item: item[1]):
        beaten = any(
            s <= seconds and a >= accuracy and (s, a) != (seconds, accuracy)
            for s, a in means.values()
        )
        gap = accuracy - means[first][1]
        yield row(name, f"{seconds:.2f}", f"{accuracy:.2f}", f"{gap:+.2f}", "" if beaten else "yes")
    yield ""


def _division(record: dict[str, Any]) -> str:
    return f"{record['data']} / {record['partition']}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _seconds(records: Sequence[dict[str, Any]], what: str) -> str:
    spent = [r["spent"][what] for r in records if what in r.get("spent", {})]
    return f"{fmean(spent):.2f}" if spent else "-"
