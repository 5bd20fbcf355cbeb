"""Objectives around another objective: the inner one's loss plus a term on the network's
weights."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ostraka.core.kind import Kind
from ostraka.core.net import Net, Params
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.predictor import Scores
from ostraka.core.samples import Samples


@dataclass(frozen=True, eq=False)
class AddedTerm(Objective):
    """Everything as `inner` does it, and `term` added to its loss."""

    inner: Objective

    @abstractmethod
    def term(self, net: Net) -> Tensor:
        """What is added to the loss of every batch."""

    @property
    def unknown(self) -> bool:  # type: ignore[override]  # the inner objective's class decides
        """Whether the network needs an unknown output."""
        return self.inner.unknown

    @property
    def refuses(self) -> bool:
        """Whether the inner objective's answers can be unknown."""
        return self.inner.refuses

    @property
    def chunk(self) -> int:  # type: ignore[override]  # the inner objective's class decides
        """Samples that are prepared at once."""
        return self.inner.chunk

    def check_samples(self, kind: Kind, shape: tuple[int, ...]) -> None:
        """What the inner objective can be trained on."""
        self.inner.check_samples(kind, shape)

    @property
    def renews(self) -> bool:
        """Whether every epoch has its own samples."""
        return self.inner.renews

    def material(self, net: Net, samples: Samples, seed: int, epoch: int) -> Samples:
        """What the inner objective is trained on."""
        return self.inner.material(net, samples, seed, epoch)

    def attach(self, net: Net) -> None:
        """The inner objective's own tensors."""
        self.inner.attach(net)

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """The inner objective's random part."""
        return self.inner.prepare(batch, rng)

    def helper(self, net: Net) -> Helper | None:
        """What the inner objective trains beside the network."""
        return self.inner.helper(net)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The inner loss and the term."""
        return self.inner.loss(net, batch, rng) + self.term(net)

    def statistics(self, net: Net, samples: Samples) -> Params:
        """What the inner objective measures."""
        return self.inner.statistics(net, samples)

    def scores(self, net: Net, x: Tensor) -> Scores:
        """How the inner objective answers."""
        return self.inner.scores(net, x)
