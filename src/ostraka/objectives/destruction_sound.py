"""Destruction of sound: features of recordings [B, 1, T, D], time by frequency or coefficient.

Bands of time and frequency are cut out, moved, swapped, played backwards or at another speed. Sound
also uses operations of images that move bands (`paste`, `swap`, `patchswap`) and those of features
(`destruction_features`), which treat all frames of a recording alike.
"""

from math import log

import torch
from torch import Generator, Tensor

from ostraka.objectives.destruction_ops import Drawn, Shape, below, inside, take_pixels, uniform


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
    time = (torch.arange(x.shape[2]) - drawn["time"][:, None]) % x.shape[2]
    tone = (torch.arange(x.shape[3]) - drawn["tone"][:, None]) % x.shape[3]
    return take_pixels(x, time[:, :, None] * x.shape[3] + tone[:, None, :])


def draw_bandswap(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Two bands of the same length, 1/8 to 3/8 of the whole, that do not overlap; of time or of
    frequency.
    """
    tone = below(2, count, rng).bool()
    side = torch.where(tone, shape[2], shape[1])
    length = (uniform(1 / 8, 3 / 8, (count,), rng) * side).round().long().clamp_min(1)
    places = torch.stack([below(side - 2 * length + 1, count, rng) for _ in range(2)])
    first, second = places.amin(dim=0), places.amax(dim=0) + length
    return {"tone": tone, "first": first, "second": second, "length": length}


def apply_bandswap(x: Tensor, drawn: Drawn) -> Tensor:
    """The two bands change places."""
    time = _swapped_lines(x.shape[2], drawn, ~drawn["tone"])
    tone = _swapped_lines(x.shape[3], drawn, drawn["tone"])
    return take_pixels(x, time[:, :, None] * x.shape[3] + tone[:, None, :])


def _swapped_lines(side: int, drawn: Drawn, here: Tensor) -> Tensor:
    """[B, side]: the source line of every output line; itself where nothing is swapped `here`."""
    step = ((drawn["second"] - drawn["first"]) * here)[:, None]
    forth, back = (inside(side, drawn[name], drawn["length"]) for name in ("first", "second"))
    return torch.arange(side) + forth * step - back * step


def draw_reverse(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A band of 0.5 to 1 of the time."""
    length = (uniform(0.5, 1, (count,), rng) * shape[1]).round().long()
    return {"start": below(shape[1] - length + 1, count, rng), "length": length}


def apply_reverse(x: Tensor, drawn: Drawn) -> Tensor:
    """The band is played backwards."""
    line, start, length = torch.arange(x.shape[2]), drawn["start"], drawn["length"]
    mirrored = (2 * start + length - 1)[:, None] - line
    return _take_frames(x, torch.where(inside(x.shape[2], start, length), mirrored, line))


def draw_speed(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A factor of 1.5 to 3, log-uniform, by which it is faster or, for half of them, slower."""
    factor = uniform(log(1.5), log(3), (count,), rng).exp()
    return {"speed": torch.where(below(2, count, rng).bool(), factor, 1 / factor)}


def apply_speed(x: Tensor, drawn: Drawn) -> Tensor:
    """Played at another speed, the middle frame staying where it is; between frames on a straight
    line, and beyond the ends as at the ends.
    """
    middle = (x.shape[2] - 1) / 2
    place = middle + drawn["speed"][:, None] * (torch.arange(x.shape[2]) - middle)
    place = place.clamp(0, x.shape[2] - 1)
    before = place.floor().long()
    after = (before + 1).clamp_max(x.shape[2] - 1)
    share = (place - before)[:, None, :, None].to(x)
    earlier = _take_frames(x, before)
    return earlier + share * (_take_frames(x, after) - earlier)


def _take_frames(x: Tensor, source: Tensor) -> Tensor:
    """x with every frame replaced by the one that `source` [B, T] names."""
    return x.gather(2, source.to(x.device)[:, None, :, None].expand_as(x))
