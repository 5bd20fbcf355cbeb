"""The answers of one round as they arrive: stored, looked at, counted, and some of them held."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from ostraka.core.method import Method, Report
from ostraka.core.task import Task
from ostraka.engines.base import Failure, Outcome
from ostraka.errors import DamagedFile, OstrakaError, ReportRefused
from ostraka.runs.summary import Totals
from ostraka.store import codec
from ostraka.store.desk import Desk, Envelope, StoredReports

HELD = 64 * 2**20
"""Bytes of reports that stay in memory from their arrival until they are aggregated; the others
are read again."""


@final
@dataclass
class Arrivals:
    """One round's reports on the way from an engine to `Method.aggregate`."""

    method: Method[Any, Any, Any]
    task: Task
    desk: Desk
    index: int
    totals: Totals
    refused: dict[int, Failure] = field(default_factory=dict)
    """Parties whose reports cannot be used."""
    remembering: set[int] = field(default_factory=set)
    """Parties that have a memory of this round."""
    cpu_seconds: float = 0.0
    """What it took to store answers and to look at them."""
    _held: dict[Path, Report[Any]] = field(default_factory=dict)
    _bytes: int = 0

    def find(self, parties: Iterable[int]) -> set[int]:
        """Those of the parties whose reports lie there from before an interruption.

        A damaged one, as a power cut may leave it, is removed and made again.
        """
        lying, found = self.desk.reports_of(self.index), set()
        for party in parties:
            place = self.desk.report(self.index, party)
            if place.path.name not in lying:
                continue
            data = codec.read_bytes(place.path)
            try:
                codec.check(data, str(place.path))
            except DamagedFile:
                place.path.unlink()
                continue
            found.add(party)
            self._look_at(party, data)
            if self.desk.memory(self.index, party).exists():
                self.remembering.add(party)
        return found

    def store(self, outcome: Outcome) -> Outcome:
        """The outcome once its answer lies on the desk and was looked at; or why it does not lie
        there."""
        began = time.process_time()
        answer, ended = outcome.answer, kept(outcome, self.desk, self.index, self.durable)
        if answer is not None and ended.failure is None:
            if answer.memory is not None:
                self.remembering.add(outcome.party)
            self._look_at(outcome.party, answer.report)
        self.cpu_seconds += time.process_time() - began
        return ended

    @property
    def durable(self) -> bool:
        """Whether every report must survive a power cut.

        Not where there are many rounds: each is committed as a whole, by its checkpoint.
        """
        return self.method.exchanges == 1

    def reports(self, parties: Iterable[int]) -> StoredReports:
        """The reports of these parties, in their order."""
        places = tuple(self.desk.report(self.index, party) for party in parties)
        return StoredReports(places, self._held)

    def _look_at(self, party: int, data: bytes) -> None:
        """Look at a report and count its cost.

        One that cannot be used is removed, and is the failure of its party.
        """
        place = self.desk.report(self.index, party)
        try:
            envelope: Envelope = codec.decode(data, str(place.path), place.seal)
            if envelope.report.card.party != party:
                raise ReportRefused(
                    f"its card says that it is of party {envelope.report.card.party}"
                )
            self.method.inspect(self.task, envelope.report)
        except OstrakaError as error:
            place.path.unlink(missing_ok=True)
            self.refused[party] = Failure(party, f"its report cannot be used: {error}")
            return
        self.totals.cpu_seconds += envelope.cpu_seconds
        if self.method.talks:
            self.totals.bytes_up += envelope.bytes_up
        if self._bytes + len(data) <= HELD:
            self._bytes += len(data)
            self._held[place.path] = replace(envelope.report, memory={})


def kept(outcome: Outcome, desk: Desk, index: int, durable: bool = True) -> Outcome:
    """The outcome once its answer lies on the desk,
    the memory before the report; or why it does not.

    A memory is always durable: a party may not be asked again for many rounds.
    """
    if outcome.answer is None:
        return outcome
    try:
        if outcome.answer.memory is not None:
            desk.memory(index, outcome.party).write(outcome.answer.memory)
        desk.report(index, outcome.party).write(outcome.answer.report, durable)
    except OstrakaError as error:
        return replace(outcome, answer=None, failure=Failure.of(outcome.party, error))
    return replace(outcome, answer=None)  # whoever watches has no use for its bytes
