"""FedAvg and centralised training: one round by hand, limit cases, and learning."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.card import Card
from ostraka.core.fit import Budget, RoundBudget, fit
from ostraka.core.learner import build_net
from ostraka.core.method import Report, Round
from ostraka.core.net import Params, Recipe
from ostraka.core.params import average
from ostraka.core.party import PartyRef
from ostraka.core.task import Commons, Task
from ostraka.errors import OstrakaError
from ostraka.methods.centralised import Centralised
from ostraka.methods.fedavg import FedAvg
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan, party_seed
from ostraka.runs.record import RunDir
from ostraka.store import codec
from tests.methods.toy_line import Squares, final_state, update, weight

TASK = Task(("ant", "bee"), (2,), Recipe("mlp", {"hidden": [3]}))
SMALL = {
    "train_per_class": 12,
    "partition": "iid",
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [8]}},
}


def plan_of(method: str, **values: Any) -> Plan:
    return make_plan(config.make({"method": method, **SMALL, **values}))


def report(party: int, values: list[float], size: float) -> Report[Params]:
    return Report({"w": torch.tensor(values)}, size, Card(party, int(size)))


REPORTS = [report(0, [1.0, 2.0], 1.0), report(1, [5.0, -2.0], 3.0)]


@pytest.mark.parametrize(("weights", "mean"), [("size", [4.0, -1.0]), ("uniform", [3.0, 0.0])])
def test_the_server_takes_the_weighted_mean(weights: Any, mean: list[float]) -> None:
    """Sizes 1 and 3: (1 * 1 + 3 * 5) / 4 = 4 and (2 - 6) / 4 = -1.

    All the same: (1 + 5) / 2 = 3 and 0.
    """
    assert FedAvg(weights=weights).aggregate(TASK, {}, REPORTS)["w"].tolist() == mean


def test_no_report_is_an_error() -> None:
    with pytest.raises(OstrakaError, match="no report arrived"):
        FedAvg().aggregate(TASK, {}, [])


def test_one_round_is_the_mean_of_the_parties_own_trainings(tmp_path: Path) -> None:
    """Every party's `fit` from the same start with its own seed, averaged by size:
    the run gives the same bits.
    """
    local = {"epochs": 2, "batch": 16, "lr": 0.01}
    plan = plan_of("fedavg", parties=3, set={"rounds": 1, "local": local})
    method = plan.method
    start = method.init(plan.task, plan.config.seed)
    trained = []
    for party in plan.parties:
        net, seed = build_net(plan.task, CrossEntropy()), party_seed(plan.config, 1, party.id)
        fitted = fit(net, start, party.samples, CrossEntropy(), Budget(epochs=2, batch=16), seed)
        trained.append((fitted.params, float(len(party.samples))))
    assert codec.encode(final_state(plan, tmp_path / "run")) == codec.encode(average(trained))


@pytest.mark.parametrize("rounds", [1, 2])
def test_one_party_is_plain_training(rounds: int, tmp_path: Path) -> None:
    """With one party the mean is that party's model: `fit`, round after round, to the bit."""
    plan = plan_of(
        "fedavg", parties=1, set={"rounds": rounds, "local": {"epochs": 2, "batch": 16, "lr": 0.1}}
    )
    params = plan.method.init(plan.task, plan.config.seed)
    samples = plan.parties[0].samples
    for index in range(1, rounds + 1):
        seed = party_seed(plan.config, index, 0)
        net = build_net(plan.task, CrossEntropy())
        params = fit(
            net, params, samples, CrossEntropy(), Budget(epochs=2, batch=16, lr=0.1), seed
        ).params
    assert codec.encode(final_state(plan, tmp_path / "run")) == codec.encode(params)


def test_a_rate_that_is_lower_in_the_second_half_of_all_rounds() -> None:
    """Party 1 wants 4 and starts at 0: one step of rate 1/2 leads to 2,
    one of a quarter of that to 1/2.
    """
    method = FedAvg(
        rounds=2,
        objective=Squares(),
        local=RoundBudget(epochs=1, lr=0.5, weight_decay=0.0, late_rate=0.25),
    )
    steps = [
        update(method, 1, weight(0.0), index=index).payload["weight"].item() for index in (1, 2)
    ]
    assert steps == [2.0, 0.5]


def test_one_party_and_one_round_is_centralised_training(tmp_path: Path) -> None:
    values = {"parties": 1, "set": {"rounds": 1, "local": {"epochs": 3, "batch": 16}}}
    fedavg = final_state(plan_of("fedavg", **values), tmp_path / "a")
    centralised = final_state(plan_of("centralised", **values), tmp_path / "b")
    assert codec.encode(fedavg) == codec.encode(centralised)


def test_partial_participation_uses_the_drawn_parties_only(tmp_path: Path) -> None:
    """A quarter of four parties is one: the state is that party's own training."""
    plan = plan_of("fedavg", parties=4, set={"rounds": 1, "fraction": 0.25, "local": {"epochs": 1}})
    (drawn,) = plan.method.draw(plan.parties.roster(), 1, plan.config.seed)
    start = plan.method.init(plan.task, plan.config.seed)
    rnd = Round(plan.task, 1, start, party_seed(plan.config, 1, drawn.id))
    alone = plan.method.local_update(rnd, plan.parties[drawn.id], {}).payload
    assert codec.encode(final_state(plan, tmp_path / "run")) == codec.encode(alone)


def test_a_start_from_the_commons() -> None:
    start = {"w": torch.ones(1)}
    task = replace(TASK, commons=Commons(nets={"start": start}))
    assert FedAvg().init(task, seed=0) is start
    assert FedAvg().message(start, PartyRef(0, 1)) is start


@pytest.mark.parametrize(
    ("rounds", "fraction", "epochs", "passes"),
    [(4, 0.5, 3, 6), (10, 1.0, 2, 20), (1, 0.1, 1, 1), (3, 0.5, 1, 2)],
)
def test_centralised_makes_the_passes_of_the_federation(
    rounds: int, fraction: float, epochs: int, passes: int
) -> None:
    """rounds * fraction * epochs: 4 * 0.5 * 3 = 6; 0.1 of a pass becomes one; 1.5 rounds to 2."""
    method = Centralised(rounds=rounds, fraction=fraction, local=RoundBudget(epochs=epochs))
    assert method.budget().epochs == passes
    assert method.exchanges == 1


def test_centralised_steps() -> None:
    """5 steps in each of 4 rounds by half of the parties: 10."""
    assert Centralised(rounds=4, fraction=0.5, local=RoundBudget(steps=5)).budget().steps == 10


def test_a_small_share_of_a_limit_is_still_a_limit() -> None:
    """A tenth of 3 steps rounds to 0, which would mean no limit."""
    tenth = Centralised(rounds=1, fraction=0.1)
    assert replace(tenth, local=RoundBudget(most_steps=3)).budget().most_steps == 1
    assert replace(tenth, local=RoundBudget(most_steps=0)).budget().most_steps == 0
    assert Centralised(rounds=4, local=RoundBudget(class_steps=5)).budget().class_steps == 20
    assert replace(tenth, local=RoundBudget(steps=3)).budget().steps == 1
    least = Centralised(rounds=4, local=RoundBudget(least_steps=5, least_class_steps=2)).budget()
    assert (least.least_steps, least.least_class_steps) == (20, 8)


def test_centralised_trains_on_everything_in_one_go(tmp_path: Path) -> None:
    """2 rounds of 3 epochs: one `fit` of 6 epochs over the rows of all parties,
    from FedAvg's own start.
    """
    local = {"epochs": 3, "batch": 16, "lr": 0.01}
    plan = plan_of("centralised", parties=3, set={"rounds": 2, "local": local})
    assert [len(p.samples) for p in plan.parties] == [120]
    start = FedAvg().init(plan.task, plan.config.seed)
    seed = party_seed(plan.config, 1, 0)
    net = build_net(plan.task, CrossEntropy())
    expected = fit(
        net, start, plan.parties[0].samples, CrossEntropy(), Budget(epochs=6, batch=16), seed
    ).params
    assert codec.encode(final_state(plan, tmp_path / "run")) == codec.encode(expected)


def test_nothing_is_sent_in_centralised_training(tmp_path: Path) -> None:
    summary = execute(
        plan_of("centralised", set={"local": {"epochs": 1}}), RunDir(tmp_path / "run")
    )
    assert (summary.bytes_up, summary.bytes_down) == (0, 0)


@pytest.mark.parametrize("method", ["fedavg", "centralised", "closed-voting", "solo"])
def test_no_training_at_all_is_allowed(method: str, tmp_path: Path) -> None:
    """Zero steps: nothing to learn from, but no fault either."""
    execute(plan_of(method, parties=2, set={"local": {"steps": 0}}), RunDir(tmp_path / "run"))


def test_fedavg_learns_as_well_as_pooled_training(tmp_path: Path) -> None:
    """IID parties on the bundled data at equal sample passes:
    within 2 points of pooled training.
    """
    values = {
        "data": "fashion-4k",
        "partition": "iid",
        "parties": LEARNING["parties"],
        "engine": "serial",
        "eval_every": LEARNING["rounds"],
        "set": {
            "rounds": LEARNING["rounds"],
            "local": {
                "epochs": LEARNING["epochs"],
                "lr": LEARNING["lr"],
                "batch": LEARNING["batch"],
            },
        },
    }
    accuracy = {}
    for method in ("fedavg", "centralised"):
        plan = make_plan(config.make({"method": method, **values}))
        accuracy[method] = execute(plan, RunDir(tmp_path / method)).accuracy
    print(
        f"fedavg {accuracy['fedavg']:.1f} %, pooled "
        f"{accuracy['centralised']:.1f} % at equal sample passes"
    )
    assert accuracy["centralised"] > 78
    assert abs(accuracy["fedavg"] - accuracy["centralised"]) <= 2, accuracy


LEARNING: dict[str, Any] = {"parties": 4, "rounds": 30, "epochs": 1, "lr": 0.04, "batch": 32}
