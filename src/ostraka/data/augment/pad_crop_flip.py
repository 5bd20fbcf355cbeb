"""Images moved, mirrored and turned, as usual for small photographs; and none of it."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn import functional as F

from ostraka.core.augmentation import Augmentation
from ostraka.core.kind import KINDS, Kind
from ostraka.core.settings import setting
from ostraka.registry import AUGMENTATIONS


@final
@AUGMENTATIONS.add("none")
@dataclass(frozen=True)
class Unchanged(Augmentation):
    """The samples as they are."""

    kinds: ClassVar[tuple[Kind, ...]] = KINDS

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """The same tensor."""
        return x


@final
@AUGMENTATIONS.add("pad-crop-flip")
@dataclass(frozen=True)
class PadCropFlip(Augmentation):
    """Reflect-pad, crop back to size at a random place, mirror every second image on average."""

    pad: int = setting(4, "pixels added at each side", span="[0, inf)")

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Moved and mirrored images."""
        batch, _, height, width = x.shape
        top, left = (
            torch.randint(0, 2 * self.pad + 1, (batch, 1), generator=rng) for _ in range(2)
        )
        flip = torch.rand(batch, 1, generator=rng) < 0.5
        columns = torch.arange(width).expand(batch, width)
        columns = left + torch.where(flip, columns.flip(1), columns)
        rows = (top + torch.arange(height)).to(x.device)
        padded = F.pad(x, (self.pad,) * 4, mode="reflect")
        image = torch.arange(batch, device=x.device).view(batch, 1, 1)
        # Advanced indices on both sides of the channel slice put the channel last.
        return (
            padded[image, :, rows[:, :, None], columns.to(x.device)[:, None, :]]
            .permute(0, 3, 1, 2)
            .contiguous()
        )


@final
@AUGMENTATIONS.add("pad-crop-flip-rotate")
@dataclass(frozen=True)
class PadCropFlipRotate(Augmentation):
    """As pad-crop-flip, then a rotation either way (nearest pixel, corners filled with 0)."""

    pad: int = setting(4, "pixels added at each side", span="[0, inf)")
    degrees: float = setting(15.0, "the largest angle", span="[0, 180]")

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Moved, mirrored and turned images."""
        x = PadCropFlip(self.pad)(x, rng)
        batch, _, height, width = x.shape
        angle = (torch.rand(batch, generator=rng) * 2 - 1) * math.radians(self.degrees)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros(batch)
        # Grid coordinates run from -1 to 1 on both axes, so the sines carry the aspect ratio.
        first = torch.stack([cos, -sin * height / width, zero], dim=1)
        second = torch.stack([sin * width / height, cos, zero], dim=1)
        turn = torch.stack([first, second], dim=1).to(device=x.device, dtype=x.dtype)
        grid = F.affine_grid(turn, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, mode="nearest", padding_mode="zeros", align_corners=False)
