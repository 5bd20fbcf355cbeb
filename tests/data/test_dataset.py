"""Known and unknown classes, training subsets."""

import numpy as np
import pytest
import torch

from ostraka.core.predictor import UNKNOWN
from ostraka.data.dataset import Arrays, assemble, first_per_class, known_split
from ostraka.data.partitions.divide import partition
from ostraka.errors import DataError


def toy():
    """Six training samples of classes 0 1 2 0 1 2 and three test samples;
    sample n is filled with n.
    """
    x = np.arange(6, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 2), np.uint8)
    y = np.array([0, 1, 2, 0, 1, 2])
    return assemble("toy", Arrays(x, y, x[:3], y[:3], ("a", "b", "c")))


def test_known_classes_are_renumbered_in_the_order_given():
    found = known_split(toy(), [2, 0])
    assert found.classes == ("c", "a")
    assert found.train.rows.tolist() == [0, 2, 3, 5]
    assert found.train.labels.tolist() == [1, 0, 1, 0]
    assert found.test.labels.tolist() == [1, UNKNOWN, 0]
    assert found.info["unknown"] == ["b"]
    assert found.train.inputs()[1, 0, 0, 0].item() == pytest.approx(2 / 255)


def test_storage_keeps_the_full_sets_rows_so_partitions_fit():
    found = known_split(toy(), [0, 1])
    assert len(found.train.x) == 6
    made = partition(
        "labels:1", found.train.y.numpy(), 2, 0, rows=found.train.rows.numpy(), classes=2
    )
    assert [p.tolist() for p in made.parties] == [[0, 3], [1, 4]]


def test_all_classes_known_leaves_none_unknown():
    found = known_split(toy(), [0, 1, 2])
    assert (found.test.labels != UNKNOWN).all()
    assert len(found.train) == 6


def test_a_second_split_counts_in_the_first_ones_classes():
    found = known_split(known_split(toy(), [2, 0]), [1])
    assert found.classes == ("a",)
    assert found.train.rows.tolist() == [0, 3]
    assert found.test.labels.tolist() == [0, UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([], "at least one"),
        ([0, 0], "class 0 is listed twice"),
        ([3], "classes 0 to 2"),
        ([-1], "classes 0 to 2"),
    ],
)
def test_wrong_known_classes(known, message):
    with pytest.raises(DataError, match=message):
        known_split(toy(), known)


def test_first_per_class_are_rows_of_the_full_set():
    assert first_per_class(toy().train, 1, 3).tolist() == [0, 1, 2]
    known = known_split(toy(), [2, 1])
    assert first_per_class(known.train, 1, 2).tolist() == [1, 2]
    later = toy().train.take(torch.tensor([3, 4, 5]))
    assert first_per_class(later, 1, 3).tolist() == [3, 4, 5]


def test_first_per_class_refuses_more_than_there_are():
    with pytest.raises(
        DataError, match="3 training samples per class were asked for, class 0 has 2"
    ):
        first_per_class(toy().train, 3, 3)
    with pytest.raises(DataError, match="give 1 or more"):
        first_per_class(toy().train, 0, 3)
