"""What is kept of the parties' masks: enough to draw where their
subnetworks lie and how far they agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ostraka.alignment.parts import CLOSE, OPEN, Masks
from ostraka.core.net import Layer
from ostraka.core.wire import wire


@wire("mask-record/1")
@dataclass(frozen=True)
class MaskRecord:
    """Of one round; `parties` are the numbers of those that sent masks, P of them,
    in the order of the rows below.
    """

    parties: tuple[int, ...]
    first: Tensor
    """[P, units, weights of a unit]: the codes of the first layer."""
    close: dict[str, Tensor]
    """Layer to [P, units]: which share of a unit's weights is in the closed-set subnetwork."""
    open: dict[str, Tensor]
    """The same of the open-set subnetwork."""
    shares: dict[str, Tensor]
    """Layer to [P, 4]: share of weights in neither subnetwork,
    in close only, in open only, in both.
    """
    overlap: dict[str, Tensor]
    """Layer to [2, P, P]: weights in both of two parties' masks over those
    in either, for close and for open.
    """


def record(layers: Sequence[Layer], parties: Sequence[int], masks: Sequence[Masks]) -> MaskRecord:
    """The record of the masks that `parties` sent."""
    codes = {
        layer.weight: torch.stack([mask[layer.weight].flatten(1) for mask in masks])
        for layer in layers
    }
    made = MaskRecord(tuple(parties), codes[layers[0].weight].clone(), {}, {}, {}, {})
    for name, code in codes.items():
        close, open_ = (code.bitwise_and(bit).ne(0) for bit in (CLOSE, OPEN))
        made.close[name], made.open[name] = (m.float().mean(dim=2) for m in (close, open_))
        kinds = [code.eq(kind).flatten(1).float().mean(dim=1) for kind in range(4)]
        made.shares[name] = torch.stack(kinds, dim=1)
        made.overlap[name] = torch.stack([_overlap(m.flatten(1)) for m in (close, open_)])
    return made


def _overlap(masks: Tensor) -> Tensor:
    """Jaccard's index of every pair of rows; two empty masks agree."""
    rows = masks.float()
    both = rows @ rows.t()
    sizes = rows.sum(dim=1)
    either = sizes[:, None] + sizes - both
    return torch.where(either > 0, both / either.clamp(min=1), torch.ones(()))
