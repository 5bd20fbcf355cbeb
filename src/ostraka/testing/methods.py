"""The contract of methods.

The federation is small and made up: three parties with two classes each, in at most two rounds.
Give a `task` to check with another network or shape, or with commons of your own.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ostraka.core.arrival import check_size
from ostraka.core.digest import digest_of
from ostraka.core.fit import Budget
from ostraka.core.method import Memory, Report
from ostraka.core.predictor import Scores
from ostraka.core.task import Task
from ostraka.errors import ReportRefused
from ostraka.store import codec
from ostraka.testing.expect import (
    SEED,
    AnyMethod,
    difference,
    expect,
    expect_picklable,
    expect_rows,
    expect_scores,
    expect_settings,
    hoped,
)
from ostraka.testing.stage import (
    Killed,
    Killer,
    Stage,
    StopAt,
    few_rounds,
    hooked,
    known_randomness,
    make_stage,
    one_batch_at_a_time,
    outfitted,
    run_short,
    turns_of,
    update,
)

ODD: tuple[Any, ...] = (None, "text", {}, -1, 10**6)
"""What may stand in the place of anything."""
ODD_CARDS: tuple[tuple[str, Any], ...] = (
    ("size", -1),
    ("size", "9"),
    ("size", 1.5),
    ("name", 7),
    ("counts", 3),
    ("scores", 0.5),
    ("scores", {"loss": "0.5"}),
    ("calibration", [1.0]),
)


def check_method(method: AnyMethod, task: Task | None = None) -> None:
    """Raise a ContractBroken if `method` fails any of CHECKS; takes a few seconds."""
    method = outfitted(method)
    for check in CHECKS:
        check(method, task)


def check_settings(method: AnyMethod, task: Task | None = None) -> None:
    """The method can be written as plain values and built again from them."""
    expect_settings(method)


def check_picklable(method: AnyMethod, task: Task | None = None) -> None:
    """The method can be sent to a worker process."""
    expect_picklable(method)


def check_work_key(method: AnyMethod, task: Task | None = None) -> None:
    """The key under which reports are shared, if there is one,
    is made of plain values and tells trainings apart.
    """
    stage = make_stage(method, task)
    what = "work_key gives None, or the same plain values for an equal method"
    advice = "use text, numbers, lists and dicts with text keys, such as self.party_settings()"
    with hoped(method, what, advice):
        own = method.work_key(stage.task)
        key = digest_of(own)
        again = digest_of(pickle.loads(pickle.dumps(method)).work_key(stage.task))
    other = key != again and "an equal method has another key"
    expect(method, what, other, "make it of settings and the commons, not of objects")
    local = getattr(method, "local", None)
    if own is not None and isinstance(local, Budget):
        changed: dict[str, Any] = {"local": replace(local, epochs=local.epochs + 1)}
        expect(
            method,
            "work_key names all that the parties' work depends on",
            digest_of(replace(method, **changed).work_key(stage.task)) == key
            and "one more epoch does not change it, "
            "so a grid would take one training for the other",
            "put self.party_settings() in it",
        )


def check_codec(method: AnyMethod, task: Task | None = None) -> None:
    """Messages, payloads, memories and states survive being stored."""
    stage = make_stage(method, task)
    what = "everything that is sent or kept can be stored"
    advice = "use tensors, plain values, lists, tuples, dicts and @wire dataclasses"
    with hoped(method, what, advice):
        for turn in turns_of(method, stage):
            for name, value in (
                ("state", turn.state),
                ("message", turn.message),
                ("payload", turn.report.payload),
                ("memory", turn.report.memory),
                ("card", turn.report.card),
                ("state after aggregate", turn.state_after),
            ):
                change = difference(value, codec.decode(codec.encode(value)), name)
                what = f"the {name} is the same after it was stored"
                expect(method, what, change, "use only what codec keeps")


def check_unchanged(method: AnyMethod, task: Task | None = None) -> None:
    """`local_update` leaves the message, the data, the memory and the commons as they were."""
    stage = make_stage(method, task)
    with hoped(method, "local_update works"):
        for turn in turns_of(method, stage):
            for name, before, after in turn.given:
                expect(
                    method,
                    f"local_update leaves the {name} unchanged",
                    difference(before, after, name),
                    f"work on a copy of the {name}: another party or a "
                    "repeated attempt will use it again",
                )


def check_same_seed(method: AnyMethod, task: Task | None = None) -> None:
    """The same seed gives the same bits, whatever ran before and however torch's, numpy's and
    Python's random generators stand.
    """
    method, stage = few_rounds(method), make_stage(method, task)
    first, second = (run_short(method, stage, randomness=place) for place in (1, 2))
    expect(
        method,
        "two runs with the same seed give the same bits",
        difference(first, second, "result"),
        "draw from generators made of rnd.seed (ostraka.core.seeds), "
        "and keep nothing in globals or on self",
    )


def check_pool(method: AnyMethod, task: Task | None = None) -> None:
    """Worker processes give the same bits as one process."""
    method, stage = few_rounds(method), make_stage(method, task)
    expect(
        method,
        "the engines serial and pool give the same bits",
        difference(run_short(method, stage), run_short(method, stage, engine="pool"), "result"),
        "local_update may depend on its arguments only, not on the process, "
        "a global or an earlier party",
    )


def check_resume(method: AnyMethod, task: Task | None = None) -> None:
    """A run that is stopped, after a round or after a party,
    and resumed equals one that went straight through.
    """
    method, stage = few_rounds(method), make_stage(method, task)
    straight = run_short(method, stage)
    advice = "keep what lasts in the state (server) and in Report.memory (party), nothing on self"
    places = [place for place in ((1, 1), (2, 0), (2, 1)) if place[0] <= method.exchanges]
    for stop in (StopAt(round=index, ended=count) for index, count in places):
        change = difference(straight, run_short(method, stage, stop=stop), "result")
        what = f"a run stopped {stop} and resumed ends with the same bits"
        expect(method, what, change, advice)


def check_interrupted_fit(method: AnyMethod, task: Task | None = None) -> None:
    """A party that is killed inside its training goes on from what it saved, to the same bits."""
    stage = make_stage(method, task)
    what = "training that was interrupted is taken up again"
    advice = "give every fit of a party its own name, and draw everything random from rnd.seed"
    with hoped(method, what, advice), one_batch_at_a_time(), known_randomness(0):
        state = method.init(stage.task, SEED)
        straight = update(method, stage, 0, 1, state, {})
        saved: dict[str, bytes] = {}
        for limit in (2**i for i in range(20)):
            progress = Killer(saved, limit)
            with hooked(progress.step):
                try:
                    resumed = update(method, stage, 0, 1, state, {}, progress)
                except Killed:
                    continue
            break
    expect(
        method,
        what,
        progress.unsaved > 0
        and f"made {progress.steps} optimiser steps, the last "
        f"{progress.unsaved} of them without saving",
        "pass progress=party.progress to fit; in a loop of your own, save and load by it",
    )
    expect(method, f"{what} to the same bits", difference(straight, resumed, "report"), advice)


def check_one_class(method: AnyMethod, task: Task | None = None) -> None:
    """A party that holds a single class is no obstacle."""
    stage = make_stage(method, task, one_class=True)
    _survives(method, stage, "a party has samples of one class only")


def check_one_sample_batch(method: AnyMethod, task: Task | None = None) -> None:
    """A party whose last batch holds one sample is no obstacle."""
    stage = make_stage(method, task, extra=1)
    _survives(method, stage, "the last batch of a party holds one sample")


def check_dropped_party(method: AnyMethod, task: Task | None = None) -> None:
    """The round goes on without a party that dropped out,
    and a party may come back later without a memory.
    """
    method, stage = few_rounds(method), make_stage(method, task)
    if len(stage.parties) == 1:
        return
    what = "a run goes on when a party drops out"
    advice = "aggregate whatever reports arrive, and take an empty memory in any round"
    with hoped(method, what, advice), known_randomness(0):
        state, memories = method.init(stage.task, SEED), dict[int, Memory]()
        for index in range(1, method.exchanges + 1):
            parties = [i for i in range(len(stage.parties)) if i != index - 1]
            reports = [update(method, stage, i, index, state, memories.get(i, {})) for i in parties]
            memories.update((i, r.memory) for i, r in zip(parties, reports, strict=True))
            state = method.aggregate(stage.task, state, [replace(r, memory={}) for r in reports])
        _expect_scores(method, stage, state, what)


def check_scores(method: AnyMethod, task: Task | None = None) -> None:
    """The predictor's scores have the right shapes, are finite,
    and each sample's depend on that sample alone.
    """
    stage = make_stage(method, task)
    state = run_short(method, stage)["state"]
    predictor = method.predictor(stage.task, state)
    _expect_scores(method, stage, state, "the predictor answers")
    expect_rows(method, predictor.scores, stage.test.stored())


CHECKS: tuple[Callable[[AnyMethod, Task | None], None], ...] = (
    check_settings,
    check_picklable,
    check_work_key,
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


def _survives(method: AnyMethod, stage: Stage, case: str) -> None:
    advice = "such parties are common; handle the case"
    short = run_short(method, stage, what=f"it works when {case}", advice=advice)
    _expect_scores(method, stage, short["state"], f"the predictor answers when {case}")


def _expect_scores(method: AnyMethod, stage: Stage, state: Any, what: str) -> None:
    def ask() -> Scores:
        return method.predictor(stage.task, state).scores(stage.test.stored())

    expect_scores(method, ask, len(stage.test), len(stage.task.classes), what)


def check_strange_reports(method: AnyMethod, task: Task | None = None) -> None:
    """A payload or card with something wrong in it is refused by `inspect`, or does no harm.

    A party may be faulty or hostile. What `inspect` lets through goes into `aggregate`, where an
    error ends the run of all parties, and a tensor of another shape may spread over others in
    silence.
    """
    stage = make_stage(method, task)
    with hoped(method, "local_update works"), known_randomness(0):
        state = method.init(stage.task, SEED)
        honest = [update(method, stage, i, 1, state, {}) for i in range(len(stage.parties))]
        honest = [replace(report, memory={}) for report in honest]
        for party, report in zip(stage.parties, honest, strict=True):
            method.inspect(stage.task, report)
            check_size(party.ref.size, weight=report.weight, size=report.card.size)
        usual = _kinds(method.aggregate(stage.task, state, honest))
    advice = "in inspect, raise ReportRefused for it (core.arrival has checks of tensors)"
    for words, odd in strange(honest[0]):
        expected = f"a report is refused, or of use, where {words}"
        with hoped(method, expected, advice), known_randomness(0):
            try:
                method.inspect(stage.task, odd)
            except ReportRefused:
                continue
            made = _kinds(method.aggregate(stage.task, state, [odd, *honest[1:]]))
            for path in usual.keys() & made.keys():
                change = f"the state's {path} became {made[path]} instead of {usual[path]}"
                expect(method, expected, usual[path] != made[path] and change, advice)


def strange(report: Report[Any]) -> Iterator[tuple[str, Report[Any]]]:
    """Reports with one thing changed, and what that is."""
    for words, payload in _in_place_of("the payload", report.payload):
        yield words, replace(report, payload=payload)
    for name, value in ODD_CARDS:
        changed: dict[str, Any] = {name: value}
        card = replace(report.card, **changed)
        yield f"{name} of the card is {value!r}", replace(report, card=card)
    yield "the weight is text", replace(report, weight="1")  # type: ignore[arg-type]


def _in_place_of(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What may stand where `value` stood: something else, or the same with one thing changed."""
    for other in ODD:
        if type(other) is not type(value) or (isinstance(value, int) and value != other):
            yield f"{path} is {other!r}", other
    if isinstance(value, Tensor):
        other_type = torch.float32 if value.dtype == torch.float64 else torch.float64
        yield f"{path} has one dimension more", value.unsqueeze(0)
        yield f"{path} has a single value", value.flatten()[:1].clone()
        yield f"{path} has another precision", value.to(other_type)
    elif isinstance(value, Mapping):
        yield f"{path} has a tensor that nobody knows", {**value, "stranger": torch.ones(1)}
        for key in value:
            yield f"{path} lacks {key}", {k: v for k, v in value.items() if k != key}
            for words, new in _in_place_of(f"{path}.{key}", value[key]):
                yield words, {**value, key: new}
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            for words, new in _in_place_of(f"{path}[{i}]", item):
                yield words, type(value)([*value[:i], new, *value[i + 1 :]])
    elif is_dataclass(value) and not isinstance(value, type):
        for spec in fields(value):
            for words, new in _in_place_of(f"{path}.{spec.name}", getattr(value, spec.name)):
                yield words, replace(value, **{spec.name: new})


def _kinds(value: Any, path: str = "value") -> dict[str, str]:
    """Shape and type of every tensor in a value, by where it is."""
    if isinstance(value, Tensor):
        return {path: f"{value.dtype} {list(value.shape)}"}
    inner: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        inner = value
    elif isinstance(value, list | tuple):
        inner = dict(enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {spec.name: getattr(value, spec.name) for spec in fields(value)}
    return {
        where: kind
        for key, item in inner.items()
        for where, kind in _kinds(item, f"{path}.{key}").items()
    }
