"""A constant added to every gradient: SCAFFOLD's drift correction
(Karimireddy et al., ICML 2020).
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ostraka.core.net import Net, Params
from ostraka.objectives.wrapper import AddedTerm


@final
@dataclass(frozen=True, eq=False)
class Corrected(AddedTerm):
    """The inner loss + <correction, w>, whose gradient is the correction itself;
    tensors it lacks are not corrected.
    """

    correction: Params

    def term(self, net: Net) -> Tensor:
        """The scalar product of the correction and the weights."""
        own = dict(net.named_parameters())
        parts = [
            (own[name] * value.to(own[name].device)).sum()
            for name, value in self.correction.items()
        ]
        return torch.stack(parts).sum()
