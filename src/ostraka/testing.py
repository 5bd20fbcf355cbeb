"""The contract check for authors of methods: `check_method(MyMethod())`, one line in a plug-in's own tests.

Every check is also a function of its own. What breaks the contract raises `ContractBroken`, an AssertionError that says
what was expected, what the method did, and what to do. The federation is small and made up: three parties with two
classes each, in at most two rounds. Give a `task` to check with another network or shape, or with commons of your own.
"""

import math
import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, final
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from ostraka.core import settings
from ostraka.core.fit import Budget
from ostraka.core.method import Memory, Method, Report, Round
from ostraka.core.net import Recipe
from ostraka.core.party import Parties, Party
from ostraka.core.predictor import Predictor
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.task import Commons, Task
from ostraka.data.partition import Partition
from ostraka.engines.threads import one_thread
from ostraka.errors import Interrupted, OstrakaError, PartyFailed
from ostraka.runs.config import Config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch
from ostraka.store import codec

AnyMethod: TypeAlias = Method[Any, Any, Any]
SEED = 20230501
PARTIES = 3


class ContractBroken(AssertionError):
    """A method that does not keep the contract of `ostraka.core.method`."""


def check_method(method: AnyMethod, task: Task | None = None) -> None:
    """Raise a ContractBroken if `method` fails any of CHECKS; takes a few seconds."""
    for check in CHECKS:
        check(method, task)


def check_settings(method: AnyMethod, task: Task | None = None) -> None:
    """The method can be written as plain values and built again from them."""
    what = "its settings are written as plain values and read back"
    advice = "use plain values, other settings dataclasses, or setting(..., registry=...) for what has a name"
    with _hoped(method, what, advice):
        again = settings.build(type(method), settings.values_of(method))
    if again != method:
        _fail(method, what, f"{method} became {again}", advice)


def check_picklable(method: AnyMethod, task: Task | None = None) -> None:
    """The method can be sent to a worker process."""
    with _hoped(method, "it is pickled and read back", "define it at the top of a module"):
        again = pickle.loads(pickle.dumps(method))
    if again != method:
        _fail(method, "its copy in a worker is equal to it", f"{method} became {again}", "leave pickling to dataclass")


def check_codec(method: AnyMethod, task: Task | None = None) -> None:
    """Messages, payloads, memories and states survive being stored."""
    stage = _stage(method, task)
    what = "everything that is sent or kept can be stored"
    with _hoped(method, what, "use tensors, plain values, lists, tuples, dicts and @wire dataclasses"):
        for turn in _turns(method, stage):
            for name, value in (
                ("state", turn.state),
                ("message", turn.message),
                ("payload", turn.report.payload),
                ("memory", turn.report.memory),
                ("card", turn.report.card),
                ("state after aggregate", turn.state_after),
            ):
                change = difference(value, codec.decode(codec.encode(value)), name)
                if change:
                    _fail(method, f"the {name} is the same after it was stored", change, "use only what codec keeps")


def check_unchanged(method: AnyMethod, task: Task | None = None) -> None:
    """`local_update` leaves the message, the data, the memory and the commons as they were."""
    stage = _stage(method, task)
    with _hoped(method, "local_update works", "mend the error above"):
        for turn in _turns(method, stage):
            for name, before, after in turn.given:
                change = difference(before, after, name)
                if change:
                    advice = f"work on a copy of the {name}: another party or a repeated attempt will use it again"
                    _fail(method, f"local_update leaves the {name} unchanged", change, advice)


def check_same_seed(method: AnyMethod, task: Task | None = None) -> None:
    """The same seed gives the same bits, whatever ran before and however torch's, numpy's and Python's chance stand."""
    method, stage = _few_rounds(method), _stage(method, task)
    first = _run(method, stage, chance=1)
    second = _run(method, stage, chance=2)
    change = difference(first, second, "result")
    if change:
        advice = "draw from generators made of rnd.seed (ostraka.core.seeds), and keep nothing in globals or on self"
        _fail(method, "two runs with the same seed give the same bits", change, advice)


def check_pool(method: AnyMethod, task: Task | None = None) -> None:
    """Worker processes give the same bits as one process."""
    method, stage = _few_rounds(method), _stage(method, task)
    change = difference(_run(method, stage), _run(method, stage, engine="pool"), "result")
    if change:
        advice = "local_update may depend on its arguments only, not on the process, a global or an earlier party"
        _fail(method, "the engines serial and pool give the same bits", change, advice)


def check_resume(method: AnyMethod, task: Task | None = None) -> None:
    """A run that is stopped, after a round or after a party, and resumed equals one that went straight through."""
    method, stage = _few_rounds(method), _stage(method, task)
    straight = _run(method, stage)
    places = [_StopAt(round=index, ended=n) for index, n in ((1, 1), (2, 0), (2, 1)) if index <= method.exchanges]
    for stop in places:
        change = difference(straight, _run(method, stage, stop=stop), "result")
        if change:
            advice = "keep what lasts in the state (server) and in Report.memory (party), nothing on self"
            _fail(method, f"a run stopped {stop} and resumed ends with the same bits", change, advice)


def check_interrupted_fit(method: AnyMethod, task: Task | None = None) -> None:
    """A party that is killed inside its training goes on from what it saved, to the same bits."""
    stage = _stage(method, task)
    what = "training that was interrupted is taken up again"
    advice = "give every fit of a party its own name, and take all chance from rnd.seed"
    with _hoped(method, what, advice), patch("ostraka.core.fit.chunk_size", lambda objective: 1), _chance(0):
        state = method.init(stage.task, SEED)
        straight = _update(method, stage, 0, 1, state, {})
        saved: dict[str, bytes] = {}
        for limit in (2**i for i in range(20)):
            progress = _Killer(saved, limit)
            with _hooked(progress.step):
                try:
                    resumed = _update(method, stage, 0, 1, state, {}, progress)
                except _Killed:
                    continue
            break
    if progress.unsaved:
        done = f"made {progress.steps} optimiser steps, the last {progress.unsaved} of them without saving"
        _fail(method, what, done, "pass progress=party.progress to fit; in a loop of your own, save and load by it")
    change = difference(straight, resumed, "report")
    if change:
        _fail(method, f"{what} to the same bits", change, advice)


def check_one_class(method: AnyMethod, task: Task | None = None) -> None:
    """A party that holds a single class is no obstacle."""
    _survives(method, _stage(method, task, one_class=True), "a party has samples of one class only")


def check_one_sample_batch(method: AnyMethod, task: Task | None = None) -> None:
    """A party whose last batch holds one sample is no obstacle."""
    _survives(method, _stage(method, task, extra=1), "the last batch of a party holds one sample")


def check_dropped_party(method: AnyMethod, task: Task | None = None) -> None:
    """The round goes on without a party that dropped out, and a party may come back later without a memory."""
    method, stage = _few_rounds(method), _stage(method, task)
    if len(stage.parties) == 1:
        return
    what = "a run goes on when a party drops out"
    advice = "aggregate whatever reports arrive, and take an empty memory in any round"
    with _hoped(method, what, advice), _chance(0):
        state, memories = method.init(stage.task, SEED), dict[int, Memory]()
        for index in range(1, method.exchanges + 1):
            missing = index - 1
            parties = [i for i in range(len(stage.parties)) if i != missing]
            reports = [_update(method, stage, i, index, state, memories.get(i, {})) for i in parties]
            memories.update((i, r.memory) for i, r in zip(parties, reports, strict=True))
            state = method.aggregate(stage.task, state, [replace(r, memory={}) for r in reports])
        _check_scores(method, stage, state, what)


def check_scores(method: AnyMethod, task: Task | None = None) -> None:
    """The predictor's scores have the right shapes, are finite, and each sample's depend on that sample alone."""
    stage = _stage(method, task)
    state = _run(method, stage)["state"]
    predictor = method.predictor(stage.task, state)
    _check_scores(method, stage, state, "the predictor answers")
    x = stage.test.inputs()
    order = torch.randperm(len(x), generator=torch_rng(SEED, "order"))
    _check_rows(method, predictor, x, order, "in another order")
    _check_rows(method, predictor, x, torch.arange(len(x) // 2), "without the second half of the batch")


CHECKS: tuple[Callable[[AnyMethod, Task | None], None], ...] = (
    check_settings,
    check_picklable,
    check_codec,
    check_unchanged,
    check_scores,
    check_one_class,
    check_one_sample_batch,
    check_dropped_party,
    check_interrupted_fit,
    check_same_seed,
    check_resume,
    check_pool,
)
"""All checks, those with the plainest message first."""


def difference(a: Any, b: Any, name: str) -> str | None:
    """Where two values differ, in words; None where they are equal to the bit, structure included."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return None if codec.encode(a) == codec.encode(b) else f"{name} differs: {_brief(a)} and {_brief(b)}"
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"{name} has the keys {sorted(a)} and {sorted(b)}"
        return _first(difference(a[key], b[key], f"{name}[{key!r}]") for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        if len(a) != len(b):
            return f"{name} has {len(a)} and {len(b)} items"
        return _first(difference(x, y, f"{name}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True)))
    if is_dataclass(a) and type(a) is type(b):
        return _first(difference(getattr(a, f.name), getattr(b, f.name), f"{name}.{f.name}") for f in fields(a))
    plain = isinstance(a, bool | int | float | str | None) and isinstance(b, bool | int | float | str | None)
    if plain and (a == b or (a != a and b != b)):
        return None
    return f"{name} was {type(a).__name__} {_brief(a)} and is {type(b).__name__} {_brief(b)}"


@dataclass(frozen=True)
class _Stage:
    """A small federation on made-up data."""

    task: Task
    parties: Parties
    test: Samples


def _stage(method: AnyMethod, task: Task | None, one_class: bool = False, extra: int = 0) -> _Stage:
    """Three parties of two classes and one and a half batches or more; `extra` samples more at the first."""
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
    parties = Parties.of(Samples(x, y), rows)
    test = Samples(x[-20:].clone(), y[-20:].clone())
    task = replace(task, commons=_commons(method, task, test))
    method.needs.check(type(method).__name__, task, has_validation=True)
    return _Stage(task, parties.pooled() if method.pooled else parties, test)


def _commons(method: AnyMethod, task: Task, samples: Samples) -> Commons:
    """The task's commons, and what the method needs of samples and prior besides."""
    needs, commons, classes = method.needs, task.commons, len(task.classes)
    return replace(
        commons,
        public=samples.unlabelled() if needs.public and commons.public is None else commons.public,
        shared=samples if needs.shared and commons.shared is None else commons.shared,
        prior=torch.full((classes,), 1 / classes) if needs.prior and commons.prior is None else commons.prior,
    )


def _batch(value: Any) -> int | None:
    """The batch size of the first budget among the settings."""
    if isinstance(value, Budget):
        return value.batch
    inner = [_batch(getattr(value, f.name)) for f in fields(value)] if is_dataclass(value) else []
    return next((size for size in inner if size), None)


def _few_rounds(method: AnyMethod) -> AnyMethod:
    """The method with two rounds, if it takes them: enough for a memory to matter."""
    try:
        return replace(method, rounds=2)
    except OstrakaError:
        return method


@dataclass(frozen=True)
class _Turn:
    """One party's exchange, and what it was given: (name, before, after)."""

    state: Any
    message: Any
    report: Report[Any]
    given: list[tuple[str, Any, Any]]
    state_after: Any


def _turns(method: AnyMethod, stage: _Stage) -> list[_Turn]:
    """All exchanges of a short run, by hand: no file, no copy between server and party."""
    method = _few_rounds(method)
    with _chance(0):
        state, memories, turns = method.init(stage.task, SEED), dict[int, Memory](), list[_Turn]()
        for index in range(1, method.exchanges + 1):
            seen = []
            for party in stage.parties:
                message, memory = method.message(state, party.ref), memories.get(party.id, {})
                now = {"message": message, "memory": memory, "samples": party.samples, "commons": stage.task.commons}
                before = deepcopy(now)
                report = method.local_update(Round(stage.task, index, message, _seed(index, party.id)), party, memory)
                seen.append((message, report, [(name, before[name], now[name]) for name in now]))
                memories[party.id] = report.memory
            old = state
            state = method.aggregate(stage.task, old, [replace(report, memory={}) for _, report, _ in seen])
            turns += [_Turn(old, message, report, given, state) for message, report, given in seen]
    return turns


def _update(
    method: AnyMethod,
    stage: _Stage,
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
class _StopAt(Watch):
    """Ctrl-C in a round, once that many of its parties have ended."""

    round: int
    ended: int
    now: int = 0
    seen: int = 0

    def __str__(self) -> str:
        return f"in round {self.round} after {self.ended} of its parties"

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        self.now, self.seen = index, 0
        self._stop()

    def party_ends(self, party: int, failed: bool) -> None:
        self.seen += 1
        self._stop()

    def _stop(self) -> None:
        if self.now == self.round and self.seen == self.ended:
            raise KeyboardInterrupt


def _run(
    method: AnyMethod,
    stage: _Stage,
    engine: str = "serial",
    chance: int = 0,
    stop: Watch | None = None,
    what: str = "a short run succeeds",
    advice: str = "mend the error above",
) -> dict[str, Any]:
    """State and memories at the end of a run by the real loop; with `stop`, interrupted there and resumed."""
    # a disk that is slow to confirm would take most of the time, and these files need not outlast a power cut
    with TemporaryDirectory() as folder, patch("os.fsync"), _hoped(method, what, advice):
        home = RunDir(Path(folder) / "run")
        try:
            if stop is not None:
                with _chance(chance), suppress(Interrupted):
                    execute(_plan(method, stage, engine), home, watch=stop)
            with _chance(chance):
                execute(_plan(method, stage, engine), home, resume=stop is not None)
        except PartyFailed:
            raise RuntimeError((home.root / "failures.log").read_text()) from None  # the folder is about to vanish
        kept = sorted((home.desk().root / "memory").glob("p*/r*.safetensors"))  # the last round of a party comes last
        memories = {path.parent.name: codec.load(path) for path in kept}
        return {"state": codec.load(home.model)["state"], "memories": memories}


def _plan(method: AnyMethod, stage: _Stage, engine: str) -> Plan:
    spans = zip((0, *stage.parties.ends), stage.parties.ends, strict=False)
    rows = tuple(stage.parties.rows[start:stop].numpy() for start, stop in spans)
    divided = Partition("check", rows, stage.parties.names, SEED)
    return Plan(
        config=Config(method="check", engine=engine, workers=2, seed=SEED, device="cpu"),
        name=type(method).__name__,
        method=deepcopy(method),
        task=stage.task,
        parties=deepcopy(stage.parties),
        partition=divided,
        counts=divided.table(stage.parties.samples.labels.numpy(), len(stage.task.classes)),
        test=stage.test,
        validation=stage.test if method.needs.validation else None,
        fingerprint="check",
    )


def _survives(method: AnyMethod, stage: _Stage, case: str) -> None:
    state = _run(method, stage, what=f"it works when {case}", advice="such parties are common; handle the case")[
        "state"
    ]
    _check_scores(method, stage, state, f"the predictor answers when {case}")


def _check_scores(method: AnyMethod, stage: _Stage, state: Any, what: str) -> None:
    with _hoped(method, what, "mend the error above"):
        scores = method.predictor(stage.task, state).scores(stage.test.inputs())
    count, classes = len(stage.test), len(stage.task.classes)
    shapes = tuple(scores.known.shape), tuple(scores.unknown.shape)
    if shapes != ((count, classes), (count,)):
        done = f"known has {shapes[0]} and unknown {shapes[1]}"
        _fail(method, f"{what} with known [{count}, {classes}] and unknown [{count}]", done, "one column per class")
    if not (scores.known.isfinite().all() and scores.unknown.isfinite().all()) or math.isnan(scores.threshold):
        _fail(method, f"{what} with finite numbers", "some are infinite or NaN", "only the threshold may be infinite")


def _check_rows(method: AnyMethod, predictor: Predictor, x: Tensor, order: Tensor, case: str) -> None:
    """Tolerance: sums of a different number of rows may differ in their last bits."""
    whole, part = predictor.scores(x), predictor.scores(x[order])
    for name, a, b in (("known", whole.known, part.known), ("unknown", whole.unknown, part.unknown)):
        if not torch.allclose(a[order], b, rtol=1e-3, atol=1e-4):
            gap = float((a[order] - b).abs().max())
            advice = "put networks in evaluation mode, and use no statistic of the batch or position in it"
            _fail(method, f"a sample scores the same {case}", f"its {name} scores changed by up to {gap:g}", advice)


class _Killed(BaseException):
    """Stands for SIGKILL: nothing in a method may catch it."""


@final
class _Killer(Progress):
    """Keeps what is saved, as bytes; kills at save number `limit`, and counts optimiser steps that were not saved."""

    every_seconds = 0.0

    def __init__(self, saved: dict[str, bytes], limit: int) -> None:
        self.saved, self.limit = saved, limit
        self.saves = self.steps = self.unsaved = 0

    def load(self, name: str) -> Mapping[str, Any] | None:
        return codec.decode(self.saved[name]) if name in self.saved else None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        self.saved[name] = codec.encode(dict(values))
        self.saves, self.unsaved = self.saves + 1, 0
        if self.saves >= self.limit:
            raise _Killed

    def tell(self, done: float, loss: float | None) -> None:
        pass

    def step(self, *_: Any) -> None:
        """An optimiser made a step."""
        self.steps, self.unsaved = self.steps + 1, self.unsaved + 1


@contextmanager
def _hooked(step: Callable[..., None]) -> Iterator[None]:
    """Call `step` after every step of any optimiser."""
    handle = register_optimizer_step_post_hook(step)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _chance(seed: int) -> Iterator[None]:
    """Put the global generators at a known place, on one thread as engines do, and back afterwards."""
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


@contextmanager
def _hoped(method: AnyMethod, what: str, advice: str) -> Iterator[None]:
    """Turn any error into a ContractBroken that says what should have worked."""
    try:
        yield
    except ContractBroken:
        raise
    except Exception as error:
        done = f"it raised {type(error).__name__}: {error}"
        raise ContractBroken(_sentence(method, what, done, advice)) from error


def _fail(method: AnyMethod, expected: str, done: str, advice: str) -> None:
    raise ContractBroken(_sentence(method, expected, done, advice))


def _sentence(method: AnyMethod, expected: str, done: str, advice: str) -> str:
    return f"{type(method).__name__}: expected that {expected}; {done}. What to do: {advice}"


def _first(found: Iterator[str | None]) -> str | None:
    return next((text for text in found if text), None)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        start = ", ".join(f"{v:.6g}" for v in value.flatten()[:3].tolist())
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} ({start}, ...)"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


__all__ = ["CHECKS", "ContractBroken", "check_method", "difference", *(check.__name__ for check in CHECKS)]
