"""What a person sees while a run or a grid goes on: bars on a terminal, else a line now and then.

All of it goes to standard error; results have standard output to themselves.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich import progress as bars
from rich.console import Console
from rich.text import Text

from ostraka.display.tables import human_seconds
from ostraka.engines.base import Outcome
from ostraka.runs.config import Config
from ostraka.runs.plan import Plan
from ostraka.runs.results import Record
from ostraka.runs.watch import Watch

STEP, APART, EVERY = 0.05, 2.0, 60.0
"""A line of progress comes after this share of the work,
but so many seconds after the last, and at the latest then.
"""

QUIET, NORMAL, VERBOSE = range(3)


@dataclass
class Course:
    """Where a run is, what it showed last, and how long the rest may take."""

    alone: bool = False
    """Whether one member is trained, outside of any round."""
    rounds: int = 1
    index: int = 1
    parties: int = 1
    ready: int = 0
    at: dict[int, float] = field(default_factory=dict)
    """Share of the round's work that each party has done."""
    loss: float | None = None
    accuracy: float | None = None
    began: float = field(default_factory=time.monotonic)
    first: tuple[float, float] | None = None
    """The first sign of work, which comes after workers have started: when it came,
    and the share done then.
    """

    def begin(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """A round starts."""
        self.index, self.rounds = index, rounds
        self.parties, self.ready, self.at = max(1, parties), ready, {}

    def work(self, party: int, done: float, loss: float | None) -> None:
        """A party has done so much of its work in this round."""
        self.at[party] = done
        self.loss = self.loss if loss is None else loss
        self.first = self.first or (time.monotonic(), self.share)

    @property
    def share(self) -> float:
        """The share of all rounds' work that is done."""
        return (self.index - 1 + (self.ready + sum(self.at.values())) / self.parties) / self.rounds

    def ended(self) -> int:
        """The parties that have ended their work of this round."""
        return self.ready + sum(done >= 1 for done in self.at.values())

    def seconds(self) -> float:
        """The time since the run was taken up."""
        return time.monotonic() - self.began

    def left(self) -> str:
        """The time that the rest may take, in words; empty as long as nobody can know."""
        began, before = self.first or (0.0, self.share)
        done = self.share - before
        if done <= 0:
            return ""
        return f"about {human_seconds((time.monotonic() - began) / done * (1 - self.share))} left"


@dataclass
class Grid:
    """Where a grid is. Cells that were finished before cost nothing."""

    began: float = field(default_factory=time.monotonic)
    trained: int = 0

    def left(self, ended: float, total: int, share: float = 0.0) -> str:
        """The time that the other cells may take if they are like those so far.

        `share` is that of the one at work.
        """
        done = self.trained + share
        rest = total - ended - share
        if done <= 0 or rest <= 0:
            return ""
        seconds = (time.monotonic() - self.began) / done * rest
        return f"about {human_seconds(seconds)} left for the grid"


class Lines:
    """Plain lines, one for each event, for log files and pipes."""

    def __init__(self, stamps: bool) -> None:
        self.stamps, self.prefix = stamps, ""
        self.mark, self.last = 0.0, time.monotonic()

    def begin(self, title: str, course: Course) -> None:
        """Name the run."""
        self.mark, self.last = course.share, time.monotonic()
        self.say(title)

    def move(self, course: Course, note: str) -> None:
        """A line now and then."""
        since = time.monotonic() - self.last
        if since < APART or (course.share < self.mark + STEP and since < EVERY):
            return
        self.mark, self.last = course.share, time.monotonic()
        done, parties = (
            f"{100 * course.share:.0f} %",
            f"{course.ended()} of {course.parties} parties",
        )
        parts = [
            done if course.alone else f"{done}: round {course.index} of {course.rounds}, {parties}",
            "" if course.loss is None else f"loss {course.loss:.3f}",
            "" if course.accuracy is None else f"accuracy {course.accuracy:.1f} %",
            human_seconds(course.seconds()),
            course.left(),
        ]
        self.say(", ".join(part for part in parts if part))

    def say(self, text: str) -> None:
        """One line, written at once, without anything that a terminal would take for a command."""
        stamp = time.strftime("%H:%M:%S ") if self.stamps else ""
        clean = "".join(c if c.isprintable() else " " for c in f"{stamp}{self.prefix}{text}")
        print(clean, file=sys.stderr, flush=True)


class Bars:
    """Progress bars on a terminal; they vanish at the end."""

    def __init__(self, console: Console) -> None:
        self.prefix = ""
        self.progress = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(bar_width=20),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("{task.fields[note]}", markup=False),
            console=console,
            transient=True,
        )
        self.cells: bars.TaskID | None = None
        self.rounds: bars.TaskID | None = None
        self.parties: bars.TaskID | None = None

    def begin(self, title: str, course: Course) -> None:
        """Bars for the run's rounds and parties, in place of those of the run before."""
        for old in (self.rounds, self.parties):
            if old is not None:
                self.progress.remove_task(old)
        # a cell of a grid is named beside the bar of all cells, and when it ends
        if self.cells is None:
            self.say(title)
        if not course.alone:
            self.rounds = self.progress.add_task("rounds", total=None, note="")
        what = "training" if course.alone else "parties"
        self.parties = self.progress.add_task(what, total=None, note="")

    def move(self, course: Course, note: str) -> None:
        """Show where the run is."""
        if self.parties is None:
            return
        if self.rounds is None:
            words = ", ".join(part for part in (note, course.left()) if part)
            done = round(100 * course.share)
            self.progress.update(self.parties, total=100, completed=done, note=words)
            return
        seen = "" if course.accuracy is None else f"accuracy {course.accuracy:.1f} %"
        words = ", ".join(part for part in (course.left(), seen) if part)
        done = int(course.rounds * course.share)
        self.progress.update(self.rounds, total=course.rounds, completed=done, note=words)
        at = course.ready + sum(course.at.values())
        self.progress.update(self.parties, total=course.parties, completed=at, note=note)

    def count_cells(self, ended: int, total: int, note: str) -> None:
        """Show where the grid is."""
        if self.cells is None:
            self.cells = self.progress.add_task("cells", total=total, note="")
        self.progress.update(self.cells, completed=ended, note=note)

    def say(self, text: str) -> None:
        """A line above the bars."""
        self.progress.console.print(Text(self.prefix + text), soft_wrap=True, highlight=False)


class Follower(Watch):
    """Follows one run and shows it."""

    def __init__(self, surface: Lines | Bars, verbose: bool) -> None:
        self.surface, self.verbose = surface, verbose
        self.course, self.names = Course(), tuple[str, ...]()

    def run_begins(self, plan: Plan, out: Path) -> None:
        """Say what is run, and where."""
        self.course, self.names = Course(), plan.parties.names
        self.surface.begin(self.words(plan, out), self.course)

    def words(self, plan: Plan, out: Path) -> str:
        """What is run, and where, in one line."""
        config, parties, rounds = plan.config, len(plan.partition.parties), plan.method.exchanges
        people = "1 party" if parties == 1 else f"{parties} parties"
        counted = f"{people}, {rounds} round{'s' * (rounds != 1)}"
        return (
            f"{plan.name} on {config.data}: {config.partition}, {counted}, "
            f"seed {config.seed}, in {out}"
        )

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """Show the round."""
        self.course.begin(index, rounds, parties, ready)
        self.moved()

    def party_at(self, party: int, done: float, loss: float | None) -> None:
        """Show how far the parties are, and the latest loss."""
        self.course.work(party, done, loss)
        self.moved("" if loss is None else f"{self.names[party]}: loss {loss:.3f}")

    def party_ends(self, outcome: Outcome) -> None:
        """Count a party; say why it failed."""
        name, took = self.names[outcome.party], human_seconds(outcome.seconds or 0.0)
        if outcome.failure is not None:
            reason = outcome.failure.reason
            self.surface.say(f"{name} failed in round {self.course.index}: {reason}")
        elif self.verbose:
            loss = "" if outcome.loss is None else f"loss {outcome.loss:.3f}, "
            self.surface.say(f"round {self.course.index}, {name} done: {loss}{took}")
        self.party_at(outcome.party, 1.0, outcome.loss)

    def evaluated(self, index: int, accuracy: float | None) -> None:
        """Show the newest accuracy."""
        self.course.accuracy = accuracy
        if self.verbose and accuracy is not None:
            self.surface.say(f"round {index} of {self.course.rounds}: accuracy {accuracy:.2f} %")
        self.moved()

    def moved(self, note: str = "") -> None:
        """Show where the run is."""
        self.surface.move(self.course, note)


class CellFollower(Follower):
    """Follows one cell of a grid."""

    def __init__(
        self,
        surface: Lines | Bars,
        verbose: bool,
        grid: Grid,
        config: Config,
        label: str,
        number: int,
        total: int,
    ) -> None:
        super().__init__(surface, verbose)
        self.grid, self.number, self.total, self.started = grid, number, total, False
        self.title = f"{label} on {config.data}: {config.partition}, seed {config.seed}"
        surface.prefix = f"[{number}/{total}] "
        self.count(number - 1)

    def run_begins(self, plan: Plan, out: Path) -> None:
        """Say what is run, and where."""
        self.started = True
        super().run_begins(plan, out)

    def words(self, plan: Plan, out: Path) -> str:
        """The cell; where the grid lies is said at its end."""
        return self.title

    def moved(self, note: str = "") -> None:
        """Show where the run and the grid are."""
        super().moved(note)
        self.count(self.number - 1, self.course.share)

    def count(self, ended: int, share: float = 0.0) -> str:
        """The time left for the grid, shown where there is a bar for it."""
        left = self.grid.left(ended, self.total, share)
        if isinstance(self.surface, Bars):
            words = f"{left}, {self.title}" if left else self.title
            self.surface.count_cells(ended, self.total, words)
        return left

    def run_ends(self, record: Record) -> None:
        """Say how the cell ended."""
        self.grid.trained += self.started
        left = self.count(self.number)
        if record.summary is None:
            text = f"{self.title}: failed: {record.error}"
        else:
            accuracy = record.summary.accuracy
            figure = "done" if accuracy is None else f"accuracy {accuracy:.2f} %"
            took = human_seconds(self.course.seconds())
            when = f"after {took}" if self.started else "(finished before)"
            text = f"{self.title}: {figure} {when}"
        self.surface.say(f"{text}; {left}" if left and isinstance(self.surface, Lines) else text)


@contextmanager
def follow_run(loud: int) -> Iterator[Watch]:
    """Who follows a single run."""
    with _surface(loud) as surface:
        yield Watch() if surface is None else Follower(surface, loud == VERBOSE)


@contextmanager
def follow_training(loud: int, title: str = "") -> Iterator[Callable[[float, float | None], None]]:
    """Who follows the training of one member: it is told the share done and the latest loss."""
    with _surface(loud) as surface:
        course = Course(alone=True)
        if surface is not None:
            surface.begin(title or "training a member", course)

        def tell(done: float, loss: float | None) -> None:
            course.work(0, done, loss)
            if surface is not None:
                surface.move(course, "" if loss is None else f"loss {loss:.3f}")

        yield tell


class Follow(Protocol):
    """Makes a follower for every cell of a grid."""

    def __call__(self, config: Config, label: str, number: int, total: int) -> Watch:
        """The follower of cell `number` of `total`, whose method is shown as `label`."""


@contextmanager
def follow_grid(loud: int) -> Iterator[Follow]:
    """Who follows the cells of a grid."""
    with _surface(loud) as surface:
        grid = Grid()

        def follow(config: Config, label: str, number: int, total: int) -> Watch:
            if surface is None:
                return Watch()
            return CellFollower(surface, loud == VERBOSE, grid, config, label, number, total)

        yield follow


@contextmanager
def _surface(loud: int) -> Iterator[Lines | Bars | None]:
    """Bars on a terminal that can draw them, else lines; nothing where all should be quiet."""
    console = Console(stderr=True)
    if loud == QUIET:
        yield None
    elif console.is_interactive and not console.is_dumb_terminal:
        shown = Bars(console)
        with shown.progress:
            yield shown
    else:
        yield Lines(stamps=loud == VERBOSE)
