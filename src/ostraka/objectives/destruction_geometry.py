"""Wider data destruction: seven geometric operations beside those of the paper, which names more
kinds as open (A.3).

As in `destruction_ops`, `draw_*` draws the random numbers of many images and `apply_*`
applies them, with no loop over images. Places are measured in half sides from the middle
of the image: the left edge is -1, the right edge 1. What is read from outside an image
is 0, as where `erase` has been.
"""

from functools import lru_cache
from math import log

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from ostraka.objectives.destruction_features import others
from ostraka.objectives.destruction_ops import (
    Drawn,
    Shape,
    below,
    draw_rectangle,
    inside,
    take_pixels,
    uniform,
)

KNOTS = 4
"""Rows and columns of an elastic grid."""

PATCHES = 4
"""Rows and columns of patches: 7x7 pixels each in an image of 28x28."""

REACH = 6 / 28
"""How far a swapped rectangle may land from where it was, as a share of the side."""


def draw_stretch(count: int, shape: Shape, rng: Generator) -> Drawn:
    """For each axis a log-uniform scale of 0.5 to 2.2 and a shift of up to 0.25.

    For half of the images, a shear of up to 0.6.
    """
    scales = uniform(log(0.5), log(2.2), (2, count), rng).exp()
    shear = uniform(-0.6, 0.6, (count,), rng) * below(2, count, rng)
    shifts = uniform(-0.25, 0.25, (2, count), rng)
    return {
        "scale_x": scales[0],
        "scale_y": scales[1],
        "shear": shear,
        "shift_x": shifts[0],
        "shift_y": shifts[1],
    }


def apply_stretch(x: Tensor, drawn: Drawn) -> Tensor:
    """Place (x, y) shows what was at (scale_x x + shear y + shift_x, scale_y y + shift_y).

    A scale above 1 shrinks.
    """
    none = torch.zeros_like(drawn["shear"])
    across = (drawn["scale_x"], drawn["shear"], drawn["shift_x"])
    ways = torch.stack([*across, none, drawn["scale_y"], drawn["shift_y"]], dim=1)
    ways = ways.float().view(-1, 2, 3)
    return _read(x, torch.matmul(ways, _places(x.shape[2], x.shape[3])))


def draw_elastic(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Normal moves (x, y) of a 4x4 grid, and their size, 0.15 to 0.45."""
    return {
        "moves": torch.randn(count, 2, KNOTS, KNOTS, generator=rng),
        "size": uniform(0.15, 0.45, (count,), rng),
    }


def apply_elastic(x: Tensor, drawn: Drawn) -> Tensor:
    """Every pixel is read from elsewhere: the grid's moves, bicubic in between.

    Its corners are the image's.
    """
    moves = (drawn["moves"] * drawn["size"][:, None, None, None]).float().flatten(2)
    height, width = x.shape[2:]
    return _read(x, torch.matmul(moves, _between(height, width)).add_(_places(height, width)[:2]))


def _read(x: Tensor, places: Tensor) -> Tensor:
    """x at the places [B, 2 (x, y), H * W], bilinear, 0 outside."""
    grid = places.view(len(x), 2, *x.shape[2:]).permute(0, 2, 3, 1)
    return F.grid_sample(x, grid.to(x), mode="bilinear", padding_mode="zeros", align_corners=False)


@lru_cache(maxsize=16)
def _places(height: int, width: int) -> Tensor:
    """[3, H * W]: x, y and 1 of every pixel's centre."""
    y, x = ((torch.arange(side) + 0.5) * (2 / side) - 1 for side in (height, width))
    x, y = x.repeat(height), y.repeat_interleave(width)
    return torch.stack([x, y, torch.ones(height * width)])


@lru_cache(maxsize=16)
def _between(height: int, width: int) -> Tensor:
    """[16, H * W]: how much every knot of an elastic grid counts for every pixel."""
    knots = torch.eye(KNOTS**2).view(-1, 1, KNOTS, KNOTS)
    return F.interpolate(knots, size=(height, width), mode="bicubic", align_corners=True).flatten(1)


def draw_mirror(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Which half is mirrored onto the other: the left, right, upper or lower one."""
    return {"half": below(4, count, rng)}


def apply_mirror(x: Tensor, drawn: Drawn) -> Tensor:
    """One half mirrored onto the other; the middle line of an odd side stays."""
    return take_pixels(x, _mirrored(x.shape[2], x.shape[3]).index_select(0, drawn["half"]))


@lru_cache(maxsize=4)
def _mirrored(height: int, width: int) -> Tensor:
    """[4, H, W]: the source of every pixel, for each kept half."""
    rows, columns = torch.arange(height)[:, None], torch.arange(width)
    left, upper = columns.minimum(width - 1 - columns), rows.minimum(height - 1 - rows)
    kept = [(rows, left), (rows, width - 1 - left), (upper, columns), (height - 1 - upper, columns)]
    return torch.stack([row * width + column for row, column in kept])


def draw_turn(count: int, shape: Shape, rng: Generator) -> Drawn:
    """One to three quarter turns of the whole image; two where it is not a square."""
    square = shape[1] == shape[2]
    return {"turns": 1 + below(3, count, rng) if square else torch.full((count,), 2)}


def apply_turn(x: Tensor, drawn: Drawn) -> Tensor:
    """The whole image turned, against the clock."""
    return take_pixels(x, _turned(x.shape[2], x.shape[3]).index_select(0, drawn["turns"] - 1))


@lru_cache(maxsize=4)
def _turned(height: int, width: int) -> Tensor:
    """[3, H, W]: the source of every pixel, for each number of turns.

    Of an oblong image, two whatever the number.
    """
    place = torch.arange(height * width).view(height, width)
    return torch.stack([torch.rot90(place, turns if height == width else 2) for turns in (1, 2, 3)])


def draw_morph(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Dilation or erosion, and a reach of 1 or 2 pixels: a window of 3x3 or 5x5."""
    return {"dilate": below(2, count, rng), "reach": 1 + below(2, count, rng)}


def apply_morph(x: Tensor, drawn: Drawn) -> Tensor:
    """Every pixel becomes the largest (dilation) or smallest (erosion)
    value of its window, inside the image.

    Erosion is a dilation of the negative; a window of 5x5 is one of 3x3 twice.
    """
    sign = (2 * drawn["dilate"] - 1).to(x).view(-1, 1, 1, 1)
    out = _dilated(x * sign)
    wide = (drawn["reach"] == 2).nonzero().squeeze(1).to(x.device)
    out = out.index_copy(0, wide, _dilated(out.index_select(0, wide)))
    return out * sign


def _dilated(x: Tensor) -> Tensor:
    """The largest value within one pixel.

    A dozen times faster than max_pool2d, which is slow with a stride of 1.
    """
    for dim in (2, 3):
        side = x.shape[dim]
        pairs = torch.maximum(x.narrow(dim, 0, side - 1), x.narrow(dim, 1, side - 1))
        inner = torch.maximum(pairs.narrow(dim, 0, side - 2), pairs.narrow(dim, 1, side - 2))
        x = torch.cat([pairs.narrow(dim, 0, 1), inner, pairs.narrow(dim, side - 2, 1)], dim=dim)
    return x


def draw_patches(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A random order of 4x4 patches, never the one they have."""
    order = torch.rand(count, PATCHES**2, generator=rng, dtype=torch.float64).argsort(dim=1)
    return {"order": _moved(order)}


def _moved(order: Tensor) -> Tensor:
    """Orders [B, N] as they are, but for those that leave everything in its place
    (one in 16!, for 16 patches).
    """
    still = (order == torch.arange(order.shape[1])).all(dim=1, keepdim=True)
    return torch.where(still, order.roll(1, dims=1), order)


def apply_patches(x: Tensor, drawn: Drawn) -> Tensor:
    """The patches in another order.

    Each is a quarter of the sides, rounded down; lines left over stay in place.
    """
    height, width = x.shape[2:]
    tall, wide = height // PATCHES, width // PATCHES
    patch = torch.arange(PATCHES)
    corners = (patch[:, None] * (tall * width) + patch * wide).flatten()
    moves = (corners[drawn["order"]] - corners).view(-1, PATCHES, 1, PATCHES, 1)
    moves = moves.expand(-1, -1, tall, -1, wide).reshape(-1, PATCHES * tall, PATCHES * wide)
    source = F.pad(moves, (0, width - PATCHES * wide, 0, height - PATCHES * tall))
    return take_pixels(x, source + torch.arange(height * width).view(height, width))


def draw_patchswap(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A rectangle of 0.2 to 0.5 of the area, aspect 0.3 to 3.3, another sample,
    and a move of up to 6/28 of each side.

    A move that would leave the image ends at its edge.
    """
    drawn = draw_rectangle(count, shape, (0.2, 0.5), (0.3, 3.3), rng)
    for start, length, side in (("top", "height", shape[1]), ("left", "width", shape[2])):
        reach = round(REACH * side)
        move = below(2 * reach + 1, count, rng) - reach
        drawn[f"to_{start}"] = (drawn[start] + move).clamp_min(0).minimum(side - drawn[length])
    return drawn | {"other": others(count, 1, rng).squeeze(1)}


def apply_patchswap(x: Tensor, drawn: Drawn) -> Tensor:
    """The rectangle of another sample pasted over this one.

    A sample that is alone takes it from itself upside down.
    """
    height, width = x.shape[2:]
    down = inside(height, drawn["to_top"], drawn["height"])
    across = inside(width, drawn["to_left"], drawn["width"])
    pasted = down[:, :, None] & across[:, None, :]
    move = (drawn["top"] - drawn["to_top"]) * width + drawn["left"] - drawn["to_left"]
    source = pasted * move[:, None, None] + torch.arange(height * width).view(height, width)
    other = x.index_select(0, drawn["other"].to(x.device)) if len(x) > 1 else x.flip(2, 3)
    return torch.lerp(x, take_pixels(other, source), pasted.unsqueeze(1).to(x).expand_as(x))
