"""Seams for what comes: parties with networks of their own, and many networks in one report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.fit import Budget, fit
from ostraka.core.learner import NetPredictor, build_net, load_predictor
from ostraka.core.method import Memory, Method, Report, Round
from ostraka.core.net import Params, Recipe
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor, Scores
from ostraka.core.task import Task
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.runs.config import make
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.store.member import load_member
from ostraka.testing import check_method
from ostraka.voting.ensemble import Ensemble

SMALL = {
    "method": "fedov", "data": "digits", "partition": "labels:4", "parties": 3, "engine": "serial",
    "train_per_class": 30, "net": {"name": "mlp", "options": {"hidden": [8]}},
    "set": {"local": {"steps": 20}},
}  # fmt: skip


def test_a_party_may_have_a_network_of_its_own(tmp_path: Path) -> None:
    """Party 1 trains a wider one.

    Its file says so, all vote together, and files vote as the run did.
    """
    plan = make_plan(make(SMALL))
    wide = Recipe("mlp", {"hidden": [12, 5]})
    plan = replace(plan, task=replace(plan.task, nets={1: wide}))
    execute(plan, RunDir(tmp_path / "run"))
    members = [load_member(p) for p in sorted((tmp_path / "run" / "members").iterdir())]
    assert [tuple(m.model.net.options["hidden"]) for m in members] == [(8,), (12, 5), (8,)]
    state = RunDir(tmp_path / "run").model_place().load()["state"]
    x = plan.test.samples.stored(slice(0, 20))
    method: Any = plan.method
    whole = plan.method.predictor(plan.task, state)
    again = Ensemble.of(members, method.ballot, plan.task.classes, junk=state.junk)
    assert torch.equal(whole.scores(x).known, again.scores(x).known)


def test_the_task_of_a_party_is_the_common_one_where_it_has_no_other() -> None:
    task = Task(("ant", "bee"), (4,), Recipe("mlp"), nets={3: Recipe("mlp", {"hidden": [2]})})
    assert task.for_party(PartyRef(0, 9)) is task
    own = task.for_party(PartyRef(3, 9))
    assert own.net.options == {"hidden": [2]}
    assert own.classes == task.classes


@final
@dataclass(frozen=True)
class OneVsRest(Method[dict[str, Params], dict[str, Params], dict[str, Params]]):
    """One binary network for each class: a report holds those of the classes that a party has."""

    local: Budget = Budget(epochs=1)

    def init(self, task: Task, seed: int) -> dict[str, Params]:
        return {
            name: build_net(_binary(task, name), CrossEntropy(), seed).state_dict()
            for name in task.classes
        }

    def message(self, state: dict[str, Params], party: PartyRef) -> dict[str, Params]:
        return state

    def local_update(
        self, rnd: Round[dict[str, Params]], party: Party, memory: Memory
    ) -> Report[dict[str, Params]]:
        trained, labels = {}, party.samples.labels
        for number, name in enumerate(rnd.task.classes):
            if (labels == number).any():
                own = replace(party.samples, y=(party.samples.y != number).long())
                net = build_net(_binary(rnd.task, name), CrossEntropy())
                fitted = fit(
                    net,
                    rnd.message[name],
                    own,
                    CrossEntropy(),
                    self.local,
                    rnd.seed,
                    party.progress,
                    name,
                )
                trained[name] = fitted.params
        return Report(trained, 1.0, Card(party.id, len(party.samples)))

    def aggregate(
        self, task: Task, state: dict[str, Params], reports: Sequence[Report[dict[str, Params]]]
    ) -> dict[str, Params]:
        out = dict(state)
        for name in task.classes:
            mine = [r.payload[name] for r in reports if name in r.payload]
            if mine:
                out[name] = {
                    key: torch.stack([p[key] for p in mine]).mean(dim=0) for key in mine[0]
                }
        return out

    def predictor(self, task: Task, state: dict[str, Params]) -> Predictor:
        nets = {n: load_predictor(_binary(task, n), CrossEntropy(), state[n]) for n in task.classes}
        return OwnScores(nets)


def _binary(task: Task, name: str) -> Task:
    return replace(task, classes=(name, f"not {name}"))


@final
@dataclass(frozen=True)
class OwnScores(Predictor):
    """Each class scored by its own network."""

    nets: Mapping[str, NetPredictor]

    def scores(self, x: Tensor) -> Scores:
        known = torch.stack(
            [net.scores(x).known.softmax(dim=1)[:, 0] for net in self.nets.values()], dim=1
        )
        return Scores(known, -known.max(dim=1).values, -0.5)


def test_a_method_of_many_networks_keeps_the_whole_contract() -> None:
    """Payloads and state are dicts of networks by name.

    A part of the classes is trained at each party.
    """
    check_method(OneVsRest())
