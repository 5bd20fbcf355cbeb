"""FedOV's data destruction as one would write it: one image after the other."""

import math
import random

import torch
import torch.nn.functional as F
from torch import Tensor


def destroy(x: Tensor) -> Tensor:
    """Every image by one of the paper's operations, drawn at random."""
    ops = [crop, blur, erase, cut, cut, rotate, rotate]
    return torch.stack([random.choice(ops)(image) for image in x])


def rectangle(
    image: Tensor, area: tuple[float, float], aspect: tuple[float, float]
) -> tuple[int, int, int, int]:
    _, height, width = image.shape
    while True:
        pixels = random.uniform(*area) * height * width
        ratio = math.exp(random.uniform(math.log(aspect[0]), math.log(aspect[1])))
        h, w = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < h < height and 0 < w < width:
            return random.randint(0, height - h), random.randint(0, width - w), h, w


def crop(image: Tensor) -> Tensor:
    top, left, h, w = rectangle(image, (0.1, 0.33), (3 / 4, 4 / 3))
    part = image[None, :, top : top + h, left : left + w]
    return F.interpolate(part, size=image.shape[1:], mode="bilinear", align_corners=False)[0]


def blur(image: Tensor) -> Tensor:
    sides = [random.choice((3, 5, 7, 9)), random.choice((1, 3, 5))]
    random.shuffle(sides)
    sigma = random.uniform(10, 100)
    lines = [torch.exp(-0.5 * (torch.arange(s) - s // 2) ** 2 / sigma**2) for s in sides]
    kernel = (lines[0] / lines[0].sum())[:, None] * (lines[1] / lines[1].sum())
    pads = (sides[1] // 2, sides[1] // 2, sides[0] // 2, sides[0] // 2)
    weight = kernel.expand(len(image), 1, *kernel.shape)
    return F.conv2d(F.pad(image[None], pads, mode="reflect"), weight, groups=len(image))[0]


def erase(image: Tensor) -> Tensor:
    top, left, h, w = rectangle(image, (0.33, 0.5), (0.3, 3.3))
    out = image.clone()
    out[:, top : top + h, left : left + w] = 0
    return out


def cut(image: Tensor) -> Tensor:
    case, out = random.randint(0, 5), image.clone()
    if case >= 3:
        return cut_columns(image.transpose(1, 2), out.transpose(1, 2), case - 3).transpose(1, 2)
    return cut_columns(image, out, case)


def cut_columns(image: Tensor, out: Tensor, case: int) -> Tensor:
    half = image.shape[2] // 2
    if case == 2:
        out[:, :, :half], out[:, :, half:] = image[:, :, half:], image[:, :, :half]
        return out
    target = source = 0
    while abs(target - source) < half / 2:
        target, source = random.randint(0, half - 1), random.randint(0, half - 1)
    out[:, :, target : target + half] = image[:, :, source : source + half]
    return out


def rotate(image: Tensor) -> Tensor:
    half, out = image.shape[1] // 2, image.clone()
    top, turns = random.randint(0, half - 1), random.randint(1, 3)
    for left in (0, half):
        square = image[:, top : top + half, left : left + half]
        out[:, top : top + half, left : left + half] = torch.rot90(square, turns, (1, 2))
    return out
