"""The contract of methods.

The federation is small and made up: three parties with two classes each, in at most two rounds.
Give a `task` to check with another network or shape, or with commons of your own.
"""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ostraka.core.digest import digest_of
from ostraka.core.fit import Budget
from ostraka.core.method import Memory
from ostraka.core.predictor import Scores
from ostraka.core.task import Task
from ostraka.store import codec
from ostraka.testing.answers import (
    SEED,
    expect_picklable,
    expect_rows,
    expect_scores,
    expect_settings,
)
from ostraka.testing.faults import Killed, Killer, hooked, one_batch_at_a_time
from ostraka.testing.stage import (
    Stage,
    StopAt,
    few_rounds,
    known_randomness,
    make_stage,
    outfitted,
    run_short,
    turns_of,
    update,
)
from ostraka.testing.verdict import AnyMethod, difference, fail, hoped


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
    with hoped(
        method,
        what,
        "use text, numbers, lists and dicts with text keys, such as self.party_settings()",
    ):
        own = method.work_key(stage.task)
        key, again = (
            digest_of(own),
            digest_of(pickle.loads(pickle.dumps(method)).work_key(stage.task)),
        )
    if key != again:
        fail(
            method,
            what,
            "an equal method has another key",
            "make it of settings and the commons, not of objects",
        )
    local = getattr(method, "local", None)
    if own is not None and isinstance(local, Budget):
        changed: dict[str, Any] = {"local": replace(local, epochs=local.epochs + 1)}
        longer = replace(method, **changed)
        if digest_of(longer.work_key(stage.task)) == key:
            done = (
                "one more epoch does not change it, so a grid would take one training for the other"
            )
            fail(
                method,
                "work_key names all that the parties' work depends on",
                done,
                "put self.party_settings() in it",
            )


def check_codec(method: AnyMethod, task: Task | None = None) -> None:
    """Messages, payloads, memories and states survive being stored."""
    stage = make_stage(method, task)
    what = "everything that is sent or kept can be stored"
    with hoped(
        method, what, "use tensors, plain values, lists, tuples, dicts and @wire dataclasses"
    ):
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
                if change:
                    fail(
                        method,
                        f"the {name} is the same after it was stored",
                        change,
                        "use only what codec keeps",
                    )


def check_unchanged(method: AnyMethod, task: Task | None = None) -> None:
    """`local_update` leaves the message, the data, the memory and the commons as they were."""
    stage = make_stage(method, task)
    with hoped(method, "local_update works", "fix the error above"):
        for turn in turns_of(method, stage):
            for name, before, after in turn.given:
                change = difference(before, after, name)
                if change:
                    advice = (
                        f"work on a copy of the {name}: another party or a "
                        "repeated attempt will use it again"
                    )
                    fail(method, f"local_update leaves the {name} unchanged", change, advice)


def check_same_seed(method: AnyMethod, task: Task | None = None) -> None:
    """The same seed gives the same bits, whatever ran before and however torch's, numpy's and
    Python's random generators stand.
    """
    method, stage = few_rounds(method), make_stage(method, task)
    first = run_short(method, stage, randomness=1)
    second = run_short(method, stage, randomness=2)
    change = difference(first, second, "result")
    if change:
        advice = (
            "draw from generators made of rnd.seed (ostraka.core.seeds), "
            "and keep nothing in globals or on self"
        )
        fail(method, "two runs with the same seed give the same bits", change, advice)


def check_pool(method: AnyMethod, task: Task | None = None) -> None:
    """Worker processes give the same bits as one process."""
    method, stage = few_rounds(method), make_stage(method, task)
    change = difference(run_short(method, stage), run_short(method, stage, engine="pool"), "result")
    if change:
        advice = (
            "local_update may depend on its arguments only, not on the process, "
            "a global or an earlier party"
        )
        fail(method, "the engines serial and pool give the same bits", change, advice)


def check_resume(method: AnyMethod, task: Task | None = None) -> None:
    """A run that is stopped, after a round or after a party,
    and resumed equals one that went straight through.
    """
    method, stage = few_rounds(method), make_stage(method, task)
    straight = run_short(method, stage)
    places = [
        StopAt(round=index, ended=n)
        for index, n in ((1, 1), (2, 0), (2, 1))
        if index <= method.exchanges
    ]
    for stop in places:
        change = difference(straight, run_short(method, stage, stop=stop), "result")
        if change:
            advice = (
                "keep what lasts in the state (server) and in "
                "Report.memory (party), nothing on self"
            )
            fail(
                method, f"a run stopped {stop} and resumed ends with the same bits", change, advice
            )


def check_interrupted_fit(method: AnyMethod, task: Task | None = None) -> None:
    """A party that is killed inside its training goes on from what it saved, to the same bits."""
    stage = make_stage(method, task)
    what = "training that was interrupted is taken up again"
    advice = "give every fit of a party its own name, and draw everything random from rnd.seed"
    with (
        hoped(method, what, advice),
        one_batch_at_a_time(),
        known_randomness(0),
    ):
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
    if progress.unsaved:
        done = (
            f"made {progress.steps} optimiser steps, the last "
            f"{progress.unsaved} of them without saving"
        )
        fail(
            method,
            what,
            done,
            "pass progress=party.progress to fit; in a loop of your own, save and load by it",
        )
    change = difference(straight, resumed, "report")
    if change:
        fail(method, f"{what} to the same bits", change, advice)


def check_one_class(method: AnyMethod, task: Task | None = None) -> None:
    """A party that holds a single class is no obstacle."""
    _survives(
        method, make_stage(method, task, one_class=True), "a party has samples of one class only"
    )


def check_one_sample_batch(method: AnyMethod, task: Task | None = None) -> None:
    """A party whose last batch holds one sample is no obstacle."""
    _survives(
        method, make_stage(method, task, extra=1), "the last batch of a party holds one sample"
    )


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
            missing = index - 1
            parties = [i for i in range(len(stage.parties)) if i != missing]
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
    state = run_short(
        method,
        stage,
        what=f"it works when {case}",
        advice="such parties are common; handle the case",
    )["state"]
    _expect_scores(method, stage, state, f"the predictor answers when {case}")


def _expect_scores(method: AnyMethod, stage: Stage, state: Any, what: str) -> None:
    def ask() -> Scores:
        return method.predictor(stage.task, state).scores(stage.test.stored())

    expect_scores(method, ask, len(stage.test), len(stage.task.classes), what)
