"""The image operations of data destruction (Diao, Li & He, ICLR 2023:
section 3.4 and appendix B.1).

Every operation is two functions: `draw_*` draws the random numbers of many images, `apply_*`
applies them. So a test can compare with a slow image-by-image reading of the paper, number for
number. The ranges are those of the authors' code. Nothing loops over images: crop and blur are two
small matrices per image (rows, columns), cut, rotate and CutPaste are one table of source pixels
per image, erase is a mask.
"""

from functools import lru_cache
from math import log

import torch
from torch import Generator, Tensor

Drawn = dict[str, Tensor]
"""What was drawn: by name, one number (or a small table of them) per image, on the CPU."""

Shape = tuple[int, ...]
"""The shape of one sample; of an image: channels, height, width."""

TRIES = 10
"""Rectangles are drawn anew while they do not fit, at most this often (as torchvision does)."""

BLUR_REACH = 4
"""Half the largest blur kernel, 9."""


def below(limit: Tensor | int, count: int, rng: Generator) -> Tensor:
    """Whole numbers, each uniform in 0 .. limit - 1."""
    limit = torch.as_tensor(limit).expand(count)
    drawn = (torch.rand(count, generator=rng, dtype=torch.float64) * limit).long()
    return drawn.minimum(limit - 1)  # the product can round up to the limit itself


def uniform(low: float, high: float, size: tuple[int, ...], rng: Generator) -> Tensor:
    """Uniform numbers between `low` and `high`."""
    return low + (high - low) * torch.rand(size, generator=rng, dtype=torch.float64)


def draw_rectangle(
    count: int, shape: Shape, area: tuple[float, float], aspect: tuple[float, float], rng: Generator
) -> Drawn:
    """A rectangle inside each image: share of the area uniform,
    height / width log-uniform, place uniform.

    A rectangle that does not fit is drawn anew. After ten failures (only in very long images) it
    takes the aspect of the image itself, which always fits.
    """
    height, width = shape[1:]
    pixels = uniform(*area, (count, TRIES), rng) * (height * width)
    ratio = uniform(log(aspect[0]), log(aspect[1]), (count, TRIES), rng).exp()
    ratio[:, -1] = torch.where(
        _fits(pixels, ratio, height, width).any(dim=1), ratio[:, -1], height / width
    )
    pick = _fits(pixels, ratio, height, width).to(torch.uint8).argmax(dim=1, keepdim=True)
    tall, wide = (side.gather(1, pick).squeeze(1).long() for side in _sides(pixels, ratio))
    top, left = below(height - tall + 1, count, rng), below(width - wide + 1, count, rng)
    return {"top": top, "left": left, "height": tall, "width": wide}


def _sides(pixels: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    return (pixels * ratio).sqrt().round(), (pixels / ratio).sqrt().round()


def _fits(pixels: Tensor, ratio: Tensor, height: int, width: int) -> Tensor:
    tall, wide = _sides(pixels, ratio)
    return (tall >= 1) & (tall < height) & (wide >= 1) & (wide < width)


def draw_crop(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A rectangle of 0.1 to 0.33 of the area, aspect 3/4 to 4/3."""
    return draw_rectangle(count, shape, (0.1, 0.33), (3 / 4, 4 / 3), rng)


def apply_crop(x: Tensor, drawn: Drawn) -> Tensor:
    """The rectangle enlarged to the whole image, bilinear (pixel centres, edges repeated).

    Bilinear interpolation is linear along rows and along columns: out = A X B'. An entry of A is
    the hat function of the distance between a source row and the place where an output row falls,
    so no index is needed.
    """
    down = _enlarge(x.shape[2], drawn["top"], drawn["height"]).to(x)
    across = _enlarge(x.shape[3], drawn["left"], drawn["width"]).to(x)
    return _both_ways(x, down, across)


def _enlarge(side: int, start: Tensor, length: Tensor) -> Tensor:
    """[B, side, side]: how much of each source line (last) goes into each output line."""
    line = torch.arange(side, dtype=torch.float32)
    start, length = start[:, None], length[:, None]
    place = ((line + 0.5) * (length / side) - 0.5).clamp_min(0).minimum(length - 1) + start
    return (1 - (line - place[:, :, None]).abs_()).clamp_min_(0)


def _both_ways(x: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """down @ x @ across' for every image and channel."""
    count, channels, height, width = x.shape
    rows = x.reshape(count, channels * height, width)
    mixed = torch.bmm(rows, across.transpose(1, 2)).view(x.shape)
    # a broadcast matmul would copy `down` for every channel
    return torch.einsum("bij,bcjk->bcik", down, mixed)


def draw_blur(count: int, shape: Shape, rng: Generator) -> Drawn:
    """Kernel sides, one of {3, 5, 7, 9} and one of {1, 3, 5}, either way round,
    and sigma from 10 to 100.
    """
    long = 2 * below(4, count, rng) + 3
    short = 2 * below(3, count, rng) + 1
    flip = below(2, count, rng).bool()
    sigma = uniform(10, 100, (count,), rng)
    return {
        "tall": torch.where(flip, short, long),
        "wide": torch.where(flip, long, short),
        "sigma": sigma,
    }


def apply_blur(x: Tensor, drawn: Drawn) -> Tensor:
    """Gaussian blur with reflected edges; separable,
    so it too is one matrix along rows and one along columns.
    """
    down = _spread(x.shape[2], drawn["tall"], drawn["sigma"]).to(x)
    across = _spread(x.shape[3], drawn["wide"], drawn["sigma"]).to(x)
    return _both_ways(x, down, across)


def _spread(side: int, kernel: Tensor, sigma: Tensor) -> Tensor:
    """[B, side, side]: how much of each source line (last) goes into each output line."""
    step = torch.arange(-BLUR_REACH, BLUR_REACH + 1)
    inside_it = step.abs() <= (kernel[:, None] - 1) // 2
    weight = (-0.5 * (step / sigma[:, None]) ** 2).exp() * inside_it
    weight = (weight / weight.sum(dim=1, keepdim=True)).float()
    return (weight @ _neighbours(side)).view(-1, side, side)


@lru_cache(maxsize=16)
def _neighbours(side: int) -> Tensor:
    """[9, side * side]: for each step of the kernel, a 1 where output line (first) meets its
    reflected source line.
    """
    line = torch.arange(side)
    source = (line + torch.arange(-BLUR_REACH, BLUR_REACH + 1)[:, None]).abs()
    source = (side - 1) - ((side - 1) - source).abs()
    return torch.nn.functional.one_hot(source, side).float().view(2 * BLUR_REACH + 1, side * side)


def draw_erase(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A rectangle of 0.33 to 0.5 of the area, aspect 0.3 to 3.3."""
    return draw_rectangle(count, shape, (0.33, 0.5), (0.3, 3.3), rng)


def apply_erase(x: Tensor, drawn: Drawn) -> Tensor:
    """The rectangle becomes 0."""
    down = inside(x.shape[2], drawn["top"], drawn["height"])
    across = inside(x.shape[3], drawn["left"], drawn["width"])
    keep = ~(down[:, :, None] & across[:, None, :])
    return x * keep.unsqueeze(1).to(x)  # eight times faster than masked_fill with a broadcast mask


def inside(side: int, start: Tensor, length: Tensor) -> Tensor:
    """[B, side]: which lines lie in the band that begins at `start`."""
    line = torch.arange(side)
    return (line >= start[:, None]) & (line < (start + length)[:, None])


COPY_COLUMNS, SWAP_COLUMNS, COPY_ROWS, SWAP_ROWS = (0, 1), (2,), (3, 4), (5,)
"""The six cases of a cut."""


def draw_cut(
    count: int, shape: Shape, rng: Generator, cases: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
) -> Drawn:
    """One of the cases, and where a copied half comes from and goes to,
    at least a quarter of the image apart.
    """
    case = torch.tensor(cases)[below(len(cases), count, rng)]
    columns = case < COPY_ROWS[0]
    half = torch.where(columns, shape[2] // 2, shape[1] // 2)
    quarter = (half + 1) // 2
    # of an odd number of offsets, the middle one has no partner
    target = below(half - half % 2, count, rng)
    target += (half % 2 == 1) & (target >= half // 2)
    low = (target - quarter + 1).clamp_min(0)  # sources before the target; the others come after it
    source = below(low + (half - target - quarter).clamp_min(0), count, rng)
    source = torch.where(source < low, source, source - low + target + quarter)
    return {"case": case, "source": source, "target": target}


def apply_cut(x: Tensor, drawn: Drawn) -> Tensor:
    """Copy half of the columns (or rows) over others, or swap the two halves."""
    case, source, target = drawn["case"], drawn["source"], drawn["target"]
    rows = _cut_lines(x.shape[2], source, target, copy=(case == 3) | (case == 4), swap=case == 5)
    columns = _cut_lines(x.shape[3], source, target, copy=case < 2, swap=case == 2)
    return take_pixels(x, rows[:, :, None] * x.shape[3] + columns[:, None, :])


def _cut_lines(side: int, source: Tensor, target: Tensor, copy: Tensor, swap: Tensor) -> Tensor:
    """[B, side]: the source line of every output line."""
    line, half = torch.arange(side), side // 2
    copied = line + inside(side, target, torch.tensor(half)) * (source - target)[:, None]
    swapped = torch.where(
        line < half, line + side - half, torch.where(line >= side - half, line - side + half, line)
    )
    return torch.where(copy[:, None], copied, torch.where(swap[:, None], swapped, line))


def take_pixels(x: Tensor, source: Tensor) -> Tensor:
    """x with every pixel replaced by the one that `source` [B, H, W] names
    (row * width + column), in all channels.
    """
    index = source.flatten(1).to(x.device).unsqueeze(1).expand(-1, x.shape[1], -1)
    return x.flatten(2).gather(2, index).view(x.shape)


def draw_rotate(count: int, shape: Shape, rng: Generator) -> Drawn:
    """The first row of a band of half the height, and 1 to 3 quarter turns."""
    return {"top": below(shape[1] // 2, count, rng), "turns": 1 + below(3, count, rng)}


def apply_rotate(x: Tensor, drawn: Drawn) -> Tensor:
    """The leftmost and the rightmost square of the band turn by the same
    number of quarters, against the clock.

    The squares are half as high as the image,
    or half as wide where the image is narrower than high.
    """
    height, width = x.shape[2:]
    moves = _turn_moves(height, width)
    row = torch.arange(height)
    lookup = (drawn["turns"][:, None] - 1) * moves.shape[1] + height + row - drawn["top"][:, None]
    move = moves.flatten(0, 1).index_select(0, lookup.flatten()).view(-1, height, width)
    return take_pixels(x, move + row[:, None] * width + torch.arange(width))


@lru_cache(maxsize=16)
def _turn_moves(height: int, width: int) -> Tensor:
    """[3, 2 height, width]: for 1 to 3 turns of a band at row `height`,
    how far away each pixel's source is.

    One table serves every position of the band: an image reads it from another row on.
    """
    side = min(height, width) // 2
    place = torch.arange(side * side).view(side, side)
    moves = torch.zeros(3, 2 * height, width, dtype=torch.long)
    for turns in (1, 2, 3):
        source = torch.rot90(place, turns)
        move = (source // side - place // side) * width + source % side - place % side
        for left in (0, width - side):
            moves[turns - 1, height : height + side, left : left + side] = move
    return moves


def draw_cutpaste(count: int, shape: Shape, rng: Generator) -> Drawn:
    """A small rectangle and where it is pasted (CutPaste; Li, Sohn, Yoon & Pfister,
    CVPR 2021, section 2.1).

    Area 0.02 to 0.15, aspect 0.3 to 3.3, target uniform. Only the plain rectangle: no colour jitter
    and none of the thin rotated "scars", so that every pixel stays one of the image's own, as with
    the operations above.
    """
    drawn = draw_rectangle(count, shape, (0.02, 0.15), (0.3, 3.3), rng)
    rows, columns = shape[1] - drawn["height"] + 1, shape[2] - drawn["width"] + 1
    return drawn | {"to_top": below(rows, count, rng), "to_left": below(columns, count, rng)}


def apply_cutpaste(x: Tensor, drawn: Drawn) -> Tensor:
    """Paste a copy of the rectangle elsewhere."""
    height, width = x.shape[2:]
    down = inside(height, drawn["to_top"], drawn["height"])
    across = inside(width, drawn["to_left"], drawn["width"])
    move = (drawn["top"] - drawn["to_top"]) * width + drawn["left"] - drawn["to_left"]
    pasted = (down[:, :, None] & across[:, None, :]) * move[:, None, None]
    return take_pixels(x, pasted + torch.arange(height * width).view(height, width))
