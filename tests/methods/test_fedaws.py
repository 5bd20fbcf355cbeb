"""FedAwS: the spread-out step by hand, what a party gets to see,
and its refusal of mixed parties.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ostraka.core.fit import RoundBudget
from ostraka.core.method import Round
from ostraka.core.net import Recipe
from ostraka.core.objective import Batch
from ostraka.core.party import PartyRef
from ostraka.core.task import Task
from ostraka.errors import ConfigError, DataError, PartyFailed
from ostraka.methods import fedaws
from ostraka.methods.fedaws import FedAwS, Positive, first_rows, last_layer, spread_out
from tests.methods.toy_line import final_state, plan_of, report

ROWS = torch.tensor([[1.0, 0.0], [0.0, 1.0]])


def test_one_step_apart_by_hand() -> None:
    """Two unit vectors at a right angle. -sum ||w - w'||^2 counts the pair twice: 4 w.w' + a
    constant, so the gradient in w_0 is 4 w_1 (w_0 has no part of it to lose). A step of 1/40 leads
    to (1, -1/10), then back to length 1.
    """
    expected = F.normalize(torch.tensor([[1.0, -0.1], [-0.1, 1.0]]), dim=1)
    assert torch.allclose(spread_out(ROWS, nearest=10, step=0.025), expected, atol=1e-6)


def test_only_the_nearest_are_pushed_away() -> None:
    """Of three vectors in a plane, 0 and 1 are close and 2 is opposite.

    With one neighbour each, 0 and 1 part from each other, and 2 pushes itself from its own nearest,
    1, which moves on its account too.
    """
    rows = F.normalize(torch.tensor([[1.0, 0.1], [1.0, -0.2], [-1.0, -0.3]]), dim=1)
    moved = spread_out(rows, nearest=1, step=0.01)
    assert (moved[0] @ moved[1]) < (rows[0] @ rows[1])
    assert (moved[2] @ moved[1]) < (rows[2] @ rows[1])
    assert torch.allclose(moved.norm(dim=1), torch.ones(3))


def test_the_partys_loss_is_the_squared_hinge_of_the_cosine() -> None:
    """Embeddings at cosines 0.6, 1 and 0 from the class vector (1, 0), margin 0.9: (0.3^2 + 0 +
    0.9^2) / 3 = 0.3. The lengths of embeddings and of the vector do not matter.
    """
    task = Task(("a", "b"), (2,), Recipe("mlp", {"hidden": [2]}))
    net = task.build_net(unknown=False)
    rows = last_layer(task, net)[0]
    identity = {
        "first.weight": torch.eye(2),
        "first.bias": torch.zeros(2),
        rows: torch.tensor([[5.0, 0.0], [0.0, 1.0]]),
    }
    net.load_state_dict({**net.state_dict(), **identity})
    batch = Batch(
        torch.tensor([[6.0, 8.0], [2.0, 0.0], [0.0, 3.0]]), torch.zeros(3, dtype=torch.long)
    )
    loss = fedaws._Cosine(rows, 0.9).loss(net, batch, torch.Generator())
    assert loss.item() == pytest.approx(0.3, abs=1e-6)


def test_the_servers_step_is_lambda_local_rates() -> None:
    """Lambda 10 and a rate of 1e-3 are a step of 0.01 along 4 w' (see above): (1, 0)
    moves away from w' by 0.04.
    """
    task = Task(("a", "b"), (2,), Recipe("mlp", {"hidden": [2]}))
    state = replace(FedAwS().init(task, seed=0), rows=ROWS)
    reports = [report(i, Positive(state.body, ROWS[i], i)) for i in (0, 1)]
    expected = F.normalize(torch.tensor([[1.0, -0.04], [-0.04, 1.0]]), dim=1)
    method = FedAwS(local=RoundBudget(lr=1e-3))
    assert torch.allclose(method.aggregate(task, state, reports).rows, expected, atol=1e-6)


def test_a_single_class_stays_in_place_and_no_step_changes_nothing() -> None:
    assert torch.equal(spread_out(ROWS[:1], 10, 0.5), ROWS[:1])
    assert torch.allclose(spread_out(ROWS, 10, 0.0), ROWS)


def test_one_aggregation_by_hand() -> None:
    """Two parties of class 0 with vectors (1, 0) and (0, 1), none of class 1; no spreading.

    Class 0 gets the direction of their mean, class 1 keeps its own; bodies are averaged with equal
    weights, whatever the sizes.
    """
    method = FedAwS(spread=0.0)
    task = Task(("a", "b"), (2,), Recipe("mlp", {"hidden": [2]}))
    state = method.init(task, seed=0)
    reports = [
        report(i, Positive({n: t + 2 * i for n, t in state.body.items()}, ROWS[i], 0), size=1.0 + i)
        for i in (0, 1)
    ]
    after = method.aggregate(task, state, reports)
    assert torch.allclose(after.rows[0], torch.full((2,), 0.5**0.5))
    assert torch.allclose(after.rows[1], state.rows[1])
    assert all(torch.allclose(after.body[n], state.body[n] + 1) for n in state.body)
    assert after.classes == {"0": 0, "1": 0}


def test_a_report_is_loaded_as_often_however_many_classes_there_are() -> None:
    """Reports load when they are looked at: once for the network, once for the class vectors."""

    class Counted(list[Any]):
        looks = 0

        def __iter__(self) -> Any:
            self.looks += 1
            return super().__iter__()

    task = Task(tuple("abcde"), (2,), Recipe("mlp", {"hidden": [2]}))
    state = FedAwS().init(task, seed=0)
    reports = Counted(report(i, Positive(state.body, state.rows[i], i)) for i in range(5))
    FedAwS().aggregate(task, state, reports)
    assert reports.looks == 2


def test_a_party_sees_the_network_and_its_own_class_only() -> None:
    setup = plan_of("fedaws", partition="labels:1", parties=10)
    method, state = setup.method, setup.method.init(setup.task, 0)
    assert not {"last.weight", "last.bias"} & state.body.keys()
    first = method.message(state, PartyRef(3, 5))
    assert first.row is None  # the server does not know the party's class yet
    after = method.aggregate(
        setup.task,
        state,
        [method.local_update(Round(setup.task, 1, first, 1), setup.parties[3], {})],
    )
    assert torch.equal(method.message(after, PartyRef(3, 5)).row, after.rows[3])
    assert method.message(after, PartyRef(4, 5)).row is None


def test_training_brings_a_class_and_its_vector_together() -> None:
    """The mean cosine between a party's samples and its class vector grows.

    The first vector is the server's own. (No spreading here: with such a learning rate one step of
    it would turn the vector away from its class.)
    """
    setup = plan_of(
        "fedaws", partition="labels:1", parties=10, set={"spread": 0.0, "local": {"lr": 0.05}}
    )
    method, party = setup.method, setup.parties[2]
    state = method.init(setup.task, 0)
    assert torch.equal(first_rows(setup.task, 0), state.rows)
    sent = method.local_update(Round(setup.task, 1, method.message(state, party.ref), 1), party, {})
    alone = method.aggregate(setup.task, state, [sent])
    x = party.samples.stored()
    before, after = (
        method.predictor(setup.task, s).scores(x).known[:, 2].mean() for s in (state, alone)
    )
    assert after > before + 0.3


def test_the_farther_from_all_classes_the_more_unknown() -> None:
    """Unknown is minus the largest cosine: an embedding opposite to every
    class scores above one on a class.
    """
    method = FedAwS()
    task = Task(("a", "b"), (2,), Recipe("mlp", {"hidden": [2]}))
    state = method.init(task, seed=0)
    body = {"first.weight": torch.eye(2), "first.bias": torch.zeros(2)}
    predictor = method.predictor(task, type(state)(body, torch.tensor([[1.0, 0.0], [0.8, 0.6]]), 0))
    scores = predictor.scores(torch.tensor([[3.0, 0.0], [0.0, 3.0]]))
    assert scores.closed.tolist() == [0, 1]
    assert scores.unknown[1] > scores.unknown[0]
    assert scores.unknown.tolist() == pytest.approx([-1.0, -0.6])


def test_a_run_with_one_class_each(tmp_path: Path) -> None:
    state = final_state(
        plan_of("fedaws", partition="labels:1", parties=10, set={"rounds": 2}), tmp_path / "run"
    )
    assert state.classes == {str(i): i for i in range(10)}


def test_mixed_parties_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PartyFailed, match=r"has 2 classes\. Divide with labels:1"):
        final_state(plan_of("fedaws", partition="labels:2", parties=10), tmp_path / "run")
    setup = plan_of("fedaws", partition="labels:2", parties=10)
    with pytest.raises(DataError, match="one class each"):
        setup.method.local_update(Round(setup.task, 1, Positive({}, None), 1), setup.parties[0], {})


@pytest.mark.parametrize(
    ("net", "shape"), [("mlp", (4,)), ("simple-cnn", (1, 28, 28)), ("lenet5", (1, 28, 28))]
)
def test_the_last_layer_is_found(net: str, shape: tuple[int, ...]) -> None:
    task = Task(("a", "b", "c"), shape, Recipe(net))
    model = task.build_net(unknown=False)
    names = last_layer(task, model)
    assert [tuple(model.get_parameter(n).shape) for n in names] == [
        (3, model.get_parameter(names[0]).shape[1]),
        (3,),
    ]


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="'nearest' is 0; it must be at least 1"):
        FedAwS(nearest=0)
