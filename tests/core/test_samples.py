"""Samples: views of one storage."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from ostraka.core.augmentation import Augmentation
from ostraka.core.samples import Samples, View
from ostraka.core.settings import setting
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


def test_chunks_are_the_same_samples_in_order() -> None:
    """Seven rows, three at a time: 3, 3 and 1."""
    some = TEN.take(torch.tensor([9, 1, 2, 3, 4, 5, 0]))
    parts = list(some.chunks(3))
    assert [len(part) for part in parts] == [3, 3, 1]
    assert torch.equal(torch.cat([part.inputs() for part in parts]), some.inputs())
    assert [part.labels.tolist() for part in parts] == [[1, 0, 0], [0, 0, 0], [0]]
    assert [part.row_numbers.tolist() for part in TEN.chunks(6)] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9],
    ]
    assert list(TEN.take(slice(0, 0)).chunks(3)) == []


def test_stored_values_are_not_changed_by_the_view() -> None:
    samples = Samples(TEN.x, TEN.y, torch.tensor([7, 2]), View(scale=0.5))
    assert samples.stored().flatten().tolist() == [7, 2]
    assert samples.stored().dtype == torch.uint8
    assert samples.stored(torch.tensor([1])).flatten().tolist() == [2]
    assert samples.stored(slice(0, 1)).flatten().tolist() == [7]
    assert TEN.stored(slice(8, None)).flatten().tolist() == [8, 9]
    assert TEN.stored() is TEN.x


def test_other_labels() -> None:
    view = View(scale=0.5)
    found = Samples(TEN.x, None, torch.tensor([7, 2]), view).with_labels(torch.tensor([1, 0]))
    assert (found.labels.tolist(), found.rows, found.view) == ([1, 0], None, view)
    assert found.inputs().flatten().tolist() == [3.5, 1.0]


def test_view_by_hand() -> None:
    """Two channels of 0 and 255 at scale 1/255, means (0.5, 0), deviations
    (0.5, 2): -1, 1 and 0, 0.5.
    """
    x = torch.tensor([[[[0, 255]], [[0, 255]]]], dtype=torch.uint8)
    view = View(1 / 255, (0.5, 0.0), (0.5, 2.0))
    assert view.apply(x).flatten().tolist() == pytest.approx([-1.0, 1.0, 0.0, 0.5])
    assert Samples(x, view=view).inputs().dtype == torch.float32


def test_a_view_normalises_along_the_axis_that_its_kind_names() -> None:
    """All values 1, means 0 and 1: the first entry is 1, the second 0, along the named axis."""
    for kind, shape, zeros in (
        ("image", (1, 2, 2, 2), (0, 1, 0, 0)),
        ("table", (1, 2), (0, 1)),
        ("sound", (1, 1, 2, 2), (0, 0, 0, 1)),
    ):
        seen = View(mean=(0.0, 1.0), std=(1.0, 1.0), kind=kind).apply(torch.ones(shape))
        assert seen[zeros] == 0.0
        assert seen.flatten()[0] == 1.0
        assert seen.sum() == seen.numel() / 2
    sound = View(mean=(0.0, 1.0), std=(1.0, 1.0), kind="sound").apply(torch.ones(1, 1, 3, 2))
    assert sound[0, 0].tolist() == [[1.0, 0.0]] * 3


def test_the_unit_of_a_view_is_what_its_scale_brings_to_1_or_what_was_said() -> None:
    assert View().unit == 1
    assert View(1 / 255).unit == 255
    assert View(1 / 49).unit == 49, "1 / (1 / 49) is 48.99999999999999"
    assert View(2 / 16, std=(2.0,), mean=(0.0,), unit=16.0).unit == 16
    assert View.of_unit(16, "image") == View(1 / 16)
    assert replace(View(1 / 16), scale=1.0).unit == 16, "another way to see the same values"


def test_samples_in_another_unit_are_seen_alike() -> None:
    """255 of 255 is 16 of 16, and 51 of 255 is a fifth; the view's own statistics stay."""
    view = View(1 / 255, mean=(0.5,), std=(0.25,))
    held = Samples(torch.tensor([[255], [51], [0]], dtype=torch.uint8), view=view)
    other = held.take(torch.tensor([0, 1])).in_unit(16)
    assert other.stored().flatten().tolist() == pytest.approx([16, 3.2])
    assert other.view.unit == 16
    assert other.view.scale == pytest.approx(1 / 16)
    assert other.inputs().flatten().tolist() == pytest.approx([2.0, -1.2])
    assert held.in_unit(255) is held


def test_augmentation_needs_chance() -> None:
    """Evaluation gives no generator, and then nothing is augmented."""

    @AUGMENTATIONS.add("test-plus")
    @dataclass(frozen=True)
    class Plus(Augmentation):
        """More."""

        more: float = setting(1.0, "how much")

        def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
            """Everything larger."""
            return x + self.more

    try:
        samples = Samples(torch.zeros(1, 2), view=View(augment="test-plus:more=2.5"))
        assert samples.inputs().tolist() == [[0.0, 0.0]]
        assert samples.inputs(rng=torch.Generator()).tolist() == [[2.5, 2.5]]
    finally:
        AUGMENTATIONS.remove("test-plus")


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
