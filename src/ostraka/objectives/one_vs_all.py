"""One-vs-all: every class has a yes-or-no answer of its own (binary cross-entropy).

The objective of FedOVA's networks (Zhu et al. 2021, equation 4, with the logistic loss that the
text leaves open), and as good for one network with an output for each class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.kind import Kind
from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.nets.layered import native_step
from ostraka.objectives.destruction import check_mix, destroy, shares_of
from ostraka.registry import OBJECTIVES

DESTROYED = "destroyed"
"""The destroyed samples in a prepared batch."""
NONE, DD = "none", "dd"
HALF = 0.5
"""Above it, no network says yes: the sample is unknown."""
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


@final
@OBJECTIVES.add("one-vs-all", "ova")
@dataclass(frozen=True)
class OneVsAll(Objective):
    """A yes-or-no answer for each class; the unknown score is 1 minus the largest probability.

    The loss is, for each output, the mean binary cross-entropy of the samples, summed over outputs:
    networks that stand side by side are each trained as if alone. A label below 0 is a sample of
    no class: every answer to it is no.
    """

    binary: ClassVar[bool] = True
    chunk: ClassVar[int] = 256

    outliers: str = setting(
        NONE,
        "samples of no class: dd (destroyed copies of the party's own), or a mix of operations "
        "such as wide; none",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_outliers(self.outliers)

    @property
    def refuses(self) -> bool:
        """Where all answers are no, the sample is unknown."""
        return True

    def check_samples(self, kind: Kind, shape: tuple[int, ...]) -> None:
        """Every operation of the mix must suit the samples."""
        if self.outliers != NONE:
            check_mix(mix_of(self.outliers), kind, shape)

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Adds a destroyed copy of every sample, where there are to be outliers."""
        if self.outliers == NONE:
            return batch
        destroyed = destroy(batch.x, rng, mix_of(self.outliers), batch.kind)
        return batch.adding(**{DESTROYED: destroyed})

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The loss of one batch and, half of all samples, of its outliers."""
        x, labels = batch.x, batch.y
        if DESTROYED in batch.extra:
            x = torch.cat([x, batch.extra[DESTROYED]])
            labels = torch.cat([labels, torch.full_like(labels, -1)])
        places = torch.arange(net.outputs, device=labels.device)
        targets = (labels.unsqueeze(1) == places).float()
        nets = net.parts() if isinstance(net, SideBySide) else [net]
        wanted = targets.split([one.outputs for one in nets], dim=1)
        losses = [_loss(one, x, mine) for one, mine in zip(nets, wanted, strict=True)]
        return torch.stack(losses).sum()

    def scores(self, net: Net, x: Tensor) -> Scores:
        """Logits; unknown is 1 - the largest sigmoid, and the line where all say no."""
        logits = net(x)
        return Scores(logits, (-logits.max(dim=1).values).sigmoid(), HALF)


def _loss(net: Net, x: Tensor, targets: Tensor) -> Tensor:
    """The mean over samples of the summed binary cross-entropies of one network's outputs."""
    step = native_step(net, x)
    if step is not None:
        step.learn_binary(x, targets)
        return step.total()
    return F.binary_cross_entropy_with_logits(net(x), targets, reduction="sum") / len(x)


def mix_of(outliers: str) -> str:
    """The destruction that a setting `outliers` means."""
    return "destruction" if outliers == DD else outliers


def check_outliers(outliers: str) -> None:
    """Refuse what is neither `none` nor a destruction."""
    if outliers != NONE:
        shares_of(mix_of(outliers))
