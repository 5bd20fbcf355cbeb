"""The small federation that a method is checked on, short runs of it, and faults on purpose:
a stop of the run, a kill inside training.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, final
from unittest.mock import patch

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from ostraka.core.equip import equipped, generator_of
from ostraka.core.fit import Budget
from ostraka.core.generator import TrainedGenerator
from ostraka.core.method import Iterative, Memory, Report, Round
from ostraka.core.net import Recipe, params_of
from ostraka.core.objective import Objective
from ostraka.core.party import Parties, Party
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, seeded, torch_rng
from ostraka.core.task import Commons, Task
from ostraka.core.update import Update
from ostraka.data.partitions.divide import Partition
from ostraka.engines.base import Outcome
from ostraka.engines.threads import one_thread
from ostraka.errors import Interrupted, PartyFailed
from ostraka.nets.generator import DCGenerator
from ostraka.runs.config import Config, EngineChoice
from ostraka.runs.division import Exam
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch
from ostraka.store import codec
from ostraka.testing.expect import SEED, AnyMethod, hoped

Made = TypeVar("Made")


@dataclass(frozen=True)
class Stage:
    """A small federation on made-up data."""

    task: Task
    parties: Parties
    test: Samples


def make_stage(
    method: AnyMethod, task: Task | None, one_class: bool = False, extra: int = 0
) -> Stage:
    """Three parties of two classes and one and a half batches or more.

    `extra` samples more at the first.
    """
    task = task or Task(("ant", "bee", "cat"), (1, 16, 16), Recipe("mlp", {"hidden": [16]}))
    classes, batch = len(task.classes), _batch(method) or 32
    size = batch * math.ceil(24 / batch)
    common = max(2, batch // 2)  # samples of the last batch: never a single one, unless asked for
    sizes = [size + (extra or common), size + common, size + batch + common]
    labels = [torch.arange(n) % (1 if one_class and i == 0 else 2) + i for i, n in enumerate(sizes)]
    spare = torch.arange(20)
    y = torch.cat([*labels, spare]) % classes
    rng = torch_rng(SEED, "samples")
    centres = torch.randn(classes, *task.shape, generator=rng)
    x = centres[y] + 0.5 * torch.randn(len(y), *task.shape, generator=rng)
    rows = torch.arange(sum(sizes)).split(sizes)
    parties = Parties.of(Samples(x, y, view=task.view), rows)
    test = Samples(x[-20:].clone(), y[-20:].clone(), view=task.view)
    task = replace(task, commons=_commons(method, task, test))
    method.needs.check(type(method).__name__, task)
    return Stage(task, parties.pooled() if method.pooled else parties, test)


def _commons(method: AnyMethod, task: Task, samples: Samples) -> Commons:
    """The task's commons, and what the method needs of samples and prior besides."""
    needs, commons, classes = method.needs, task.commons, len(task.classes)
    prior = torch.full((classes,), 1 / classes)
    return replace(
        commons,
        public=samples.unlabelled() if needs.public and commons.public is None else commons.public,
        shared=samples if needs.shared and commons.shared is None else commons.shared,
        prior=prior if needs.prior and commons.prior is None else commons.prior,
        generator=commons.generator or (untrained_generator() if generator_of(method) else None),
    )


def untrained_generator(shape: tuple[int, ...] = (1, 8, 8)) -> TrainedGenerator:
    """A small generator of noise, for what is checked and not judged."""
    with seeded(SEED, "generator"):
        params = params_of(DCGenerator(shape, latent=3, width=1))
    return TrainedGenerator(shape, 3, 1, -1.0, 1.0, params)


def outfitted(value: Any) -> Any:
    """A method or an objective with a generator, where it draws from one."""
    return equipped(value, untrained_generator())


def _batch(value: Any) -> int | None:
    """The batch size of the first budget among the settings."""
    if isinstance(value, Budget):
        return value.batch
    inner = [_batch(getattr(value, f.name)) for f in fields(value)] if is_dataclass(value) else []
    return next((size for size in inner if size), None)


def few_rounds(method: AnyMethod) -> AnyMethod:
    """The method with two rounds, if it takes them: enough for a memory to matter."""
    return replace(method, rounds=2) if isinstance(method, Iterative) else method


@dataclass(frozen=True)
class Turn:
    """One party's exchange, and what it was given: (name, before, after)."""

    state: Any
    message: Any
    report: Report[Any]
    given: list[tuple[str, Any, Any]]
    state_after: Any


def turns_of(method: AnyMethod, stage: Stage) -> list[Turn]:
    """All exchanges of a short run, by hand: no file, no copy between server and party."""
    method = few_rounds(method)
    with known_randomness(0):
        state, memories, turns = method.init(stage.task, SEED), dict[int, Memory](), list[Turn]()
        for index in range(1, method.exchanges + 1):
            seen = []
            for party in stage.parties:
                message, memory = method.message(state, party.ref), memories.get(party.id, {})
                now = {"message": message, "memory": memory}
                now |= {"samples": party.samples, "commons": stage.task.commons}
                before = deepcopy(now)
                rnd = Round(stage.task, index, message, _seed(index, party.id))
                report = method.local_update(rnd, party, memory)
                seen.append((message, report, [(name, before[name], now[name]) for name in now]))
                memories[party.id] = report.memory
            old, reports = state, [replace(report, memory={}) for _, report, _ in seen]
            state = method.aggregate(stage.task, old, reports)
            turns += [Turn(old, *turn, state) for turn in seen]
    return turns


def update(
    method: AnyMethod,
    stage: Stage,
    party: int,
    index: int,
    state: Any,
    memory: Memory,
    progress: Progress | None = None,
) -> Report[Any]:
    """One party's update, on copies: nothing that it changes reaches the next one."""
    who: Party = deepcopy(stage.parties[party])
    message = codec.decode(codec.encode(method.message(state, who.ref)))
    kept = codec.decode(codec.encode(memory))
    who = who if progress is None else who.at_work(progress)
    return method.local_update(Round(stage.task, index, message, _seed(index, party)), who, kept)


def _seed(index: int, party: int) -> int:
    return derive(SEED, "round", index, "party", party)


@dataclass
class StopAt(Watch):
    """Ctrl-C in a round, once that many of its parties have ended."""

    round: int
    ended: int
    now: int = 0
    seen: int = 0

    def __str__(self) -> str:
        return f"in round {self.round} after {self.ended} of its parties"

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        """Stop here if none of the round's parties should end."""
        self.now, self.seen = index, 0
        self._stop()

    def party_ends(self, outcome: Outcome) -> None:
        """Count, and stop if that was the last one that should end."""
        self.seen += 1
        self._stop()

    def _stop(self) -> None:
        if self.now == self.round and self.seen == self.ended:
            raise KeyboardInterrupt


def run_short(
    method: AnyMethod,
    stage: Stage,
    engine: str = "serial",
    randomness: int = 0,
    stop: Watch | None = None,
    what: str = "a short run succeeds",
    advice: str = "fix the error above",
) -> dict[str, Any]:
    """State and memories at the end of a run by the real loop.

    With `stop`, interrupted there and resumed.
    """
    # a disk that is slow to confirm would take most of the time,
    # and these files need not outlast a power cut
    with TemporaryDirectory() as folder, patch("os.fsync"), hoped(method, what, advice):
        home = RunDir(Path(folder) / "run")
        try:
            if stop is not None:
                with known_randomness(randomness), suppress(Interrupted):
                    execute(_plan(method, stage, engine), home, watch=stop)
            with known_randomness(randomness):
                execute(_plan(method, stage, engine), home, resume=stop is not None)
        except PartyFailed:
            # the folder is about to vanish
            raise RuntimeError((home.root / "failures.log").read_text()) from None
        # the last round of a party comes last
        kept = sorted((home.desk().root / "memory").glob("p*/r*.safetensors"))
        memories = {path.parent.name: codec.load(path) for path in kept}
        return {"state": codec.load(home.model)["state"], "memories": memories}


def _plan(method: AnyMethod, stage: Stage, engine: str) -> Plan:
    spans = zip((0, *stage.parties.ends), stage.parties.ends, strict=False)
    rows = tuple(stage.parties.rows[start:stop].numpy() for start, stop in spans)
    divided = Partition("check", rows, stage.parties.names, SEED)
    chosen = EngineChoice(engine)
    return Plan(
        config=Config(method="check", engine=chosen, workers=2, seed=SEED, device="cpu"),
        name=type(method).__name__,
        method=deepcopy(method),
        task=stage.task,
        parties=deepcopy(stage.parties),
        partition=divided,
        counts=divided.table(stage.parties.samples.labels.numpy(), len(stage.task.classes)),
        test=Exam(stage.test),
        validation=None,
        fingerprint="check",
    )


@contextmanager
def known_randomness(seed: int) -> Iterator[None]:
    """Put the global generators at a known place,
    on one thread as engines do, and back afterwards.
    """
    python, array = random.getstate(), np.random.get_state()
    with one_thread(), torch.random.fork_rng(devices=[]):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(array)


def twice(make: Callable[[], Made]) -> tuple[Made, Made]:
    """Made at two other states of the global generators: what a seed decides is equal."""
    with known_randomness(1):
        first = make()
    with known_randomness(2):
        return first, make()


class Killed(BaseException):
    """Stands for SIGKILL: nothing in a method may catch it."""


@final
class Killer(Progress):
    """Keeps what is saved, as bytes; kills at save number `limit`,
    and counts optimiser steps that were not saved.
    """

    every_seconds = 0.0

    def __init__(self, saved: dict[str, bytes], limit: int) -> None:
        self.saved, self.limit = saved, limit
        self.saves = self.steps = self.unsaved = 0

    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved."""
        return codec.decode(self.saved[name]) if name in self.saved else None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep it, and kill if it is time."""
        self.saved[name] = codec.encode(dict(values))
        self.saves, self.unsaved = self.saves + 1, 0
        if self.saves >= self.limit:
            raise Killed

    def tell(self, done: float, loss: float | None) -> None:
        """Nobody watches."""

    def step(self, *_: Any) -> None:
        """An optimiser made a step."""
        self.steps, self.unsaved = self.steps + 1, self.unsaved + 1


@contextmanager
def hooked(step: Callable[..., None]) -> Iterator[None]:
    """Call `step` after every step of any optimiser, torch's or `fit`'s."""
    usual = Update.step

    def counted(update: Update, lr: float) -> None:
        usual(update, lr)
        step()

    handle = register_optimizer_step_post_hook(step)
    try:
        with patch.object(Update, "step", counted):
            yield
    finally:
        handle.remove()


@contextmanager
def one_batch_at_a_time() -> Iterator[None]:
    """Every objective prepares one batch at a time, so that training can be saved after each."""
    kinds: list[type[Any]] = [Objective]
    with ExitStack() as stack:
        for cls in kinds:
            kinds += cls.__subclasses__()  # so theirs come up, too
            if isinstance(vars(cls).get("chunk"), int):
                stack.enter_context(patch.object(cls, "chunk", 1))
        yield
