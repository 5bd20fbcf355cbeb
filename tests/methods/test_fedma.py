"""FedMA: layers are matched one by one and stay frozen;
copies in another order average to what they are.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch

from ostraka.alignment.match import hidden_groups, move
from ostraka.core.card import Card
from ostraka.core.fit import RoundBudget, fit
from ostraka.core.learner import build_net
from ostraka.core.method import Memory, Report, Round
from ostraka.core.net import Net, Params, Recipe, params_of
from ostraka.core.party import Party, PartyRef
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.core.task import Task
from ostraka.errors import ConfigError, OstrakaError
from ostraka.methods.fedma import FedMA, Matched, class_rows, match_in_turn
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.testing import methods as contract

NETS = [
    Recipe("mlp", {"hidden": [7, 5]}),
    Recipe("digits", {"width": 0.05}),
    Recipe("wideresnet", {"depth": 10}),
]
NO_TRAINING = FedMA(local=RoundBudget(steps=0))


def task_of(recipe: Recipe) -> Task:
    return Task(("ant", "bee", "cat"), (1, 8, 8), recipe)


def party_of(number: int, size: int = 24) -> Party:
    y = torch.arange(size) % 3
    x = torch.randn(size, 1, 8, 8, generator=torch_rng(number, "party")) + y[:, None, None, None]
    return Party(PartyRef(number, size), Samples(x, y))


def shuffled(net: Net, seed: int) -> Params:
    params, layers = params_of(net), net.anatomy()
    sizes = {layer.outputs: len(params[layer.weight]) for layer in layers}
    rng = torch_rng(seed, "order")
    return move(
        layers, params, {g: torch.randperm(sizes[g], generator=rng) for g in hidden_groups(layers)}
    )


@pytest.mark.parametrize("recipe", NETS, ids=lambda r: r.name)
def test_parties_in_different_orders_average_to_what_they_are(recipe: Recipe) -> None:
    """A whole cycle without training from two copies in other orders than the first
    party's: every round takes one layer, a party's own later layers follow its map, and
    the model is right after every round.
    """
    task = task_of(recipe)
    net = build_net(task, CrossEntropy(), 3)
    expected, layers = params_of(net), net.anatomy()
    own: dict[int, Params] = {0: expected, 1: shuffled(net, 1), 2: shuffled(net, 2)}
    state = Matched(expected)
    memories: dict[int, Memory] = {}
    for index in range(1, len(layers) + 1):
        assert state.done == index - 1
        reports = []
        for number, params in own.items():
            order = NO_TRAINING.message(state, PartyRef(number, 24))
            if index == 1:  # as if each had trained to its own order
                order = replace(order, params=params)
            report = NO_TRAINING.local_update(
                Round(task, index, order, 0), party_of(number), memories.get(number, {})
            )
            memories[number] = report.memory
            frozen = {n for layer in layers[: index - 1] for n in (layer.weight, *layer.vectors)}
            assert not frozen & set(report.payload)
            reports.append(replace(report, memory={}))
        state = NO_TRAINING.aggregate(task, state, reports)
        for name, tensor in expected.items():
            torch.testing.assert_close(state.params[name], tensor, msg=name)
    assert (state.done, state.maps) == (0, {})
    assert all(memory == {} for memory in memories.values())


@pytest.mark.parametrize("recipe", NETS[1:], ids=lambda r: r.name)
def test_matched_layers_are_frozen_with_their_batch_norm_and_the_others_train(
    recipe: Recipe,
) -> None:
    task, method = task_of(recipe), FedMA(local=RoundBudget(epochs=1, batch=8))
    start = method.init(task, 0)
    state = replace(start, done=2)
    layers = build_net(task, CrossEntropy()).anatomy()
    sent = method.local_update(
        Round(task, 3, method.message(state, PartyRef(0, 24)), 0), party_of(0), {}
    ).payload
    frozen = {n for layer in layers[:2] for n in (layer.weight, *layer.vectors)}
    assert set(sent) == set(start.params) - frozen
    moved = [n for n in sent if not torch.equal(sent[n], start.params[n])]
    assert {layer.weight for layer in layers[2:]} <= set(moved)
    by_hand = build_net(task, CrossEntropy())
    for name in frozen & {name for name, _ in by_hand.named_parameters()}:
        by_hand.get_parameter(name).requires_grad_(False)
    fitted = fit(by_hand, start.params, party_of(0).samples, CrossEntropy(), method.local, 0)
    assert all(torch.equal(tensor, fitted.params[name]) for name, tensor in sent.items())
    after = method.aggregate(task, state, [Report(sent, 24.0, Card(0, 24))])
    assert all(torch.equal(after.params[n], start.params[n]) for n in frozen)


def test_a_party_without_a_memory_starts_from_the_servers_model() -> None:
    task = task_of(NETS[0])
    net = build_net(task, CrossEntropy(), 0)
    state = Matched(params_of(net), 1, {"0": {"first": torch.randperm(7, generator=torch_rng(1))}})
    report = NO_TRAINING.local_update(
        Round(task, 2, NO_TRAINING.message(state, PartyRef(0, 24)), 0), party_of(0), {}
    )
    assert all(torch.equal(tensor, state.params[name]) for name, tensor in report.payload.items())
    stale = {"params": params_of(build_net(task, CrossEntropy(), 9)), "round": 0}
    again = NO_TRAINING.local_update(
        Round(task, 2, NO_TRAINING.message(state, PartyRef(0, 24)), 0), party_of(0), stale
    )
    assert all(torch.equal(tensor, state.params[name]) for name, tensor in again.payload.items())
    fresh = {**stale, "round": 1}
    own = NO_TRAINING.local_update(
        Round(task, 2, NO_TRAINING.message(state, PartyRef(0, 24)), 0), party_of(0), fresh
    )
    order = state.maps["0"]["first"]
    assert torch.equal(own.payload["layers.0.weight"], stale["params"]["layers.0.weight"][:, order])  # type: ignore[index]
    assert "first.weight" not in own.payload


def test_the_last_layer_is_averaged_class_by_class() -> None:
    """Party 0 has 3 samples of the ant and 1 of the bee, party 1 one ant; nobody has a cat.

    The fourth row is unknown. Ant: (3 x 0 + 1 x 8) / 4. Bee: party 0's. Cat and unknown by size:
    (4 x 0 + 1 x 8) / 5.
    """
    last = build_net(
        Task(("ant", "bee", "cat"), (2,), Recipe("mlp", {"hidden": [2]})), CrossEntropy()
    ).anatomy()[-1]
    models = [
        {"last.weight": torch.full((4, 2), v), "last.bias": torch.full((4,), v)} for v in (0.0, 8.0)
    ]
    found = class_rows(last, models, [4.0, 1.0], [(3, 1, 0), (1, 0, 0)])
    torch.testing.assert_close(found["last.bias"], torch.tensor([2.0, 0.0, 1.6, 1.6]))
    torch.testing.assert_close(
        found["last.weight"], torch.tensor([2.0, 0.0, 1.6, 1.6])[:, None].expand(4, 2)
    )


def test_models_are_matched_to_the_mean_of_those_before_by_weight() -> None:
    """One layer of two units; an order is as good as the product of the
    differences between the two units.

    Differences: (1, 0), (1, 20) and (-1, 5). The first two agree (product 1), their mean is (1,
    10), and the third agrees with it (49), although not with the first model alone (-1). If the
    second weighs 1/100, that is (1, 0.198) and the third is crossed (-0.01).
    """
    task = Task(("ant",), (2,), Recipe("mlp", {"hidden": [2]}))
    layers = build_net(task, CrossEntropy()).anatomy()

    def model(*rows: tuple[float, float]) -> Params:
        first = {"first.weight": torch.tensor(rows), "first.bias": torch.zeros(2)}
        return {**first, "last.weight": torch.ones(1, 2), "last.bias": torch.zeros(1)}

    models = [
        model((1.0, 0.0), (0.0, 0.0)),
        model((1.0, 10.0), (0.0, -10.0)),
        model((-1.0, 5.0), (0.0, 0.0)),
    ]

    def orders(weights: list[float], ready: set[str]) -> list[list[int]]:
        return [maps["first"].tolist() for maps in match_in_turn(layers, models, weights, ready)]

    assert orders([1.0, 1.0, 1.0], set()) == [[0, 1], [0, 1], [0, 1]]
    assert orders([1.0, 0.01, 1.0], set()) == [[0, 1], [0, 1], [1, 0]]
    assert orders([1.0, 0.01, 1.0], {"first"}) == [[0, 1]] * 3
    with pytest.raises(OstrakaError, match="no report"):
        match_in_turn(layers, [], [], set())


@pytest.mark.parametrize(
    "check", [contract.check_one_sample_batch, contract.check_resume, contract.check_dropped_party]
)
def test_the_contract_holds_with_batch_norm_and_skip_connections(check: Any) -> None:
    check(FedMA(local=RoundBudget(epochs=1, batch=8)), task_of(NETS[2]))


def test_objectives_with_tensors_of_their_own_and_mute_nets_are_refused() -> None:
    with pytest.raises(ConfigError, match="norm=group"):
        FedMA().init(Task(("a", "b"), (1, 28, 28), Recipe("lenet5", {"norm": "group"})), 0)
