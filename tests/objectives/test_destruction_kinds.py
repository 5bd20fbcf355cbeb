"""Destruction of table rows and of sound, sample by sample and with the same drawn numbers."""

import math

import pytest
import torch

from ostraka.errors import DataError
from ostraka.objectives import destruction_features as features
from ostraka.objectives import destruction_sound as sound
from ostraka.objectives.destruction import MIXES, OPERATIONS, destroy

MANY = 20_000
ROWS = [(13,), (64,), (2,)]
RECORDINGS = [(1, 50, 16), (1, 9, 8), (1, 8, 41)]
BOTH = ["exchange", "shuffle", "noise", "mixup", "extrapolate", "extreme", "negate", "permute"]
SOUND = ["bandswap", "reverse", "speed"]


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def samples(count, shape, seed=1):
    return torch.randn(count, *shape, generator=rng(seed))


def kind_of(shape):
    return "table" if len(shape) == 1 else "sound"


# --- the slow reference: one sample, one feature, plain loops -------------------------------------


def columns_of(x):
    """All values of each feature."""
    return [x[..., d].flatten() for d in range(x.shape[-1])]


def slow_exchange(x, i, drawn):
    out, other = x[i].clone(), int(drawn["other"][i, 0])
    for d in range(x.shape[-1]):
        if drawn["taken"][i, d]:
            out[..., d] = x[other, ..., d]
    return out


def slow_shuffle(x, i, drawn):
    out = x[i].clone()
    for d in range(x.shape[-1]):
        out[..., d] = x[int(drawn["other"][i, d]), ..., d]
    return out


def slow_mixup(x, i, drawn):
    out, other, weight = x[i].clone(), x[int(drawn["other"][i, 0])], drawn["weight"][i, 0]
    for place in torch.cartesian_prod(*(torch.arange(n) for n in x.shape[1:])).view(-1, x.ndim - 1):
        at = tuple(place.tolist())
        out[at] = x[i][at] + weight * (other[at] - x[i][at])
    return out


slow_extrapolate = slow_mixup


def slow_noise(x, i, drawn):
    out, columns = x[i].clone(), columns_of(x)
    for d in range(x.shape[-1]):
        spread = math.sqrt(sum((columns[d] - columns[d].mean()) ** 2) / (len(columns[d]) - 1))
        out[..., d] += drawn["noise"][i, d] * spread
    return out


def slow_extreme(x, i, drawn):
    out, columns = x[i].clone(), columns_of(x)
    for d in range(x.shape[-1]):
        low, high = columns[d].sort().values[[0, -1]]
        excess = drawn["excess"][i, d] * (high - low)
        if drawn["taken"][i, d]:
            out[..., d] = low - excess if drawn["below"][i, d] else high + excess
    return out


def slow_negate(x, i, drawn):
    out = x[i].clone()
    for d in range(x.shape[-1]):
        if drawn["taken"][i, d]:
            out[..., d] *= -1
    return out


def slow_permute(x, i, drawn):
    out = x[i].clone()
    for d in range(x.shape[-1]):
        out[..., d] = x[i, ..., int(drawn["source"][i, d])]
    return out


def slow_bandswap(x, i, drawn):
    first, second, length = (int(drawn[name][i]) for name in ("first", "second", "length"))
    axis = 2 if drawn["tone"][i] else 1
    out = x[i].transpose(1, axis).clone()
    for k in range(length):
        out[:, first + k], out[:, second + k] = (
            out[:, second + k].clone(),
            out[:, first + k].clone(),
        )
    return out.transpose(1, axis)


def slow_reverse(x, i, drawn):
    start, length = int(drawn["start"][i]), int(drawn["length"][i])
    out = x[i].clone()
    for k in range(length):
        out[:, start + k] = x[i, :, start + length - 1 - k]
    return out


def slow_speed(x, i, drawn):
    out, last = x[i].clone(), x.shape[2] - 1
    for t in range(last + 1):
        place = last / 2 + float(drawn["speed"][i]) * (t - last / 2)
        place = min(max(place, 0.0), float(last))
        before = math.floor(place)
        share = torch.tensor(place - before, dtype=x.dtype)
        after = min(before + 1, last)
        out[:, t] = x[i, :, before] + share * (x[i, :, after] - x[i, :, before])
    return out


SLOW = {name[5:]: function for name, function in globals().items() if name.startswith("slow_")}


def test_every_operation_that_images_have_not_is_tested_here():
    kinds = {name: op.kinds for name, op in OPERATIONS.items() if "image" not in op.kinds}
    assert kinds == dict.fromkeys(BOTH, ("table", "sound")) | dict.fromkeys(SOUND, ("sound",))


def check_against_the_slow_reference(name, shape):
    x = samples(9, shape)
    operation = OPERATIONS[name]
    drawn = operation.draw(len(x), shape, rng(2))
    out = operation.apply(x, drawn)
    for i in range(len(x)):
        expected = SLOW[name](x, i, drawn)
        if name == "noise":  # the deviation is another sum
            torch.testing.assert_close(out[i], expected, atol=1e-5, rtol=1e-5)
        else:
            assert torch.equal(out[i], expected)


@pytest.mark.parametrize("shape", [*ROWS, *RECORDINGS[:2]], ids=str)
@pytest.mark.parametrize("name", BOTH)
def test_features_equal_the_slow_reference(name, shape):
    check_against_the_slow_reference(name, shape)


@pytest.mark.parametrize("shape", RECORDINGS, ids=str)
@pytest.mark.parametrize("name", SOUND)
def test_sound_equals_the_slow_reference(name, shape):
    check_against_the_slow_reference(name, shape)


# --- by hand --------------------------------------------------------------------------------------


def test_rows_by_hand():
    """Two rows, three columns; the second is the other of the first."""
    x = torch.tensor([[1.0, 2.0, 3.0], [5.0, 2.0, 11.0]])
    other = torch.tensor([[1], [0]])
    some = torch.tensor([[True, False, True], [False, True, False]])
    half = torch.tensor([[0.5], [0.25]])
    assert features.apply_exchange(x, {"other": other, "taken": some}).tolist() == [
        [5, 2, 11],
        [5, 2, 11],
    ]
    assert features.apply_mixup(x, {"other": other, "weight": half}).tolist() == [
        [3, 2, 7],
        [4, 2, 9],
    ]
    assert features.apply_mixup(x, {"other": other, "weight": -half}).tolist() == [
        [-1, 2, -1],
        [6, 2, 13],
    ]
    drawn = {"taken": some, "excess": torch.full((2, 3), 0.5), "below": ~some}
    # column 0 is 1 to 5: half its width above it is 7; column 1 is constant
    assert features.apply_extreme(x, drawn).tolist() == [[7, 2, 15], [5, 2, 11]]
    drawn["below"] = some
    assert features.apply_extreme(x, drawn).tolist() == [[-1, 2, -1], [5, 2, 11]]
    assert features.apply_negate(x, {"taken": some}).tolist() == [[-1, 2, -3], [5, -2, 11]]
    source = torch.tensor([[2, 0, 1], [1, 2, 0]])
    assert features.apply_permute(x, {"source": source}).tolist() == [[3, 1, 2], [2, 11, 5]]


def test_a_row_alone_leaves_a_usual_range():
    """Two deviations on each side of 1 and 2; by a half and a quarter of the width, 4."""
    drawn = {
        "taken": torch.tensor([[True, True]]),
        "excess": torch.tensor([[0.5, 0.25]]),
        "below": torch.tensor([[False, True]]),
    }
    assert features.apply_extreme(torch.tensor([[1.0, 2.0]]), drawn).tolist() == [[5, -1]]


def test_recordings_by_hand():
    """Frames 0 to 7 of one value each, in two coefficients; the second has a minus."""
    frames = torch.arange(8.0)
    x = torch.stack([frames, -frames], dim=1).view(1, 1, 8, 2)

    def played(out):
        assert torch.equal(out[0, 0, :, 0], -out[0, 0, :, 1])
        return out[0, 0, :, 0].tolist()

    one = {"first": torch.tensor([1]), "second": torch.tensor([5]), "length": torch.tensor([2])}
    swapped = sound.apply_bandswap(x, one | {"tone": torch.tensor([False])})
    assert played(swapped) == [0, 5, 6, 3, 4, 1, 2, 7]
    band = {"start": torch.tensor([2]), "length": torch.tensor([4])}
    assert played(sound.apply_reverse(x, band)) == [0, 1, 5, 4, 3, 2, 6, 7]
    # twice as fast around 3.5: 3.5 + 2 (t - 3.5)
    fast = sound.apply_speed(x, {"speed": torch.tensor([2.0])})
    assert played(fast) == [0, 0, 0.5, 2.5, 4.5, 6.5, 7, 7]
    slow = sound.apply_speed(x, {"speed": torch.tensor([0.5])})
    assert played(slow) == [1.75, 2.25, 2.75, 3.25, 3.75, 4.25, 4.75, 5.25]


def test_bands_of_frequency_are_swapped_in_every_frame():
    x = torch.arange(8.0).expand(1, 1, 9, 8)
    drawn = {
        "tone": torch.tensor([True]),
        "first": torch.tensor([0]),
        "second": torch.tensor([5]),
        "length": torch.tensor([3]),
    }
    out = sound.apply_bandswap(x, drawn)
    assert (out == torch.tensor([5.0, 6, 7, 3, 4, 0, 1, 2])).all()


def test_sound_is_treated_alike_in_all_frames():
    """What a feature operation does to a recording whose frames are equal leaves them equal."""
    x = samples(40, (1, 1, 16)).expand(40, 1, 12, 16)
    for name in BOTH:
        out = destroy(x, rng(), name, "sound")
        assert torch.equal(out, out[:, :, :1].expand_as(out)), name


# --- what is drawn --------------------------------------------------------------------------------


def test_shares_of_features():
    """Of 100 features: exchange takes 30 to 70, extreme 10 to 50, negate 30 to 100."""
    spans = {"exchange": (30, 70), "extreme": (10, 50), "negate": (30, 100)}
    for name, (least, most) in spans.items():
        taken = OPERATIONS[name].draw(MANY, (100,), rng())["taken"].sum(dim=1).double()
        # a share is rounded up, so a number above the least
        assert (taken.min(), taken.max()) == (least + 1, most), name
        assert taken.mean().item() == pytest.approx((least + most + 1) / 2, abs=0.6), name
        assert (OPERATIONS[name].draw(99, (1,), rng())["taken"] == 1).all()
    each = OPERATIONS["negate"].draw(MANY, (100,), rng())["taken"].double().mean(dim=0)
    assert each.sub(0.655).abs().max() < 0.02  # no feature is preferred


def test_other_samples_are_drawn_evenly_and_never_oneself():
    for name in ("exchange", "shuffle", "mixup", "extrapolate"):
        other = OPERATIONS[name].draw(5, (4000,), rng())["other"]
        assert (other != torch.arange(5)[:, None]).all()
    other = OPERATIONS["shuffle"].draw(5, (4000,), rng())["other"]
    for i in range(5):
        shares = torch.bincount(other[i], minlength=5) / 4000
        assert all(abs(shares[j] - 1 / 4) < 0.03 for j in range(5) if j != i)


def test_weights_of_mixed_rows():
    for name, low, high in (("mixup", 0.3, 0.7), ("extrapolate", -2, -0.5)):
        weight = OPERATIONS[name].draw(MANY, (3,), rng())["weight"]
        assert low <= weight.min() < low + 0.01
        assert high - 0.01 < weight.max() <= high
        assert weight.mean().item() == pytest.approx((low + high) / 2, abs=0.02)


def test_values_leave_their_range_on_both_sides():
    drawn = OPERATIONS["extreme"].draw(MANY, (2,), rng())
    assert drawn["below"].double().mean().item() == pytest.approx(0.5, abs=0.01)
    assert 0.1 <= drawn["excess"].min() < 0.11
    assert 0.99 < drawn["excess"].max() <= 1
    x = samples(500, (6,))
    out = destroy(x, rng(), "extreme", "table")
    beyond = (out < x.amin(dim=0)) | (out > x.amax(dim=0))
    assert torch.equal(beyond, out != x)
    assert beyond.any(dim=1).all()


@pytest.mark.parametrize("count", [2, 3, 17])
def test_permuted_values_are_one_cycle(count):
    """From any place, following the sources comes back only after all of them."""
    source = OPERATIONS["permute"].draw(50, (count,), rng())["source"]
    for row in source.tolist():
        place, seen = 0, set()
        for _ in range(count):
            place = row[place]
            seen.add(place)
        assert seen == set(range(count))
        assert place == 0
    drawn = OPERATIONS["permute"].draw(MANY, (4,), rng())["source"]
    for a in range(4):
        shares = torch.bincount(drawn[:, a], minlength=4) / MANY
        assert all(abs(shares[b] - (a != b) / 3) < 0.015 for b in range(4))


@pytest.mark.parametrize("shape", RECORDINGS, ids=str)
def test_bands_that_are_swapped_do_not_overlap(shape):
    drawn = sound.draw_bandswap(MANY, shape, rng())
    side = torch.where(drawn["tone"], shape[2], shape[1])
    first, second, length = drawn["first"], drawn["second"], drawn["length"]
    assert drawn["tone"].double().mean().item() == pytest.approx(0.5, abs=0.015)
    assert first.min() == 0
    assert (first + length <= second).all()
    assert (second + length <= side).all()
    assert (second + length == side).any()
    share = length / side
    assert share.min() >= 1 / 8 - 0.5 / min(shape[1:])
    assert share.max() <= 3 / 8 + 0.5 / min(shape[1:])


def test_reversed_bands_and_speeds():
    drawn = sound.draw_reverse(MANY, (1, 50, 16), rng())
    assert (drawn["length"].min(), drawn["length"].max()) == (25, 50)
    assert drawn["start"].min() == 0
    assert ((drawn["start"] + drawn["length"]).max()) == 50
    speed = sound.draw_speed(MANY, (1, 50, 16), rng())["speed"].log()
    fast = speed[speed > 0]
    assert len(fast) / MANY == pytest.approx(0.5, abs=0.015)
    for part in (fast, -speed[speed < 0]):
        assert math.log(1.5) <= part.min() < math.log(1.5) + 0.01
        assert math.log(3) - 0.01 < part.max() <= math.log(3)
        assert part.mean().item() == pytest.approx((math.log(1.5) + math.log(3)) / 2, abs=0.01)


# --- destroy --------------------------------------------------------------------------------------

CASES = [
    *((name, shape) for name in BOTH for shape in ((13,), (1, 20, 16))),
    *((name, (1, 20, 16)) for name in SOUND),
]


@pytest.mark.parametrize(("name", "shape"), CASES, ids=str)
def test_every_sample_changes_repeatably_and_the_input_stays(name, shape):
    x, kind = samples(300, shape), kind_of(shape)
    before = x.clone()
    out = destroy(x, rng(3), name, kind)
    assert torch.equal(x, before)
    assert out.isfinite().all()
    assert torch.equal(out, destroy(x, rng(3), name, kind))
    assert not torch.equal(out, destroy(x, rng(4), name, kind))
    assert (out != x).flatten(1).any(dim=1).all()
    assert torch.equal(destroy(x.double(), rng(3), name, kind).float() != x, out != x)
    for few in (0, 1):
        alone = destroy(x[:few], rng(), name, kind)
        assert alone.shape == x[:few].shape
        assert alone.isfinite().all()
    assert (alone != x[:1]).any()  # private training destroys every sample alone


@pytest.mark.parametrize(("name", "shape"), CASES, ids=str)
def test_results_are_where_the_samples_are(name, shape):
    """A device without values refuses to meet a stray CPU tensor."""
    out = destroy(samples(20, shape).to("meta"), rng(), name, kind_of(shape))
    assert out.device.type == "meta"
    assert out.shape == (20, *shape)


@pytest.mark.parametrize("name", SOUND)
def test_what_is_for_sound_is_refused_elsewhere(name):
    for x, kind in ((samples(3, (12,)), "table"), (samples(3, (1, 12, 12)), "image")):
        with pytest.raises(DataError, match=rf"'{name}' .* of the kind sound; these .* {kind}"):
            destroy(x, rng(), name, kind)


@pytest.mark.parametrize(
    ("mix", "weighed", "squared"),
    [
        ("tables", 25.1898186681114, 773.2710600918255),
        ("exchange", 21.011693527945024, 365.2233119008306),
        ("shuffle", -28.06717960426415, 379.7818249557238),
        ("noise", -18.42445754830312, 1667.6796807675562),
    ],
)
def test_rows_of_the_first_version_keep_their_numbers(mix, weighed, squared):
    """Two sums over the outliers of a fixed seed, noted before sound had these operations."""
    x = torch.sin(torch.arange(60 * 12.0) * 0.37).view(60, 12)
    out = destroy(x, rng(5), mix, "table").double()
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64) * 0.11).view_as(out)
    assert (out * weights).sum().item() == pytest.approx(weighed, abs=1e-3)
    assert (out * out).sum().item() == pytest.approx(squared, abs=1e-2)
    assert MIXES["tables"] == dict.fromkeys(("exchange", "shuffle", "noise"), 1 / 3)
