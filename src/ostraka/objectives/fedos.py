"""FedOS's local objective: an unknown class of generated samples (equation 1).

Mohamad, Neubert & Argayo, "FedOS: using open-set learning to stabilize training in federated
learning".
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.core.settings import setting
from ostraka.nets.generator import draw_stored
from ostraka.nets.layered import native_step
from ostraka.objectives.drawing import Drawing
from ostraka.registry import OBJECTIVES


@final
class Kept:
    """Tensors by key, at most `most_bytes` of them together; those unused for longest go first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._held: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The tensor under `key`, made if it is not there; whoever gets it must not change it."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        made = make()
        self._held[key] = made
        while len(self._held) > 1 and self.bytes > self.most_bytes:
            self._held.popitem(last=False)
        if made.nbytes > self.most_bytes:
            del self._held[key]
        return made

    @property
    def bytes(self) -> int:
        """The size of what is held."""
        return sum(tensor.nbytes for tensor in self._held.values())


KEPT = Kept(128 * 2**20)
"""Generated samples of the parties that this process has worked for."""


@final
@OBJECTIVES.add("fedos")
@dataclass(frozen=True)
class UnknownClass(Drawing):
    """CE(known samples) + w_unknown CE(generated samples, unknown).

    Generated samples, `f_unknown` for each of the party's own, are shuffled among them, so a batch
    has some of both and an epoch more batches than without. They are stored as the party's samples
    are and seen in the same way, standardised or augmented. A term that has no sample in a batch
    is 0 there.
    """

    unknown: ClassVar[bool] = True

    w_unknown: float = setting(
        1.0, "W_U: weight of generated samples being unknown", span="[0, inf)"
    )
    f_unknown: float = setting(0.6, "F_U: generated samples for each own one", span="[0, 100]")
    draw: Literal["once", "epoch"] = setting(
        "once", "generated samples: once, the same in all rounds of fedos; epoch: anew in each"
    )
    terms: Literal["sum", "weighted-mean"] = setting(
        "sum", "sum: of the two means (the paper's); weighted-mean: one mean (the authors' code's)"
    )
    generator: str = setting(
        "auto",
        "file of ostraka train-generator; ready: the small one in this package; auto: that one, "
        "unless it was trained on images of unknown classes",
    )
    seed: int | None = field(default=None, init=False, compare=False, repr=False)
    """What samples are drawn by, where it is not the training's own seed."""

    @property
    def renews(self) -> bool:
        """Whether every epoch has other generated samples."""
        return self.draw == "epoch" and self.f_unknown > 0

    @property
    def draws_from(self) -> str:
        """Its generator; none where nothing is drawn."""
        return self.generator if self.f_unknown else ""

    def drawing_by(self, seed: int) -> "UnknownClass":
        """This objective with the same generated samples in every training of `seed`."""
        return self.holding("seed", seed)

    def material(self, net: Net, samples: Samples, seed: int, epoch: int) -> Samples:
        """The party's samples, and the generated ones under the label behind the last class."""
        count = round(self.f_unknown * len(samples))
        if not count:
            return samples
        own = seed if self.seed is None else self.seed
        path = ("generated",) if self.draw == "once" else ("generated", epoch)
        made = self._made(samples, count, own, *path).to(samples.x.device)
        unknown = torch.full((count,), net.classes).to(samples.labels)
        return Samples(
            torch.cat([samples.stored(), made]),
            torch.cat([samples.labels, unknown]),
            view=samples.view,
        )

    def _made(self, samples: Samples, count: int, seed: int, *path: str | int) -> Tensor:
        """So many generated samples, stored as the party's are.

        Those of every round are the same: drawing them takes as long as to train on them.
        """
        source, shape = self.generator_here(), samples.shape
        view, dtype = samples.view, samples.x.dtype

        def draw() -> Tensor:
            return draw_stored(source, count, shape, view, dtype, torch_rng(seed, *path))

        if self.draw == "epoch":
            return draw()
        return KEPT.get((source, count, shape, view.scale, dtype, seed), draw)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Equation 1 of one batch."""
        made = batch.y == net.classes
        unknown = int(made.sum())
        known = len(batch) - unknown
        w_known, w_made = self._weights(known, unknown)
        step = native_step(net, batch.x)
        if step is not None:
            order = made.to(torch.int8).argsort(stable=True)  # own samples first
            step.learn_some(batch.x[order], batch.y[order], known, w_known, w_made)
            return step.total()
        losses = F.cross_entropy(net(batch.x), batch.y, reduction="none")
        return (losses * torch.where(made, w_made, w_known)).sum()

    def _weights(self, known: int, unknown: int) -> tuple[float, float]:
        """What the loss of one own and of one generated sample counts in a batch of so many."""
        if self.terms == "sum":
            return 1 / max(known, 1), self.w_unknown / max(unknown, 1)
        total = known + self.w_unknown * unknown
        return (1 / total, self.w_unknown / total) if total else (0.0, 0.0)
