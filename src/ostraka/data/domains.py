"""Samples by domain: where each lies, and the first samples of each."""

import numpy as np
import torch
from torch import Tensor

from ostraka.core.samples import Samples
from ostraka.data.dataset import DOMAIN, Array, Dataset
from ostraka.errors import DataError


def positions(samples: Samples, column: Array | None) -> dict[str, Tensor]:
    """Where in `samples` each domain lies, domains in sorted order; `column` has a value for every
    stored row."""
    if column is None:
        return {}
    own = np.asarray(column).astype(str)[samples.row_numbers.numpy()]
    return {str(name): torch.as_tensor(np.flatnonzero(own == name)) for name in np.unique(own)}


def first_of_each(data: Dataset, n: int) -> tuple[Tensor, list[str]]:
    """Training rows (ascending) of the first `n` samples of each class and domain, and notes on
    what has fewer.

    USPS has only 556 fives: FedPD's 600 per class and domain can mean no more than all of them
    there.
    """
    rows, chosen, notes, most = data.train.row_numbers, [], [], 0
    for domain, index in positions(data.train, data.columns[DOMAIN]).items():
        own, labels = rows[index], data.train.labels[index]
        counts = torch.bincount(labels, minlength=len(data.classes)).tolist()
        most = max(most, *counts)
        chosen += [own[labels == c][:n] for c in range(len(data.classes))]
        short = [f"{data.classes[c]}: {count}" for c, count in enumerate(counts) if count < n]
        if short:
            notes.append(
                f"{domain} has fewer than {n} training samples of some classes ({', '.join(short)})"
            )
    if n < 1 or most < n:
        raise DataError(
            f"{n} training samples per class and domain were asked for; give 1 to {most}, the most "
            "that a class has"
        )
    return torch.cat(chosen).sort().values, notes
