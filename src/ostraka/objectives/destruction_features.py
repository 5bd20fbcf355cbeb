"""Destruction of features: columns of a table [B, D], or coefficients of sound [B, 1, T, D].

FedOV names both as open (appendix A.3). The idea is kept: values that occur in the data, in places
where they do not belong together, or values that lie beyond it. A feature is an entry of the last
axis; in sound, all frames of a recording are treated alike, so that adding noise to a cepstral
coefficient is a filter and changing its sign turns peaks of the spectrum into valleys.

As in `destruction_ops`, `draw_*` draws the random numbers and `apply_*` applies them.
"""

import torch
from torch import Generator, Tensor

from ostraka.objectives.destruction_ops import Drawn, Shape, below, uniform

USUAL = 4.0
"""How wide the range of a standardised feature usually is: two deviations on each side."""


def draw_exchange(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Another sample for each sample, and which features come from it:
    a share of 0.3 to 0.7, at least one.
    """
    taken = _some(count, shape[-1], (0.3, 0.7), rng)
    return {"other": others(count, 1, rng), "taken": taken}


def apply_exchange(x: Tensor, drawn: Drawn) -> Tensor:
    """Some features are those of another sample."""
    return torch.where(_beside(drawn["taken"], x), _partner(x, drawn), x)


def draw_shuffle(count: int, shape: Shape, rng: Generator) -> Drawn:
    """For each feature of each sample, another sample of its own."""
    return {"other": others(count, shape[-1], rng)}


def apply_shuffle(x: Tensor, drawn: Drawn) -> Tensor:
    """Every feature comes from some other sample: each column keeps its distribution,
    their connection is lost.
    """
    return _pool(x).gather(0, _beside(drawn["other"], x).expand_as(x))


def draw_mixup(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Another sample for each sample, and how much of it: 0.3 to 0.7."""
    return {"other": others(count, 1, rng), "weight": uniform(0.3, 0.7, (count, 1), rng).float()}


def draw_extrapolate(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Another sample for each sample, and how far away from it: 0.5 to 2 times their distance."""
    return {"other": others(count, 1, rng), "weight": uniform(-2, -0.5, (count, 1), rng).float()}


def apply_mixup(x: Tensor, drawn: Drawn) -> Tensor:
    """A point on the line through a sample (weight 0) and another one (weight 1)."""
    return x + _beside(drawn["weight"], x).to(x) * (_partner(x, drawn) - x)


def draw_noise(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Gaussian noise of 1 to 3 standard deviations."""
    strength = uniform(1, 3, (count, 1), rng).float()
    return {"noise": strength * torch.randn(count, shape[-1], generator=rng)}


def apply_noise(x: Tensor, drawn: Drawn) -> Tensor:
    """Noise in units of each feature's spread, so that a constant feature stays constant."""
    spread = x.std(dim=_all_but_features(x)) if len(x) > 1 else torch.ones_like(x[0])
    return x + _beside(drawn["noise"], x).to(x) * spread


def draw_extreme(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Which features leave their range (a share of 0.1 to 0.5, at least one), by 0.1 to 1 of its
    width, and which do so below it.
    """
    taken = _some(count, shape[-1], (0.1, 0.5), rng)
    excess = uniform(0.1, 1, (count, shape[-1]), rng).float()
    below_it = below(2, count * shape[-1], rng).view(count, -1).bool()
    return {"taken": taken, "excess": excess, "below": below_it}


def apply_extreme(x: Tensor, drawn: Drawn) -> Tensor:
    """Some features lie out of the range that these samples have; a constant feature has none and
    stays constant. A row that is alone is taken for the middle of a usual range.
    """
    low, high = x.amin(dim=_all_but_features(x)), x.amax(dim=_all_but_features(x))
    if x[..., 0].numel() == 1:
        low, high = low - USUAL / 2, high + USUAL / 2
    beyond = _beside(drawn["excess"], x).to(x) * (high - low)
    outside = torch.where(_beside(drawn["below"], x), low - beyond, high + beyond)
    return torch.where(_beside(drawn["taken"], x), outside, x)


def draw_negate(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Which features change their sign: a share of 0.3 to 1, at least one."""
    return {"taken": _some(count, shape[-1], (0.3, 1), rng)}


def apply_negate(x: Tensor, drawn: Drawn) -> Tensor:
    """Some features change their sign: where inputs are standardised, they move to the other side
    of the mean of all parties' data, which a party's own samples say little about.
    """
    return torch.where(_beside(drawn["taken"], x), -x, x)


def draw_permute(count: int, shape: Shape, rng: Generator) -> Drawn:
    """For each feature of each sample, the feature whose value it gets: one cycle through all of
    them, so that none keeps its own.
    """
    order = torch.rand(count, shape[-1], generator=rng).argsort(dim=1)
    return {"source": torch.empty_like(order).scatter_(1, order, order.roll(-1, dims=1))}


def apply_permute(x: Tensor, drawn: Drawn) -> Tensor:
    """The values of a sample change places among its features."""
    return x.gather(-1, _beside(drawn["source"], x).expand_as(x))


def others(count: int, columns: int, rng: Generator) -> Tensor:
    """[count, columns]: samples other than one's own."""
    step = 1 + below(max(1, count - 1), count * columns, rng).view(count, columns)
    return (torch.arange(count)[:, None] + step) % count


def _some(count: int, features: int, share: tuple[float, float], rng: Generator) -> Tensor:
    """[count, features]: a random choice, in each row of a size drawn anew; at least one."""
    order = torch.rand(count, features, generator=rng).argsort(dim=1)
    return order < (uniform(*share, (count, 1), rng) * features).ceil()


def _beside(drawn: Tensor, x: Tensor) -> Tensor:
    """Drawn numbers [B, D] where the samples are, with an axis of length 1 for each of theirs."""
    return drawn.to(x.device).view(len(drawn), *(1 for _ in x.shape[1:-1]), drawn.shape[1])


def _partner(x: Tensor, drawn: Drawn) -> Tensor:
    """The other sample that was drawn for each."""
    return _pool(x)[drawn["other"].squeeze(1).to(x.device)]


def _pool(x: Tensor) -> Tensor:
    """Where values are taken from; a sample that is alone takes its own ones in reverse order."""
    return x if len(x) > 1 else x.flip(-1)


def _all_but_features(x: Tensor) -> tuple[int, ...]:
    return tuple(range(x.ndim - 1))
