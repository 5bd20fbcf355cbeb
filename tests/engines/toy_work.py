"""Work whose parties misbehave on purpose.

In a module of its own so that worker processes can import it.
"""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ostraka.core.card import Card
from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net
from ostraka.core.method import Memory, Method, Report, Round
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.party import Parties, Party, PartyRef
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive
from ostraka.core.task import Task
from ostraka.engines.base import Crew, Job, Outcome, Tell, Work
from ostraka.errors import DataError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.runs.arrivals import kept
from ostraka.store import codec
from ostraka.store.desk import Desk, Memories

TASK = Task(("ant", "bee"), (4,), Recipe("mlp", {"hidden": [8]}))
SIZES = (6, 9, 7, 8)


@dataclass(frozen=True)
class Odd(Method[Any, Any, Any]):
    """Trains a little; party `bad` does `deed` first."""

    bad: int = -1
    deed: str = ""
    keeps: bool = False

    def init(self, task: Task, seed: int) -> Params:
        return params_of(build_net(task, CrossEntropy(), seed))

    def message(self, state: Params, party: PartyRef) -> Params:
        return state

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        if party.id == self.bad:
            self._misbehave(party)
        net = build_net(rnd.task, CrossEntropy())
        budget = Budget(epochs=3, batch=4)
        params = fit(
            net, rnd.message, party.samples, CrossEntropy(), budget, rnd.seed, party.progress
        ).params
        kept = {"times": memory.get("times", 0) + 1, "params": params}
        card = Card(
            party.id, len(party.samples), scores={"threads": float(torch.get_num_threads())}
        )
        return Report(params, float(party.ref.size), card, kept if self.keeps else {})

    def _misbehave(self, party: Party) -> None:
        if self.deed == "raise":
            raise ZeroDivisionError("a slip")
        if self.deed == "refuse":
            raise DataError("these samples are of no use")
        if self.deed == "exit":
            os._exit(7)
        if self.deed == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.deed == "sleep":
            party.progress.save("asleep", {})
            time.sleep(600)

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        return state

    def predictor(self, task: Task, state: Params) -> Any: ...


@dataclass(frozen=True)
class OnceKilled(Odd):
    """Party `bad` ends its own process the first time, and leaves a mark."""

    mark: str = ""

    def _misbehave(self, party: Party) -> None:
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class OnceAsleep(Odd):
    """Every party sleeps the first time that one does, and leaves its process in the mark."""

    mark: str = ""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        try:
            with Path(self.mark).open("x") as mark:
                mark.write(str(os.getpid()))
        except FileExistsError:
            return super().local_update(rnd, party, memory)
        time.sleep(600)
        raise AssertionError("it was not ended")


@dataclass(frozen=True)
class Telling(Odd):
    """Party `bad` tells how far it is, again and again, until somebody has heard it."""

    mark: str = ""

    def _misbehave(self, party: Party) -> None:
        end = time.monotonic() + 60
        while not Path(self.mark).exists():
            assert time.monotonic() < end, "nobody hears it"
            party.progress.tell(0.5, 1.25)
            time.sleep(0.1)

    def hearing(self, heard: list[tuple[int, float, float | None]]) -> Tell:
        """Whoever is told; the party may go on once it is."""

        def hear(party: int, done: float, loss: float | None) -> None:
            heard.append((party, done, loss))
            if (party, done) == (self.bad, 0.5):
                Path(self.mark).touch()

        return hear


_tasks: list[Task] = []
"""All tasks that this process was handed; they stay, so that each has an address of its own."""


@dataclass(frozen=True)
class Where(Odd):
    """Tells where its samples lie and how often its process was handed the work."""

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        _tasks.append(rnd.task)
        address = party.samples.x.untyped_storage().data_ptr()
        mapped = Path("/proc/self/maps").read_text().splitlines()
        scores = {
            "shared": float(any(_holds(line, address) for line in mapped)),
            "handed": float(len({id(task) for task in _tasks})),
            "process": float(os.getpid()),
        }
        return Report(rnd.message, 1.0, Card(party.id, len(party.samples), scores=scores))


def _holds(line: str, address: int) -> bool:
    """Whether a line of a process's mappings is of memory that others map too, with this address
    in it."""
    span, rights = line.split()[:2]
    begin, end = (int(half, 16) for half in span.split("-"))
    return begin <= address < end and rights.endswith("s")


def many(method: Odd, count: int) -> Work:
    """The work of so many parties with two samples each."""
    samples = Samples(torch.zeros(2 * count, 4), torch.arange(2 * count) % 2)
    names = [f"party {number}" for number in range(count)]
    return Work(method, TASK, Parties.of(samples, torch.arange(2 * count).split(2), names))


def parties() -> Parties:
    rng = torch.Generator().manual_seed(0)
    total = sum(SIZES)
    samples = Samples(torch.randn(total, 4, generator=rng), torch.arange(total) % 2)
    return Parties.of(samples, torch.arange(total).split(SIZES), ["north", "east", "south", "west"])


def work(method: Odd) -> Work:
    return Work(method, TASK, parties())


def jobs(desk: Desk, method: Odd, index: int = 1, which: Sequence[int] = (0, 1, 2, 3)) -> list[Job]:
    """A round's jobs, its message written."""
    codec.save(desk.message(index, None), method.init(TASK, 5))
    return [
        Job(
            party=i,
            round=index,
            seed=derive(5, "round", index, "party", i),
            owner=desk.owner,
            message=desk.message(index, None),
            memory=Memories(desk, index - 1).newest(i),
            progress=desk.progress(index, i),
        )
        for i in which
    ]


def do(
    crew: Crew, desk: Desk, method: Odd, index: int = 1, which: Sequence[int] = (0, 1, 2, 3)
) -> list[Outcome]:
    """A round of jobs, whose answers are stored as a run stores them."""
    return [kept(outcome, desk, index) for outcome in crew.run(jobs(desk, method, index, which))]


def sleep_in_a_pool(folder: str) -> None:
    """The life of a parent that will be killed: two workers,
    one asleep in its party's work, one idle.
    """
    from ostraka.engines.pool import Pool

    method = Odd(bad=0, deed="sleep")
    with Pool(workers=2).open(work(method)) as crew:
        pids = [worker.process.pid for worker in crew.workers]  # type: ignore[attr-defined]
        Path(folder, "pids.tmp").write_text(" ".join(map(str, pids)))
        os.replace(Path(folder, "pids.tmp"), Path(folder, "pids"))
        list(crew.run(jobs(Desk(Path(folder)), method, which=[0])))
