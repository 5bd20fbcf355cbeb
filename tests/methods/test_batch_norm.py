"""Batch norm's running statistics under every way to average, and through whole runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.card import Card
from ostraka.core.method import Method, Report
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.task import Task
from ostraka.methods.average import Average
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedma import FedMA
from ostraka.methods.fednova import FedNova, Stepped
from ostraka.methods.fedprox import FedProx
from ostraka.methods.scaffold import Controlled, Scaffold
from ostraka.runs.config import make
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.store.member import load_member

TASK = Task(("a", "b"), (1, 8, 8), Recipe("resnet", {"width": 4}))
SIZES, MEANS, VARIANCES, COUNTERS = (1, 3), (2.0, 6.0), (1.0, 3.0), (10, 21)
AVERAGING = ("fedavg", "scaffold")


def models() -> list[Params]:
    """Two models that differ in their running statistics alone."""
    start = params_of(TASK.build_net(unknown=False, seed=0))
    values = {"running_mean": MEANS, "running_var": VARIANCES, "num_batches_tracked": COUNTERS}
    return [
        {
            name: torch.full_like(tensor, values[part][i])
            if (part := name.rpartition(".")[2]) in values
            else tensor.clone()
            for name, tensor in start.items()
        }
        for i in range(2)
    ]


def averaged(method: Method[Any, Any, Any]) -> Params:
    """What the method makes of the two models."""
    payloads: list[Any] = list(models())
    if isinstance(method, Scaffold):
        payloads = [Controlled(model) for model in payloads]
    if isinstance(method, FedNova):
        payloads = [Stepped(model, 7 * i + 1) for i, model in enumerate(payloads)]
    reports = [
        Report(payload, float(size), Card(i, size, (size, 0)))
        for i, (payload, size) in enumerate(zip(payloads, SIZES, strict=True))
    ]
    state = method.aggregate(TASK, method.init(TASK, seed=0), reports)
    model = method.single_model(state)
    assert model is not None
    return model


@pytest.mark.parametrize(
    ("method", "by_size"),
    [
        (FedAvg(), True),
        (FedAvg(weights="uniform"), False),
        (FedProx(), True),
        (FedNova(), True),
        (FedMA(), True),
        (Average(weights="size"), True),
        (Average(), False),
        (Scaffold(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_running_statistics_by_hand(method: Method[Any, Any, Any], by_size: bool) -> None:
    """Sizes 1 and 3: means (2 + 3 * 6) / 4 = 5, variances (1 + 9) / 4 = 2.5, counters
    (10 + 63) / 4 = 18.25, so 18; all alike: 4, 2 and 15.5, which is rounded to the even 16.
    """
    wanted = {
        "running_mean": 5.0 if by_size else 4.0,
        "running_var": 2.5 if by_size else 2.0,
        "num_batches_tracked": 18 if by_size else 16,
    }
    found, before = averaged(method), models()[0]
    assert found.keys() == before.keys()
    seen = set()
    for name, tensor in found.items():
        part = name.rpartition(".")[2]
        assert tensor.dtype == before[name].dtype
        if part in wanted:
            seen.add(part)
            assert torch.equal(tensor, torch.full_like(tensor, wanted[part])), name
    assert seen == wanted.keys()


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize("method", [*AVERAGING, "fedov", "dedes"])
def test_runs_with_a_normalised_network(method: str, norm: str, tmp_path: Path) -> None:
    """Averages and members answer, are stored and read again; torch carries the layers out."""
    values = {
        "method": method,
        "data": "digits",
        "parties": 2,
        "partition": "iid",
        "train_per_class": 10,
        "net": {"name": "resnet", "options": {"width": 4, "norm": norm}},
        "engine": "serial",
        "set": {
            "local": {"steps": 3, "batch": 16},
            **({"rounds": 2} if method in AVERAGING else {}),
        },
    }
    home = RunDir(tmp_path / "run")
    summary = execute(make_plan(make(values)), home)
    assert 0 <= summary.accuracy <= 100
    environment = json.loads((home.root / "environment.json").read_text())
    assert environment["convolution"].startswith("torch")
    files = sorted((home.root / "members").glob("*"))
    assert len(files) == (0 if method in AVERAGING else 2)
    for file in files:
        names = load_member(file).params
        assert any(name.endswith("running_var") for name in names) == (norm == "batch")
