"""What runs of many rounds had reached by some of them: the test accuracy of the round that was
best on the server's validation samples until then, the best and the mean over all rounds.

FedOS's Table 2 has such figures at rounds 125, 250, 375 and 500, divided by the accuracy of the
same network trained on pooled data ("relative accuracy").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ostraka.display.differing import differences
from ostraka.display.published import published
from ostraka.display.rounds import checked_rows
from ostraka.display.tables import MISSING, Cell, Number, Table, mean_over
from ostraka.errors import ConfigError
from ostraka.runs.config import Config, build_method
from ostraka.runs.record import RunDir, nothing_in
from ostraka.runs.results import MetricsRow, Summary
from ostraka.runs.rows import labels_of, settings_of

RELATIVE = "relative-accuracy"


@dataclass(frozen=True)
class Course:
    """One finished run, round by round."""

    config: Config
    summary: Summary
    pooled: bool
    """Whether it is a reference that was trained on all data in one place."""
    rows: tuple[MetricsRow, ...]

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


def courses(folders: Iterable[Path]) -> list[Course]:
    """The finished runs in these folders, of runs or of grids."""
    found = []
    for folder in folders:
        cells = sorted((folder / "cells").glob("*")) if (folder / "cells").is_dir() else [folder]
        read = [course for cell in cells if (course := _course(cell)) is not None]
        if not read:
            raise ConfigError(nothing_in(folder))
        found += read
    return found


def _course(folder: Path) -> Course | None:
    home = RunDir(folder)
    summary = home.finished()
    if summary is None:
        return None
    config = home.stored_config()
    method = build_method(config)
    rows = [row for row in checked_rows(home, summary, method.exchanges) if row.round > 0]
    return Course(config, summary, method.pooled, tuple(rows))


def milestones(
    runs: Sequence[Course], rounds: Sequence[int], relative_to: float | None = None
) -> list[Table]:
    """A table of accuracy at `rounds`, means over the seeds; with a reference a second one,
    relative to it, beside the published figures.

    The reference is the accuracy `relative_to`, or that of a pooled run among `runs`, of the same
    network on the same data and known classes.
    """
    groups = _groups([run for run in runs if not run.pooled])
    columns = ("method", "data / partition", *(f"@{r}" for r in rounds), "best", "mean")
    notes = (
        "@R: test accuracy of the round up to R that was best on validation samples (of round R, "
        "where the server has none)",
        "best, mean: over all evaluated rounds, on validation samples where the server has some",
    )
    lines = [(*place, *_figures(group, rounds)) for place, group in groups.items()]
    tables = [Table(columns, lines, title="Accuracy by rounds (%)", notes=notes, keys=2)]
    shares = {place: _reference(group[0], runs, relative_to) for place, group in groups.items()}
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


def _groups(runs: Sequence[Course]) -> dict[tuple[str, str], list[Course]]:
    """Runs that differ in nothing but the seed, by method (and settings, where two differ) and by
    data and partition.
    """
    out: dict[tuple[str, str], list[Course]] = {}
    for place in dict.fromkeys(run.place for run in runs):
        groups: dict[str, list[Course]] = {}
        for run in (run for run in runs if run.place == place):
            groups.setdefault(repr(sorted(run.settings.items())), []).append(run)
        firsts = [group[0] for group in groups.values()]
        names = labels_of([run.summary.method for run in firsts], [run.settings for run in firsts])
        for name, group in zip(names, groups.values(), strict=True):
            seeds = [run.summary.seed for run in group]
            if len(set(seeds)) != len(seeds):
                raise ConfigError(f"{name} on {place} was given twice for a seed; name it once")
            out[name, place] = group
    return out


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


def _reference(run: Course, runs: Sequence[Course], given: float | None) -> float | None:
    """What is 100 %: the given accuracy, or the mean of pooled runs on the same data."""
    if given is not None:
        return given
    pooled = [
        other.chosen(other.rows[-1].round)
        for other in runs
        if other.pooled and other.learnt == run.learnt
    ]
    return fmean(pooled) if pooled else None
