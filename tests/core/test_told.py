"""Told quantiles: by hand, between the levels, and what is refused."""

from typing import Any

import pytest
import torch

from ostraka.core.told import HELD, LEVELS, check_told, curve, quantiles, read
from ostraka.errors import ReportRefused

FLAT = (0.0,) * len(LEVELS)


def test_quantiles_by_hand() -> None:
    """Of 0, 1, ..., 100 the quantile at level p is 100 p.

    The order of the values does not matter.
    """
    values = torch.arange(101.0)[torch.randperm(101)]
    assert quantiles(values) == pytest.approx([100 * level for level in LEVELS])


def test_quantiles_of_one_value_are_that_value() -> None:
    assert quantiles(torch.tensor([3.0])) == (3.0,) * len(LEVELS)


def test_reading_between_the_levels_by_hand() -> None:
    """Between .1 (value 4) and .2 (value 6), at .15: 5.

    At the levels, their values; at the ends, the ends.
    """
    curve = torch.tensor([0.0, 1.0, 2.0, 4.0, 6.0, 9.0, 10.0, 11.0, 13.0])
    shares = torch.tensor([0.0, 0.02, 0.15, 0.2, 0.35, 0.65, 0.95, 0.975, 1.0])
    assert read(curve, shares).tolist() == pytest.approx(
        [0.0, 1.0, 5.0, 6.0, 7.5, 9.5, 11.0, 12.0, 13.0]
    )


def test_every_member_has_its_own_curve() -> None:
    curves = torch.stack([torch.tensor(LEVELS), 10 * torch.tensor(LEVELS)])
    shares = torch.tensor([[0.3, 0.6], [0.3, 0.6]])
    torch.testing.assert_close(read(curves, shares), torch.tensor([[0.3, 0.6], [3.0, 6.0]]))


def test_a_quantile_read_back_is_the_quantile() -> None:
    """A party's 5 % quantile of a thousand values is what 5 % of them lie below."""
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    line = float(read(torch.tensor(quantiles(values)), torch.tensor([0.05])))
    assert int((values < line).sum()) == 50


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, None),
        ({"claims": FLAT}, None),
        ({"claims": FLAT, HELD: 0}, None),
        ({"claims": FLAT, HELD: 1}, FLAT),
        ({"claims": FLAT[1:], HELD: 9}, None),
        ({"refusals": FLAT, HELD: 9}, None),
    ],
)
def test_a_curve_counts_if_it_is_whole_and_rests_on_samples(
    numbers: dict[str, Any], expected: tuple[float, ...] | None
) -> None:
    assert curve(numbers, "claims") == expected


def test_what_is_no_curve_is_refused() -> None:
    check_told({"claims": (0.0,) * 9, "doubt": 1.0})
    with pytest.raises(ReportRefused, match="3 quantiles of claims; there are 9 levels"):
        check_told({"claims": (0.0, 1.0, 2.0)})
    with pytest.raises(ReportRefused, match="quantiles of standing that fall"):
        check_told({"standing": (0.0, 1.0, 2.0, 3.0, 2.5, 5.0, 6.0, 7.0, 8.0)})
