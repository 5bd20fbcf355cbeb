"""Aligning one network to another, layer by layer, and averaging networks that were aligned.

Equations 11 and 12 of FedPD (Yang et al., ICCV 2023), after Singh & Jaggi ("Model Fusion via
Optimal Transport", NeurIPS 2020): the inputs of a layer are put into the order that the map of the
layer before found, then its output units are matched. The classes keep their order. Where skip
connections make several layers write to the same units, these get one map, from the sum of the
layers' costs. Its layers may in turn read the units that it orders: the first round of matching
then uses the layers whose inputs are in order already, and later rounds all of them.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ostraka.alignment.transport import Map, Transport, moved
from ostraka.core.net import INPUT, OUTPUT, Layer, Params
from ostraka.core.params import average
from ostraka.errors import ConfigError

Maps = Mapping[str, Map]
"""Group of units to its map; a group that is not named stays as it is."""

ROUNDS = 4
"""At most so many rounds of matching where skip connections ask for more than one."""


def match(
    layers: Sequence[Layer],
    moving: Params,
    target: Params,
    transport: Transport,
    prefer: Maps | None = None,
    known: Maps | None = None,
) -> dict[str, Map]:
    """One map for every group of hidden units of `moving` onto those of `target`.

    `known` maps are kept. Only the layers' weights are compared. `prefer`
    decides where weights leave a choice.
    """
    known, prefer = known or {}, prefer or {}
    maps = dict(known)
    groups = [group for group in hidden_groups(layers) if group not in known]
    for _ in range(ROUNDS):
        before, complete = dict(maps), True
        for group in groups:
            writers = [layer for layer in layers if layer.outputs == group]
            ready = [layer for layer in writers if layer.inputs == INPUT or layer.inputs in maps]
            complete = complete and len(ready) == len(writers)
            rows = torch.cat(
                [_inputs_moved(moving[x.weight], x, maps).flatten(1) for x in ready], dim=1
            )
            goal = torch.cat([target[x.weight].flatten(1) for x in ready], dim=1)
            maps[group] = transport.solve(rows, goal, prefer.get(group))
        if complete and all(g not in before or torch.equal(maps[g], before[g]) for g in groups):
            break
    return maps


def hidden_groups(layers: Sequence[Layer]) -> list[str]:
    """The groups of hidden units, in the order in which they are first written."""
    return list(dict.fromkeys(layer.outputs for layer in layers if layer.outputs != OUTPUT))


def move(layers: Sequence[Layer], params: Params, maps: Maps) -> Params:
    """The network with its hidden units mapped; with permutations it computes what it did."""
    out = dict(params)
    for layer in layers:
        out[layer.weight] = move_weight(params[layer.weight], layer, maps)
        out.update({name: move_vector(params[name], layer, maps) for name in layer.vectors})
    return out


def move_weight(weight: Tensor, layer: Layer, maps: Maps) -> Tensor:
    """A layer's weights with their inputs and outputs mapped."""
    weight = _inputs_moved(weight, layer, maps)
    return moved(weight, maps[layer.outputs], 0) if layer.outputs in maps else weight


def move_vector(vector: Tensor, layer: Layer, maps: Maps) -> Tensor:
    """One of a layer's vectors, mapped."""
    return moved(vector, maps[layer.outputs], 0) if layer.outputs in maps else vector


def matched_average(
    layers: Sequence[Layer], models: Sequence[Params], reference: int, transport: Transport
) -> Params:
    """The plain mean of the networks, all aligned to the one
    numbered `reference` by one map each.
    """
    target = models[reference]
    return average(
        (
            model
            if k == reference
            else move(layers, model, match(layers, model, target, transport)),
            1.0,
        )
        for k, model in enumerate(models)
    )


def check_covered(layers: Sequence[Layer], params: Params) -> None:
    """Refuse a network with tensors that no layer claims: where their units are is then unknown."""
    named = {name for layer in layers for name in (layer.weight, *layer.vectors)}
    odd = sorted(name for name, tensor in params.items() if name not in named and tensor.dim())
    if odd:
        raise ConfigError(
            f"hidden units cannot be matched: it is not known how {', '.join(odd)} follow their "
            "order. Tensors under 'objective.' belong to the objective: take one that has none, "
            "such as proser or cross-entropy"
        )


def _inputs_moved(weight: Tensor, layer: Layer, maps: Maps) -> Tensor:
    return moved(weight, maps[layer.inputs], 1) if layer.inputs in maps else weight
