"""One party after the other in this process: simple to debug, and the reference for every other engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from ostraka.engines.base import Crew, Engine, Job, Outcome, Tell, Work, silent, try_job
from ostraka.engines.threads import one_thread
from ostraka.registry import ENGINES


@final
@dataclass(frozen=True)
class _OneByOne(Crew):
    work: Work

    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        for job in jobs:
            yield try_job(self.work, job, tell)


@final
@ENGINES.add("serial")
@dataclass(frozen=True)
class Serial(Engine):
    """One party after the other, in this process."""

    @contextmanager
    def open(self, work: Work) -> Iterator[Crew]:
        """Use this process, on one thread as every engine does, so that the numbers are the same."""
        with one_thread():
            yield _OneByOne(work)
