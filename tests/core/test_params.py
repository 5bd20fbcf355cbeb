"""Averages of named tensors."""

import pytest
import torch

from ostraka.core.params import average
from ostraka.errors import OstrakaError


def test_weighted_mean_by_hand() -> None:
    """(1 * 1 + 3 * 5) / 4 = 4 and (1 * 2 + 3 * -2) / 4 = -1; batch norm's counter:
    (10 + 3 * 13) / 4 = 12.25, 12.
    """
    a = {"w": torch.tensor([1.0, 2.0]), "n": torch.tensor(10)}
    b = {"w": torch.tensor([5.0, -2.0]), "n": torch.tensor(13)}
    mean = average([(a, 1.0), (b, 3.0)])
    assert mean["w"].tolist() == [4.0, -1.0]
    assert (mean["n"].item(), mean["n"].dtype) == (12, torch.int64)


@pytest.mark.parametrize("weight", [1.0, 7.0, 0.1, 1 / 3, 1234.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_one_set_comes_back_exactly(weight: float, dtype: torch.dtype) -> None:
    """Double precision holds w x / w within one of its own last places, far below float32's."""
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0)).to(dtype)
    mean = average([({"w": x}, weight)])["w"]
    assert mean.dtype == dtype
    assert torch.equal(mean, x)


def test_order_of_equal_sets_does_not_matter() -> None:
    x = {"w": torch.randn(100, generator=torch.Generator().manual_seed(0))}
    assert torch.equal(average([(x, 1.0), (x, 2.0), (x, 4.0)])["w"], x["w"])


def test_a_generator_is_read_once_and_inputs_stay() -> None:
    x = {"w": torch.ones(2)}
    assert average((x, w) for w in (1.0, 1.0))["w"].tolist() == [1.0, 1.0]
    assert x["w"].tolist() == [1.0, 1.0]


def test_other_names_and_shapes_are_refused() -> None:
    one = {"w": torch.ones(2), "b": torch.ones(1)}
    with pytest.raises(OstrakaError, match="differ in b; only equal networks"):
        average([(one, 1.0), ({"w": torch.ones(2)}, 1.0)])
    with pytest.raises(OstrakaError, match=r"w has the shapes \(2,\) and \(1,\)"):
        average([(one, 1.0), ({"w": torch.ones(1), "b": torch.ones(1)}, 1.0)])


def test_nothing_to_average() -> None:
    with pytest.raises(OstrakaError, match="no report arrived"):
        average([])
    with pytest.raises(OstrakaError, match="all weights are zero"):
        average([({"w": torch.ones(1)}, 0.0)])
