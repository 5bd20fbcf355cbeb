"""The answers of one round as they arrive: stored, looked at, counted, and some of them held."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, final

from ostraka.core.arrival import check_size
from ostraka.core.card import Card
from ostraka.core.method import Method, Report
from ostraka.core.task import Task
from ostraka.engines.base import Failure, Outcome
from ostraka.errors import DamagedFile, OstrakaError, ReportRefused, StoreError
from ostraka.runs.summary import Totals
from ostraka.store import codec
from ostraka.store.desk import Desk, Envelope, Place, StoredReports
from ostraka.store.files import retire

HELD = 16 * 2**20
"""Bytes of reports that stay in memory from their arrival until they are aggregated; the others
are written, and read again."""


@final
@dataclass
class Arrivals:
    """One round's reports on the way from an engine to `Method.aggregate`.

    A report of a method of many rounds is written when it has been held for `write_seconds`, or
    when there is no room to hold it: a short round is over, and its checkpoint written, before
    that. Within a `with` block an error or Ctrl-C writes what is held, so that it is not lost.
    """

    method: Method[Any, Any, Any]
    task: Task
    desk: Desk
    index: int
    totals: Totals
    sizes: Mapping[int, int]
    """Samples that each party joined with, which bound what it counts."""
    write_seconds: float = 0.0
    """A kill loses at most what was finished in that time."""
    refused: dict[int, Failure] = field(default_factory=dict)
    """Parties whose reports cannot be used."""
    remembering: set[int] = field(default_factory=set)
    """Parties that have a memory of this round."""
    losses: list[float] = field(default_factory=list)
    """The last loss of each party that tells one."""
    cpu_seconds: float = 0.0
    """What it took to store answers and to look at them."""
    _held: dict[Path, codec.Opened] = field(default_factory=dict)
    _bytes: int = 0
    _unwritten: list[Place] = field(default_factory=list)
    _since: float = 0.0
    """When the first of those that are not written came."""

    def __enter__(self) -> "Arrivals":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            # must not hide what ended the round; what cannot be written is made again
            with suppress(StoreError):
                self._write_all()

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
            retire(self.desk.progress(self.index, party).path)
            self._look_at(party, data, written=True)
            if self.desk.memory(self.index, party).exists():
                self.remembering.add(party)
        return found

    def store(self, outcome: Outcome) -> Outcome:
        """The outcome once its answer was looked at and is kept; or why it is not."""
        began = time.process_time()
        answer, ended = outcome.answer, kept(outcome, self.desk, self.index, self.durable)
        if answer is not None and ended.failure is None:
            if answer.memory is not None:
                self.remembering.add(outcome.party)
            if self.durable:
                retire(self.desk.progress(self.index, outcome.party).path)
            try:
                self._look_at(outcome.party, answer.report, written=self.durable)
            except StoreError as error:
                self.refused[outcome.party] = Failure.of(outcome.party, error)
            ended = replace(ended, failure=self.refused.get(outcome.party))
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

    def _look_at(self, party: int, report: bytes | codec.Opened, written: bool) -> None:
        """Look at a report, count its cost and hold it.

        One that cannot be used is removed, and is the failure of its party.
        """
        place = self.desk.report(self.index, party)
        try:
            opened = opened_report(report, place)
            envelope = checked_envelope(opened.value(), party)
            self.method.inspect(self.task, envelope.report)
            told = envelope.report
            check_size(self.sizes[party], weight=told.weight, size=told.card.size)
        except Exception as error:  # whatever a party sends must not end the others' run
            place.path.unlink(missing_ok=True)
            failure = Failure.of(party, error)
            self.refused[party] = replace(
                failure, reason=f"its report cannot be used: {failure.reason}", storage=False
            )
            return
        self._hold(place, opened, written)
        self.losses += [told.card.scores["loss"]] if "loss" in told.card.scores else []
        self.totals.cpu_seconds += envelope.cpu_seconds
        if self.method.talks:
            self.totals.bytes_up += envelope.bytes_up

    def _hold(self, place: Place, opened: codec.Opened, written: bool) -> None:
        """Keep a report in memory if there is room, else see to it that it is written."""
        room = self._bytes + opened.size <= HELD
        if room:
            self._bytes += opened.size
            self._held[place.path] = opened
        if not written and room:
            self._since = self._since if self._unwritten else time.monotonic()
            self._unwritten.append(place)
        elif not written:
            place.write(codec.encode(opened.value(), place.seal), durable=False)
        if self._unwritten and time.monotonic() - self._since >= self.write_seconds:
            self._write_all()

    def _write_all(self) -> None:
        while self._unwritten:
            place = self._unwritten[-1]
            place.write(codec.encode(self._held[place.path].value(), place.seal), durable=False)
            self._unwritten.pop()


def checked_envelope(value: Any, party: int) -> Envelope:
    """What arrived as a report of `party`, if it is one, and its costs can be counted."""
    if not isinstance(value, Envelope) or not isinstance(value.report, Report):
        raise ReportRefused("what it holds is no report")
    if not isinstance(value.report.card, Card):
        raise ReportRefused("there is no card with its report")
    costs = {"seconds": value.seconds, "CPU-seconds": value.cpu_seconds, "bytes": value.bytes_up}
    for name, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < inf:
            raise ReportRefused(f"it says that it took {cost!r} {name}; it must be a number from 0")
    if not isinstance(value.bytes_up, int):
        raise ReportRefused(f"it says that it has {value.bytes_up!r} bytes")
    if value.report.card.party != party:
        raise ReportRefused(f"its card says that it is of party {value.report.card.party}")
    return value


def opened_report(report: bytes | codec.Opened, place: Place) -> codec.Opened:
    """A report that arrived; bytes must be whole, and say that they belong to `place`."""
    if isinstance(report, codec.Opened):
        return report
    return codec.Opened.of(report, str(place.path), place.seal)


def kept(outcome: Outcome, desk: Desk, index: int, durable: bool = True) -> Outcome:
    """The outcome once all of its answer that must survive a power cut lies on the desk,
    the memory before the report; or why it does not.

    A memory must always: a party may not be asked again for many rounds.
    """
    if outcome.answer is None:
        return outcome
    place, report = desk.report(index, outcome.party), outcome.answer.report
    try:
        if outcome.answer.memory is not None:
            desk.memory(index, outcome.party).write(outcome.answer.memory)
        if durable:
            place.write(
                report if isinstance(report, bytes) else codec.encode(report.value(), place.seal)
            )
    except OstrakaError as error:
        return replace(outcome, answer=None, failure=Failure.of(outcome.party, error))
    return replace(outcome, answer=None)  # whoever watches has no use for its bytes
