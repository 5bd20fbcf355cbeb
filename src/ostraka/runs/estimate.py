"""What a run would cost, before it is begun:
a short trial of the real work at one party, scaled up.
"""

import time
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from statistics import median_low
from typing import Any

import torch

from ostraka.core.fit import Budget
from ostraka.core.method import Method, Report, Round
from ostraka.core.party import PartyRef
from ostraka.core.progress import NoProgress
from ostraka.core.task import Task
from ostraka.engines.auto import pays
from ostraka.engines.base import Work
from ostraka.engines.threads import one_thread
from ostraka.runs.config import Config, chosen
from ostraka.runs.loop import commons_size, generator_size
from ostraka.runs.memory import outline, peak, shared, vote_bytes, votes, weights, workers
from ostraka.runs.plan import Plan, party_seed, pick_device
from ostraka.store import codec

TRIAL_SECONDS = 0.5
"""A trial is made longer until it takes so long:
what comes once for each training then counts little.
"""

SCORED = 500
"""Test samples that are scored in the trial."""


@dataclass(frozen=True)
class PartyShare:
    """What one party holds and does in a round."""

    name: str
    samples: int
    classes: int
    steps: int | None


@dataclass(frozen=True)
class Estimate:
    """What a run would be and cost. Seconds, memory and bytes are estimates; the rest is exact.

    `steps` are optimiser steps of `local`, of all networks that are trained; None for a method
    that has no such training.
    """

    method: str
    data: str
    partition: str
    seed: int
    rounds: int
    parties: tuple[PartyShare, ...]
    steps: int | None
    net: str
    parameters: int
    workers: int
    memory: int
    bytes_up: int
    bytes_down: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sent:
    """Bytes between the server and one party in a round."""

    up: int
    down: int
    down_again: int
    """To a party that took part before."""


@dataclass(frozen=True)
class Trial:
    """What the work at one party of usual size took and sent, and what it took to answer."""

    size: int
    trainings: int
    steps: int | None
    """Of all its trainings."""
    seconds: float
    answer_seconds: float
    """For all test samples, by one model."""
    sent: dict[int, Sent]
    """By the number of a party's trainings: its report may hold what each of them made."""


@dataclass
class Estimator:
    """Makes estimates; runs that differ in nothing but the seed share a trial."""

    trials: dict[str, Trial] = field(default_factory=dict)

    def of(self, plan: Plan) -> Estimate:
        """What the run of `plan` would cost; nothing is written."""
        key = _key(plan.config)
        if key not in self.trials:
            with one_thread():
                self.trials[key] = _try(plan)
        trial = self.trials[key]
        for ref, trainings in zip(plan.parties.roster(), plan.trainings, strict=True):
            if trainings not in trial.sent:
                with one_thread():
                    done = _work(plan, ref, 1)
                    trial.sent[trainings] = _sent(ref, done, done.server(plan.task))
        return _scaled(plan, trial)


def _key(config: Config) -> str:
    return repr(sorted(chosen(replace(config, seed=0)).items()))


def _try(plan: Plan) -> Trial:
    """The real update of a party of median size, with few steps at first,
    then more until it takes long enough.
    """
    ref = _median_party(plan)
    trainings, total = plan.trainings[ref.id], _steps_of_one(plan)[ref.id]
    steps = None if total is None else min(4, total)
    while True:
        done = _work(plan, ref, steps)
        if steps is None or total is None or steps >= total or done.seconds >= TRIAL_SECONDS:
            break
        steps = min(4 * steps, total)
    server = done.server(plan.task)
    return Trial(
        size=ref.size,
        trainings=trainings,
        steps=None if steps is None else steps * trainings,
        seconds=done.seconds,
        answer_seconds=_answer(plan, done.method, server),
        sent={trainings: _sent(ref, done, server)},
    )


@dataclass(frozen=True)
class _Done:
    """One party's update."""

    method: Method[Any, Any, Any]
    state: Any
    message: Any
    report: Report[Any]
    seconds: float

    def server(self, task: Task) -> Any:
        """What the server makes of it."""
        return self.method.aggregate(task, self.state, [self.report])


def _work(plan: Plan, ref: PartyRef, steps: int | None) -> _Done:
    method = _shortened(plan.method, steps)
    state = method.init(plan.task, plan.config.seed)
    message = method.message(state, ref)
    party = plan.parties[ref.id].at_work(NoProgress(), pick_device(plan.config.device))
    rnd = Round(plan.task, 1, message, party_seed(plan.config, 1, ref.id))
    began = time.perf_counter()
    report = method.local_update(rnd, party, {})
    took = time.perf_counter() - began
    return _Done(method, state, message, replace(report, memory={}), took)


def _sent(ref: PartyRef, done: _Done, server: Any) -> Sent:
    return Sent(
        up=codec.encoded_size(done.report.payload) + codec.encoded_size(done.report.card),
        down=codec.encoded_size(done.message),
        down_again=codec.encoded_size(done.method.message(server, ref)),
    )


def _shortened(method: Method[Any, Any, Any], steps: int | None) -> Method[Any, Any, Any]:
    """The method with so many steps of `local`, and one of every other training."""
    short: dict[str, Any] = {"rounds": 1} if method.pooled else {}
    for spec in fields(method):
        budget = getattr(method, spec.name)
        if isinstance(budget, Budget) and (budget.epochs or budget.steps):
            short[spec.name] = replace(budget, steps=steps if spec.name == "local" else 1)
    return replace(method, **short)


def _answer(plan: Plan, method: Method[Any, Any, Any], state: Any) -> float:
    """Seconds in which one model scores all test samples."""
    index = torch.arange(min(SCORED, len(plan.test)))
    x = plan.test.samples.take(index).to(pick_device(plan.config.device)).stored()
    predictor = method.predictor(plan.task, state)
    began = time.perf_counter()
    predictor.scores(x)
    return (time.perf_counter() - began) * len(plan.test) / max(1, len(index))


def _scaled(plan: Plan, trial: Trial) -> Estimate:
    method, config, roster = plan.method, plan.config, plan.parties.roster()
    steps, trainings = _steps(plan), plan.trainings
    costs = {r.id: _seconds(trial, r.size, trainings[r.id], steps[r.id]) for r in roster}
    draws = [
        [r.id for r in method.draw(roster, i + 1, config.seed)] for i in range(method.exchanges)
    ]
    at_once = workers(config, len(roster)) if _in_a_pool(plan) else 1
    training = sum(
        max(sum(costs[p] for p in drawn) / at_once, max(costs[p] for p in drawn)) for drawn in draws
    )
    rounds = range(1, method.exchanges + 1)
    scored = sum(index % config.eval_every == 0 or index == method.exchanges for index in rounds)
    turns = Counter(p for drawn in draws for p in drawn)
    counted = [steps[p] for p in turns.elements()]
    sent = [(trial.sent[trainings[p]], count) for p, count in turns.items()]
    net, voters = outline(plan.task), len(draws[0]) if votes(method) else 1
    return Estimate(
        method=plan.name,
        data=config.data,
        partition=config.partition,
        seed=config.seed,
        rounds=method.exchanges,
        parties=_shares(plan, steps),
        steps=None if None in counted else sum(count or 0 for count in counted),
        net=plan.task.net.name,
        parameters=weights(net),
        workers=at_once,
        memory=_memory(plan, at_once) + (vote_bytes(net, voters) if votes(method) else 0),
        bytes_up=sum(one.up * count for one, count in sent) if method.talks else 0,
        bytes_down=sum(one.down + one.down_again * (count - 1) for one, count in sent)
        + commons_size(plan) * len(roster)
        + generator_size(plan) * len(turns)
        if method.talks
        else 0,
        seconds=training + scored * trial.answer_seconds * voters,
        notes=(*plan.notes, *_left_out(method)),
    )


def _shares(plan: Plan, steps: dict[int, int | None]) -> tuple[PartyShare, ...]:
    return tuple(
        PartyShare(ref.name, ref.size, held, steps[ref.id])
        for ref, held in zip(plan.parties.roster(), plan.classes_held, strict=True)
    )


def _steps(plan: Plan) -> dict[int, int | None]:
    """Optimiser steps of every party in a round, by its number."""
    times = plan.trainings
    return {
        party: None if one is None else one * times[party]
        for party, one in _steps_of_one(plan).items()
    }


def _steps_of_one(plan: Plan) -> dict[int, int | None]:
    """Of one of its trainings."""
    return {ref.id: steps for ref, steps in zip(plan.parties.roster(), plan.steps, strict=True)}


def _seconds(trial: Trial, size: int, trainings: int, steps: int | None) -> float:
    if trial.steps and steps is not None:
        return trial.seconds * steps / trial.steps
    return trial.seconds * size * trainings / max(1, trial.size * trial.trainings)


def _memory(plan: Plan, at_once: int) -> int:
    """This process as large as the trial made it,
    and workers as large but for code and data, which they share.
    """
    samples = plan.parties.samples
    data = samples.x.numel() * samples.x.element_size()
    alone = not _in_a_pool(plan)
    return peak() if alone else peak() + at_once * max(0, peak() - shared() - data)


def _in_a_pool(plan: Plan) -> bool:
    """Whether the parties will be run by processes of their own."""
    config, name = plan.config, plan.config.engine.name
    work = Work(plan.method, plan.task, plan.parties, pick_device(config.device))
    return name == "pool" or (name == "auto" and pays(work, config.workers))


def _median_party(plan: Plan) -> PartyRef:
    """Of those that train, if any does."""
    everyone, trainings = plan.parties.roster(), plan.trainings
    roster = [ref for ref in everyone if trainings[ref.id]] or everyone
    middle = median_low(ref.size for ref in roster)
    return next(ref for ref in roster if ref.size == middle)


def _left_out(method: Method[Any, Any, Any]) -> list[str]:
    others = [
        s.name
        for s in fields(method)
        if s.name != "local" and isinstance(getattr(method, s.name), Budget)
    ]
    busy = [name for name in others if getattr(method, name).epochs or getattr(method, name).steps]
    return [f"the time leaves out the training {', '.join(busy)}"] if busy else []
