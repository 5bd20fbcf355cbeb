"""PROSER: learning placeholders for unknown classes (Zhou, Ye & Zhan, CVPR 2021),
as FedOV uses it (equation 1).
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.settings import setting
from ostraka.nets.layered import NativeStep, Pairs, native_step
from ostraka.registry import OBJECTIVES

HIDDEN_LOGIT = -1e4
"""Stands for a logit that does not exist: its probability underflows to 0 in float32."""


@final
@OBJECTIVES.add("proser")
@dataclass(frozen=True)
class Proser(Objective):
    """l(f(x), y) + w_second l(f(x) without y, unknown) + w_mix l(post(mix),
    unknown), l = cross-entropy.

    The default weights are those of the authors' code and of PROSER's own; FedOV's appendix B.1
    prints them the other way round (w_second=0.01, w_mix=1).
    """

    unknown: ClassVar[bool] = True

    w_second: float = setting(
        1.0, "weight of: unknown comes second, after the true class", span="[0, inf)"
    )
    w_mix: float = setting(
        0.01, "weight of: mixed hidden values of two classes are unknown", span="[0, inf)"
    )

    def check_private(self) -> None:
        """It can: a sample alone finds nobody to be mixed with, so that term is left out."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Equation 1 of one batch."""
        step = native_step(net, batch.x)
        if step is not None:
            learn_open(step, batch, rng, self.w_second, self.w_mix)
            return step.total()
        logits, mixed = self.outputs(net, batch, rng)
        return proser_loss(logits, batch.y, mixed, self.w_second, self.w_mix)

    def outputs(self, net: Net, batch: Batch, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Logits of the samples and of the mixed hidden values (none: [0, outputs])."""
        hidden = net.early(batch.x)
        mixed = mix(hidden, batch.y, rng) if self.w_mix else None
        # One pass through the late layers, so that batch norm sees
        # known and mixed samples together.
        logits = net.late(hidden if mixed is None else torch.cat([hidden, mixed]))
        return logits[: len(batch)], logits[len(batch) :]


def mix(hidden: Tensor, y: Tensor, rng: torch.Generator) -> Tensor | None:
    """Hidden values of the batch mixed with a random permutation of itself; None when there is
    no pair.
    """
    pairs = draw_pairs(y, rng)
    if pairs is None:
        return None
    return torch.lerp(hidden[pairs.partners], hidden[pairs.rows], pairs.share)


def draw_pairs(y: Tensor, rng: torch.Generator) -> Pairs | None:
    """Every sample of a batch and one that stands in its place in a random permutation.

    One lambda ~ Beta(1, 1) for all. Only pairs of different classes count; None when there is none,
    as always with one class.
    """
    order = torch.randperm(len(y), generator=rng).to(y.device)
    share = torch.rand((), generator=rng).item()  # Beta(1, 1) is uniform
    rows = (y != y[order]).nonzero().squeeze(1)
    return Pairs(rows, order[rows], share) if len(rows) else None


def learn_open(
    step: NativeStep, batch: Batch, rng: torch.Generator, w_second: float, w_mix: float
) -> None:
    """Equation 1 of one batch, by native calls."""
    pairs = draw_pairs(batch.y, rng) if w_mix else None
    if pairs is None:
        step.learn(batch.x, batch.y, w_second)
    else:
        step.learn_mixed(batch.x, batch.y, pairs, w_second, w_mix)


def proser_loss(logits: Tensor, y: Tensor, mixed: Tensor, w_second: float, w_mix: float) -> Tensor:
    """Equation 1 from the logits of the samples and of the mixed
    hidden values (none: [0, outputs]).
    """
    loss = F.cross_entropy(logits, y)
    for term in open_terms(logits, y, mixed, w_second, w_mix):
        loss = loss + term
    return loss


def open_terms(
    logits: Tensor, y: Tensor, mixed: Tensor, w_second: float, w_mix: float
) -> list[Tensor]:
    """What equation 1 adds to cross-entropy, term by term; terms of weight 0 are left out."""
    terms = (
        [w_second * unknown_loss(logits.scatter(1, y[:, None], HIDDEN_LOGIT))] if w_second else []
    )
    return [*terms, w_mix * unknown_loss(mixed)] if w_mix and len(mixed) else terms


def unknown_loss(logits: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of the label *unknown*, the last output."""
    unknown = torch.full(
        (len(logits),), logits.shape[1] - 1, dtype=torch.long, device=logits.device
    )
    return F.cross_entropy(logits, unknown, reduction=reduction)
