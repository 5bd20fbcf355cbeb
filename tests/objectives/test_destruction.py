"""Data destruction against an image-by-image reading of the paper, with the same drawn numbers."""

import math

import pytest
import torch

from ostraka.errors import ConfigError, DataError
from ostraka.objectives import destruction_ops as ops
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
IMAGE_OPERATIONS = [name for name, op in OPERATIONS.items() if "image" in op.kinds]
MANY = 20_000


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count, shape, seed=1):
    return torch.randn(count, *shape, generator=rng(seed))


# --- the slow reference: one image, plain loops ---------------------------------------------------


def slow_crop(image, top, left, height, width):
    """Bilinear, pixel centres: output pixel r looks at
    (r + 0.5) * height / H - 0.5 of the crop, edges repeated.
    """
    channels, rows, columns = image.shape
    out = torch.zeros_like(image)
    for r in range(rows):
        down = max((r + 0.5) * height / rows - 0.5, 0.0)
        r0 = min(int(down), height - 1)
        r1 = min(r0 + 1, height - 1)
        for c in range(columns):
            across = max((c + 0.5) * width / columns - 0.5, 0.0)
            c0 = min(int(across), width - 1)
            c1 = min(c0 + 1, width - 1)
            a, b = down - r0, across - c0
            for k in range(channels):
                part = image[k, top : top + height, left : left + width]
                upper = part[r0, c0] * (1 - b) + part[r0, c1] * b
                lower = part[r1, c0] * (1 - b) + part[r1, c1] * b
                out[k, r, c] = upper * (1 - a) + lower * a
    return out


def slow_blur(image, tall, wide, sigma):
    _, rows, columns = image.shape

    def kernel(size):
        values = [math.exp(-0.5 * ((i - size // 2) / sigma) ** 2) for i in range(size)]
        return [v / sum(values) for v in values]

    def reflect(i, side):
        i = abs(i)
        return 2 * (side - 1) - i if i >= side else i

    down, across = kernel(tall), kernel(wide)
    out = torch.zeros_like(image)
    for r in range(rows):
        for c in range(columns):
            for i, a in enumerate(down):
                for j, b in enumerate(across):
                    source = reflect(r + i - tall // 2, rows), reflect(c + j - wide // 2, columns)
                    out[:, r, c] += a * b * image[:, source[0], source[1]]
    return out


def slow_erase(image, top, left, height, width):
    out = image.clone()
    for r in range(top, top + height):
        for c in range(left, left + width):
            out[:, r, c] = 0
    return out


def slow_cut(image, case, source, target):
    if case >= 3:
        return slow_cut(image.transpose(1, 2), case - 3, source, target).transpose(1, 2)
    out, width = image.clone(), image.shape[2]
    half = width // 2
    for i in range(half):
        if case == 2:
            out[:, :, i] = image[:, :, width - half + i]
            out[:, :, width - half + i] = image[:, :, i]
        else:
            out[:, :, target + i] = image[:, :, source + i]
    return out


def slow_rotate(image, top, turns):
    out, width = image.clone(), image.shape[2]
    side = min(image.shape[1], width) // 2
    for left in (0, width - side):
        square = image[:, top : top + side, left : left + side]
        for _ in range(turns):
            turned = square.clone()
            for i in range(side):
                for j in range(side):
                    # against the clock: the right column becomes the top
                    turned[:, side - 1 - j, i] = square[:, i, j]
            square = turned
        out[:, top : top + side, left : left + side] = square
    return out


def slow_cutpaste(image, top, left, height, width, to_top, to_left):
    out = image.clone()
    for r in range(height):
        for c in range(width):
            out[:, to_top + r, to_left + c] = image[:, top + r, left + c]
    return out


def slow_mask(image, time_start, time_length, tone_start, tone_length):
    out, mean = image.clone(), image[0].mean()
    out[:, time_start : time_start + time_length] = mean
    out[:, :, tone_start : tone_start + tone_length] = mean
    return out


def slow_shift(image, time, tone):
    return image.roll((int(time), int(tone)), dims=(1, 2))


SLOW = {"paste": slow_cut, "swap": slow_cut} | {
    name[5:]: function for name, function in list(globals().items()) if name.startswith("slow_")
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [name for name in IMAGE_OPERATIONS if name not in GEOMETRY])
def test_an_operation_equals_the_slow_reference_with_the_same_numbers(name, shape):
    count = 4 if name in ("crop", "blur") else 12  # the slow loops are slow
    if name == "mask":
        shape = (1, *shape[1:])
    x = images(count, shape)
    operation = OPERATIONS[name]
    drawn = operation.draw(count, shape, rng(2))
    out = operation.apply(x, drawn)
    for i in range(count):
        numbers = {k: v[i].item() for k, v in drawn.items()}
        expected = SLOW[name](x[i], **numbers)
        if name in ("crop", "blur", "mask"):
            torch.testing.assert_close(out[i], expected, atol=1e-5, rtol=0)
        else:
            assert torch.equal(out[i], expected)


def test_rotation_turns_as_rot90():
    x = images(1, (1, 8, 8))
    out = ops.apply_rotate(x, {"top": torch.tensor([2]), "turns": torch.tensor([1])})
    assert torch.equal(out[0, 0, 2:6, :4], torch.rot90(x[0, 0, 2:6, :4]))
    assert torch.equal(out[0, 0, 2:6, 4:], torch.rot90(x[0, 0, 2:6, 4:]))
    assert torch.equal(out[0, 0, :2], x[0, 0, :2])
    assert torch.equal(out[0, 0, 6:], x[0, 0, 6:])


# --- what is drawn --------------------------------------------------------------------------------


def assert_shares(drawn, expected, tolerance=0.015):
    """MANY draws: the standard deviation of a share is below 0.0036."""
    for value, share in expected.items():
        assert abs((drawn == value).double().mean().item() - share) < tolerance, value


def test_operations_are_drawn_by_their_shares():
    drawn = draw_operations(MANY, FEDOV, rng())
    assert_shares(drawn, dict(enumerate([1 / 7, 1 / 7, 1 / 7, 2 / 7, 2 / 7])))


@pytest.mark.parametrize("mix", MIXES)
def test_shares_of_a_mix_add_up_to_one(mix):
    assert sum(MIXES[mix].values()) == pytest.approx(1)


def test_mixture_is_half_cutpaste_half_destruction():
    shares = MIXES["mixture"]
    assert shares["cutpaste"] == 0.5
    assert all(shares[name] == share / 2 for name, share in FEDOV.items())


@pytest.mark.parametrize(
    ("draw", "area", "aspect"),
    [
        (ops.draw_crop, (0.1, 0.33), (3 / 4, 4 / 3)),
        (ops.draw_erase, (0.33, 0.5), (0.3, 3.3)),
        (ops.draw_cutpaste, (0.02, 0.15), (0.3, 3.3)),
    ],
    ids=["crop", "erase", "cutpaste"],
)
def test_rectangles_keep_area_and_aspect_and_lie_inside(draw, area, aspect):
    side = 200  # rounding to whole pixels matters little here
    drawn = draw(MANY, (1, side, side), rng())
    tall, wide = drawn["height"].double(), drawn["width"].double()
    share, ratio = tall * wide / side**2, tall / wide
    assert area[0] - 0.005 < share.min() < area[0] + 0.01
    assert area[1] - 0.01 < share.max() < area[1] + 0.005
    assert ratio.min() > aspect[0] * 0.97
    assert ratio.max() < aspect[1] * 1.03
    assert drawn["top"].min() >= 0
    assert drawn["left"].min() >= 0
    assert (drawn["top"] + tall).max() == side  # the lower edge can be reached, not crossed
    assert (drawn["left"] + wide).max() == side
    assert max(tall.max(), wide.max()) < side


def test_crop_area_is_uniform_and_aspect_log_uniform():
    drawn = ops.draw_crop(MANY, (1, 500, 500), rng())
    tall, wide = drawn["height"].double(), drawn["width"].double()
    share, ratio = tall * wide / 500**2, (tall / wide).log()
    assert share.mean().item() == pytest.approx((0.1 + 0.33) / 2, abs=0.003)
    assert share.std().item() == pytest.approx((0.33 - 0.1) / math.sqrt(12), abs=0.003)
    assert ratio.mean().item() == pytest.approx(0, abs=0.006)
    assert ratio.std().item() == pytest.approx(2 * math.log(4 / 3) / math.sqrt(12), abs=0.006)


@pytest.mark.parametrize("shape", [(1, 8, 100), (1, 100, 8), (1, 28, 28)], ids=str)
def test_rectangles_fit_in_long_images(shape):
    for draw in (ops.draw_crop, ops.draw_erase, ops.draw_cutpaste):
        drawn = draw(2000, shape, rng())
        assert drawn["height"].min() >= 1
        assert drawn["width"].min() >= 1
        assert (drawn["top"] + drawn["height"]).max() <= shape[1]
        assert (drawn["left"] + drawn["width"]).max() <= shape[2]


def test_blur_kernels_and_sigma():
    drawn = ops.draw_blur(MANY, (1, 28, 28), rng())
    pairs = drawn["tall"] * 10 + drawn["wide"]
    expected: dict[int, float] = {}
    for long in (3, 5, 7, 9):
        for short in (1, 3, 5):
            for pair in (long * 10 + short, short * 10 + long):
                expected[pair] = expected.get(pair, 0) + 1 / 24
    assert sum(expected.values()) == pytest.approx(1)
    assert_shares(pairs, expected, 0.01)
    sigma = drawn["sigma"]
    assert 10 <= sigma.min() < 10.1
    assert 99.9 < sigma.max() < 100
    assert sigma.mean().item() == pytest.approx(55, abs=1)


@pytest.mark.parametrize("sides", [(28, 28), (32, 32), (30, 22), (17, 40)], ids=str)
def test_cut_cases_are_equal_and_offsets_a_quarter_apart(sides):
    drawn = ops.draw_cut(MANY, (1, *sides), rng())
    case, source, target = drawn["case"], drawn["source"], drawn["target"]
    assert_shares(case, dict.fromkeys(range(6), 1 / 6))
    half = torch.where(case < 3, sides[1] // 2, sides[0] // 2)
    assert ((source - target).abs() >= half / 2).all()
    for offset in (source, target):
        assert offset.min() == 0
        assert (offset < half).all()
        assert ((half - 1) == offset).any()


def test_cut_offsets_are_distributed_as_by_drawing_again():
    """Target uniform; then a source uniform among those far enough,
    as the authors' loop draws it.
    """
    half = 14
    drawn = ops.draw_cut(200_000, (1, 28, 28), rng())
    found = (
        torch.bincount(drawn["target"] * half + drawn["source"], minlength=half**2).double()
        / 200_000
    )
    for t in range(half):
        partners = [s for s in range(half) if abs(s - t) >= half / 2]
        for s in range(half):
            expected = 1 / half / len(partners) if s in partners else 0
            assert found[t * half + s].item() == pytest.approx(expected, abs=0.004)
            assert (found[t * half + s] == 0) == (expected == 0)


def test_rotation_draws():
    drawn = ops.draw_rotate(MANY, (1, 28, 28), rng())
    assert_shares(drawn["turns"], dict.fromkeys((1, 2, 3), 1 / 3))
    assert_shares(drawn["top"], dict.fromkeys(range(14), 1 / 14))


def test_paste_and_swap_divide_the_cases_of_cut():
    paste = OPERATIONS["paste"].draw(MANY, (1, 28, 28), rng())["case"]
    swap = OPERATIONS["swap"].draw(MANY, (1, 28, 28), rng())["case"]
    assert_shares(paste, dict.fromkeys((0, 1, 3, 4), 1 / 4))
    assert_shares(swap, {2: 1 / 2, 5: 1 / 2})


# --- destroy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mix", ["fedov", "mixture", "wide", "audio", *IMAGE_OPERATIONS])
def test_destroy_changes_images_repeatably_and_leaves_the_input_alone(mix, shape):
    x = images(300, shape)
    before = x.clone()
    out = destroy(x, rng(3), mix)
    assert torch.equal(x, before)
    assert out.shape == x.shape
    assert out.isfinite().all()
    assert torch.equal(out, destroy(x, rng(3), mix))
    only = mix == "turn" and shape[1] != shape[2]  # an oblong image can only be turned upside down
    assert torch.equal(out, destroy(x, rng(4), mix)) == only
    changed = (out != x).flatten(1).any(dim=1).double().mean()
    # a pasted patch may hit its own place
    assert changed > (0.9 if mix in ("cutpaste", "mixture") else 0.999)


def test_every_image_of_a_mix_gets_one_operation():
    """Images that hold their own pixel numbers tell which operation they met:
    erase leaves zeros, swap keeps all.
    """
    x = torch.arange(1.0, 1025).view(1, 1, 32, 32).expand(7000, 1, 32, 32)
    out = destroy(x, rng(), {"erase": 1, "swap": 3})
    erased = (out == 0).flatten(1).any(dim=1)
    swapped = (out.flatten(1).sort(dim=1).values == x.flatten(1)).all(dim=1)
    assert (erased ^ swapped).all()
    assert erased.double().mean().item() == pytest.approx(1 / 4, abs=0.02)


@pytest.mark.parametrize(
    ("mix", "weighed", "squared"),
    [
        ("destruction", 14.663630559319275, 24382.695083467483),
        ("fedov", 14.663630559319275, 24382.695083467483),
        ("mixture", 30.408248263981985, 27672.71011488379),
        ("audio", 20.94564363968107, 24671.971315574032),
    ],
)
def test_the_mixes_of_the_first_version_keep_their_numbers(mix, weighed, squared):
    """Two sums over the outliers of a fixed seed, noted before wider destruction came:
    results stay comparable.
    """
    x = torch.sin(torch.arange(60 * 3 * 20 * 16.0) * 0.37).view(60, 3, 20, 16)
    out = destroy(x, rng(5), mix).double()
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64) * 0.11).view_as(out)
    assert (out * weights).sum().item() == pytest.approx(weighed, abs=1e-2)
    assert (out * out).sum().item() == pytest.approx(squared, abs=1e-1)


def test_strided_and_double_images_are_taken():
    x = images(40, (3, 16, 20)).double()
    strided = x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    for mix in ("fedov", "mixture", "audio"):
        assert torch.equal(destroy(x, rng(), mix), destroy(strided, rng(), mix))
        assert destroy(x, rng(), mix).dtype == torch.float64


@pytest.mark.parametrize("mix", ["fedov", "mixture", "wide", "audio", *IMAGE_OPERATIONS])
def test_results_are_where_the_images_are(mix):
    """A device without values refuses to meet a stray CPU tensor."""
    assert destroy(images(50, (3, 16, 16)).to("meta"), rng(), mix).device.type == "meta"


def test_no_images_give_no_images():
    assert destroy(torch.zeros(0, 3, 32, 32), rng()).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("mix", ["auto", "destruction", "tables", "wide-tables"])
def test_table_rows(mix):
    x = torch.randn(500, 12, generator=rng(5))
    before = x.clone()
    out = destroy(x, rng(), mix, "table")
    assert torch.equal(x, before)
    assert torch.equal(out, destroy(x, rng(), mix, "table"))
    assert (out != x).any(dim=1).all()
    assert (destroy(x[:1], rng(), mix, "table") != x[:1]).any()


def test_exchanged_and_shuffled_features_stay_in_their_column():
    x = torch.randn(200, 6, generator=rng(5))
    for mix in ("exchange", "shuffle"):
        out = destroy(x, rng(), mix, "table")
        for column in range(6):
            assert torch.isin(out[:, column], x[:, column]).all()
    partly = (destroy(x, rng(), "exchange", "table") == x).double().mean(dim=1)
    assert partly.min() > 0
    assert (destroy(x, rng(), "shuffle", "table") != x).all()


def test_noise_leaves_constant_columns_constant():
    x = torch.cat([torch.ones(100, 1), torch.randn(100, 1, generator=rng())], dim=1)
    out = destroy(x, rng(), "noise", "table")
    assert (out[:, 0] == 1).all()
    assert (out[:, 1] != x[:, 1]).all()


def test_mistakes_are_named():
    x = images(2, (1, 28, 28))
    with pytest.raises(ConfigError, match="Did you mean 'rotate'"):
        destroy(x, rng(), "rotat")
    with pytest.raises(ConfigError, match="Did you mean 'blur'"):
        destroy(x, rng(), {"blurr": 1})
    with pytest.raises(ConfigError, match="0 or above"):
        destroy(x, rng(), {"blur": -1})
    with pytest.raises(ConfigError, match="above 0"):
        destroy(x, rng(), {"blur": 0})
    with pytest.raises(
        DataError, match=r"'exchange' .* of the kind table or sound; these .* image"
    ):
        destroy(x, rng(), "tables")
    with pytest.raises(DataError, match=r"auto, which means 'wide-tables'.*exchange, extra"):
        destroy(torch.zeros(3, 9), rng(), "fedov", "table")
    with pytest.raises(DataError, match=r"'image', which is channels x height x width, .*\(9,\)"):
        destroy(torch.zeros(3, 9), rng(), "fedov")
    with pytest.raises(DataError, match="too small"):
        destroy(images(2, (1, 7, 28)), rng())
    with pytest.raises(DataError, match="floating-point"):
        destroy(torch.zeros(2, 1, 28, 28, dtype=torch.uint8), rng())
    assert shares_of("destruction") == FEDOV


def test_a_name_means_what_suits_the_kind_of_the_samples():
    """`destruction` is the paper's, so sound uses that of images; `auto` is the best we know."""
    kinds = ("image", "table", "sound")
    assert [shares_of("auto", kind) for kind in kinds] == [
        MIXES["wide"],
        MIXES["wide-tables"],
        MIXES["wide-audio"],
    ]
    assert [shares_of("destruction", kind) for kind in kinds] == [FEDOV, MIXES["tables"], FEDOV]
    assert shares_of("auto") == MIXES["wide"]
    sound = images(40, (1, 20, 16))
    for mix in ("wide", "destruction", "audio"):
        assert torch.equal(
            destroy(sound, rng(), mix, "sound"), destroy(sound, rng(), mix, "image")
        ), mix
    assert torch.equal(
        destroy(sound, rng(), "auto", "sound"), destroy(sound, rng(), "wide-audio", "sound")
    )


def test_mixes_by_hand():
    assert shares_of("stretch:1") == shares_of("stretch") == {"stretch": 1.0}
    assert shares_of("fedov:1.0") == FEDOV
    assert shares_of("destruction:2", kind="table") == pytest.approx(
        dict.fromkeys(("exchange", "shuffle", "noise"), 2 / 3)
    )
    assert shares_of(" crop: 0.5 + blur : 1e-1+erase:0") == {"crop": 0.5, "blur": 0.1}
    assert shares_of("fedov:0.7+crop:0.3") == pytest.approx(
        {"crop": 0.4, "blur": 0.1, "erase": 0.1, "cut": 0.2, "rotate": 0.2}
    )
    assert shares_of({"fedov": 7, "morph": 3}) == {
        "crop": 1,
        "blur": 1,
        "erase": 1,
        "cut": 2,
        "rotate": 2,
        "morph": 3,
    }
    x = images(40, (1, 12, 12))
    mix = "fedov:0.4+stretch:0.12"
    assert torch.equal(destroy(x, rng(), mix), destroy(x, rng(), shares_of(mix)))


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        ("fedov:0.4+strech:0.6", "Did you mean 'stretch'"),
        (
            "fedov+stretch:0.6",
            (
                "'fedov' in the mix 'fedov\\+stretch:0.6' is not "
                "NAME:SHARE.*fedov:0.4.*patchswap.*wide"
            ),
        ),
        ("fedov:much", "'fedov:much' in the mix"),
        ("fedov:0.4+", "'' in the mix"),
        ("fedov:-1", "share of 'fedov' is -1.0; shares are numbers of 0 or above"),
        ("fedov:nan", "share of 'fedov' is nan"),
        ("fedov:0+stretch:0", "nothing in the mix 'fedov:0\\+stretch:0' has a share above 0"),
        (":1", "unknown destruction ''"),
        ("", "unknown destruction ''"),
    ],
)
def test_mistakes_in_a_mix_by_hand_are_named(mix, words):
    with pytest.raises(ConfigError, match=words):
        shares_of(mix)
