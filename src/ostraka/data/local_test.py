"""A test set from the parties' own samples, as in DeDES: the data's test samples join the training
samples, all are divided, and a share of what every party then has is kept from its training; these
parts together are the test set.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples
from ostraka.core.seeds import numpy_rng
from ostraka.data.dataset import Array, Dataset
from ostraka.data.partitions.divide import Partition
from ostraka.errors import DataError

NAME = "local test"
"""What the draws are seeded by."""


def join(data: Dataset) -> tuple[Dataset, tuple[str, ...]]:
    """The data with its test samples among the training samples, and the columns that are left out.

    Both sides then see one storage: training rows keep their numbers, test rows come behind them.
    The test side still has the data's own test samples. A column of the training samples alone
    cannot be joined.
    """
    train, test = data.train, data.test
    _check_alike(data)
    x, y = torch.cat([train.x, test.x]), torch.cat([_labels(data, train), _labels(data, test)])
    own, others = train.row_numbers, test.row_numbers + len(train.x)
    columns = {
        name: np.concatenate([values, data.test_columns[name]])
        for name, values in data.columns.items()
        if name in data.test_columns
    }
    together = Samples(x, y, torch.cat([own, others]), train.view)
    joined = replace(
        data,
        # a test set may hold samples of no class: nobody can learn from them
        train=together.take((together.labels != UNKNOWN).nonzero().squeeze(1)),
        test=Samples(x, y, others, test.view),
        columns=columns,
        test_columns=columns,
    )
    return joined, tuple(name for name in data.columns if name not in columns)


def draw(divided: Partition, share: float, seed: int) -> Partition:
    """The same parties with a random share of each one's rows as its part of the test.

    A party keeps at least one row to train on; one whose share rounds to nothing gives nothing.
    """
    drawn = []
    for party, rows in enumerate(divided.parties):
        count = min(round(len(rows) * share), len(rows) - 1)
        drawn.append(np.sort(numpy_rng(seed, NAME, party).permutation(rows)[:count]))
    if not any(len(rows) for rows in drawn):
        largest = max(len(rows) for rows in divided.parties)
        raise DataError(
            f"local_test is {share:g}, and no party gives a sample to the test: the largest has "
            f"{largest}; give a larger share, below 1, or have fewer parties"
        )
    left = [np.setdiff1d(rows, mine) for rows, mine in zip(divided.parties, drawn, strict=True)]
    return replace(divided, parties=tuple(left), tests=tuple(drawn))


def judged_by(data: Dataset, drawn: Sequence[Array], seed: int) -> Dataset:
    """Joined data whose test is what was drawn, and those of the data's own test samples that are
    of no known class, since no party has any.

    They come in random order: half of them, which may become public, are like the other half.
    """
    strangers = data.test.row_numbers[data.test.labels == UNKNOWN].numpy()
    rows = numpy_rng(seed, NAME, "order").permutation(np.concatenate([*drawn, strangers]))
    left = np.setdiff1d(data.train.row_numbers.numpy(), rows)
    return replace(
        data,
        train=replace(data.train, rows=torch.as_tensor(left)),
        test=replace(data.test, rows=torch.as_tensor(rows)),
    )


def _labels(data: Dataset, samples: Samples) -> Tensor:
    if samples.y is None:
        raise DataError(
            f"{data.name} has samples without labels, and local_test divides all of them by their "
            "labels; leave local_test out"
        )
    return samples.y


def _check_alike(data: Dataset) -> None:
    """Refuse training and test samples that one storage cannot hold."""
    seen = [replace(part.view, augment="none") for part in (data.train, data.test)]
    forms = [(part.shape, part.x.dtype) for part in (data.train, data.test)]
    if forms[0] != forms[1] or seen[0] != seen[1]:
        told = [f"{dtype} of shape {list(shape)}" for shape, dtype in forms]
        raise DataError(
            f"local_test joins training and test samples, and those of {data.name} are stored "
            f"unlike ({told[0]} and {told[1]}, or in other units); store both alike, or leave "
            "local_test out"
        )
