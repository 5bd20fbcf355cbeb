"""A fingerprint differs with everything that a run can depend on, and with nothing else."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from ostraka.core.samples import Samples, View
from ostraka.data.dataset import Dataset
from ostraka.data.fingerprint import differing, parts_of

ROWS = View(kind="table")


def data() -> Dataset:
    train = Samples(torch.arange(12.0).view(6, 2), torch.tensor([0, 1, 0, 1, 0, 1]), view=ROWS)
    test = Samples(torch.arange(4.0).view(2, 2), torch.tensor([0, 1]), view=ROWS)
    return Dataset(
        "mine",
        ("ant", "bee"),
        train,
        test,
        {"ward": np.array(list("aabbcc"))},
        {"ward": np.array(["a", "b"])},
    )


CHANGES: dict[str, Callable[[Dataset], Dataset]] = {
    "training samples": lambda d: replace(d, train=replace(d.train, x=d.train.x + 1)),
    "training labels": lambda d: replace(
        d, train=replace(d.train, y=torch.tensor([1, 0, 0, 1, 0, 1]))
    ),
    "test samples": lambda d: replace(d, test=replace(d.test, x=d.test.x.double())),
    "test labels": lambda d: replace(d, test=replace(d.test, y=torch.tensor([1, 1]))),
    "class names": lambda d: replace(d, classes=("ant", "wasp")),
    "columns": lambda d: replace(d, columns={"ward": np.array(list("aabbcd"))}),
}


@pytest.mark.parametrize("part", CHANGES)
def test_every_part_is_noticed_and_named(part: str) -> None:
    was = {"parts": parts_of(data()), "files": {}}
    assert differing(was, parts_of(CHANGES[part](data()))) == [part]


def test_a_column_of_the_test_samples_and_its_name_count_too() -> None:
    was = {"parts": parts_of(data()), "files": {}}
    for changed in (
        replace(data(), test_columns={"ward": np.array(["a", "c"])}),
        replace(data(), columns={"room": np.array(list("aabbcc"))}),
        replace(data(), columns={}),
    ):
        assert differing(was, parts_of(changed)) == ["columns"]


def test_the_name_and_where_it_is_from_do_not_count() -> None:
    was = {"parts": parts_of(data()), "files": {}}
    assert differing(was, parts_of(replace(data(), name="yours", info={"sha256": "1"}))) == []
