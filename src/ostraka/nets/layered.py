"""Networks of blocks one behind the other: each pass is one native call where that is faster."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.known import known_gradient
from ostraka.core.net import Layer, Net, chain
from ostraka.nets import native
from ostraka.nets.blocks import ConvBlock, LinearBlock, through


class Stages(NamedTuple):
    """The blocks of a network: up to the cut, from there to the embedding, and the last."""

    early: Sequence[ConvBlock | LinearBlock]
    embed_late: Sequence[LinearBlock]
    head: LinearBlock


class Layered(Net):
    """A network that is its `stages` and nothing else."""

    @abstractmethod
    def stages(self) -> Stages:
        """The blocks in their order."""

    @final
    def early(self, x: Tensor) -> Tensor:
        """Inputs to hidden values [B, N] at the cut."""
        return through(x, *self.stages().early).flatten(1)

    @final
    def embed_late(self, hidden: Tensor) -> Tensor:
        """Hidden values at the cut to the embedding."""
        blocks = self.stages().embed_late
        return through(hidden, *blocks) if blocks else hidden

    @final
    def head(self, embedding: Tensor) -> Tensor:
        """The last layer."""
        return through(embedding, self.stages().head)

    @final
    def late(self, hidden: Tensor) -> Tensor:
        """Hidden values at the cut to logits."""
        _, middle, head = self.stages()
        return through(hidden, *middle, head)

    @final
    def embed(self, x: Tensor) -> Tensor:
        """Inputs to the embedding."""
        first, middle, _ = self.stages()
        return through(x, *first, *middle).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """Inputs to logits."""
        return native.through(x, self._blocks())

    def native_call(self, x: Tensor) -> native.Call | None:
        """The whole network as one native call; None where torch is to do it."""
        return native.native(x, self._blocks())

    def anatomy(self) -> tuple[Layer, ...]:
        """One layer behind the other."""
        first, middle, head = self.stages()
        names = {module: name for name, module in self.named_modules()}
        return chain(*(names[block] for block in (*first, *middle, head)))

    def _blocks(self) -> list[native.Block]:
        first, middle, head = self.stages()
        return [block.block() for block in (*first, *middle, head)]


class Pairs(NamedTuple):
    """Rows of a batch that are mixed with others: share * row + (1 - share) * partner."""

    rows: Tensor
    partners: Tensor
    share: float


class NativeStep:
    """The losses of one training step by native calls. They and their gradients add up here, and
    autograd hears of them at the end: it takes as long around a small batch as the layers do.
    """

    def __init__(self, net: Layered, call: native.Call) -> None:
        self.net, self.call = net, call
        self.gradients = native.Gradients(call.tensors)
        self.loss = 0.0

    def learn(self, x: Tensor, labels: Tensor, w_second: float = 0.0) -> None:
        """Mean cross-entropy of the labels, and, weighted, of the last class when the label's own
        output is left out.
        """
        lesson = native.Lesson(len(x), 1 / len(x), w_second / len(x), 0.0)
        self.loss += self.call.learn(x, labels, lesson, self.gradients, None)

    def learn_some(
        self, x: Tensor, labels: Tensor, known: int, w_label: float, w_rest: float
    ) -> None:
        """Cross-entropy of the first `known` rows' labels and, of the other rows, of the last
        class; the weights are those of one row.
        """
        lesson = native.Lesson(known, w_label, 0.0, w_rest)
        self.loss += self.call.learn(x, labels, lesson, self.gradients, None)

    @torch.no_grad()
    def learn_binary(self, x: Tensor, targets: Tensor) -> None:
        """The mean over samples of the binary cross-entropies of all outputs, summed; `targets`
        [B, K] are 0 or 1.
        """
        kept = self.call.room()
        logits = self.call.forward(x, kept)
        loss = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        self.loss += float(loss) / len(x)
        error = logits.sigmoid_().sub_(targets).div_(len(x))
        self.call.backward(kept, error, self.gradients, None)

    @torch.no_grad()
    def learn_mixed(
        self, x: Tensor, labels: Tensor, pairs: Pairs, w_second: float, w_mix: float
    ) -> None:
        """As `learn`, and, weighted, the mean cross-entropy of the last class for pairs of hidden
        values that are mixed at the cut.
        """
        known, mixes = len(x), len(pairs.rows)
        first, middle, head = self.net.stages()
        early = native.Call.of(x.shape, [block.block() for block in first])
        kept = early.room()
        hidden = early.forward(x, kept).flatten(1)
        mixed = torch.lerp(hidden[pairs.partners], hidden[pairs.rows], pairs.share)
        rows = torch.cat([hidden, mixed])
        late = native.Call.of(rows.shape, [block.block() for block in (*middle, head)])
        lesson = native.Lesson(known, 1 / known, w_second / known, w_mix / mixes)
        error = torch.empty_like(rows)
        self.loss += late.learn(rows, labels, lesson, self.gradients, error)
        at_cut, at_mixed = error.split([known, mixes])
        at_cut.index_add_(0, pairs.rows, at_mixed, alpha=pairs.share)
        at_cut.index_add_(0, pairs.partners, at_mixed, alpha=1 - pairs.share)
        early.backward(kept, at_cut, self.gradients, None)

    def climb(self, x: Tensor, climb: native.Climb, w_start: float, w_end: float) -> None:
        """The mean cross-entropy of the last class, before and after adversarial steps."""
        self.loss += self.call.climb(x, climb, w_start, w_end, self.gradients)

    def total(self) -> Tensor:
        """The sum of all losses, differentiable in the parameters."""
        value = torch.tensor(self.loss, dtype=torch.float32)
        return known_gradient(value, self.gradients.trained, self.gradients.pieces())


def native_step(net: Net, *samples: Tensor) -> NativeStep | None:
    """A training step on these samples by native calls alone; None where torch is to do it."""
    if not isinstance(net, Layered):
        return None
    calls = [net.native_call(x) for x in samples]
    return None if calls[0] is None or None in calls else NativeStep(net, calls[0])
