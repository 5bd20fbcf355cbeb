"""The proximal term of FedProx (Li et al., MLSys 2020): training stays near an anchor."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ostraka.core.net import Net, Params
from ostraka.objectives.wrapper import AddedTerm


@final
@dataclass(frozen=True, eq=False)
class Anchored(AddedTerm):
    """The inner loss + mu/2 ||w - anchor||^2 over all trained weights."""

    anchor: Params
    mu: float

    def term(self, net: Net) -> Tensor:
        """mu/2 times the squared distance to the anchor."""
        trained = ((name, p) for name, p in net.named_parameters() if p.requires_grad)
        squares = [(p - self.anchor[name].to(p.device)).square().sum() for name, p in trained]
        return 0.5 * self.mu * torch.stack(squares).sum()
