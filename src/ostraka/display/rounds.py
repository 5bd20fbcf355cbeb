"""The history of finished runs, round by round: as curves to draw, and as tables of what runs of
many rounds had reached by some of them.

FedOS's Table 2 has the test accuracy of the round that was best on the server's validation samples
until rounds 125, 250, 375 and 500, divided by the accuracy of the same network trained on pooled
data ("relative accuracy").
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from ostraka.display.curves import Curve, accuracy_curves
from ostraka.display.differing import differences
from ostraka.display.published import published
from ostraka.display.tables import MISSING, Cell, Number, Table, mean_over
from ostraka.errors import ConfigError, DataError, StoreError
from ostraka.runs.config import Config, build_method
from ostraka.runs.record import RunDir, nothing_in
from ostraka.runs.results import MetricsRow, Summary
from ostraka.runs.rows import labels_of, settings_of

AXES = {"rounds": "round", "bytes": "sent up and down so far"}
"""What accuracy may be drawn against, and how the axis is called."""

RELATIVE = "relative-accuracy"
"""What the published figures of FedOS's Table 2 are called."""


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

    @property
    def name(self) -> str:
        """The method, and that of its start."""
        return self.method + (f" from {self.start}" if self.start else "")


@dataclass(frozen=True)
class Course:
    """One finished run, round by round."""

    config: Config
    summary: Summary
    pooled: bool
    """Whether it is a reference that was trained on all data in one place."""
    rows: tuple[MetricsRow, ...]

    @property
    def name(self) -> str:
        """The method."""
        return self.summary.method

    @property
    def seed(self) -> int:
        """The seed."""
        return self.summary.seed

    @property
    def place(self) -> str:
        """Data and partition."""
        return f"{self.summary.data} / {self.summary.partition}"

    @property
    def learnt(self) -> tuple[Any, ...]:
        """The network, and what of which data it learns: what a pooled run must have in common."""
        own = self.config
        return self.summary.data, own.net, own.known, own.known_classes, own.train_per_class

    @property
    def settings(self) -> dict[str, Any]:
        """What decides its numbers beside the seed."""
        return settings_of(self.config)

    def chosen(self, index: int) -> float:
        """Test accuracy of the round that was best on validation samples, of those until `index`.

        Without validation samples: of the last of them. Of equal ones the first.
        """
        until = [row for row in self.rows if row.round <= index]
        if not until:
            raise ConfigError(
                f"the run in {self.summary.out} was first evaluated in round "
                f"{self.rows[0].round}; it has nothing to show of round {index}"
            )
        best = until[-1]
        if all(row.validation is not None for row in until):
            best = max(until, key=lambda row: (row.validation or 0.0, -row.round))
        return best.test.accuracy or 0.0

    def seen(self) -> list[float]:
        """What the server sees of every round: accuracy on its validation samples, or, without
        them, on the test samples.
        """
        if all(row.validation is not None for row in self.rows):
            return [row.validation or 0.0 for row in self.rows]
        return [row.test.accuracy or 0.0 for row in self.rows]


Run = TypeVar("Run", History, Course)


def read_history(folder: Path) -> History | None:
    """The history in a run's folder; None if the run is not finished."""
    run = _read(folder)
    if run is None:
        return None
    rows, start = run.rows, run.summary.start
    before = start.bytes_up + start.bytes_down if start else 0
    return History(  # all rows have an accuracy and bytes: that was checked
        method=run.name,
        start=start.method if start else "",
        place=run.place,
        seed=run.seed,
        settings=run.settings,
        talks=build_method(run.config).talks,
        rounds=tuple(row.round for row in rows),
        sent=tuple(before + row.bytes_up + row.bytes_down for row in rows),
        accuracy=tuple(row.test.accuracy or 0.0 for row in rows),
        networks={
            name: tuple(row.test.per_network.get(name) or 0.0 for row in rows)
            for name in rows[-1].test.per_network
        },
    )


def _read(folder: Path) -> Course | None:
    """A finished run, whose rounds all have an accuracy and bytes to draw.

    What does not end as the run did is refused.
    """
    home = RunDir(folder)
    summary = home.finished()
    if summary is None:
        return None
    config = home.stored_config()
    method = build_method(config)
    rows, remedy = home.read_metrics(), "leave this run out, or run it again in a new folder"
    if not rows:
        raise StoreError(
            f"{home.metrics} is missing or has no rounds, though the run is finished; {remedy}"
        )
    for number, row in enumerate(rows, 1):
        if row.test.accuracy is not None and not math.isfinite(row.test.accuracy):
            raise StoreError(
                f"{home.metrics}, line {number}: its accuracy is {row.test.accuracy!r}, which is "
                f"no number to draw; {remedy}"
            )
    end, accuracy = rows[-1].round, rows[-1].test.accuracy
    if (end, accuracy) != (method.exchanges, summary.accuracy):
        raise StoreError(
            f"{home.metrics} ends in round {end} with an accuracy of {accuracy}, but the run in "
            f"round {method.exchanges} with {summary.accuracy}: lines are missing or of another "
            f"run; {remedy}"
        )
    if any(row.test.accuracy is None for row in rows):
        raise DataError(
            f"{home.root} has rounds without an accuracy (its test set "
            "has no known class); leave it out"
        )
    return Course(config, summary, method.pooled, tuple(rows))


def histories(folders: Iterable[Path]) -> tuple[list[History], list[Path]]:
    """The histories of runs and of grids, and the unfinished cells of grids, which have none.

    A folder that holds neither, or an unfinished run, is refused.
    """
    return _read_all(folders, read_history)


def courses(folders: Iterable[Path]) -> list[Course]:
    """The finished runs in these folders, of runs or of grids."""
    runs, _ = _read_all(folders, _read)
    return [replace(one, rows=tuple(row for row in one.rows if row.round > 0)) for one in runs]


def _read_all(
    folders: Iterable[Path], read: Callable[[Path], Run | None]
) -> tuple[list[Run], list[Path]]:
    """What `read` makes of finished runs, alone or in grids, and the folders of the others."""
    found, unfinished = [], []
    for folder in folders:
        cells = sorted((folder / "cells").glob("*")) if (folder / "cells").is_dir() else [folder]
        runs = {cell: read(cell) for cell in cells}
        if not any(runs.values()):
            raise ConfigError(nothing_in(folder))
        found += [run for run in runs.values() if run is not None]
        unfinished += [cell for cell, run in runs.items() if run is None]
    return found, unfinished


def _groups(runs: Sequence[Run], each: str) -> Iterator[tuple[str, str, list[Run]]]:
    """Runs that differ in nothing but the seed, with their name (and settings, where two differ)
    and their data and partition. Order: first come.
    """
    for place in dict.fromkeys(run.place for run in runs):
        groups: dict[str, list[Run]] = {}
        for run in (run for run in runs if run.place == place):
            groups.setdefault(repr((run.name, sorted(run.settings.items()))), []).append(run)
        firsts = [group[0] for group in groups.values()]
        names = labels_of([run.name for run in firsts], [run.settings for run in firsts])
        for name, group in zip(names, groups.values(), strict=True):
            if len({run.seed for run in group}) != len(group):
                raise ConfigError(f"{name} on {place} was given twice for a seed; name {each} once")
            yield name, place, group


def panels(runs: Sequence[History], axis: str) -> dict[str, list[Curve]]:
    """Curves over the seeds of runs that differ in nothing else, by data and partition.

    Order: first come.
    """
    out: dict[str, list[Curve]] = {}
    for name, place, group in _groups(runs, "every run"):
        x: Sequence[float] = group[0].rounds
        if axis == "bytes":  # the same rounds, but cards of slightly different lengths
            x = [sum(sent) / len(group) for sent in zip(*(run.sent for run in group), strict=True)]
        values = [run.accuracy for run in group]
        out.setdefault(place, []).append(Curve(name, x, values, reference=not group[0].talks))
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


def milestones(
    runs: Sequence[Course], rounds: Sequence[int], relative_to: float | None = None
) -> list[Table]:
    """A table of accuracy at `rounds`, means over the seeds; with a reference a second one,
    relative to it, beside the published figures.

    The reference is the accuracy `relative_to`, or that of a pooled run among `runs`, of the same
    network on the same data and known classes.
    """
    federated = [run for run in runs if not run.pooled]
    groups = {(name, place): group for name, place, group in _groups(federated, "it")}
    columns = ("method", "data / partition", *(f"@{r}" for r in rounds), "best", "mean")
    notes = (
        "@R: test accuracy of the round up to R that was best on validation samples (of round R, "
        "where the server has none)",
        "best, mean: over all evaluated rounds, on validation samples where the server has some",
    )
    lines = [(*place, *_figures(group, rounds)) for place, group in groups.items()]
    tables = [Table(columns, lines, title="Accuracy by rounds (%)", notes=notes, keys=2)]
    shares = {place: relative_to for place in groups}
    for place, (first, *_) in groups.items() if relative_to is None else ():
        pooled = [run for run in runs if run.pooled and run.learnt == first.learnt]
        if pooled:
            shares[place] = fmean(run.chosen(run.rows[-1].round) for run in pooled)
    if not any(shares.values()):
        return tables
    said = dict.fromkeys(f"{place[1]}: {of:.2f} % is 100" for place, of in shares.items() if of)
    differs: list[str] = []
    relative = [
        line
        for place, group in groups.items()
        if (of := shares[place])
        for line in _relative(place, group, rounds, of, differs)
    ]
    title = "Relative accuracy by rounds (% of pooled training)"
    return [*tables, Table(columns, relative, title=title, notes=(*said, *differs), keys=2)]


def _figures(group: Sequence[Course], rounds: Sequence[int], of: float = 100.0) -> list[Cell]:
    """The cells of one line, in percent of `of`."""
    at = [mean_over([run.chosen(index) * 100 / of for run in group]) for index in rounds]
    best = mean_over([max(run.seen()) * 100 / of for run in group])
    mean = mean_over([fmean(run.seen()) * 100 / of for run in group])
    return [*at, best, mean]


def _relative(
    place: tuple[str, str],
    group: Sequence[Course],
    rounds: Sequence[int],
    of: float,
    notes: list[str],
) -> list[tuple[Cell, ...]]:
    """Our line and, where the papers have one, theirs, with a note of what differs."""
    first = group[0]
    own: tuple[Cell, ...] = (*place, *_figures(group, rounds, of))
    if first.config.known or first.config.known_classes:  # the published ones know all classes
        return [own]
    theirs = [
        published(
            first.config.data,
            first.config.partition,
            first.config.net.name,
            first.config.method,
            first.summary.parties,
            index,
            RELATIVE,
            exact=("rounds",),
        )
        for index in rounds
    ]
    known = next((one for one in theirs if one is not None), None)
    if known is None:
        return [own]
    differs = [
        *known.differs,
        *differences(first.config, build_method(first.config), known.table, len(group)),
    ]
    cells = [MISSING if one is None else Number(one.value, f"{one.value:.2f}") for one in theirs]
    notes += [f"{' on '.join(place)}, ours for theirs: {'; '.join(differs)}"] * bool(differs)
    return [own, (f"{place[0]}, published", place[1], *cells, MISSING, MISSING)]
