"""Reports that cannot be used are refused, with what is wrong."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from ostraka.core.arrival import check_varied
from ostraka.core.card import Card
from ostraka.core.method import Report
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.task import Task
from ostraka.errors import ReportRefused
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedaws import FedAwS, Positive
from ostraka.methods.fednova import FedNova, Stepped
from ostraka.methods.fedpd import Disentangled, FedPD
from ostraka.methods.scaffold import Controlled, Scaffold
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import METHODS

TASK = Task(("ant", "bee"), (4,), Recipe("mlp", {"hidden": [5]}))
PARAMS = params_of(TASK.build_net(unknown=False))
GOOD = Report(PARAMS, 9.0, Card(0, 9, (4, 5), {"loss": 0.5}, {"doubt": -1.0}))


def spoilt(name: str, value: float) -> dict[str, torch.Tensor]:
    tensor = PARAMS[name].clone()
    tensor.view(-1)[0] = value
    return {**PARAMS, name: tensor}


BAD: dict[str, tuple[Report[Any], str]] = {
    "nan": (
        replace(GOOD, payload=spoilt("first.bias", float("nan"))),
        r"first\.bias holds 1 of 5 numbers",
    ),
    "infinite": (
        replace(GOOD, payload=spoilt("last.weight", float("inf"))),
        r"last\.weight holds 1 of 10 numbers",
    ),
    "huge": (
        replace(GOOD, payload={k: t * 1e30 for k, t in PARAMS.items()}),
        "its network answers with NaN or infinity; its largest weight is .*e",
    ),
    "of another network": (
        replace(GOOD, payload={"w": torch.ones(1)}),
        "not those of this task's network",
    ),
    "nothing": (replace(GOOD, payload=None), "there is a NoneType in their place"),
    "a tensor too few": (
        replace(GOOD, payload={k: t for k, t in PARAMS.items() if k != "last.bias"}),
        r"this task's network: without last\.bias$",
    ),
    "a tensor too many": (
        replace(GOOD, payload={**PARAMS, "more": torch.ones(1)}),
        "this task's network: with more$",
    ),
    "another precision": (
        replace(GOOD, payload={**PARAMS, "first.bias": PARAMS["first.bias"].double()}),
        r"first\.bias is float64 \[5\] instead of float32 \[5\]",
    ),
    "another shape": (
        replace(GOOD, payload={**PARAMS, "first.bias": torch.ones(1)}),
        r"first\.bias is float32 \[1\] instead of float32 \[5\]",
    ),
    "text as size": (
        replace(GOOD, card=replace(GOOD.card, size="9")),  # type: ignore[arg-type]
        "its card tells the size '9'",
    ),
    "text as a score": (
        replace(GOOD, card=replace(GOOD.card, scores={"loss": "low"})),  # type: ignore[dict-item]
        "tells 'low' as its loss",
    ),
    "weight": (replace(GOOD, weight=float("nan")), "its weight is nan"),
    "negative weight": (replace(GOOD, weight=-1.0), "its weight is -1.0"),
    "score": (
        replace(GOOD, card=replace(GOOD.card, scores={"loss": float("nan")})),
        r"its card\.scores\.loss holds 1",
    ),
    "doubt": (
        replace(GOOD, card=replace(GOOD.card, calibration={"doubt": float("inf")})),
        r"calibration\.doubt holds",
    ),
    "statistics": (
        replace(
            GOOD,
            card=replace(
                GOOD.card, calibration={"typicality": {"means": torch.tensor([1.0, torch.nan])}}
            ),
        ),
        r"typicality\.means holds 1 of 2",
    ),
    "too many counts": (
        replace(GOOD, card=replace(GOOD.card, counts=(1, 2, 3))),
        "tells 3 class counts, but there",
    ),
    "negative counts": (
        replace(GOOD, card=replace(GOOD.card, counts=(10, -1))),
        r"class counts \[10, -1\]",
    ),
    "broken counts": (
        replace(GOOD, card=replace(GOOD.card, counts=(0.5, 1))),
        r"class counts \[0\.5, 1\]",
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("method", [ClosedVoting(), FedAvg()], ids=["voting", "averaging"])
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused(case: str, method: Any) -> None:
    method.inspect(TASK, GOOD)
    report, words = BAD[case]
    with pytest.raises(ReportRefused, match=words):
        method.inspect(TASK, report)


def test_models_inside_other_payloads_are_looked_at() -> None:
    params, masks = parts_of_fedpd()
    FedPD().inspect(TASK, replace(GOOD, payload=Disentangled(params, masks)))
    huge = {name: tensor * 1e30 for name, tensor in params.items()}
    with pytest.raises(ReportRefused, match="answers with NaN"):
        FedPD().inspect(TASK, replace(GOOD, payload=Disentangled(huge, masks)))


def parts_of_fedpd() -> tuple[Params, Params]:
    """A network with an unknown output, and masks of its layers' weights."""
    params = params_of(TASK.build_net(unknown=True))
    masks = {n: torch.ones_like(t, dtype=torch.uint8) for n, t in params.items() if "weight" in n}
    return params, masks


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, r"its tensors are not those of the masks: without first\.weight, last\.weight"),
        ({"first.weight": torch.ones(5, 4)}, r"first\.weight is float32 \[5, 4\] instead of uint8"),
        ({"last.weight": torch.full((3, 5), 4, dtype=torch.uint8)}, r"last\.weight has values ab"),
    ],
)
def test_masks_of_fedpd_are_looked_at(change: Params, words: str) -> None:
    params, masks = parts_of_fedpd()
    odd = Disentangled(params, {**masks, **change} if change else {})
    with pytest.raises(ReportRefused, match=words):
        FedPD().inspect(TASK, replace(GOOD, payload=odd))


@pytest.mark.parametrize("steps", [-1, 1.5, "9", True])
def test_steps_that_would_turn_fednovas_change_are_refused(steps: Any) -> None:
    FedNova().inspect(TASK, replace(GOOD, payload=Stepped(PARAMS, 0)))
    with pytest.raises(ReportRefused, match="steps; it must be a number from 0"):
        FedNova().inspect(TASK, replace(GOOD, payload=Stepped(PARAMS, steps)))


def test_a_control_that_would_spread_over_others_is_refused() -> None:
    """One value in the place of ten would be added to each of them."""
    Scaffold().inspect(TASK, replace(GOOD, payload=Controlled(PARAMS, PARAMS)))
    Scaffold().inspect(TASK, replace(GOOD, payload=Controlled(PARAMS)))
    odd = Controlled(PARAMS, {**PARAMS, "last.weight": torch.ones(1)})
    with pytest.raises(ReportRefused, match=r"the controls: last\.weight is float32 \[1\] instead"):
        Scaffold().inspect(TASK, replace(GOOD, payload=odd))


def test_a_class_of_fedaws_that_does_not_exist_is_refused() -> None:
    start = FedAwS().init(TASK, 0)
    FedAwS().inspect(TASK, replace(GOOD, payload=Positive(start.body, start.rows[0], 1)))
    for label in (2, -1, None, True):
        odd = Positive(start.body, start.rows[0], label)
        with pytest.raises(ReportRefused, match=r"its class is .*; it must be 0 to 1"):
            FedAwS().inspect(TASK, replace(GOOD, payload=odd))


def test_every_method_refuses_a_card_that_lies_about_its_classes() -> None:
    for name in METHODS:
        with pytest.raises(ReportRefused, match="class counts"):
            METHODS.get(name)().inspect(TASK, BAD["too many counts"][0])


def test_a_network_need_not_tell_noise_apart() -> None:
    """It fires where 400 values sum up to more than 300: noise from 0 to 1 has 200, give or take 6,
    normal noise 0, give or take 20; only the constant 1 has more. Without a weight nothing has.
    """
    task = Task(("ant", "bee"), (400,), Recipe("mlp", {"hidden": [1]}))
    params = {
        "first.weight": torch.ones(1, 400),
        "first.bias": torch.tensor([-300.0]),
        "last.weight": torch.tensor([[1.0], [0.0]]),
        "last.bias": torch.zeros(2),
    }
    check_varied(task, CrossEntropy(), params)
    with pytest.raises(ReportRefused, match="the same answer to 12 different probes"):
        check_varied(task, CrossEntropy(), {**params, "first.weight": torch.zeros(1, 400)})
