"""One single-threaded process per core.

A worker that dies is replaced, and the party it worked for is named.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any, final

import torch
import torch.multiprocessing  # registers how tensors in shared memory travel to a worker

from ostraka.core.party import PartyRef
from ostraka.core.settings import Settings, setting
from ostraka.engines.base import (
    Crew,
    Engine,
    Failure,
    Job,
    Outcome,
    Reader,
    Tell,
    Work,
    silent,
    try_order,
)
from ostraka.engines.guard import NO_GUARD, NO_GUARD_ADVICE
from ostraka.engines.memory import keep_freed_memory
from ostraka.engines.scratch import use_own_folder
from ostraka.errors import ConfigError
from ostraka.registry import ENGINES

TELL_SECONDS = 0.2
"""A worker reports its progress at most this often."""


@final
@ENGINES.add("pool")
@dataclass(frozen=True)
class Pool(Settings, Engine):
    """One single-threaded process per core; data lies in shared memory."""

    workers: int | None = setting(
        None, "processes; none: one per core, or one per device with --device cuda", span="[1, inf)"
    )
    timeout: float = setting(86400.0, "seconds after which a party is given up", span="(0, inf)")

    def get_ready(self) -> None:
        """Start the process that workers are forked from: it loads torch while data is loaded."""
        _context()

    @contextmanager
    def open(self, work: Work) -> Iterator[Crew]:
        """Start the workers; stop them at the end, even on an error or Ctrl-C."""
        devices, count = devices_of(work.device), workers_for(work, self.workers)
        work.parties.share_memory()
        each = [replace(work, device=devices[i % len(devices)]) for i in range(count)]
        crew = _Workers(each, self.timeout)
        try:
            yield crew
        finally:
            crew.stop()


def workers_for(work: Work, wanted: int | None = None) -> int:
    """How many workers: as many as are wanted, or one per core or device; not more than parties."""
    usual = cores() if work.device == "cpu" else len(devices_of(work.device))
    return min(wanted or usual, max(1, len(work.parties)))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def devices_of(device: str) -> list[str]:
    """The devices that workers share out among them: all of a machine's that are of this kind."""
    if device != "cuda":
        return [device]
    return [f"cuda:{i}" for i in range(max(1, torch.cuda.device_count()))]


def _context() -> Any:
    """Fork workers from a clean server process that has torch loaded;
    plain fork would copy threads' locks.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ostraka.engines.pool", "ostraka.engines.warm"])
    use_own_folder()
    with _deaf_children():
        forkserver.ensure_running()
    return context


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C from their first moment, imports included:
    it is the parent's to handle.

    Only the main thread may change signals; a pool opened in another one has no Ctrl-C to handle.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Worker:
    """One process and the job it has."""

    def __init__(self, work: Work) -> None:
        context = _context()
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.since = 0.0
        self.message: bytes | None = None
        """The message that it was last given."""

    def give(self, job: Job, reader: Reader) -> Outcome | None:
        """Begin a job; an outcome at once if its order cannot be read."""
        order = reader.order_of(job)
        if isinstance(order, Outcome):
            return order
        self.job, self.since = job, time.monotonic()
        same = order.message is self.message or order.message == self.message
        news = None if same else order.message
        self.message = order.message
        with suppress(OSError):  # a worker that died this instant: its exit code is read later
            self.pipe.send((replace(order, message=b""), news, job.progress))
        return None

    def kill(self) -> None:
        self.process.kill()
        self.process.join(timeout=10)
        self.pipe.close()


@final
class _Workers(Crew):
    def __init__(self, works: Sequence[Work], timeout: float) -> None:
        self.works, self.timeout = works, timeout
        self.parties = works[0].parties.roster()
        self.workers: list[_Worker] = []
        try:
            for work in works:
                self.workers.append(_Worker(work))
        except BaseException:  # Ctrl-C while they start
            self.stop()
            raise

    def roster(self) -> Sequence[PartyRef]:
        return self.parties

    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        # The largest parties first: the last ones to finish are then small,
        # and no core idles for long.
        waiting = deque(sorted(jobs, key=lambda job: -self.parties[job.party].size))
        reader = Reader()
        for place in range(len(self.workers)):
            yield from self._employ(place, waiting, reader)
        while any(worker.job is not None for worker in self.workers):
            for place, worker in enumerate(self.workers):
                outcome = self._look_at(worker, tell)
                if outcome is None:
                    continue
                worker.job = None
                yield from self._employ(place, waiting, reader)
                yield outcome
            busy = [w for w in self.workers if w.job is not None]
            if busy:  # to wait for nobody takes the whole second
                wait([end for w in busy for end in (w.pipe, w.process.sentinel)], timeout=1.0)

    def _employ(self, place: int, waiting: deque[Job], reader: Reader) -> Iterator[Outcome]:
        """Give the worker at `place` the next job whose order can be read.

        The others have failed.
        """
        while waiting:
            failed = self._alive(place).give(waiting.popleft(), reader)
            if failed is None:
                return
            yield failed

    def _alive(self, place: int) -> _Worker:
        """The worker at `place`, a new one if the old one died at work or while it was idle."""
        if not self.workers[place].process.is_alive():
            self.workers[place].kill()
            self.workers[place] = _Worker(self.works[place])
        return self.workers[place]

    def _look_at(self, worker: _Worker, tell: Tell) -> Outcome | None:
        """The outcome of a worker's job if it has ended, one way or another."""
        if worker.job is None:
            return None
        party = worker.job.party
        # the pipe of a worker that died; its exit code is read below
        with suppress(EOFError, OSError):
            while worker.pipe.poll():
                news = worker.pipe.recv()
                if isinstance(news, Outcome):
                    return news
                tell(*news)
        if not worker.process.is_alive():
            worker.process.join()
            if worker.process.exitcode == NO_GUARD:
                raise ConfigError(NO_GUARD_ADVICE)
            return Outcome(party, Failure(party, _death(worker.process.exitcode)))
        if time.monotonic() - worker.since > self.timeout:
            worker.kill()
            return Outcome(
                party, Failure(party, f"it took longer than the limit of {self.timeout:g} seconds")
            )
        return None

    def stop(self) -> None:
        """End all workers; what they saved of half-finished training stays."""
        for worker in self.workers:
            worker.kill()


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = "; the machine may be out of memory, try fewer workers" if name == "SIGKILL" else ""
        return f"its worker process was ended by {name}{hint}"
    return f"its worker process ended with exit code {code}"


def _serve(pipe: Connection, work: Work) -> None:
    """A worker's life: jobs in, outcomes out, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    torch.set_num_threads(1)
    keep_freed_memory()
    threading.Thread(target=_follow_parent, daemon=True).start()
    last, message = 0.0, b""

    def tell(party: int, done: float, loss: float | None) -> None:
        nonlocal last
        if time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            pipe.send((party, done, loss))

    with suppress(EOFError, OSError):
        while True:
            order, news, progress = pipe.recv()
            message = message if news is None else news  # the same as before does not travel again
            pipe.send(try_order(work, replace(order, message=message), progress, tell))


def _follow_parent() -> None:
    """Leave when the parent is gone, however it went; a killed run must not keep cores busy."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
