"""What every engine shares: the work of a run, one order of it, and how an order is carried out.

A method cannot tell which engine ran it: all of them call `carry_out`, which takes bytes and
gives bytes. Files, and what is resumed from them, are the server's: an engine is handed
jobs, reads each order when a worker is free for it, and hands the answer back. Only
half-finished training is kept where it runs.
"""

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, final

from ostraka.core.arrival import NoNumbers
from ostraka.core.fit import Diverged
from ostraka.core.method import Method, Round
from ostraka.core.party import Parties, Party, PartyRef
from ostraka.core.progress import Progress
from ostraka.core.task import Task
from ostraka.errors import OstrakaError, StoreError
from ostraka.store import codec
from ostraka.store.desk import DiskProgress, Envelope, Place, seal


@dataclass(frozen=True)
class Work:
    """What stays the same for all orders of a run, and what a worker holds of it."""

    method: Method[Any, Any, Any]
    task: Task
    parties: Parties
    device: str = "cpu"
    save_seconds: float = 60.0
    in_process: bool = False
    """Whether server and parties share this process: a report then needs no bytes."""
    _moved: dict[int, Party] = field(default_factory=dict, init=False, compare=False, repr=False)
    _read: dict[str, tuple[bytes, codec.Opened]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def party(self, index: int) -> Party:
        """A party with its samples on the device: moved there once, not in every round."""
        if self.device == "cpu":
            return self.parties[index]
        if index not in self._moved:
            own = self.parties[index]
            self._moved[index] = replace(own, samples=own.samples.to(self.device))
        return self._moved[index]

    def message(self, data: bytes) -> Any:
        """A message, read once for all parties that get it; each has a copy of its own."""
        last, opened = self._read.get("message", (None, None))
        if opened is None or (last is not data and last != data):
            opened = codec.Opened.of(data, "the message")
            self._read["message"] = data, opened
        return opened.copy()


@dataclass(frozen=True)
class Order:
    """One party's work in one round, as it can travel: bytes and a few plain values."""

    party: int
    round: int
    seed: int
    owner: str
    """The run that the answer belongs to, as its files say it."""
    message: bytes
    memory: bytes | None = None
    """What the party kept after its last round, as its answer gave it; None: nothing."""


@dataclass(frozen=True)
class Answer:
    """What became of an order, as it can travel, and as it can be stored."""

    report: bytes | codec.Opened
    """A sealed `store.desk.Envelope`; or, where it stays in this process, a copy of one."""
    memory: bytes | None
    """What the party keeps from now on, sealed; None: it has nothing to keep, and had nothing."""


@dataclass(frozen=True)
class Job:
    """An order that lies ready, and where on this machine its half-finished training is kept."""

    party: int
    round: int
    seed: int
    owner: str
    message: Path
    memory: Place | None
    progress: Place

    def order(self, message: bytes) -> Order:
        """The order itself, with its message as it was read."""
        memory = self.memory.read() if self.memory is not None else None
        return Order(self.party, self.round, self.seed, self.owner, message, memory)


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

    @classmethod
    def of(cls, party: int, error: Exception) -> "Failure":
        """What an error says; one that is not ours comes with its traceback."""
        if not isinstance(error, OstrakaError):
            details = "".join(traceback.format_exception(error))
            return cls(party, f"{type(error).__name__}: {error}", details)
        storage, final = isinstance(error, StoreError), isinstance(error, Diverged | NoNumbers)
        return cls(party, str(error), storage=storage, final=final)


@dataclass(frozen=True)
class Outcome:
    """A job that ended: with an answer, or with a failure."""

    party: int
    failure: Failure | None = None
    seconds: float | None = None
    """How long it took; None where its worker did not live to tell."""
    loss: float | None = None
    """The last loss that the party tells, if it tells one."""
    answer: Answer | None = None


Tell = Callable[[int, float, float | None], None]
"""Called with a party, the share of its work that is done (0 to 1), and its latest loss."""


def silent(party: int, done: float, loss: float | None) -> None:
    """A Tell for nobody."""


class Crew(ABC):
    """An open engine: workers that know the work and take jobs round after round."""

    @abstractmethod
    def roster(self) -> Sequence[PartyRef]:
        """Who can take part in the next round."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        """Do the jobs in any order; a failed one is reported and does not stop the others."""


class Engine(ABC):
    """A way to run jobs."""

    def get_ready(self) -> None:  # noqa: B027  # most engines have nothing to begin
        """Begin what takes long and needs no work to be known; called before data is loaded."""

    @abstractmethod
    def open(self, work: Work) -> AbstractContextManager[Crew]:
        """Workers for `work`, released at the end of the `with` block."""


def carry_out(work: Work, order: Order, progress: Progress) -> tuple[Answer, float | None]:
    """Run one party's update: bytes in, bytes out; and the last loss that the party tells.

    In the process of the server the report is what its bytes would say, and they are not made.
    """
    began, cpu = time.perf_counter(), time.process_time()
    message = work.message(order.message)
    memory = codec.decode(order.memory, "the memory") if order.memory is not None else {}
    party = replace(work.party(order.party), progress=progress)
    round_ = Round(work.task, order.round, message, order.seed)
    report = work.method.local_update(round_, party, memory)
    kept = None
    if report.memory or order.memory is not None:  # an emptied memory must replace the old one
        kept = codec.encode(report.memory, _seal("memory", order))
    report = replace(report, memory={})
    size = codec.encoded_size(report.payload) + codec.encoded_size(report.card)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    envelope = Envelope(report, seconds, progress.spent_before + spent, size)
    told: bytes | codec.Opened = (
        codec.Opened.of_value(envelope, "the report")
        if work.in_process
        else codec.encode(envelope, _seal("report", order))
    )
    return Answer(told, kept), report.card.scores.get("loss")


def begun_from(order: Order, *more: bytes | memoryview) -> str:
    """A name for what training begins from: its message, its memory, its seed and `more`.

    Where half-finished training outlives the folder of its run, it is gone on with only by an order
    that would have begun it just so.
    """
    digest = blake2b(str(order.seed).encode(), digest_size=8)
    for part in (order.message, order.memory or b"", *more):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.hexdigest()


def _seal(what: str, order: Order) -> codec.Seal:
    return seal(what, order.owner, order.round, order.party)


def try_order(work: Work, order: Order, progress: Place, tell: Tell) -> Outcome:
    """`carry_out`, with half-finished training at `progress`,
    and errors as failures of the party.
    """
    began = time.perf_counter()
    kept = DiskProgress(
        progress, lambda done, loss: tell(order.party, done, loss), work.save_seconds
    )
    try:
        answer, loss = carry_out(work, order, kept)
    except Exception as error:
        failure = Failure.of(order.party, error)
        return Outcome(order.party, failure, time.perf_counter() - began)
    return Outcome(order.party, None, time.perf_counter() - began, loss, answer)


@final
class Reader:
    """Reads the orders of one round, each when a worker is free for it: a thousand do not lie in
    memory together. A message that many get one after the other is read once.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.message = b""

    def order_of(self, job: Job) -> Order | Outcome:
        """A job's order, or, if it cannot be read, the failure of its party."""
        try:
            if job.message != self.path:
                self.path, self.message = None, codec.read_bytes(job.message)
                self.path = job.message
            return job.order(self.message)
        except OstrakaError as error:
            return Outcome(job.party, Failure.of(job.party, error), 0.0)
