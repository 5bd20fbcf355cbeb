"""SCAFFOLD: two rounds by hand, the first round is FedAvg, and controls survive being stopped."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.fit import RoundBudget
from ostraka.core.method import Report
from ostraka.errors import ConfigError
from ostraka.methods.scaffold import Controlled, Controls, Scaffold
from ostraka.store import codec
from tests.methods.toy_line import TASK, Squares, final_state, plan_of, update

METHOD = Scaffold(
    objective=Squares(), local=RoundBudget(epochs=2, lr=0.5, momentum=0.0, weight_decay=0.0)
)


def begin(value: float) -> Controls:
    return Controls(Controlled({"weight": torch.tensor([value])}))


def one_round(state: Controls, memories: list[Any]) -> tuple[Controls, list[Report[Controlled]]]:
    reports = [update(METHOD, party, state.sent, memories[party]) for party in (0, 1)]
    return METHOD.aggregate(TASK, state, reports), reports


def numbers(reports: list[Report[Controlled]]) -> list[tuple[float, float]]:
    """Every party's weight and control."""
    return [
        (r.payload.params["weight"].item(), r.memory["control"]["weight"].item()) for r in reports
    ]


def test_two_rounds_by_hand() -> None:
    """Party 0 wants 0, party 1 wants 4; two steps with lr 1/2, so K lr = 1; start w = 1.

    Round 1, no controls: 1, 1/2, 1/4 and 1, 2.5, 3.25; mean 1.75; c_0 = 1 - 1/4, c_1 = 1 -
    3.25; c = -0.75. Round 2, gradients w - 1.5 and w - 2.5 (corrected by c - c_i = -1.5 and
    1.5): 1.75, 1.625, 1.5625 and 1.75, 2.125, 2.3125; mean 1.9375; c_0 = 1.5 + 0.1875,
    c_1 = -1.5 - 0.5625; c = -0.375 / 2.
    """
    state, reports = one_round(begin(1.0), [{}, {}])
    assert numbers(reports) == [(0.25, 0.75), (3.25, -2.25)]
    assert state.sent.params["weight"].item() == 1.75
    assert state.sent.control["weight"].item() == -0.75
    state, reports = one_round(state, [r.memory for r in reports])
    assert numbers(reports) == [(1.5625, 1.6875), (2.3125, -2.0625)]
    assert state.sent.params["weight"].item() == 1.9375
    assert state.sent.control["weight"].item() == -0.1875


def test_absent_parties_count_among_all() -> None:
    """Only party 1 of 2 reports: the model is its own, c = (0 - 2.25) / 2.

    Then party 0 comes: c = (0.75 - 2.25) / 2 if its control is the one of round 1 by hand, made
    from the same start without controls.
    """
    first = update(METHOD, 1, begin(1.0).sent)
    state = METHOD.aggregate(TASK, begin(1.0), [first])
    assert (state.parties, state.sent.control["weight"].item()) == (2, -1.125)
    late = update(METHOD, 0, begin(1.0).sent)
    assert METHOD.aggregate(TASK, state, [late]).sent.control["weight"].item() == -0.75


def test_a_changing_rate_counts_as_the_sum_of_the_rates() -> None:
    """Cosine over two steps: rates 1/2 and 1/4.

    From 1 towards 0: 1/2, 3/8. c_0 = (1 - 3/8) / (3/4) = 5/6.
    """
    budget = RoundBudget(epochs=2, lr=0.5, momentum=0.0, weight_decay=0.0, schedule="cosine")
    report = update(Scaffold(objective=Squares(), local=budget), 0, begin(1.0).sent)
    assert report.memory["control"]["weight"].item() == pytest.approx(5 / 6)


def test_controls_know_the_lower_rate_of_late_rounds() -> None:
    """Second of two rounds, one step of 1/4 of the rate 1/2 from 1 towards 0:
    7/8, so c_0 = (1/8) / (1/8).
    """
    budget = RoundBudget(epochs=1, lr=0.5, momentum=0.0, weight_decay=0.0, late_rate=0.25)
    report = update(
        Scaffold(rounds=2, objective=Squares(), local=budget), 0, begin(1.0).sent, index=2
    )
    assert report.payload.params["weight"].item() == 0.875
    assert report.memory["control"]["weight"].item() == 1.0


def test_the_first_round_is_fedavg_with_equal_weights(tmp_path: Path) -> None:
    training = {"rounds": 1, "local": {"epochs": 2, "batch": 16, "momentum": 0.0, "lr": 0.2}}
    scaffold = final_state(plan_of("scaffold", set=training), tmp_path / "a")
    fedavg = final_state(plan_of("fedavg", set={**training, "weights": "uniform"}), tmp_path / "b")
    assert codec.encode(scaffold.sent.params) == codec.encode(fedavg)


def test_controls_cancel_the_drift_of_unequal_parties() -> None:
    """At the optimum of the mean, w = 2, with the right controls no party moves:
    FedAvg's would, by 1.5 each.
    """
    still = Controlled({"weight": torch.tensor([2.0])}, {"weight": torch.tensor([0.0])})
    memories = [{"control": {"weight": torch.tensor([c])}} for c in (2.0, -2.0)]
    assert [
        update(METHOD, i, still, memories[i]).payload.params["weight"].item() for i in (0, 1)
    ] == [2.0, 2.0]


def test_no_step_leaves_the_controls_in_place() -> None:
    memory = {"control": {"weight": torch.tensor([0.5])}}
    idle = Scaffold(objective=Squares(), local=RoundBudget(steps=0, momentum=0.0))
    report = update(idle, 0, begin(1.0).sent, memory)
    assert report.memory == memory
    assert report.payload.control == {}


@pytest.mark.parametrize("budget", [RoundBudget(), RoundBudget(optimiser="adam", momentum=0.0)])
def test_momentum_and_adam_are_refused(budget: RoundBudget) -> None:
    with pytest.raises(ConfigError, match="plain sgd"):
        Scaffold(local=budget)
