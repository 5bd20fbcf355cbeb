"""ARPL: adversarial reciprocal point learning (Chen et al., "Adversarial Reciprocal Points Learning
for Open Set Recognition", TPAMI 2021), without (`arpl`) and with confusing samples (`arpl+cs`).

As RPL, but the distance also has a direction, d = ||f - P||^2 / m - f . P, and the radius R only
bounds the distance from above: max(||f - P_y||^2 / m - R, 0). With confusing samples, a generator
learns to fool a discriminator *and* to be confusing, that is, to have a high entropy H over the
known classes; the classifier raises H for what it makes:

    discriminator   min  -log D(x) - log(1 - D(G(z)))
    generator       min  -log D(G(z)) + beta exp(-H(G(z)))
    classifier      min  L_arpl(x, y) + beta exp(-H(G(z)))

H is that of the softmax over ||f - P||^2 / m, and exp(-H) stands for -H,
both as in the authors' code.

Deviations: the authors' code has max(... - R + 1, 0) (`margin=1`); its epochs with and without
generated samples alternate, here every step has them, and all three learn from the same ones;
generated samples have batch norm statistics, but no scale and shift, of their own; generator and
discriminator are smaller and without batch norm (`gan.py`).
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.objectives.gan import FAKES, Gan, auxiliary_norm, gan_parts
from ostraka.objectives.rpl import attach_points, distance_scores, of_class, points_of
from ostraka.registry import OBJECTIVES


@dataclass(frozen=True)
class Adversarial(Objective):
    """What ARPL is with and without confusing samples."""

    w_radius: float = setting(
        0.1,
        "weight of: the distance to the own class's point is at most the radius",
        span="[0, inf)",
    )
    margin: float = setting(
        0.0,
        "how much smaller than the radius that distance must be; the authors' code: 1",
        span="(-inf, inf)",
    )
    temperature: float = setting(1.0, "distances are divided by it", span="(0, inf)")

    def attach(self, net: Net) -> None:
        """Points and radius."""
        attach_points(net, 1)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The loss of one batch of known samples."""
        own, embedding = points_of(net), net.embed(batch.x)
        squared = own.squared(embedding)
        loss = F.cross_entropy((squared - own.product(embedding)) / self.temperature, batch.y)
        if self.w_radius:
            beyond = of_class(squared, batch.y) - own.radius + self.margin
            loss = loss + self.w_radius * beyond.relu().mean()
        return loss

    def scores(self, net: Net, x: Tensor) -> Scores:
        """Distances as logits; never answers unknown, but ranks."""
        own, embedding = points_of(net), net.embed(x)
        return distance_scores(own.squared(embedding) - own.product(embedding), self.temperature)


@final
@OBJECTIVES.add("arpl")
@dataclass(frozen=True)
class ARPL(Adversarial):
    """CE of d = ||f - P||^2/m - f.P + w_radius max(||f - P_y||^2/m - R, 0);
    unknown: minus the largest d.
    """


@final
@OBJECTIVES.add("arpl+cs", "arpl-cs")
@dataclass(frozen=True)
class ConfusingARPL(Adversarial):
    """ARPL and a generator of confusing samples, on which the classifier learns to be undecided.

    A batch that no helper has seen (a loss asked for outside training)
    has no generated samples, and is ARPL's.
    """

    beta: float = setting(
        0.1,
        "weight of the generated samples being undecided, for classifier and generator",
        span="[0, inf)",
    )
    gan_lr: float = setting(
        0.0002, "learning rate of generator and discriminator (Adam)", span="(0, inf)"
    )
    width: int = setting(8, "channels of generator and discriminator", span="[1, inf)")
    share: bool = setting(
        False,
        "generator and discriminator travel and average with the network; false: "
        "each training has its own",
    )

    def attach(self, net: Net) -> None:
        """Points, radius and, if they travel, generator and discriminator."""
        super().attach(net)
        if self.share:
            points_of(net).gan = gan_parts(net, self.width)

    def helper(self, net: Net) -> Helper:
        """Generator and discriminator in training."""
        parts = points_of(net).get_submodule("gan") if self.share else gan_parts(net, self.width)
        return Gan(parts, self.gan_lr, self._confusing)

    def _confusing(self, net: Net, fakes: Tensor) -> Tensor:
        return self.beta * decided(points_of(net).squared(net.embed(fakes)))

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """ARPL's loss, and the generated samples' decidedness."""
        loss = super().loss(net, batch, rng)
        if FAKES not in batch.extra or not self.beta:
            return loss
        with auxiliary_norm(net):
            return loss + self._confusing(net, batch.extra[FAKES])


def decided(logits: Tensor) -> Tensor:
    """exp(-H), H the mean entropy of the softmax: from 1/K (all classes alike) to 1 (no doubt)."""
    shares = logits.log_softmax(dim=1)
    return (shares.exp() * shares).sum(dim=1).mean().exp()
