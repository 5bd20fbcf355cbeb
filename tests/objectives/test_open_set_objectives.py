"""What all open-set objectives share: they learn, and they vote.

That they keep the contract is tested in contract.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch

from ostraka.core import settings
from ostraka.core.fit import Budget, RoundBudget, fit
from ostraka.core.learner import NetPredictor, build_net
from ostraka.core.method import Round
from ostraka.core.net import Recipe
from ostraka.core.objective import Objective
from ostraka.core.party import Parties
from ostraka.core.samples import Samples, View
from ostraka.core.task import Task
from ostraka.data import known_split, load
from ostraka.evaluation.evaluate import evaluate
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedov import FedOV
from ostraka.methods.fedprox import FedProx
from ostraka.methods.scaffold import Scaffold
from ostraka.registry import OBJECTIVES
from ostraka.testing import methods

NAMES = ("softmax", "openmax", "rpl", "arpl", "arpl+cs", "dias", "ssb", "proser")
KNOWN = (0, 1, 7, 8)
"""T-shirts, trousers, sneakers and bags, against pullovers, dresses, coats,
sandals, shirts and ankle boots.
"""


def make(name: str) -> Objective:
    objective: Objective = OBJECTIVES.get(name)()
    return objective


@pytest.mark.parametrize("name", NAMES)
def test_known_and_unknown_clothes_are_told_apart(name: str) -> None:
    """Every third training image, eight epochs.

    Chance is 25 % of the classes right and an AUROC of 50 %.
    """
    data = known_split(load("fashion-4k"), KNOWN)
    objective, task = make(name), Task(data.classes, data.train.shape, Recipe("simple-cnn"))
    net = build_net(task, objective, seed=0)
    some = data.train.take(torch.arange(0, len(data.train), 3))
    fit(net, None, some, objective, Budget(epochs=8, batch=32, optimiser="adam", lr=2e-3), seed=0)
    figures = evaluate(NetPredictor(net, objective, view=data.test.view), data.test, data.classes)
    assert figures.accuracy is not None
    assert figures.open is not None
    assert figures.open.auroc is not None
    assert figures.accuracy > 90
    assert figures.open.auroc > 65


def test_workers_train_helpers_as_one_process_does() -> None:
    shared = settings.build(OBJECTIVES.get("dias"), {"share": True})
    methods.check_pool(
        FedAvg(rounds=2, objective=shared, local=RoundBudget(epochs=1, batch=16)), None
    )


@pytest.mark.parametrize(
    "method", [FedProx(rounds=2), Scaffold(rounds=2)], ids=lambda m: type(m).__name__
)
def test_other_averaging_methods_leave_travelling_helpers_to_themselves(method: Any) -> None:
    shared = settings.build(OBJECTIVES.get("arpl+cs"), {"share": True})
    own = replace(method, objective=shared)
    for check in (methods.check_codec, methods.check_scores, methods.check_interrupted_fit):
        check(replace(own, local=own.local.changed(epochs=1, batch=16)), None)


@pytest.mark.parametrize("method", [ClosedVoting, FedOV], ids=["sum", "calibrated"])
@pytest.mark.parametrize("name", NAMES[1:-1])
def test_members_that_see_two_classes_each_vote_sensibly(method: Any, name: str) -> None:
    """Two parties with two of four clusters each. One member alone can be right on a half."""
    own = method(objective=make(name), local=Budget(steps=150, batch=40, optimiser="adam", lr=1e-2))
    task = Task(tuple("abcd"), (6,), Recipe("mlp", {"hidden": [32, 16]}))
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(160) % 4
    x = 3 * torch.eye(6)[y] + 0.3 * torch.randn(160, 6, generator=rng)
    parties = [
        Samples(x, y, ((y == a) | (y == b)).nonzero().squeeze(1), View(kind="table"))
        for a, b in ((0, 1), (2, 3))
    ]
    panel = panel_of(own, task, parties)
    scores = own.predictor(task, panel).scores(x)
    assert scores.known.isfinite().all()
    assert scores.unknown.isfinite().all()
    assert (scores.closed == y).double().mean() > 0.7


def panel_of(method: Any, task: Task, parties: list[Samples]) -> Any:
    """The panel of members that parties with these samples upload."""
    state = method.init(task, 0)
    rows = [samples.rows for samples in parties]
    group = Parties.of(replace(parties[0], rows=None), rows)
    reports = [
        method.local_update(Round(task, 1, method.message(state, party.ref), party.id), party, {})
        for party in (group[i] for i in range(len(rows)))
    ]
    return method.aggregate(task, state, reports)


@pytest.mark.parametrize("name", NAMES)
def test_registered_and_rebuilt_from_plain_values(name: str) -> None:
    objective = make(name)
    assert settings.build(type(objective), settings.values_of(objective)) == objective
