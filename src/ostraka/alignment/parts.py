"""FedPD's aggregation: networks are divided into parts, every part is aligned by a map of its own,
the sum is averaged.

Yang et al., "FedPD: Federated Open Set Recognition with Parameter Disentanglement", ICCV 2023,
equations 8 to 16. Two masks say which weights matter for the known classes (close) and for telling
unknown samples (open). What the paper leaves open is settled so:

* weights in neither mask, nearly half of a layer, would vanish under equation 16 read literally
  (`remainder="drop"`). They move with the shared part ("shared"): left in their place ("average")
  while the rest moves, they end at units that they do not belong to;
* masks cover the layers' weights. Biases, batch norm and its running statistics follow
  one map, that of the shared part (of the whole networks where there is none:
  `divide=False`), and are counted once;
* the classes are never moved;
* a row that is empty in a part, at either party,
  goes where the shared part's map sends it, or else stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ostraka.alignment.match import Maps, match, move_vector, move_weight
from ostraka.alignment.transport import Transport
from ostraka.core.net import Layer, Params
from ostraka.core.params import average

CLOSE, OPEN = 1, 2
"""Bits of a mask: a weight's code is 0 (in neither subnetwork), 1 (close only), 2
(open only) or 3 (shared).
"""

Masks = Mapping[str, Tensor]
"""A layer's weight to its codes, whole numbers of one byte."""

Remainder = Literal["average", "shared", "drop"]


class Divided(NamedTuple):
    """A network, and the masks that divide it."""

    params: Params
    masks: Masks


@dataclass(frozen=True)
class Conquest:
    """How parts are aligned.

    The defaults are the paper's method, the other values its ablations.
    """

    transport: Transport
    divide: bool = True
    conquer: bool = True
    maps: Literal["parts", "one"] = "parts"
    remainder: Remainder = "shared"

    def merge(
        self,
        layers: Sequence[Layer],
        models: Sequence[Params],
        masks: Sequence[Masks],
        reference: int,
    ) -> Params:
        """The mean of all networks, each with its parts aligned to those of
        the network numbered `reference`.
        """
        every = [Divided(*one) for one in zip(models, masks, strict=True)]
        target = every[reference]
        return average((self._aligned(layers, one, target), 1.0) for one in every)

    def _aligned(self, layers: Sequence[Layer], own: Divided, target: Divided) -> Params:
        model, codes = own
        parts = (CLOSE, OPEN, CLOSE | OPEN) if self.divide else (CLOSE, OPEN)
        maps: dict[int, Maps] = {part: {} for part in (0, *parts)}
        if self.conquer and own is not target:
            maps = self._maps(layers, own, target, parts)
        base, out = maps[0], dict(model)
        rest = {} if self.remainder == "average" else base
        for layer in layers:
            weight, code = model[layer.weight], codes[layer.weight]
            moved = [
                move_weight(weight * _share(code, part, self.divide), layer, maps[part])
                for part in parts
            ]
            if self.remainder != "drop":
                moved.append(move_weight(weight * code.eq(0), layer, rest))
            out[layer.weight] = torch.stack(moved).sum(dim=0)
            out.update({name: move_vector(model[name], layer, base) for name in layer.vectors})
        return out

    def _maps(
        self, layers: Sequence[Layer], own: Divided, target: Divided, parts: tuple[int, ...]
    ) -> dict[int, Maps]:
        """A map for each part; under 0 the one of everything that masks do not cover."""
        whole = self.maps == "one" or not self.divide
        moving, goal = (one.params if whole else only(*one, 3, True) for one in (own, target))
        base = match(layers, moving, goal, self.transport)
        if self.maps == "one":
            return dict.fromkeys((0, *parts), base)
        maps: dict[int, Maps] = {0: base, 3: base}
        for part in parts:
            if part != 3:
                moving, goal = (only(*one, part, self.divide) for one in (own, target))
                maps[part] = match(layers, moving, goal, self.transport, prefer=base)
        return maps


def _share(codes: Tensor, part: int, divide: bool) -> Tensor:
    """Which share of each weight goes with `part`;
    undivided subnetworks halve what lies in both.
    """
    if divide:
        return codes.eq(part).float()
    return codes.bitwise_and(part).ne(0).float() / (1 + codes.eq(CLOSE | OPEN).float())


def only(params: Params, codes: Masks, part: int, divide: bool) -> Params:
    """The weights of one part, zero elsewhere (equations 8 to 10), or of a whole subnetwork."""
    inside = {
        name: code.eq(part) if divide else code.bitwise_and(part).ne(0)
        for name, code in codes.items()
    }
    return {name: params[name] * mask for name, mask in inside.items()}
