"""Random networks, and copies of them whose hidden units stand in another order."""

import torch
from hypothesis import strategies as st
from torch import nn

from ostraka.alignment.match import hidden_groups, move
from ostraka.alignment.transport import Map
from ostraka.core.net import Net, Params, Recipe, params_of

SHAPES: dict[str, tuple[int, ...]] = {"mlp": (5,), "lenet5": (1, 28, 28)}
"""All others take images of 3x8x8."""


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Small networks of every kind that has an anatomy: chains, batch norm,
    flattened images, skip connections.
    """
    name = draw(st.sampled_from(["mlp", "simple-cnn", "lenet5", "digits", "wideresnet"]))
    options = {
        "mlp": {"hidden": draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))},
        "simple-cnn": {"padding": "same"},
        "lenet5": {"norm": draw(st.sampled_from(["none", "batch"]))},
        "digits": {"width": draw(st.sampled_from([0.02, 0.05]))},
        "wideresnet": {
            "depth": draw(st.sampled_from([10, 16])),
            "width": draw(st.sampled_from([1, 2])),
        },
    }
    return Recipe(name, options[name])


def random_net(recipe: Recipe, seed: int) -> Net:
    """A network whose batch norms have random weights and statistics too."""
    net = recipe.build_net(SHAPES.get(recipe.name, (3, 8, 8)), 3, True, seed)
    rng = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            for tensor in (
                module.weight.data,
                module.bias.data,
                module.running_mean,
                module.running_var,
            ):
                assert tensor is not None
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=rng))
    return net.eval()


def shuffled(net: Net, seed: int) -> tuple[Params, dict[str, Map]]:
    """The network with its hidden units in another order, and the maps that made it."""
    params, layers = params_of(net), net.anatomy()
    rng = torch.Generator().manual_seed(seed)
    sizes = {layer.outputs: len(params[layer.weight]) for layer in layers}
    maps = {group: torch.randperm(sizes[group], generator=rng) for group in hidden_groups(layers)}
    return move(layers, params, maps), maps


def inputs_of(net: Net, recipe: Recipe) -> torch.Tensor:
    return torch.randn(
        4, *SHAPES.get(recipe.name, (3, 8, 8)), generator=torch.Generator().manual_seed(0)
    )


def outputs(net: Net, params: Params, x: torch.Tensor) -> torch.Tensor:
    """The outputs with other tensors; the network keeps its own."""
    with torch.no_grad():
        answer: torch.Tensor = torch.func.functional_call(net, params, (x,))
    return answer
