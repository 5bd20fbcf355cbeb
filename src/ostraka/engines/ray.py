"""Parties as tasks of a Ray cluster: this machine's cores, or as many machines as it has.

What a task does on its node is in `ray_tasks`. The data and the method are put into the cluster
once, every node that works keeps one copy and its processes map it; a message is put there once
for all parties that get it. No more orders are under way than workers can take soon, so that a
thousand parties need no more memory than ten. What a lost worker or node had to do is done again,
by another one, a bounded number of times: it gives the same bits.
"""

import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import torch

from ostraka.core.party import PartyRef
from ostraka.core.settings import Settings, setting
from ostraka.engines.base import (
    Crew,
    Engine,
    Failure,
    Job,
    Order,
    Outcome,
    Reader,
    Tell,
    Work,
    silent,
)
from ostraka.engines.pool import cores
from ostraka.engines.ray_tasks import (
    Board,
    Errand,
    do,
    the_ray,
    to_array,
    to_tensor,
    versions_here,
)
from ostraka.errors import ConfigError, PartyFailed
from ostraka.registry import ENGINES

AHEAD = 2
"""Orders under way for each worker: the one it has, and one that is ready when it ends."""
KNOCK_SECONDS = 10.0
"""How long a cluster's address is tried."""
KNOCKS, BETWEEN_SECONDS = 3, 3.0
"""How often a head that does not answer is tried, and the seconds between: Ray ends this process,
in its own words, a minute after it lost the head."""
LOOK_SECONDS = 1.0
"""How often the server looks after its workers while nothing arrives."""


@final
@ENGINES.add("ray")
@dataclass(frozen=True)
class RayEngine(Settings, Engine):
    """Tasks of a Ray cluster: this machine, or many (needs the extra `ray`)."""

    address: str = setting(
        "local", "the cluster: local (begun for this run), auto, HOST:PORT or ray://HOST:PORT"
    )
    workers: int | None = setting(
        None, "parties at work at once; none: as many as the cluster has cores", span="[1, inf)"
    )
    retries: int = setting(
        2, "how often a party is begun again when its worker or node was lost", span="[0, inf)"
    )
    timeout: float = setting(86400.0, "seconds after which a party is given up", span="(0, inf)")
    patience: float = setting(
        600.0, "seconds to wait for a cluster that gives no worker", span="(0, inf)"
    )
    gpus: float | None = setting(
        None, "devices of a party, or a share of one; none: one with --device cuda", span="[0, inf)"
    )

    def get_ready(self) -> None:
        """Say at once if Ray is not there."""
        the_ray()

    @contextmanager
    def open(self, work: Work) -> Iterator[Crew]:
        """Join the cluster, or begin one; leave it at the end, even on an error or Ctrl-C."""
        ray = the_ray()
        joined = ray.is_initialized()  # by the caller's own script: it stays theirs
        if not joined:
            _join(ray, self.address, self.workers)
        try:
            crew = _Cluster(ray, self, work)
            try:
                yield crew
            finally:
                crew.leave()
        except HeadLost:
            joined = True  # there is nothing to leave, and Ray would wait for its answer
            raise
        finally:
            if not joined:
                ray.shutdown()


class HeadLost(PartyFailed):
    """The head of the cluster no longer answers: no fault of any party."""


def _join(ray: Any, address: str, workers: int | None) -> None:
    """Connect to a cluster, or begin one on this machine."""
    own = address == "local"
    size = {"num_cpus": workers or cores(), "include_dashboard": False} if own else {}
    try:
        _knock(address)
        with _handlers_kept():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **size)
    except (ValueError, RuntimeError, OSError, ray.exceptions.RayError) as error:
        what = "this machine" if own else f"the cluster at {address!r}"
        token = "" if own else (
            "; one that asks for a token wants RAY_AUTH_MODE=token, and the head's token, on every "
            "machine (docs/cluster.md)"
        )  # fmt: skip
        raise ConfigError(
            f"Ray cannot use {what}: {error}. Give engine.address=local for this machine, auto for "
            f"the cluster that `ray start` began here, or the HOST:PORT of its head{token}"
        ) from error


def _knock(address: str) -> None:
    """See whether somebody answers there: Ray itself tries for minutes, and ends the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep this process's own handling of SIGTERM, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@final
@dataclass
class _Flight:
    """A job under way."""

    job: Job
    attempt: int
    since: float | None = None
    """When a worker began it; None: it waits for one."""


@final
class _Cluster(Crew):
    def __init__(self, ray: Any, engine: RayEngine, work: Work) -> None:
        self.ray, self.engine = ray, engine
        self.parties = work.parties.roster()
        context, outside = ray.get_runtime_context(), engine.address.startswith("ray://")
        self.head: str = engine.address if outside else getattr(context, "gcs_address", "")
        self.near = context.get_node_id()
        # over ray:// this process has no node: the head's has none of our folders
        self.node = "" if outside else self.near
        self.gpus = _gpus(engine, work)
        with _arrays_for_tensors(ray):
            self.work = ray.put(work)
        self.board = self._new_board()
        self.news = self.board.take.remote()
        self.task = ray.remote(num_cpus=1, num_gpus=self.gpus, max_retries=0)(do)
        self.message: tuple[bytes, Any] | None = None
        self.flying: dict[Any, _Flight] = {}

    def _new_board(self) -> Any:
        near = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        here = near(self.near, soft=True)
        return self.ray.remote(num_cpus=0)(Board).options(scheduling_strategy=here).remote()

    def roster(self) -> Sequence[PartyRef]:
        return self.parties

    def run(self, jobs: Sequence[Job], tell: Tell = silent) -> Iterator[Outcome]:
        waiting = deque(
            (job, 1) for job in sorted(jobs, key=lambda job: -self.parties[job.party].size)
        )
        reader, flying = Reader(), dict[Any, _Flight]()
        self.flying = flying
        idle_since = time.monotonic()
        try:
            while waiting or flying:
                while waiting and len(flying) < self._room():
                    job, attempt = waiting.popleft()
                    order = reader.order_of(job)
                    if isinstance(order, Outcome):
                        yield order
                    else:
                        flying[self._send(order, job)] = _Flight(job, attempt)
                done, _ = self.ray.wait([*flying], num_returns=1, timeout=LOOK_SECONDS)
                if not done:
                    self._check_head()
                self._hear(flying, tell)
                for ref in done:
                    idle_since = time.monotonic()
                    flight = flying.pop(ref)
                    outcome = self._fetch(ref, flight)
                    if outcome is None:
                        waiting.appendleft((flight.job, flight.attempt + 1))
                    else:
                        yield outcome
                yield from self._give_up(flying)
                if any(flight.since is not None for flight in flying.values()):
                    idle_since = time.monotonic()
                self._check_patience(flying, idle_since)
        finally:
            self._cancel(flying)

    def leave(self) -> None:
        """End what is under way, while the cluster is still there.

        A round whose caller was interrupted is closed whenever Python throws it away: later, and
        then a call to Ray would begin a cluster of its own.
        """
        self._cancel(self.flying)

    def _cancel(self, flying: dict[Any, _Flight]) -> None:
        while flying:
            ref, _ = flying.popitem()
            self.ray.cancel(ref, force=True)

    def _room(self) -> int:
        """How many orders may be under way, by the size that the cluster has now."""
        has = self.ray.cluster_resources()
        slots = has.get("CPU", 1.0)
        if self.gpus:
            slots = min(slots, has.get("GPU", 0.0) / self.gpus)
        at_once = max(1, int(slots))
        wanted = self.engine.workers
        return AHEAD * at_once if wanted is None or at_once < wanted else wanted

    def _send(self, order: Order, job: Job) -> Any:
        """Begin a job; its message is put into the cluster once for all parties that get it."""
        if self.message is None or self.message[0] != order.message:
            self.message = order.message, self.ray.put(order.message)
        errand = Errand((self.work,), (self.message[1],), versions_here(), self.node, self.board)
        # absolute: workers of a cluster that `ray start` began have another current folder
        progress = replace(job.progress, path=job.progress.path.absolute())
        return self.task.remote(errand, replace(order, message=b""), progress)

    def _hear(self, flying: dict[Any, _Flight], tell: Tell) -> None:
        """Pass on what workers told since the last time, without waiting for it."""
        if not self.ray.wait([self.news], timeout=0)[0]:
            return
        try:
            heard = self.ray.get(self.news)
        except self.ray.exceptions.RayError:  # lost with its node: all may have begun
            heard = {flight.job.party: (0.0, None) for flight in flying.values()}
            self.board = self._new_board()
        self.news = self.board.take.remote()
        by_party = {flight.job.party: flight for flight in flying.values()}
        for party, (done, loss) in heard.items():
            if party in by_party:
                flight = by_party[party]
                flight.since = flight.since or time.monotonic()
                tell(party, done, loss)

    def _fetch(self, ref: Any, flight: _Flight) -> Outcome | None:
        """What became of a job; None: its worker was lost and another one shall do it."""
        party, errors = flight.job.party, self.ray.exceptions
        try:
            outcome: Outcome = self.ray.get(ref)
        except errors.RayTaskError as error:  # outside of the party's own work
            cause = error.cause if isinstance(error.cause, Exception) else error
            if isinstance(cause, ConfigError):  # no fault of the party, which may not be dropped
                raise cause from None
            return Outcome(party, Failure.of(party, cause))
        except errors.RayError as error:
            self._check_head()
            if flight.attempt <= self.engine.retries:
                return None
            first = str(error).strip().splitlines()[0]
            times = f"{flight.attempt} times" if flight.attempt > 1 else "once"
            return Outcome(party, Failure(party, f"its worker or node was lost {times}: {first}"))
        return outcome

    def _check_head(self) -> None:
        """Raise if the cluster's head has gone; nothing can be cancelled there any more."""
        for left in reversed(range(KNOCKS)):
            try:
                return _knock(self.head)
            except OSError as error:
                if left:
                    time.sleep(BETWEEN_SECONDS)
                    continue
                self.flying.clear()
                raise HeadLost(
                    f"the head of the Ray cluster at {self.head} no longer answers ({error}). What "
                    "was finished is kept: start the cluster again, or choose another engine, and "
                    "resume the run (ostraka run --resume --out DIR)"
                ) from None

    def _give_up(self, flying: dict[Any, _Flight]) -> Iterator[Outcome]:
        """End those that take longer than the limit."""
        now, limit = time.monotonic(), self.engine.timeout
        for ref, flight in [*flying.items()]:
            if flight.since is not None and now - flight.since > limit:
                self.ray.cancel(ref, force=True)
                del flying[ref]
                party = flight.job.party
                yield Outcome(
                    party, Failure(party, f"it took longer than the limit of {limit:g} seconds")
                )

    def _check_patience(self, flying: dict[Any, _Flight], idle_since: float) -> None:
        """Refuse to wait for ever for a cluster that has no room for us."""
        waited = time.monotonic() - idle_since
        if flying and waited > self.engine.patience:
            needs = f"1 CPU and {self.gpus:g} GPU" if self.gpus else "1 CPU"
            has = self.ray.cluster_resources()
            raise ConfigError(
                f"no party began or ended for {waited:.0f} seconds: each needs {needs}, the "
                f"cluster has {has.get('CPU', 0):g} CPU and {has.get('GPU', 0):g} GPU, "
                "and gives none; wait until others are done, add nodes, or raise engine.patience"
            )


def _gpus(engine: RayEngine, work: Work) -> float:
    if engine.gpus is not None:
        return engine.gpus
    return 1.0 if work.device.startswith("cuda") else 0.0


@contextmanager
def _arrays_for_tensors(ray: Any) -> Iterator[None]:
    """In here tensors are put as arrays: all processes of a node map those, and would each copy
    a tensor."""
    ray.util.register_serializer(torch.Tensor, serializer=to_array, deserializer=to_tensor)
    try:
        yield
    finally:
        ray.util.deregister_serializer(torch.Tensor)
