"""Reports that cannot be used are refused, with what is wrong."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from ostraka.core.card import Card
from ostraka.core.method import Report
from ostraka.core.net import Recipe, params_of
from ostraka.core.task import Task
from ostraka.errors import ReportRefused
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedpd import Disentangled, FedPD
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
    params = params_of(TASK.build_net(unknown=True))
    FedPD().inspect(TASK, replace(GOOD, payload=Disentangled(params)))
    with pytest.raises(ReportRefused, match="answers with NaN"):
        FedPD().inspect(
            TASK, replace(GOOD, payload=Disentangled({k: t * 1e30 for k, t in params.items()}))
        )


def test_every_method_refuses_a_card_that_lies_about_its_classes() -> None:
    for name in METHODS:
        with pytest.raises(ReportRefused, match="class counts"):
            METHODS.get(name)().inspect(TASK, BAD["too many counts"][0])
