"""Networks of blocks one behind the other: each pass is one native call where that is faster."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, final

from torch import Tensor

from ostraka.core.net import Net
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

    @final
    def forward(self, x: Tensor) -> Tensor:
        """Inputs to logits."""
        return native.through(x, self._blocks())

    def climbed(self, x: Tensor, climb: native.Climb) -> Tensor | None:
        """Samples after adversarial steps, in one native call; None where torch is to do it."""
        blocks = self._blocks()
        return native.climbed(x, blocks, climb) if native.native(x, blocks) else None

    def climb_loss(
        self, x: Tensor, climb: native.Climb, w_start: float, w_end: float
    ) -> tuple[float, dict[Tensor, Tensor]] | None:
        """The cross-entropy of the last class before and after adversarial steps, weighted, and its
        gradients, in one native call; None where torch is to do it.
        """
        blocks = self._blocks()
        if not native.native(x, blocks):
            return None
        return native.climb_loss(x, blocks, climb, w_start, w_end)

    def _blocks(self) -> list[native.Block]:
        first, middle, head = self.stages()
        return [block.block() for block in (*first, *middle, head)]
