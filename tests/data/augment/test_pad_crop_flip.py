"""Augmentation: what it may do to an image, and the seed of what is random in it."""

import math

import pytest
import torch
from torch.nn import functional as F

from ostraka.core.augmentation import augmentation
from ostraka.data.augment.pad_crop_flip import PadCropFlip, PadCropFlipRotate


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def test_pad_crop_flip_gives_one_of_the_possible_crops_of_each_image():
    x = torch.rand(40, 3, 8, 10, generator=rng(1))
    out = PadCropFlip()(x, rng())
    padded = F.pad(x, (4, 4, 4, 4), mode="reflect")
    seen = set()
    for image, result in zip(padded, out, strict=True):
        crops = {
            (top, left, flip): image[:, top : top + 8, left : left + 10].flip(2)
            if flip
            else image[:, top : top + 8, left : left + 10]
            for top in range(9)
            for left in range(9)
            for flip in (False, True)
        }
        match = [key for key, crop in crops.items() if torch.equal(crop, result)]
        assert len(match) == 1
        seen.add(match[0])
    assert {flip for *_, flip in seen} == {False, True}
    assert len({(top, left) for top, left, _ in seen}) > 10


def test_rotation_stays_within_15_degrees():
    """A bright pixel right of the centre shows each image's angle.

    The crop before it moves the pixel by at most 4.
    """
    x = torch.zeros(200, 1, 65, 65)
    x[:, :, 31:34, 59:62] = 1.0
    x[:, :, 31:34, 3:6] = 1.0  # the mirror image, so that a flip changes nothing
    out = PadCropFlipRotate()(x, rng())
    angles = []
    for image in out[:, 0]:
        points = image.nonzero().double()
        left, right = points[points[:, 1] < 32].mean(dim=0), points[points[:, 1] > 32].mean(dim=0)
        rise, run = (right - left).tolist()
        angles.append(math.degrees(math.atan2(rise, run)))
    assert max(angles) <= 16
    assert min(angles) >= -16
    assert max(angles) > 12
    assert min(angles) < -12


@pytest.mark.parametrize("name", ["none", "pad-crop-flip", "pad-crop-flip-rotate"])
def test_same_seed_same_images(name):
    augment, x = augmentation(name), torch.rand(16, 3, 12, 12, generator=rng(1))
    before = x.clone()
    assert torch.equal(augment(x, rng(5)), augment(x, rng(5)))
    assert torch.equal(x, before)
    assert torch.equal(augment(x, rng(5)), augment(x, rng(6))) == (name == "none")
    assert augment(x, rng(5)).shape == x.shape


@pytest.mark.parametrize("name", ["pad-crop-flip", "pad-crop-flip-rotate"])
def test_works_on_another_device(name):
    """The meta device has no data: an index or grid left on the CPU fails here."""
    assert augmentation(name)(torch.empty(4, 3, 32, 32, device="meta"), rng()).device.type == "meta"
