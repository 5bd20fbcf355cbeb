"""RandAugment (Cubuk et al., "RandAugment: Practical Automated Data Augmentation with a Reduced
Search Space", NeurIPS 2020), whole batches at once: each image gets one of the paper's fourteen
operations, all with the same magnitude.

Deviations: an image's own smallest and largest value stand for 0 and 255, because inputs are
normalised by the time they are augmented; what geometry leaves empty takes the smallest value;
equalising counts the pixels below each value instead of sorting 256 bins.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn import functional as F

from ostraka.core.augmentation import Augmentation
from ostraka.core.kind import Kind
from ostraka.core.settings import setting
from ostraka.registry import AUGMENTATIONS

MAGNITUDE = 6 / 30
"""As Vaze et al. (ICLR 2022) chose it for CIFAR-10: a share of each operation's range."""


@final
@AUGMENTATIONS.add("rand-augment")
@dataclass(frozen=True)
class RandAugment(Augmentation):
    """Random operations on each image: geometry, brightness, contrast, colour, sharpness, fewer
    levels."""

    kinds: ClassVar[tuple[Kind, ...]] = ("image", "sound")
    operations: int = setting(1, "operations on each image, one after the other", span="[1, inf)")

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Changed images, within their own range of values."""
        low, high = (e.view(-1, 1, 1, 1) for e in x.flatten(1).aminmax(dim=1))
        span = torch.where(high > low, high - low, torch.ones_like(low))
        unit = (x - low) / span
        for _ in range(self.operations):
            unit = _one_each(unit, rng)
        return torch.addcmul(low, unit, span)


def _one_each(x: Tensor, rng: torch.Generator) -> Tensor:
    which = torch.randint(len(OPERATIONS), (len(x),), generator=rng)
    sign = torch.randint(2, (len(x),), generator=rng).mul_(2).sub_(1).to(x)
    out = x.clone()
    for number, operation in enumerate(OPERATIONS):
        rows = (which == number).nonzero().squeeze(1).to(x.device)
        if len(rows):
            out.index_copy_(0, rows, operation(x.index_select(0, rows), sign[rows]))
    return out


def identity(x: Tensor, sign: Tensor) -> Tensor:
    """The image as it is."""
    return x


def autocontrast(x: Tensor, sign: Tensor) -> Tensor:
    """Every channel stretched to the whole range."""
    low, high = x.amin(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
    return torch.where(high > low, (x - low) / (high - low).clamp(min=1e-12), x)


def equalize(x: Tensor, sign: Tensor) -> Tensor:
    """Every channel's values replaced by the share of pixels below them, the largest by 1."""
    flat = x.flatten(2).contiguous()
    below = torch.searchsorted(flat.sort(dim=2).values, flat).to(x)
    return (below / below.amax(dim=2, keepdim=True).clamp(min=1)).view_as(x)


def posterize(x: Tensor, sign: Tensor) -> Tensor:
    """8 bits, less up to 4."""
    step = float(2 ** round(4 * MAGNITUDE))
    return (x * 255 / step).floor() * step / 255


def solarize(x: Tensor, sign: Tensor) -> Tensor:
    """Values above a threshold turned round."""
    return torch.where(x > 1 - MAGNITUDE, 1 - x, x)


def color(x: Tensor, sign: Tensor) -> Tensor:
    """More or less colour."""
    return _blend(_grey(x).expand_as(x), x, sign)


def contrast(x: Tensor, sign: Tensor) -> Tensor:
    """More or less difference to the mean grey."""
    return _blend(_grey(x).mean(dim=(2, 3), keepdim=True), x, sign)


def brightness(x: Tensor, sign: Tensor) -> Tensor:
    """Brighter or darker."""
    return _blend(torch.zeros_like(x), x, sign)


def sharpness(x: Tensor, sign: Tensor) -> Tensor:
    """Sharper or smoother; the border stays as it is."""
    kernel = torch.ones(3, 3).to(x)
    kernel[1, 1] = 5
    channels = x.shape[1]
    smooth = x.clone()
    weight = (kernel / kernel.sum()).expand(channels, 1, 3, 3)
    smooth[:, :, 1:-1, 1:-1] = F.conv2d(x, weight, groups=channels)
    return _blend(smooth, x, sign)


def _blend(other: Tensor, x: Tensor, sign: Tensor) -> Tensor:
    """From `other` (0) over the image (1) to beyond; 0.1 to 1.9 at full magnitude."""
    return torch.lerp(other, x, 1 + 0.9 * MAGNITUDE * sign.view(-1, 1, 1, 1)).clamp(0, 1)


def _grey(x: Tensor) -> Tensor:
    if x.shape[1] != 3:
        return x.mean(dim=1, keepdim=True)
    return (x * torch.tensor([0.299, 0.587, 0.114]).to(x).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)


def rotate(x: Tensor, sign: Tensor) -> Tensor:
    """By up to 30 degrees either way."""
    angle = sign * math.radians(30) * MAGNITUDE
    ratio = x.shape[2] / x.shape[3]  # grid coordinates run from -1 to 1 on both axes
    return _warp(x, angle.cos(), -angle.sin() * ratio, 0, angle.sin() / ratio, angle.cos(), 0)


def shear_x(x: Tensor, sign: Tensor) -> Tensor:
    """By up to 0.3 along the rows."""
    return _warp(x, 1, sign * 0.3 * MAGNITUDE * x.shape[2] / x.shape[3], 0, 0, 1, 0)


def shear_y(x: Tensor, sign: Tensor) -> Tensor:
    """By up to 0.3 along the columns."""
    return _warp(x, 1, 0, 0, sign * 0.3 * MAGNITUDE * x.shape[3] / x.shape[2], 1, 0)


def translate_x(x: Tensor, sign: Tensor) -> Tensor:
    """By up to 0.45 of the width."""
    return _warp(x, 1, 0, 2 * 0.45 * MAGNITUDE * sign, 0, 1, 0)


def translate_y(x: Tensor, sign: Tensor) -> Tensor:
    """By up to 0.45 of the height."""
    return _warp(x, 1, 0, 0, 0, 1, 2 * 0.45 * MAGNITUDE * sign)


def _warp(x: Tensor, *entries: Tensor | float) -> Tensor:
    """The images under the affine maps with these six entries, bilinear, 0 outside."""
    rows = [torch.as_tensor(e, dtype=x.dtype, device=x.device).expand(len(x)) for e in entries]
    grid = F.affine_grid(
        torch.stack(rows, dim=1).view(-1, 2, 3), list(x.shape), align_corners=False
    )
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


OPERATIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    identity, autocontrast, equalize, rotate, solarize, color, posterize, contrast, brightness,
    sharpness, shear_x, shear_y, translate_x, translate_y,
)  # fmt: skip
"""Each takes images with values from 0 to 1 and, for every image, a sign."""
