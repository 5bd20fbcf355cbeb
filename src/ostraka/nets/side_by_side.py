"""Networks of their own that see the same samples, as one: each gives some of the outputs."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from ostraka.core.net import Net

NEVER = torch.finfo(torch.float32).min
"""The logit of a class that no network speaks for: never the answer, and still a number."""


@final
class SideBySide(Net):
    """Networks with one output each. They share nothing but the samples, so one training of all
    of them is a training of each.

    `places` says which of `classes` classes each one speaks for; none given: the first for the
    first, and so on.
    """

    def __init__(
        self, nets: Sequence[Net], classes: int | None = None, places: Sequence[int] = ()
    ) -> None:
        super().__init__(len(nets) if classes is None else classes, unknown=False)
        self.nets = nn.ModuleList(nets)
        self.places = tuple(places) or tuple(range(len(nets)))

    def parts(self) -> list[Net]:
        """The networks in their order."""
        return [net for net in self.nets if isinstance(net, Net)]

    def early(self, x: Tensor) -> Tensor:
        """The samples themselves: the networks have no hidden value in common."""
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        """The samples themselves."""
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        """One logit of every network; NEVER for a class without one."""
        logits = [net(embedding) for net in self.nets]
        if len(logits) == self.classes:
            return torch.cat(logits, dim=1)
        every = embedding.new_full((len(embedding), self.classes), NEVER)
        for place, logit in zip(self.places, logits, strict=True):
            every[:, place] = logit.squeeze(1)
        return every
