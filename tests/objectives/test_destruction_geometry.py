"""The geometric operations against an image-by-image reading of their definitions,
with the same drawn numbers.
"""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from ostraka.objectives import destruction_geometry as geometry
from ostraka.objectives.destruction import (
    FEDOV,
    GEOMETRY,
    MIXES,
    OPERATIONS,
    destroy,
    draw_operations,
    shares_of,
)

SHAPES = [(1, 28, 28), (3, 32, 32), (2, 17, 40), (1, 31, 13), (4, 8, 8)]
MANY = 20_000


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count, shape, seed=1):
    return torch.randn(count, *shape, generator=rng(seed))


# --- the slow reference: one image, plain loops ---------------------------------------------------


def slow_read(image, place):
    """Bilinear with zeros outside.

    `place(x, y)`, in half sides from the middle, says where a pixel is read.
    """
    _, height, width = image.shape
    out = np.zeros_like(image)
    for r in range(height):
        for c in range(width):
            x, y = place((2 * c + 1) / width - 1, (2 * r + 1) / height - 1)
            across, down = ((x + 1) * width - 1) / 2, ((y + 1) * height - 1) / 2
            for i in (math.floor(down), math.floor(down) + 1):
                for j in (math.floor(across), math.floor(across) + 1):
                    if 0 <= i < height and 0 <= j < width:
                        out[:, r, c] += (1 - abs(down - i)) * (1 - abs(across - j)) * image[:, i, j]
    return out


def slow_stretch(images, i, drawn):
    numbers = {name: float(values[i]) for name, values in drawn.items()}

    def place(x, y):
        return (
            numbers["scale_x"] * x + numbers["shear"] * y + numbers["shift_x"],
            numbers["scale_y"] * y + numbers["shift_y"],
        )

    return slow_read(images[i], place)


def cubic(distance, a=-0.75):
    """Keys' cubic convolution kernel."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def slow_elastic(images, i, drawn):
    moves, size = drawn["moves"][i].double().numpy(), float(drawn["size"][i])
    _, height, width = images[i].shape

    def between(grid, down, across):
        """Bicubic at a place of the 4x4 grid, 0 to 3; beyond its edge, the edge goes on."""
        total = 0.0
        for r in range(math.floor(down) - 1, math.floor(down) + 3):
            for c in range(math.floor(across) - 1, math.floor(across) + 3):
                total += (
                    cubic(down - r) * cubic(across - c) * grid[min(max(r, 0), 3), min(max(c, 0), 3)]
                )
        return total

    def place(x, y):
        c, r = ((x + 1) * width - 1) / 2, ((y + 1) * height - 1) / 2
        down, across = 3 * r / (height - 1), 3 * c / (width - 1)
        return x + size * between(moves[0], down, across), y + size * between(
            moves[1], down, across
        )

    return slow_read(images[i], place)


def slow_mirror(images, i, drawn):
    out, half = images[i].copy(), int(drawn["half"][i])
    if half >= 2:
        out = out.transpose(0, 2, 1)
    last = out.shape[2] - 1
    for c in range(out.shape[2] // 2):
        if half % 2 == 0:
            out[:, :, last - c] = out[:, :, c]
        else:
            out[:, :, c] = out[:, :, last - c]
    return out.transpose(0, 2, 1) if half >= 2 else out


def slow_turn(images, i, drawn):
    """Pixel by pixel: after a quarter turn against the clock,
    row r was the column r-th from the right.
    """
    image = images[i]
    for _ in range(int(drawn["turns"][i])):
        _, height, width = image.shape
        out = np.empty((len(image), width, height))
        for r in range(width):
            for c in range(height):
                out[:, r, c] = image[:, c, width - 1 - r]
        image = out
    return image


def slow_morph(images, i, drawn):
    side = 2 * int(drawn["reach"][i]) + 1
    if drawn["dilate"][i]:
        return np.stack(
            [ndimage.maximum_filter(c, side, mode="constant", cval=-np.inf) for c in images[i]]
        )
    return np.stack(
        [ndimage.minimum_filter(c, side, mode="constant", cval=np.inf) for c in images[i]]
    )


def slow_patches(images, i, drawn):
    image, out = images[i], images[i].copy()
    tall, wide = image.shape[1] // 4, image.shape[2] // 4
    for target, source in enumerate(drawn["order"][i].tolist()):
        (r, c), (s, t) = divmod(target, 4), divmod(source, 4)
        patch = image[:, s * tall : (s + 1) * tall, t * wide : (t + 1) * wide]
        out[:, r * tall : (r + 1) * tall, c * wide : (c + 1) * wide] = patch
    return out


def slow_patchswap(images, i, drawn):
    top, left, height, width, to_top, to_left, other = (
        int(drawn[n][i]) for n in ("top", "left", "height", "width", "to_top", "to_left", "other")
    )
    out, source = images[i].copy(), images[other]
    if len(images) == 1:
        source = source[:, ::-1, ::-1]
    for r in range(height):
        for c in range(width):
            out[:, to_top + r, to_left + c] = source[:, top + r, left + c]
    return out


SLOW = {
    name[5:]: f
    for name, f in list(globals().items())
    if name.startswith("slow_") and name != "slow_read"
}
SMOOTH = ("stretch", "elastic")


def test_every_geometric_operation_has_a_reference():
    assert set(SLOW) == set(GEOMETRY)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", GEOMETRY)
def test_an_operation_equals_the_slow_reference_with_the_same_numbers(name, shape, dtype):
    count = 3 if name in SMOOTH else 24  # the slow loops are slow
    x, operation = images(count, shape).to(dtype), OPERATIONS[name]
    drawn = operation.draw(count, shape, rng(2))
    out = operation.apply(x, drawn)
    assert (out.dtype, out.shape) == (x.dtype, x.shape)
    for i in range(count):
        expected = torch.from_numpy(
            np.ascontiguousarray(SLOW[name](x.double().numpy(), i, drawn))
        ).to(dtype)
        if name in SMOOTH:
            torch.testing.assert_close(out[i], expected, atol=2e-4, rtol=0)
        else:
            assert torch.equal(out[i], expected)


@pytest.mark.parametrize("name", GEOMETRY)
def test_large_images(name):
    x = images(2, (1, 96, 64))
    drawn = OPERATIONS[name].draw(2, (1, 96, 64), rng(2))
    expected = SLOW[name](x.double().numpy(), 1, drawn)
    torch.testing.assert_close(
        OPERATIONS[name].apply(x, drawn)[1].double(), torch.from_numpy(expected), atol=1e-3, rtol=0
    )


def test_a_sample_that_is_alone_swaps_with_itself_upside_down():
    x = images(1, (2, 12, 9))
    drawn = geometry.draw_patchswap(1, (2, 12, 9), rng(4))
    assert torch.equal(
        geometry.apply_patchswap(x, drawn)[0], torch.from_numpy(slow_patchswap(x.numpy(), 0, drawn))
    )


def test_a_stretch_by_nothing_is_the_image_and_a_whole_shift_moves_pixels():
    x = images(1, (2, 8, 16))
    same = {
        name: torch.tensor([value], dtype=torch.float64)
        for name, value in {
            "scale_x": 1,
            "scale_y": 1,
            "shear": 0,
            "shift_x": 0,
            "shift_y": 0,
        }.items()
    }
    torch.testing.assert_close(geometry.apply_stretch(x, same), x, atol=1e-5, rtol=0)
    # a quarter of 8: two columns
    shifted = geometry.apply_stretch(x, {**same, "shift_x": torch.tensor([0.25])})
    torch.testing.assert_close(shifted[..., :14], x[..., 2:], atol=1e-5, rtol=0)
    assert (shifted[..., 14:].abs() < 1e-5).all()
    still = {"moves": torch.zeros(1, 2, 4, 4), "size": torch.ones(1, dtype=torch.float64)}
    torch.testing.assert_close(geometry.apply_elastic(x, still), x, atol=1e-5, rtol=0)


def test_scales_above_one_make_things_small():
    x = torch.ones(1, 1, 20, 20)
    drawn = {
        name: torch.tensor([value], dtype=torch.float64)
        for name, value in {
            "scale_x": 2,
            "scale_y": 1,
            "shear": 0,
            "shift_x": 0,
            "shift_y": 0,
        }.items()
    }
    out = geometry.apply_stretch(x, drawn)[0, 0]
    assert torch.equal(out[10].round(), torch.tensor([0.0] * 5 + [1.0] * 10 + [0.0] * 5))


# --- what is drawn --------------------------------------------------------------------------------


def assert_uniform(values, low, high):
    """MANY draws fill the range evenly: bounds, mean, spread and quartiles."""
    width = high - low
    assert low <= values.min() < low + 0.001 * width
    assert high - 0.001 * width < values.max() <= high
    assert values.mean().item() == pytest.approx((low + high) / 2, abs=0.01 * width)
    assert values.std().item() == pytest.approx(width / math.sqrt(12), rel=0.02)
    for share in (0.25, 0.75):
        assert values.quantile(share).item() == pytest.approx(
            low + share * width, abs=0.015 * width
        )


def assert_independent(*columns):
    together = torch.corrcoef(torch.stack([c.double() for c in columns]))
    # one standard deviation is 0.007
    assert (together - torch.eye(len(columns))).abs().max() < 0.03


def assert_shares(drawn, expected, tolerance=0.015):
    for value, share in expected.items():
        assert abs((drawn == value).double().mean().item() - share) < tolerance, value


def test_stretch_draws():
    drawn = geometry.draw_stretch(MANY, (1, 28, 28), rng())
    for name in ("scale_x", "scale_y"):
        assert_uniform(drawn[name].log(), math.log(0.5), math.log(2.2))
    for name in ("shift_x", "shift_y"):
        assert_uniform(drawn[name], -0.25, 0.25)
    sheared = drawn["shear"] != 0
    assert sheared.double().mean().item() == pytest.approx(0.5, abs=0.015)
    assert_uniform(drawn["shear"][sheared], -0.6, 0.6)
    assert_independent(*(v.log() if "scale" in n else v for n, v in drawn.items()), sheared)


def test_elastic_draws():
    drawn = geometry.draw_elastic(MANY, (1, 28, 28), rng())
    assert_uniform(drawn["size"], 0.15, 0.45)
    moves = drawn["moves"].flatten(1)
    assert moves.shape[1] == 32
    assert moves.mean(dim=0).abs().max() < 0.03
    assert (moves.std(dim=0) - 1).abs().max() < 0.03
    assert (moves.abs() < 1.959964).double().mean().item() == pytest.approx(0.95, abs=0.002)
    assert_independent(*moves.t(), drawn["size"])


def test_mirror_and_morph_draws():
    assert_shares(
        geometry.draw_mirror(MANY, (1, 28, 28), rng())["half"], dict.fromkeys(range(4), 1 / 4)
    )
    drawn = geometry.draw_morph(MANY, (1, 28, 28), rng())
    assert_shares(drawn["dilate"] * 10 + drawn["reach"], dict.fromkeys((1, 2, 11, 12), 1 / 4))


def test_patch_orders_are_permutations_with_every_patch_equally_often_everywhere():
    order = geometry.draw_patches(MANY, (1, 28, 28), rng())["order"]
    assert torch.equal(order.sort(dim=1).values, torch.arange(16).expand(MANY, 16))
    for place in range(16):
        assert_shares(order[:, place], dict.fromkeys(range(16), 1 / 16), 0.01)
    pairs = torch.bincount(order[:, 0] * 16 + order[:, 7], minlength=256).double() / MANY
    assert (pairs[~torch.eye(16, dtype=torch.bool).flatten()] - 1 / 240).abs().max() < 0.003


def test_an_order_that_moves_nothing_is_replaced(monkeypatch):
    still, other = torch.arange(16), torch.arange(16).flip(0)
    monkeypatch.setattr(torch, "rand", lambda *size, **how: torch.stack([still, other]) / 16)
    out = geometry.draw_patches(2, (1, 28, 28), rng())["order"]
    assert (out[0] != still).all()
    assert torch.equal(out[0].sort().values, still)
    assert torch.equal(out[1], other)


@pytest.mark.parametrize(("side", "reach"), [(28, 6), (32, 7), (8, 2), (96, 21)])
def test_patchswap_moves_reach_both_bounds_and_stay_inside(side, reach):
    drawn = geometry.draw_patchswap(MANY, (3, side, side), rng())
    for start, length in (("top", "height"), ("left", "width")):
        move = drawn[f"to_{start}"] - drawn[start]
        assert (move.min(), move.max()) == (-reach, reach)
        assert drawn[f"to_{start}"].min() == 0
        assert (drawn[f"to_{start}"] + drawn[length]).max() == side
        # where no edge is near
        free = (drawn[start] >= reach) & (drawn[start] + drawn[length] + reach <= side)
        expected = dict.fromkeys(range(-reach, reach + 1), 1 / (2 * reach + 1))
        if free.sum() > 2000:
            assert_shares(move[free], expected, 0.04)
    assert_independent(drawn["to_top"] - drawn["top"], drawn["to_left"] - drawn["left"])


def test_patchswap_rectangles_and_partners():
    drawn = geometry.draw_patchswap(MANY, (1, 200, 200), rng())
    tall, wide = drawn["height"].double(), drawn["width"].double()
    area, ratio = tall * wide / 200**2, tall / wide
    assert 0.195 < area.min() < 0.21
    assert 0.49 < area.max() < 0.505
    assert ratio.min() > 0.29
    assert ratio.max() < 3.4
    assert (drawn["other"] != torch.arange(MANY)).all()
    few = torch.stack(
        [geometry.draw_patchswap(3, (1, 28, 28), rng(seed))["other"] for seed in range(2000)]
    )
    for row, partners in enumerate([(1, 2), (0, 2), (0, 1)]):
        assert_shares(few[:, row], dict.fromkeys(partners, 1 / 2), 0.04)


# --- what comes out -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GEOMETRY)
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 96, 32)], ids=str)
def test_no_image_stays_as_it_is(name, shape):
    x = images(300, shape)
    assert (destroy(x, rng(3), name) != x).flatten(1).any(dim=1).all()
    assert (destroy(x[:1], rng(3), name) != x[:1]).any(), "an image that is alone"


def test_constant_images():
    """What only moves or compares pixels keeps a constant image.

    What looks beyond its edges brings zeros in.
    """
    x = torch.full((200, 1, 28, 28), 0.7)
    for name in ("mirror", "turn", "morph", "patches", "patchswap"):
        assert torch.equal(destroy(x, rng(), name), x)
    for name in SMOOTH:
        out = destroy(x, rng(), name)
        assert out.min() == 0
        assert out.max() < 0.7 + 1e-5


@pytest.mark.parametrize("name", ["mirror", "turn", "morph", "patches"])
def test_these_use_only_values_of_the_image(name):
    x = images(50, (1, 20, 20))
    for one, own in zip(destroy(x, rng(), name), x, strict=True):
        assert torch.isin(one, own).all()


def test_turns_are_equally_likely_and_an_oblong_image_is_turned_upside_down():
    assert_shares(
        geometry.draw_turn(MANY, (1, 9, 9), rng())["turns"], {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}, 0.01
    )
    assert set(geometry.draw_turn(50, (1, 9, 8), rng())["turns"].tolist()) == {2}


def test_morph_of_a_single_point():
    x = torch.zeros(4, 1, 9, 9)
    x[:, :, 4, 4] = 1
    out = geometry.apply_morph(
        x, {"dilate": torch.tensor([1, 1, 0, 0]), "reach": torch.tensor([1, 2, 1, 2])}
    )
    assert out.sum(dim=(1, 2, 3)).tolist() == [9, 25, 0, 0]
    assert out[0, 0, 3:6, 3:6].sum() == 9
    assert out[1, 0, 2:7, 2:7].sum() == 25


# --- the mix --------------------------------------------------------------------------------------


def test_wide_is_the_papers_mix_and_six_more():
    shares = MIXES["wide"]
    assert sum(shares[name] for name in FEDOV) == pytest.approx(0.4)
    for name, share in FEDOV.items():
        assert shares[name] == pytest.approx(0.4 * share)
    assert {name: shares[name] for name in shares if name not in FEDOV} == {
        "stretch": 0.12, "elastic": 0.12, "mirror": 0.09, "morph": 0.09,
        "patches": 0.09, "patchswap": 0.09,
    }  # fmt: skip
    drawn = draw_operations(MANY, shares, rng())
    assert_shares(drawn, dict(enumerate(shares.values())), 0.01)
    assert (
        shares_of(
            "fedov:0.4+stretch:.12+elastic:.12+mirror:.09+morph:.09+patches:.09+patchswap:.09"
        )
        == shares
    )


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_few_images(count):
    for mix in ("wide", *GEOMETRY):
        assert destroy(images(count, (1, 9, 8)), rng(), mix).shape == (count, 1, 9, 8)


def test_strided_images_make_no_difference():
    x = images(60, (3, 16, 20))
    strided = x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    for mix in ("wide", *GEOMETRY):
        torch.testing.assert_close(
            destroy(x, rng(), mix), destroy(strided, rng(), mix), atol=1e-6, rtol=0
        )
