"""Classes with so few samples that what is told of them, or learnt from them, may be about a
person and not about the class.
"""

from collections.abc import Sequence

import torch

from ostraka.core.samples import Samples
from ostraka.data.own.collection import some
from ostraka.errors import DataError


def rare_classes(samples: Samples, classes: Sequence[str], least: int) -> dict[str, int]:
    """The classes that have samples, but fewer than `least`, and how many."""
    counts = samples.counts(len(classes)).tolist()
    return {name: count for name, count in zip(classes, counts, strict=True) if 0 < count < least}


def without(samples: Samples, classes: Sequence[str], names: Sequence[str]) -> Samples:
    """The samples that are of none of the classes `names`; an error if nothing is left."""
    out = torch.tensor([place for place, name in enumerate(classes) if name in names])
    kept = (~torch.isin(samples.labels, out)).nonzero().squeeze(1)
    if not len(kept):
        raise DataError(
            f"every class has so few samples that they may identify people ({some(names)}), so "
            "nothing is left to train on; give more samples, or keep them (keep_rare, --keep-rare)"
        )
    return samples.take(kept)
