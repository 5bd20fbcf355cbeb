"""RPL: reciprocal point learning (Chen et al., "Learning Open Set Network with Discriminative
Reciprocal Points", ECCV 2020).

A class's reciprocal points stand for everything that it is *not*, so the logit of class k
is the distance to its points, and a second term binds the distances of known samples to a
common radius, which leaves the space around the points to the unknown. Of an unknown
sample the largest distance is small.

Deviations and readings, all as in the authors' later code: the squared distance is divided by the
width of the embedding, several points of a class count by their mean distance, and there is one
radius, starting at 0, for all classes.
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.objectives.gan import sample_shape
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
