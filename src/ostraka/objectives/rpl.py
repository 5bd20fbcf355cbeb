"""RPL: reciprocal point learning (Chen et al., "Learning Open Set Network with Discriminative
Reciprocal Points", ECCV 2020).

A class's reciprocal points stand for everything that it is *not*, so the logit of class k
is the distance to its points, and a second term binds the distances of known samples to a
common radius, which leaves the space around the points to the unknown. Of an unknown
sample the largest distance is small.

Deviations and readings, all as in the authors' later code: the squared distance is divided by the
width of the embedding, several points of a class count by their mean distance, and there is one
radius, starting at 0, for all classes.

ARPL: adversarial reciprocal point learning (Chen et al., "Adversarial Reciprocal Points Learning
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
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.objectives.gan import FAKES, Gan, auxiliary_norm, gan_parts, sample_shape
from ostraka.registry import OBJECTIVES

SPREAD = 0.1
"""Standard deviation of the points at the start."""


class Points(nn.Module):
    """The reciprocal points [K, points per class, width of the embedding] and the radius."""

    def __init__(self, classes: int, count: int, width: int) -> None:
        super().__init__()
        self.points = nn.Parameter(SPREAD * torch.randn(classes, count, width))
        self.radius = nn.Parameter(torch.zeros(()))

    def squared(self, embedding: Tensor) -> Tensor:
        """||f - P||^2 / m of every sample to every class [B, K],
        the mean over the points of a class.

        Written out as the mean of squares it would need [B, K, points, m] numbers.
        """
        width, points = embedding.shape[1], self.points
        own = embedding.square().sum(dim=1, keepdim=True)
        return (
            own - 2 * embedding @ points.mean(dim=1).t() + points.square().sum(dim=2).mean(dim=1)
        ) / width

    def product(self, embedding: Tensor) -> Tensor:
        """f . P of every sample and every class [B, K], the mean over the points of a class."""
        return embedding @ self.points.mean(dim=1).t()


@final
@OBJECTIVES.add("rpl")
@dataclass(frozen=True)
class RPL(Objective):
    """CE of the distances to the reciprocal points + w_radius (d_y - R)^2; unknown:
    minus the largest distance.
    """

    points: int = setting(1, "reciprocal points of each class", span="[1, inf)")
    w_radius: float = setting(
        0.1, "weight of: the distance to the own class's points is the radius", span="[0, inf)"
    )
    temperature: float = setting(1.0, "distances are divided by it", span="(0, inf)")

    def attach(self, net: Net) -> None:
        """Points and radius."""
        attach_points(net, self.points)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The loss of one batch."""
        own = points_of(net)
        distance = own.squared(net.embed(batch.x))
        loss = F.cross_entropy(distance / self.temperature, batch.y)
        if self.w_radius:
            loss = loss + self.w_radius * (of_class(distance, batch.y) - own.radius).square().mean()
        return loss

    def scores(self, net: Net, x: Tensor) -> Scores:
        """Distances as logits; never answers unknown, but ranks."""
        return distance_scores(points_of(net).squared(net.embed(x)), self.temperature)


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


def attach_points(net: Net, count: int) -> None:
    """Give the network `count` reciprocal points for each class, in the space of its embedding."""
    weight = next(net.parameters())
    training = net.training
    with torch.no_grad():
        width = net.eval().embed(weight.new_zeros(1, *sample_shape(net))).shape[1]
    net.train(training)
    net.objective = Points(net.classes, count, width).to(weight)


def points_of(net: Net) -> Points:
    """The reciprocal points of a network."""
    own = net.objective
    assert isinstance(own, Points)
    return own


def of_class(distance: Tensor, y: Tensor) -> Tensor:
    """Each sample's distance to the points of its own class [B]."""
    return distance.gather(1, y.unsqueeze(1)).squeeze(1)


def distance_scores(distance: Tensor, temperature: float) -> Scores:
    """Larger distances to the reciprocal points are more known:
    the softmax of `known` is the class probability.
    """
    return Scores(distance / temperature, -distance.max(dim=1).values, float("inf"))


def decided(logits: Tensor) -> Tensor:
    """exp(-H), H the mean entropy of the softmax: from 1/K (all classes alike) to 1 (no doubt)."""
    shares = logits.log_softmax(dim=1)
    return (shares.exp() * shares).sum(dim=1).mean().exp()
