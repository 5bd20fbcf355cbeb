"""FedNova: the steps' weight, one aggregation by hand, and equal steps are FedAvg."""

from pathlib import Path

import pytest
import torch

from ostraka.core.fit import RoundBudget
from ostraka.core.net import Recipe
from ostraka.core.task import Task
from ostraka.errors import ConfigError, OstrakaError
from ostraka.methods.fednova import FedNova, Stepped, effective_steps
from tests.methods.toy_line import TASK, final_state, plan_of, report, weight

HALF = RoundBudget(momentum=0.5)


@pytest.mark.parametrize(
    ("steps", "momentum", "expected"), [(0, 0.5, 0), (1, 0.5, 1), (2, 0.5, 2.5), (7, 0.0, 7)]
)
def test_effective_steps_by_hand(steps: int, momentum: float, expected: float) -> None:
    """With momentum 1/2 the first of two gradients counts 1 + 1/2, the second 1: 2.5 in all."""
    assert effective_steps(steps, momentum) == pytest.approx(expected)


def test_effective_steps_are_what_sgd_does() -> None:
    """A constant gradient of 1 with lr 1 moves a weight by exactly a."""
    moved = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([moved], lr=1.0, momentum=0.9)
    for steps in range(1, 30):
        moved.grad = torch.ones(1)
        optimiser.step()
        assert -moved.item() == pytest.approx(effective_steps(steps, 0.9), rel=1e-5)


def test_one_aggregation_by_hand() -> None:
    """w = 10; sizes 1 and 3; 1 and 2 steps with momentum 1/2, so a = 1 and 2.5.

    d = (10 - 8) / 1 = 2 and (10 - 0) / 2.5 = 4; sum p a = 1/4 + 3/4 * 2.5 = 2.125; sum p
    d = 1/2 + 3 = 3.5; w = 10 - 2.125 * 3.5 = 2.5625. All the same weight: 10 - 1.75 *
    3 = 4.75. (FedAvg by size gives 2.)
    """
    reports = [report(0, Stepped(weight(8.0), 1), 1.0), report(1, Stepped(weight(0.0), 2), 3.0)]
    assert FedNova(local=HALF).aggregate(TASK, weight(10.0), reports)["weight"].tolist() == [2.5625]
    uniform = FedNova(local=HALF, weights="uniform").aggregate(TASK, weight(10.0), reports)
    assert uniform["weight"].tolist() == [4.75]


def test_equal_steps_are_fedavg(tmp_path: Path) -> None:
    training = {"rounds": 2, "local": {"steps": 5, "batch": 16}}
    fednova = final_state(plan_of("fednova", set=training), tmp_path / "a")
    fedavg = final_state(plan_of("fedavg", set=training), tmp_path / "b")
    assert fednova.keys() == fedavg.keys()
    assert all(torch.allclose(fednova[name], fedavg[name], atol=1e-6) for name in fedavg)


def test_no_step_leaves_the_model_in_place() -> None:
    reports = [report(0, Stepped(weight(10.0), 0))]
    assert FedNova().aggregate(TASK, weight(10.0), reports)["weight"].tolist() == [10.0]


def test_running_means_are_averaged() -> None:
    """Batch norm's variance must not be driven below 0 by a step beyond the mean."""
    task = Task(("a", "b"), (1, 28, 28), Recipe("lenet5", {"norm": "batch"}))
    state = FedNova().init(task, seed=0)
    models = [{n: t + i + 1 if "running" in n else t for n, t in state.items()} for i in range(2)]
    merged = FedNova().aggregate(
        task, state, [report(i, Stepped(m, 9 * i + 1)) for i, m in enumerate(models)]
    )
    assert list(merged) == list(state)
    assert torch.allclose(merged["norm1.running_var"], state["norm1.running_var"] + 1.5)
    assert merged["norm1.num_batches_tracked"].dtype == torch.int64


@pytest.mark.parametrize("budget", [{"optimiser": "adam"}, {"schedule": "cosine"}])
def test_what_the_formula_does_not_hold_for_is_refused(budget: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="local"):
        FedNova(local=RoundBudget(**budget))  # type: ignore[arg-type]


def test_no_report_is_an_error() -> None:
    with pytest.raises(OstrakaError, match="no report arrived"):
        FedNova().aggregate(TASK, weight(0.0), [])
