"""How an epoch falls into batches, and how a batch becomes a gradient: as usual, or privately."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import final

import torch
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.private import Noise, check_net
from ostraka.core.seeds import numpy_rng

Bounds = list[tuple[int, int]]
"""Start and end of every batch in the order of an epoch."""
Penalty = Callable[[Net], Tensor]
"""What a method adds to the loss of every batch: a number that depends on the weights alone."""


class Learning(ABC):
    """One way to learn from a party's samples; it keeps nothing between steps."""

    batches: int
    """Batches of an epoch."""
    width: int
    """Samples of a batch, or so many on average."""

    @abstractmethod
    def epoch(self, number: int, rng: torch.Generator) -> tuple[Tensor, Bounds]:
        """The samples of an epoch in their order, and where its batches begin and end."""

    @abstractmethod
    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """What is done for many batches at once, before their steps."""

    @abstractmethod
    def gradient(self, batch: Batch, rng: torch.Generator, step: int) -> Tensor:
        """Leave the gradient of a batch in the parameters; the batch's mean loss."""


@final
class Usual(Learning):
    """Every sample once an epoch, in a random order; the gradient of the objective's loss."""

    def __init__(
        self,
        net: Net,
        objective: Objective,
        trained: list[nn.Parameter],
        count: int,
        batch: int,
        penalty: Penalty | None = None,
    ) -> None:
        self.net, self.objective, self.trained, self.count = net, objective, trained, count
        self.penalty = penalty
        self.bounds = bounds(count, batch, joins=_has_batch_norm(net))
        self.batches = len(self.bounds)
        self.width = self.bounds[0][1] - self.bounds[0][0]

    def epoch(self, number: int, rng: torch.Generator) -> tuple[Tensor, Bounds]:
        """A permutation, cut into batches."""
        return torch.randperm(self.count, generator=rng), self.bounds

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """As the objective does."""
        return self.objective.prepare(batch, rng)

    def gradient(self, batch: Batch, rng: torch.Generator, step: int) -> Tensor:
        """That of the loss of the batch."""
        clear(self.trained)
        loss = self.objective.loss(self.net, batch, rng)
        if self.penalty is not None:
            loss = loss + self.penalty(self.net)
        loss.backward()
        return loss.detach()


@final
class Masked(Learning):
    """DP-SGD. Each sample is in a step with the same chance, whoever else is; its gradient is that
    of the objective's loss of this one sample, so whatever is made from it is cut with it and no
    other sample can enter; noise hides any one of them.

    Chance and noise come from the seed by the number of the step (`numpy_rng`, whose seeds have 63
    bits where torch's CPU generator uses 32 of them). Whoever knows the seed can take the noise
    off again, so a party that means it takes a seed from its system and tells nobody.
    """

    def __init__(
        self,
        net: Net,
        objective: Objective,
        trained: list[nn.Parameter],
        count: int,
        batch: int,
        noise: Noise,
        seed: int,
    ) -> None:
        check_net(net)
        objective.check_private()
        self.net, self.objective, self.trained, self.count = net, objective, trained, count
        self.batches, self.width = -(-count // batch), min(batch, count)
        self.noise, self.seed = noise, seed

    def epoch(self, number: int, rng: torch.Generator) -> tuple[Tensor, Bounds]:
        """Batches of varying size: every sample is drawn for each of them by itself."""
        drawn, ends = [], [0]
        for index in range(self.batches):
            chance = numpy_rng(self.seed, "fit", "joins", number, index).random(self.count)
            drawn.append(torch.from_numpy(chance < self.width / self.count).nonzero().squeeze(1))
            ends.append(ends[-1] + len(drawn[-1]))
        return torch.cat(drawn), list(pairwise(ends))

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Nothing: samples are prepared one by one, as operations may look at several."""
        return batch

    def gradient(self, batch: Batch, rng: torch.Generator, step: int) -> Tensor:
        """The noisy sum of the samples' cut gradients, over the expected size of a batch."""
        sums = [torch.zeros_like(parameter) for parameter in self.trained]
        losses = torch.zeros((), device=self.trained[0].device)
        for row in range(len(batch)):
            losses += self._add(batch.cut(row, row + 1), rng, sums)
        drawn = numpy_rng(self.seed, "fit", "noise", step)
        size = self.noise.multiplier * self.noise.clip
        for parameter, total in zip(self.trained, sums, strict=True):
            hidden = torch.from_numpy(drawn.standard_normal(tuple(total.shape), dtype="float32"))
            parameter.grad = _in_place(
                parameter.grad, (total + size * hidden.to(total)) / self.width
            )
        return losses / max(1, len(batch))

    def _add(self, alone: Batch, rng: torch.Generator, sums: list[Tensor]) -> Tensor:
        """Add the cut gradient of one sample to the sums; its loss."""
        clear(self.trained)
        loss = self.objective.loss(self.net, self.objective.prepare(alone, rng), rng)
        loss.backward()
        found = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.trained]
        length = float(torch.stack([g.norm() for g in found]).norm())
        if length < float("inf"):  # else nothing: what is no number cannot be cut
            share = min(1.0, self.noise.clip / max(length, 1e-30))
            for total, gradient in zip(sums, found, strict=True):
                total.add_(gradient, alpha=share)
        return loss.detach()


def clear(parameters: list[nn.Parameter]) -> None:
    """Gradients to 0, in the memory they have."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.zero_()


def _in_place(memory: Tensor | None, values: Tensor) -> Tensor:
    """The values where a gradient already lies: joined parameters share their memory."""
    return values if memory is None else memory.copy_(values)


def _has_batch_norm(net: nn.Module) -> bool:
    return any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in net.modules())


def bounds(count: int, batch: int, joins: bool) -> Bounds:
    """Start and end of every batch of an epoch.

    With batch norm, a last batch of one sample joins the one before it.
    """
    starts = list(range(0, count, batch))
    if joins and len(starts) > 1 and count - starts[-1] == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))


def groups(limits: Bounds, skip: int, width: int, chunk: int) -> Iterator[Bounds]:
    """The batches of an epoch from number `skip` on,
    in groups of about `chunk` samples with fixed borders.
    """
    size = max(1, chunk // max(1, width))
    for start in range(skip - skip % size, len(limits), size):
        group = limits[max(start, skip) : start + size]
        if group:
            yield group
