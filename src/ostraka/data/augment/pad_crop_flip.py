"""Random changes of training images, whole batches at once.

Every function takes inputs [B, C, H, W] and a CPU generator, and draws all its randomness from that generator, so the
same seed gives the same images on every device.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ostraka.registry import AUGMENTATIONS

PAD = 4
DEGREES = 15.0


@AUGMENTATIONS.add("none")
def unchanged(x: Tensor, rng: torch.Generator) -> Tensor:
    """The images as they are."""
    return x


@AUGMENTATIONS.add("pad-crop-flip")
def pad_crop_flip(x: Tensor, rng: torch.Generator) -> Tensor:
    """Reflect-pad by 4, crop back to size at a random place, mirror every second image on average."""
    batch, _, height, width = x.shape
    top, left = (torch.randint(0, 2 * PAD + 1, (batch, 1), generator=rng) for _ in range(2))
    flip = torch.rand(batch, 1, generator=rng) < 0.5
    columns = torch.arange(width).expand(batch, width)
    columns = left + torch.where(flip, columns.flip(1), columns)
    rows = (top + torch.arange(height)).to(x.device)
    padded = F.pad(x, (PAD, PAD, PAD, PAD), mode="reflect")
    image = torch.arange(batch, device=x.device).view(batch, 1, 1)
    # Advanced indices on both sides of the channel slice put the channel last.
    return (
        padded[image, :, rows[:, :, None], columns.to(x.device)[:, None, :]]
        .permute(0, 3, 1, 2)
        .contiguous()
    )


@AUGMENTATIONS.add("pad-crop-flip-rotate")
def pad_crop_flip_rotate(x: Tensor, rng: torch.Generator) -> Tensor:
    """As `pad-crop-flip`, then a rotation by up to 15 degrees either way (nearest pixel, corners filled with 0)."""
    x = pad_crop_flip(x, rng)
    batch, _, height, width = x.shape
    angle = (torch.rand(batch, generator=rng) * 2 - 1) * math.radians(DEGREES)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros(batch)
    # Grid coordinates run from -1 to 1 on both axes, so the sines carry the aspect ratio.
    first = torch.stack([cos, -sin * height / width, zero], dim=1)
    second = torch.stack([sin * width / height, cos, zero], dim=1)
    turn = torch.stack([first, second], dim=1).to(device=x.device, dtype=x.dtype)
    grid = F.affine_grid(turn, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="nearest", padding_mode="zeros", align_corners=False)
