"""FedProx: one training by hand, and mu = 0 is FedAvg."""

from pathlib import Path

import pytest

from ostraka.core.fit import RoundBudget
from ostraka.errors import ConfigError
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedprox import FedProx
from ostraka.store import codec
from tests.methods.toy_line import Squares, final_state, plan_of, update, weight

TWO_STEPS = RoundBudget(epochs=2, lr=0.5, momentum=0.0, weight_decay=0.0)


def test_two_steps_by_hand() -> None:
    """From w = 1 towards 0 with lr 1/2.

    FedAvg: 1, 1/2, 1/4. With mu = 1 the gradient is w + (w - 1): 1, 1/2, 1/2.
    """
    plain = update(FedAvg(objective=Squares(), local=TWO_STEPS), 0, weight(1.0))
    pulled = update(FedProx(objective=Squares(), local=TWO_STEPS, mu=1.0), 0, weight(1.0))
    assert plain.payload["weight"].item() == 0.25
    assert pulled.payload["weight"].item() == 0.5


def test_mu_0_is_fedavg_to_the_bit(tmp_path: Path) -> None:
    training = {"rounds": 2, "local": {"epochs": 2, "batch": 16}}
    fedprox = final_state(plan_of("fedprox", set={**training, "mu": 0.0}), tmp_path / "a")
    fedavg = final_state(plan_of("fedavg", set=training), tmp_path / "b")
    assert codec.encode(fedprox) == codec.encode(fedavg)


def test_a_strong_pull_keeps_the_model_in_place() -> None:
    """With mu = 1 and lr = 1/2 the limit is (0 + 1) / 2; with mu = 9 and lr = 1/10 it is 9/10."""
    budget = RoundBudget(epochs=50, lr=0.1, momentum=0.0, weight_decay=0.0)
    moved = (
        update(FedProx(objective=Squares(), local=budget, mu=9.0), 0, weight(1.0))
        .payload["weight"]
        .item()
    )
    assert moved == pytest.approx(0.9)


def test_a_negative_pull_is_refused() -> None:
    with pytest.raises(ConfigError, match="'mu' is -1"):
        FedProx(mu=-1.0)
