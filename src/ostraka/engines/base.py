"""What every engine shares: the work of a run, one job of it, and how a job is done.

A method cannot tell which engine ran it: all of them call `do_job`, and everything that goes in or out of it is a file.
"""

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ostraka.core.fit import Diverged
from ostraka.core.method import Method, Round
from ostraka.core.party import Parties
from ostraka.core.task import Task
from ostraka.errors import OstrakaError, StoreError
from ostraka.store import codec
from ostraka.store.desk import DiskProgress, Envelope, Place


@dataclass(frozen=True)
class Work:
    """What stays the same for all jobs of a run."""

    method: Method[Any, Any, Any]
    task: Task
    parties: Parties
    device: str = "cpu"
    save_seconds: float = 60.0


@dataclass(frozen=True)
class Job:
    """One party's work in one round, all by file."""

    party: int
    round: int
    seed: int
    message: Path
    memory: Place | None
    new_memory: Place
    report: Place
    progress: Place


@dataclass(frozen=True)
class Failure:
    """A party that did not finish, and why."""

    party: int
    reason: str
    details: str = ""
    storage: bool = False
    """Whether the disk is to blame, and not the party."""
    final: bool = False
    """Whether the same settings would fail again."""


@dataclass(frozen=True)
class Outcome:
    """A job that ended: with a stored report, or with a failure."""

    party: int
    failure: Failure | None = None
    seconds: float | None = None
    """How long it took; None where its worker did not live to tell."""
    loss: float | None = None
    """The last loss that the party tells, if it tells one."""


Tell = Callable[[int, float, float | None], None]
"""Called with a party, the share of its work that is done (0 to 1), and its latest loss."""


def silent(party: int, done: float, loss: float | None) -> None:
    """A Tell for nobody."""


class Crew(ABC):
    """An open engine: workers that know the work and take jobs round after round."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        """Do the jobs in any order; a failed one is reported and does not stop the others."""


class Engine(ABC):
    """A way to run jobs."""

    @abstractmethod
    def open(self, work: Work) -> AbstractContextManager[Crew]:
        """Workers for `work`, released at the end of the `with` block."""


def do_job(work: Work, job: Job, tell: Tell) -> Outcome:
    """Run one party's update and store its memory, then its report."""
    progress = DiskProgress(
        job.progress, lambda done, loss: tell(job.party, done, loss), work.save_seconds
    )
    began = time.perf_counter()
    message = codec.load(job.message)
    memory = job.memory.load() if job.memory is not None else {}
    party = work.parties[job.party].at_work(progress, work.device)
    report = work.method.local_update(Round(work.task, job.round, message, job.seed), party, memory)
    if report.memory or job.memory is not None:  # an emptied memory must replace the old one
        job.new_memory.save(report.memory)
    report = replace(report, memory={})
    size = len(codec.encode(report.payload)) + len(codec.encode(report.card))
    seconds = time.perf_counter() - began
    job.report.save(Envelope(report, seconds, progress.cpu_seconds(), size))
    return Outcome(job.party, None, seconds, report.card.scores.get("loss"))


def try_job(work: Work, job: Job, tell: Tell) -> Outcome:
    """`do_job`, with an error turned into a failure that names the party."""
    began = time.perf_counter()
    try:
        return do_job(work, job, tell)
    except OstrakaError as error:
        storage, final = isinstance(error, StoreError), isinstance(error, Diverged)
        failure = Failure(job.party, str(error), storage=storage, final=final)
    except Exception as error:
        failure = Failure(job.party, f"{type(error).__name__}: {error}", traceback.format_exc())
    return Outcome(job.party, failure, time.perf_counter() - began)
