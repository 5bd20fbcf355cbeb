"""The history of finished runs, round by round, as curves to draw."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from ostraka.display.curves import Curve, accuracy_curves
from ostraka.errors import ConfigError, DataError, StoreError
from ostraka.runs.config import build_method
from ostraka.runs.record import RunDir, nothing_in
from ostraka.runs.results import MetricsRow, Summary
from ostraka.runs.rows import labels_of, settings_of

AXES = {"rounds": "round", "bytes": "sent up and down so far"}
"""What accuracy may be drawn against, and how the axis is called."""


@dataclass(frozen=True)
class History:
    """One finished run: accuracy in percent after every evaluated round;
    round 0 is the start of a run that has one.
    """

    method: str
    start: str
    """The method that made the first model; empty for a random one."""
    place: str
    """Data and partition."""
    seed: int
    settings: Mapping[str, Any]
    """What decides the numbers beside the seed, by dotted names."""
    talks: bool
    rounds: tuple[int, ...]
    sent: tuple[int, ...]
    """Bytes up and down until then, those of the start included."""
    accuracy: tuple[float, ...]
    networks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Accuracy of every class's own yes-or-no answer, by class, where there are such."""


def read_history(folder: Path) -> History | None:
    """The history in a run's folder; None if the run is not finished."""
    home = RunDir(folder)
    summary = home.finished()
    if summary is None:
        return None
    config = home.stored_config()
    method = build_method(config)
    rows = checked_rows(home, summary, method.exchanges)
    start = summary.start
    before = start.bytes_up + start.bytes_down if start else 0
    return History(  # all rows have an accuracy and bytes: that was checked
        method=summary.method,
        start=start.method if start else "",
        place=f"{summary.data} / {summary.partition}",
        seed=summary.seed,
        settings=settings_of(config),
        talks=method.talks,
        rounds=tuple(row.round for row in rows),
        sent=tuple(before + row.bytes_up + row.bytes_down for row in rows),
        accuracy=tuple(row.test.accuracy or 0.0 for row in rows),
        networks={
            name: tuple(row.test.per_network.get(name) or 0.0 for row in rows)
            for name in rows[-1].test.per_network
        },
    )


def checked_rows(home: RunDir, summary: Summary, last: int) -> list[MetricsRow]:
    """The evaluated rounds of a finished run, all with an accuracy and bytes to draw.

    What does not end as the run did is refused.
    """
    rows, remedy = home.read_metrics(), "leave this run out, or run it again in a new folder"
    if not rows:
        raise StoreError(
            f"{home.metrics} is missing or has no rounds, though the run is finished; {remedy}"
        )
    for number, row in enumerate(rows, 1):
        problem = _problem(row)
        if problem:
            raise StoreError(f"{home.metrics}, line {number}: {problem}; {remedy}")
    end, accuracy = rows[-1].round, rows[-1].test.accuracy
    if (end, accuracy) != (last, summary.accuracy):
        raise StoreError(
            f"{home.metrics} ends in round {end} with an accuracy of {accuracy}, but the run in "
            f"round {last} with {summary.accuracy}: lines are missing or of another run; {remedy}"
        )
    if any(row.test.accuracy is None for row in rows):
        raise DataError(
            f"{home.root} has rounds without an accuracy (its test set "
            "has no known class); leave it out"
        )
    return rows


def _problem(row: MetricsRow) -> str:
    """What of a row cannot be drawn; empty if nothing."""
    accuracy = row.test.accuracy
    if accuracy is not None and not math.isfinite(accuracy):
        return f"its accuracy is {accuracy!r}, which is no number to draw"
    return ""


def histories(folders: Iterable[Path]) -> tuple[list[History], list[Path]]:
    """The histories of runs and of grids, and the unfinished cells of grids, which have none.

    A folder that holds neither, or an unfinished run, is refused.
    """
    found, unfinished = [], []
    for folder in folders:
        cells = sorted((folder / "cells").glob("*")) if (folder / "cells").is_dir() else [folder]
        read = {cell: read_history(cell) for cell in cells}
        if not any(read.values()):
            raise ConfigError(nothing_in(folder))
        found += [history for history in read.values() if history is not None]
        unfinished += [cell for cell, history in read.items() if history is None]
    return found, unfinished


def panels(runs: Sequence[History], axis: str) -> dict[str, list[Curve]]:
    """Curves over the seeds of runs that differ in nothing else, by data and partition.

    Order: first come.
    """
    out: dict[str, list[Curve]] = {}
    for place in dict.fromkeys(run.place for run in runs):
        groups: dict[str, list[History]] = {}
        for run in (run for run in runs if run.place == place):
            groups.setdefault(
                repr((run.method, run.start, sorted(run.settings.items()))), []
            ).append(run)
        firsts = [group[0] for group in groups.values()]
        names = [run.method + (f" from {run.start}" if run.start else "") for run in firsts]
        labels = labels_of(names, [run.settings for run in firsts])
        out[place] = [
            _curve(label, group, axis) for label, group in zip(labels, groups.values(), strict=True)
        ]
    return out


def draw_rounds(runs: Sequence[History], axis: str, path: Path, smooth: int = 1) -> None:
    """Draw accuracy against one of AXES; with `smooth`, each point is the mean of so many evaluated
    rounds from its own on.
    """
    shown = {
        place: [smoothed(curve, smooth) for curve in curves]
        for place, curves in panels(runs, axis).items()
    }
    accuracy_curves(shown, path, xlabel=AXES[axis], in_bytes=axis == "bytes")


def draw_networks(runs: Sequence[History], path: Path, smooth: int = 1) -> None:
    """Draw the accuracy of every binary network against rounds, beside that of the runs' answers
    (FedOVA's Figure 3).
    """
    if not any(run.networks for run in runs):
        raise ConfigError(
            "none of these runs has networks that answer yes or no for one class; take one of "
            "fedova"
        )
    shown = panels(runs, "rounds")
    for place, curves in shown.items():
        mine = [run for run in runs if run.place == place and run.networks]
        names = dict.fromkeys(name for run in mine for name in run.networks)
        curves += [
            Curve(f"network {name}", mine[0].rounds, [run.networks[name] for run in mine])
            for name in names
        ]
        shown[place] = [smoothed(curve, smooth) for curve in curves]
    accuracy_curves(shown, path, xlabel=AXES["rounds"])


def smoothed(curve: Curve, count: int) -> Curve:
    """Every point as the mean of `count` points from its own on; the last ones, which have not so
    many behind them, are left out.
    """
    kept = len(curve.x) - count + 1
    if count < 2 or curve.reference:
        return curve
    if kept < 1:
        raise ConfigError(
            f"{curve.label} has {len(curve.x)} evaluated rounds; --smooth {count} needs as many"
        )
    values = [[fmean(one[i : i + count]) for i in range(kept)] for one in curve.values]
    return curve._replace(x=curve.x[:kept], values=values)


def draw_all(folders: Iterable[Path], out: Path) -> list[str]:
    """Draw a grid's runs against every axis, if any of them has more than one point.

    The names of the files.
    """
    runs = [history for folder in folders if (history := read_history(folder)) is not None]
    if not any(len(history.rounds) > 1 for history in runs):
        return []
    for axis in AXES:
        draw_rounds(runs, axis, out / f"{axis}.svg")
    return [f"{axis}.svg" for axis in AXES]


def _curve(label: str, group: Sequence[History], axis: str) -> Curve:
    seeds = [run.seed for run in group]
    if len(set(seeds)) != len(seeds):
        raise ConfigError(
            f"{label} on {group[0].place} was given twice for a seed; name every run once"
        )
    x: Sequence[float] = group[0].rounds
    if axis == "bytes":  # the same rounds, but cards of slightly different lengths
        x = [sum(sent) / len(group) for sent in zip(*(run.sent for run in group), strict=True)]
    return Curve(label, x, [run.accuracy for run in group], reference=not group[0].talks)
