"""Aligning whole networks: copies in another order come back,
predictions never change, errors are clear.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ostraka.alignment.match import check_covered, match, matched_average, move
from ostraka.alignment.transport import Entropic, Exact
from ostraka.core.net import INPUT, OUTPUT, Layer, Net, Recipe, params_of
from ostraka.errors import ConfigError
from ostraka.registry import NETS
from tests.alignment.copies import inputs_of, outputs, random_net, recipes, shuffled

CASES = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10**6)


@CASES
@given(recipes(), SEEDS)
def test_a_shuffled_copy_comes_back_to_the_bit(recipe: Recipe, seed: int) -> None:
    """Weights, batch norm and its statistics; and it computed the same all the while."""
    net = random_net(recipe, seed)
    original, x = params_of(net), inputs_of(net, recipe)
    copy, _ = shuffled(net, seed + 1)
    torch.testing.assert_close(
        outputs(net, copy, x), outputs(net, original, x), rtol=1e-4, atol=1e-5
    )
    back = move(net.anatomy(), copy, match(net.anatomy(), copy, original, Exact()))
    assert all(torch.equal(back[name], tensor) for name, tensor in original.items())
    mean = matched_average(net.anatomy(), [original, copy], 0, Exact())
    assert all(torch.equal(mean[name], tensor) for name, tensor in original.items())


@CASES
@given(recipes(), SEEDS)
def test_alignment_to_a_stranger_never_changes_predictions(recipe: Recipe, seed: int) -> None:
    net, other = random_net(recipe, seed), random_net(recipe, seed + 1)
    x, maps = (
        inputs_of(net, recipe),
        match(net.anatomy(), params_of(net), params_of(other), Exact()),
    )
    aligned = move(net.anatomy(), params_of(net), maps)
    torch.testing.assert_close(
        outputs(net, aligned, x), outputs(net, params_of(net), x), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "recipe", [Recipe("digits", {"width": 0.1}), Recipe("wideresnet", {"depth": 10})]
)
def test_alignment_brings_networks_nearer_and_the_average_is_that_of_aligned_ones(
    recipe: Recipe,
) -> None:
    net, other = random_net(recipe, 1), random_net(recipe, 2)
    a, b, layers = params_of(net), params_of(other), net.anatomy()
    aligned = move(layers, a, match(layers, a, b, Exact()))
    far = sum(float((a[x.weight] - b[x.weight]).square().sum()) for x in layers)
    near = sum(float((aligned[x.weight] - b[x.weight]).square().sum()) for x in layers)
    assert near < far
    mean = matched_average(layers, [a, b], 1, Exact())
    assert all(
        torch.allclose(mean[x.weight], (aligned[x.weight] + b[x.weight]) / 2, atol=1e-6)
        for x in layers
    )


def test_a_chain_by_hand() -> None:
    """Rows are exchanged; the next layer's columns follow,
    in runs of two places; classes never move.
    """
    layers = (Layer("a", INPUT, "one", ("bias",)), Layer("b", "one", OUTPUT))
    target = {
        "a": torch.tensor([[1.0, 0], [0, 1]]),
        "b": torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]]),
    }
    moving = {
        "a": torch.tensor([[0.0, 1], [1, 0]]),
        "b": torch.tensor([[50.0, 60, 70, 80], [10, 20, 30, 40]]),
    }
    maps = match(layers, moving, target, Exact())
    assert {group: way.tolist() for group, way in maps.items()} == {"one": [1, 0]}
    found = move(layers, {**moving, "bias": torch.tensor([7.0, 8.0])}, maps)
    assert found["a"].tolist() == [[1, 0], [0, 1]]
    assert found["bias"].tolist() == [8, 7]
    assert found["b"].tolist() == [[70, 80, 50, 60], [30, 40, 10, 20]]


def test_skip_connections_sum_the_costs_of_all_writers() -> None:
    """The first writer alone would leave units as they are.

    The second, with stronger weights, exchanges them.
    """
    layers = (Layer("a", INPUT, "s"), Layer("b", INPUT, "s"), Layer("c", "s", OUTPUT))
    target = {
        "a": torch.tensor([[1.0], [2.0]]),
        "b": torch.tensor([[9.0], [0.0]]),
        "c": torch.ones(1, 2),
    }
    moving = {
        "a": torch.tensor([[1.0], [2.0]]),
        "b": torch.tensor([[0.0], [9.0]]),
        "c": torch.ones(1, 2),
    }
    assert match(layers, moving, target, Exact())["s"].tolist() == [1, 0]
    assert match(layers[:1] + layers[2:], moving, target, Exact())["s"].tolist() == [0, 1]


def test_a_writer_that_reads_its_own_group_counts_in_the_second_round() -> None:
    """s is written by a, weakly, and by c, strongly, which reads what b makes of s: c decides."""
    layers = (
        Layer("a", INPUT, "s"),
        Layer("b", "s", "i"),
        Layer("c", "i", "s"),
        Layer("d", "s", OUTPUT),
    )
    weak, eye = torch.tensor([[1.0], [1.1]]), torch.eye(2)
    target = {"a": weak, "b": eye, "c": 9 * eye, "d": torch.ones(1, 2)}
    moving = {"a": weak, "b": eye, "c": 9 * eye.flip(0), "d": torch.ones(1, 2)}
    assert match(layers, moving, target, Exact())["s"].tolist() == [1, 0]


def test_known_maps_are_kept() -> None:
    net = random_net(Recipe("mlp", {"hidden": [4, 3]}), 0)
    copy, _ = shuffled(net, 1)
    known = {"first": torch.arange(4)}
    found = match(net.anatomy(), copy, params_of(net), Exact(), known=known)
    assert torch.equal(found["first"], known["first"])
    assert set(found) == {"first", "layers.0"}


def test_sinkhorn_moves_a_copy_back_nearly() -> None:
    pytest.importorskip("ot")
    net = random_net(Recipe("mlp", {"hidden": [6, 5]}), 0)
    copy, _ = shuffled(net, 1)
    back = move(net.anatomy(), copy, match(net.anatomy(), copy, params_of(net), Entropic(0.01)))
    for name, tensor in params_of(net).items():
        torch.testing.assert_close(back[name], tensor, atol=0.02, rtol=0)


CONCATENATING = {"densenet", "densenet121", "dla", "dla-small"}
"""Nets whose layers read several others' outputs side by side: their units cannot be matched."""


@pytest.mark.parametrize("name", sorted(CONCATENATING))
def test_nets_that_concatenate_say_that_they_cannot_be_matched(name: str) -> None:
    with pytest.raises(ConfigError, match="does not describe its layers"):
        Recipe(name).build_net((3, 32, 32), 3, True, 0).anatomy()


@pytest.mark.parametrize("name", [name for name in NETS.names() if name not in CONCATENATING])
def test_every_nets_anatomy_covers_its_tensors_and_joins_up(name: str) -> None:
    net = Recipe(name).build_net((3, 32, 32), 3, True, 0)
    layers, params = net.anatomy(), params_of(net)
    check_covered(layers, params)
    assert layers[0].inputs == INPUT
    assert [x.outputs for x in layers].index(OUTPUT) == len(layers) - 1
    written = {INPUT}
    for layer in layers:
        assert layer.inputs in written
        written.add(layer.outputs)
        assert all(params[v].shape == params[layer.weight].shape[:1] for v in layer.vectors)


class Mute(Net):
    """A net that does not describe itself."""

    def early(self, x: torch.Tensor) -> torch.Tensor:
        return x

    embed_late = head = early


def test_nets_that_cannot_be_matched_say_so() -> None:
    with pytest.raises(ConfigError, match=r"Mute does not describe its layers \(Net.anatomy\)"):
        Mute(2, False).anatomy()
    with pytest.raises(ConfigError, match="norm=group"):
        Recipe("lenet5", {"norm": "group"}).build_net((1, 28, 28), 2, False, 0).anatomy()
    net = random_net(Recipe("mlp", {"hidden": [4]}), 0)
    with pytest.raises(ConfigError, match=r"objective\.points"):
        check_covered(net.anatomy(), {**params_of(net), "objective.points": torch.zeros(3, 4)})
