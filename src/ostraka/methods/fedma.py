"""FedMA (Wang, Yurochkin, Sun, Papailiopoulos & Khazaeni, "Federated Learning with Matched
Averaging", ICLR 2020).

Algorithm 1, a layer in every round. The parties train; the server matches the hidden units of the
first layer across parties and averages them; the parties put the inputs of their own second layer
into the new order, keep the matched layer frozen and train the rest; and so on. The last layer is
averaged class by class, in proportion to the parties' samples of the class. A network of L weight
layers takes L rounds; further rounds begin again with the first layer, from the model that all then
share, so `rounds` is best a multiple of L.

Deviations: the number of units is fixed (the paper's Bayesian matching may add some), so a match is
an assignment of least squared distance, made party by party against the mean of those before; a
party sends all layers that are not frozen yet, not only the next, so that the server has a whole
model after every round; units joined by skip connections get one map, from all layers that write to
them; batch norm belongs to the layer before it, and a frozen layer keeps its running statistics,
although training normalises by the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor

from ostraka.alignment.match import check_covered, hidden_groups, match, move
from ostraka.alignment.transport import Exact, Map
from ostraka.contract import (
    METHODS,
    Memory,
    OstrakaError,
    Params,
    Party,
    PartyRef,
    Report,
    Round,
    Task,
    build_net,
    check_tensors,
    fit,
    setting,
    wire,
)
from ostraka.core.build import lent_net
from ostraka.core.net import Layer
from ostraka.core.params import average
from ostraka.methods.averaging import ModelMethod, Weights, card_of, weight_of


@wire("fedma.matched/1")
@dataclass(frozen=True)
class Matched:
    """The model, how many of its layers are matched,
    and by party how its units of the last matched layer moved.
    """

    params: Params
    done: int = 0
    maps: dict[str, dict[str, Tensor]] = field(default_factory=dict)


@wire("fedma.order/1")
@dataclass(frozen=True)
class Order:
    """What a party gets: the model, how many layers are frozen, and its map (None:
    it starts from the model).
    """

    params: Params
    done: int
    maps: dict[str, Tensor] | None


@final
@METHODS.add("fedma")
@dataclass(frozen=True)
class FedMA(ModelMethod[Matched, Order, Params]):
    """Matched averaging: hidden units are matched before they are
    averaged, a layer in every round.
    """

    weights: Weights = setting("size", "weigh parties by size, or all the same", server=True)
    by_class: bool = setting(
        True, "average the last layer by the parties' samples of each class", server=True
    )

    def init(self, task: Task, seed: int) -> Matched:
        """A random model, or the commons' "start"."""
        params = self.first_model(task, seed)
        check_covered(self._layers(task), params)
        return Matched(params)

    def model(self, state: Matched) -> Params:
        """The server's model: matched layers, and for the others the mean after matching."""
        return state.params

    def message(self, state: Matched, party: PartyRef) -> Order:
        """The model and the party's own map."""
        return Order(state.params, state.done, state.maps.get(str(party.id)))

    def sent(self, payload: Params) -> Params:
        """Those layers of the party's model that are not frozen."""
        return payload

    def check_model(self, task: Task, params: Params) -> None:
        """Refuse what is not some of this network's layers; without the others it cannot answer."""
        with lent_net(task, self.objective) as net:
            check_tensors(params, net.state_dict(), "this task's network", part=True)

    def local_update(self, rnd: Round[Order], party: Party, memory: Memory) -> Report[Params]:
        """Train the layers that are not matched yet, from the party's own, put into order."""
        given, layers = rnd.message, self._layers(rnd.task)
        frozen = {name for layer in layers[: given.done] for name in names_of(layer)}
        start = given.params
        if given.maps is not None and memory.get("round") == rnd.index - 1:
            own = move(layers, {**given.params, **memory["params"]}, given.maps)
            start = {
                name: given.params[name] if name in frozen else tensor
                for name, tensor in own.items()
            }
        net = build_net(rnd.task, self.objective)
        for name, parameter in net.named_parameters():
            parameter.requires_grad_(parameter.requires_grad and name not in frozen)
        fitted = fit(
            net, start, party.samples, self.objective, self.local_in(rnd), rnd.seed, party.progress
        )
        sent = {name: tensor for name, tensor in fitted.params.items() if name not in frozen}
        kept: Memory = {"params": sent, "round": rnd.index} if given.done + 1 < len(layers) else {}
        counts = tuple(party.samples.counts(len(rnd.task.classes)).tolist())
        card = replace(card_of(party, fitted), counts=counts)
        return Report(sent, float(len(party.samples)), card, kept)

    def aggregate(self, task: Task, state: Matched, reports: Sequence[Report[Params]]) -> Matched:
        """Match one layer more, and average."""
        layers = self._layers(task)
        ready = {layer.outputs for layer in layers[: state.done]}
        weights = [weight_of(report, self.weights) for report in reports]
        models = [{**state.params, **report.payload} for report in reports]
        maps = match_in_turn(layers, models, weights, ready)
        moved = [move(layers, model, way) for model, way in zip(models, maps, strict=True)]
        params = average(zip(moved, weights, strict=True))
        if self.by_class:
            counts = [report.card.counts or () for report in reports]
            params |= class_rows(layers[-1], moved, weights, counts)
        if state.done + 1 == len(layers):
            return Matched(params)
        new = {layers[state.done].outputs} - ready
        sent = {
            str(r.card.party): {g: way[g] for g in new}
            for r, way in zip(reports, maps, strict=True)
        }
        return Matched(params, state.done + 1, sent)

    def _layers(self, task: Task) -> tuple[Layer, ...]:
        return build_net(task, self.objective).anatomy()


def names_of(layer: Layer) -> tuple[str, ...]:
    """All tensors of a layer."""
    return (layer.weight, *layer.vectors)


def match_in_turn(
    layers: Sequence[Layer], models: Sequence[Params], weights: Sequence[float], ready: set[str]
) -> list[dict[str, Map]]:
    """A map for each model onto the mean of those before it.

    The groups of units in `ready` are in order already.
    """
    if not models:
        raise OstrakaError("nothing to average: no report arrived")
    sizes = {layer.outputs: len(models[0][layer.weight]) for layer in layers}
    same = {group: torch.arange(sizes[group]) for group in hidden_groups(layers)}
    maps, mean, total = [same], models[0], weights[0]
    for model, weight in zip(models[1:], weights[1:], strict=True):
        known = {group: way for group, way in same.items() if group in ready}
        maps.append(match(layers, model, mean, Exact(), known=known))
        mean = average([(mean, total), (move(layers, model, maps[-1]), weight)])
        total += weight
    return maps


def class_rows(
    last: Layer, models: Sequence[Params], weights: Sequence[float], counts: Sequence[Sequence[int]]
) -> Params:
    """The last layer's tensors, every class weighed by the parties' samples of it.

    The unknown output by `weights`. So is a class of which nobody has a sample.
    """
    rows = len(models[0][last.weight])
    usual = torch.tensor(weights, dtype=torch.float64)[:, None].expand(-1, rows)
    own = torch.zeros(len(models), rows, dtype=torch.float64)
    for k, count in enumerate(counts):
        own[k, : len(count)] = torch.tensor(count, dtype=torch.float64)
    share = torch.where(own.sum(dim=0) > 0, own, usual)
    share = share / share.sum(dim=0)
    return {name: _weighed([model[name] for model in models], share) for name in names_of(last)}


def _weighed(tensors: Sequence[Tensor], share: Tensor) -> Tensor:
    total = sum(
        t.double() * s.view(-1, *(1,) * (t.dim() - 1)) for t, s in zip(tensors, share, strict=True)
    )
    assert isinstance(total, Tensor)
    return total.to(tensors[0].dtype)
