"""Destruction beyond images: rows of a table [B, D] and audio features [B, 1,
T, F] (time by frequency).

FedOV names both as open (appendix A.3). The idea is kept: values that occur in the
data, in places where they do not belong together. Audio also uses the image operations
that move bands (`paste`, `swap`).
"""

import torch
from torch import Generator, Tensor

from ostraka.objectives.destruction_ops import Drawn, Shape, below, inside, take_pixels, uniform


def draw_exchange(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Another row for each row, and which features come from it:
    a share of 0.3 to 0.7, at least one.
    """
    features = shape[0]
    order = torch.rand(count, features, generator=rng).argsort(dim=1)
    taken = (uniform(0.3, 0.7, (count, 1), rng) * features).ceil()
    return {"other": others(count, 1, rng), "taken": order < taken}


def apply_exchange(x: Tensor, drawn: Drawn) -> Tensor:
    """Some features are those of another row."""
    return torch.where(
        drawn["taken"].to(x.device), _pool(x)[drawn["other"].squeeze(1).to(x.device)], x
    )


def draw_shuffle(count: int, shape: Shape, rng: Generator) -> Drawn:
    """For each feature of each row, another row of its own."""
    return {"other": others(count, shape[0], rng)}


def apply_shuffle(x: Tensor, drawn: Drawn) -> Tensor:
    """Every feature comes from some other row: each column keeps its distribution,
    their connection is lost.
    """
    return _pool(x).gather(0, drawn["other"].to(x.device))


def draw_noise(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Gaussian noise of 1 to 3 standard deviations."""
    strength = uniform(1, 3, (count, 1), rng).float()
    return {"noise": strength * torch.randn(count, shape[0], generator=rng)}


def apply_noise(x: Tensor, drawn: Drawn) -> Tensor:
    """Noise in units of each column's spread, so that a constant column stays constant."""
    spread = x.std(dim=0) if len(x) > 1 else torch.ones_like(x[0])
    return x + drawn["noise"].to(x) * spread


def others(count: int, columns: int, rng: Generator) -> Tensor:
    """[count, columns]: rows other than one's own."""
    step = 1 + below(max(1, count - 1), count * columns, rng).view(count, columns)
    return (torch.arange(count)[:, None] + step) % count


def _pool(x: Tensor) -> Tensor:
    """Where values are taken from; a row that is alone takes its own ones in reverse order."""
    return x if len(x) > 1 else x.flip(1)


def draw_mask(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A band of 0.33 to 0.5 of the time and one of 0.33 to 0.5 of the frequencies."""
    drawn: Drawn = {}
    for name, side in (("time", shape[1]), ("tone", shape[2])):
        length = (uniform(0.33, 0.5, (count,), rng) * side).round().long()
        drawn |= {f"{name}_start": below(side - length + 1, count, rng), f"{name}_length": length}
    return drawn


def apply_mask(x: Tensor, drawn: Drawn) -> Tensor:
    """Both bands take the sample's mean, as silence would in log features."""
    time = inside(x.shape[2], drawn["time_start"], drawn["time_length"])
    tone = inside(x.shape[3], drawn["tone_start"], drawn["tone_length"])
    masked = (time[:, :, None] | tone[:, None, :]).unsqueeze(1).to(x)
    return torch.lerp(x, x.mean(dim=(2, 3), keepdim=True).expand_as(x), masked.expand_as(x))


def draw_shift(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Shifts in time and frequency, each between a quarter and three quarters of the whole.

    One of them may be 0.
    """
    which = below(3, count, rng)
    shifts = [side // 4 + below(side - 2 * (side // 4) + 1, count, rng) for side in shape[1:]]
    return {"time": shifts[0] * (which != 1), "tone": shifts[1] * (which != 0)}


def apply_shift(x: Tensor, drawn: Drawn) -> Tensor:
    """Roll in time, in frequency or in both."""
    time, tone = (
        (torch.arange(x.shape[2 + i]) - drawn[k][:, None]) % x.shape[2 + i]
        for i, k in enumerate(drawn)
    )
    return take_pixels(x, time[:, :, None] * x.shape[3] + tone[:, None, :])
