"""RandAugment: every operation against what it should do to an image that shows it."""

import math

import pytest
import torch

from ostraka.core.augmentation import augmentation, check_augment
from ostraka.data.augment import rand_augment as ra
from ostraka.errors import DataError

UP, DOWN = torch.ones(1), -torch.ones(1)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def random_images(count=64, channels=3):
    return torch.rand(count, channels, 10, 12, generator=rng(1))


def centre(image):
    """The centre of mass (row, column) of a one-channel image."""
    rows, columns = torch.meshgrid(
        *(torch.arange(n).double() for n in image.shape[-2:]), indexing="ij"
    )
    weight = image.squeeze().double()
    return torch.stack([(rows * weight).sum(), (columns * weight).sum()]) / weight.sum()


def test_every_image_gets_one_operation():
    x = random_images(400)
    low, high = x.flatten(1).aminmax(dim=1)
    unit = (x - low.view(-1, 1, 1, 1)) / (high - low).view(-1, 1, 1, 1)
    out = (ra.RandAugment()(x, rng()) - low.view(-1, 1, 1, 1)) / (high - low).view(-1, 1, 1, 1)
    seen = set()
    for image, result in zip(unit.split(1), out.split(1), strict=True):
        options = {
            (operation.__name__, sign.item()): operation(image, sign)
            for operation in ra.OPERATIONS
            for sign in (UP, DOWN)
        }
        names = {key for key, value in options.items() if torch.allclose(value, result, atol=1e-5)}
        assert names
        seen |= names
    assert {name for name, _ in seen} == {operation.__name__ for operation in ra.OPERATIONS}
    assert {sign for name, sign in seen if name == "rotate"} == {1.0, -1.0}


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_values_stay_within_the_image_own_range(channels):
    x = 5 * random_images(200, channels) - 2
    out = ra.RandAugment()(x, rng())
    low, high = x.flatten(1).aminmax(dim=1)
    assert (out.flatten(1).amin(dim=1) >= low - 1e-5).all()
    assert (out.flatten(1).amax(dim=1) <= high + 1e-5).all()


def test_constant_images_stay_finite_and_the_input_as_it_was():
    x = torch.full((40, 1, 8, 8), 3.0)
    out = ra.RandAugment()(x, rng())
    assert torch.equal(x, torch.full((40, 1, 8, 8), 3.0))
    assert out.isfinite().all()
    same = [augmentation("rand-augment")(random_images(), rng(2)) for _ in range(2)]
    assert torch.equal(same[0], same[1])


def test_blends():
    x = random_images(1)
    grey = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
    torch.testing.assert_close(ra.brightness(x, UP), (1.18 * x).clamp(0, 1))
    torch.testing.assert_close(ra.brightness(x, DOWN), 0.82 * x)
    torch.testing.assert_close(ra.contrast(x, DOWN), 0.82 * x + 0.18 * grey.mean())
    torch.testing.assert_close(ra.color(x, DOWN), 0.82 * x + 0.18 * grey.unsqueeze(1))
    point = torch.zeros(1, 1, 5, 5)
    point[0, 0, 2, 2] = 1
    smooth = ra.sharpness(point, DOWN)
    assert smooth[0, 0, 2, 2].item() == pytest.approx(0.82 + 0.18 * 5 / 13)
    assert smooth[0, 0, 1, 1].item() == pytest.approx(0.18 / 13)
    assert smooth[0, 0, 0].sum() == 0


def test_values_are_equalized_posterized_solarized_and_stretched():
    x = torch.tensor([0.0, 0.1, 0.1, 0.9]).view(1, 1, 2, 2)
    assert ra.equalize(x, UP).flatten().tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1])
    assert ra.solarize(x, UP).flatten().tolist() == pytest.approx([0, 0.1, 0.1, 0.1])
    # multiples of 2
    assert (ra.posterize(x, UP) * 255).flatten().tolist() == pytest.approx([0, 24, 24, 228])
    two = torch.cat([x, 0.5 + x / 4], dim=1)
    stretched = ra.autocontrast(two, UP)
    assert stretched[0, 0].flatten().tolist() == pytest.approx([0, 1 / 9, 1 / 9, 1])
    torch.testing.assert_close(stretched[0, 0], stretched[0, 1])


def test_geometry_moves_a_spot_as_far_as_it_should():
    """A spot right of the centre of an image that is wider than high.

    `sign` 1 and -1 are opposite moves.
    """
    image = torch.zeros(1, 1, 41, 61)
    image[0, 0, 19:22, 44:47] = 1.0  # 15 columns right of the centre (20, 30)
    angle = math.radians(30 / 5)
    moves = {
        ra.translate_x: (0, 0.09 * 61),
        ra.translate_y: (0.09 * 41, 0),
        ra.rotate: (15 * math.sin(angle), 15 * (math.cos(angle) - 1)),
        ra.shear_x: (0, 0),
        ra.shear_y: (0.06 * 15, 0),
    }
    for operation, (down, right) in moves.items():
        shifts = torch.stack(
            [centre(operation(image, sign)) - centre(image) for sign in (UP, DOWN)]
        )
        assert sorted(shifts[:, 0].tolist()) == pytest.approx(sorted([-down, down]), abs=0.15), (
            operation.__name__
        )
        columns = sorted([right, right] if operation is ra.rotate else [-right, right])
        assert sorted(shifts[:, 1].tolist()) == pytest.approx(columns, abs=0.15), operation.__name__
    low = torch.zeros(1, 1, 41, 61)
    low[0, 0, 34:37, 29:32] = 1.0  # 15 rows below the centre: along the rows by 0.06 * 15
    shifts = [(centre(ra.shear_x(low, sign)) - centre(low))[1].item() for sign in (UP, DOWN)]
    assert sorted(shifts) == pytest.approx([-0.9, 0.9], abs=0.15)


def test_rows_are_refused():
    with pytest.raises(DataError, match="kind image or sound; these are of the kind table"):
        check_augment("rand-augment", "table")


def test_two_operations_are_one_and_another():
    """The second draws from where the generator stands after the first."""
    x, chance = random_images(), rng(2)
    once = ra.RandAugment()(x, chance)
    assert not torch.equal(augmentation("rand-augment:operations=2")(x, rng(2)), once)
