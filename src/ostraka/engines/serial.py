"""One party after the other in this process: simple to debug,
and the reference for every other engine.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import final

from ostraka.core.party import PartyRef
from ostraka.engines.base import (
    Crew,
    Engine,
    Job,
    Order,
    Outcome,
    Reader,
    Tell,
    Work,
    silent,
    try_order,
)
from ostraka.engines.threads import one_thread
from ostraka.registry import ENGINES


@final
@dataclass(frozen=True)
class _OneByOne(Crew):
    work: Work
    parties: Sequence[PartyRef]

    def roster(self) -> Sequence[PartyRef]:
        return self.parties

    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        reader = Reader()
        for job in jobs:
            order = reader.order_of(job)
            if isinstance(order, Order):
                yield try_order(self.work, order, job.progress, tell)
            else:
                yield order


@final
@ENGINES.add("serial")
@dataclass(frozen=True)
class Serial(Engine):
    """One party after the other, in this process."""

    @contextmanager
    def open(self, work: Work) -> Iterator[Crew]:
        """Use this process, on one thread as every engine does,
        so that the numbers are the same.
        """
        with one_thread():
            yield _OneByOne(replace(work, in_process=True), work.parties.roster())
