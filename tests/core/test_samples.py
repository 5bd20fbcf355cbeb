"""Samples: views of one storage."""

import pytest
import torch

from ostraka.core.samples import Samples, View
from ostraka.errors import DataError
from ostraka.registry import AUGMENTATIONS

TEN = Samples(torch.arange(10, dtype=torch.uint8).unsqueeze(1), torch.tensor([0] * 6 + [1] * 4))


def test_take_is_relative_to_the_view_and_copies_only_indices() -> None:
    """Rows 8, 3, 5; of these, places 2 and 0: rows 5 and 8."""
    taken = TEN.take(torch.tensor([8, 3, 5])).take(torch.tensor([2, 0]))
    assert taken.inputs().flatten().tolist() == [5.0, 8.0]
    assert taken.labels.tolist() == [0, 1]
    assert len(taken) == 2
    assert taken.x.data_ptr() == TEN.x.data_ptr()


def test_inputs_at_places() -> None:
    """Places within the view, as a tensor or a slice, with and without rows."""
    some = TEN.take(torch.tensor([8, 3, 5]))
    assert some.inputs(torch.tensor([1, 1])).flatten().tolist() == [3.0, 3.0]
    assert some.inputs(slice(1, 9)).flatten().tolist() == [3.0, 5.0]
    assert TEN.inputs(slice(8, 99)).flatten().tolist() == [8.0, 9.0]
    assert TEN.inputs(torch.tensor([4])).flatten().tolist() == [4.0]


def test_view_by_hand() -> None:
    """Two channels of 0 and 255 at scale 1/255, means (0.5, 0), deviations
    (0.5, 2): -1, 1 and 0, 0.5.
    """
    x = torch.tensor([[[[0, 255]], [[0, 255]]]], dtype=torch.uint8)
    view = View(1 / 255, (0.5, 0.0), (0.5, 2.0))
    assert view.apply(x).flatten().tolist() == pytest.approx([-1.0, 1.0, 0.0, 0.5])
    assert Samples(x, view=view).inputs().dtype == torch.float32


def test_augmentation_needs_chance() -> None:
    """Evaluation gives no generator, and then nothing is augmented."""
    AUGMENTATIONS.add("test-plus-one")(lambda x, rng: x + 1)
    try:
        samples = Samples(torch.zeros(1, 2), view=View(augment="test-plus-one"))
        assert samples.inputs().tolist() == [[0.0, 0.0]]
        assert samples.inputs(rng=torch.Generator()).tolist() == [[1.0, 1.0]]
    finally:
        AUGMENTATIONS.remove("test-plus-one")


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_split_is_stratified(share: float) -> None:
    """Of 6 and 4 samples: round(6 s) and round(4 s).

    At 0.25 that is 2 (1.5 rounds to even) and 1.
    """
    rest, held = TEN.split(share, seed=1)
    assert held.counts(2).tolist() == [round(6 * share), round(4 * share)]
    assert sorted([*rest.inputs().flatten().tolist(), *held.inputs().flatten().tolist()]) == list(
        range(10)
    )


def test_split_depends_on_the_seed_alone() -> None:
    held = [TEN.split(0.5, seed)[1].inputs().flatten().tolist() for seed in (1, 1, 2, 3)]
    assert held[0] == held[1]
    assert held[0] != held[2] or held[0] != held[3]


def test_split_without_labels() -> None:
    rest, held = TEN.unlabelled().split(0.3, seed=0)
    assert (len(rest), len(held)) == (7, 3)
    assert sorted([*rest.inputs().flatten().tolist(), *held.inputs().flatten().tolist()]) == list(
        range(10)
    )


def test_split_of_a_view_stays_within_it() -> None:
    part = TEN.take(torch.tensor([0, 2, 4, 6, 8]))
    rest, held = part.split(0.5, seed=0)
    assert sorted([*rest.inputs().flatten().tolist(), *held.inputs().flatten().tolist()]) == [
        0,
        2,
        4,
        6,
        8,
    ]


def test_errors() -> None:
    with pytest.raises(DataError, match="10 samples came with 9 labels"):
        Samples(TEN.x, torch.zeros(9, dtype=torch.long))
    with pytest.raises(DataError, match="no labels"):
        _ = TEN.unlabelled().labels


def test_share_memory_keeps_one_storage() -> None:
    samples = Samples(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long), torch.tensor([1, 2]))
    assert samples.share_memory() is samples
    assert samples.x.is_shared()
    assert samples.y is not None
    assert samples.y.is_shared()


def test_shape_and_device() -> None:
    assert Samples(torch.zeros(4, 3, 2)).shape == (3, 2)
    assert TEN.to("cpu") is TEN
    moved = TEN.to("meta")
    assert moved.x.device.type == "meta"
    assert moved.labels.device.type == "meta"
