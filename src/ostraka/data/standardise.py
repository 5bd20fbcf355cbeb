"""Standardised inputs: mean 0 and standard deviation 1 over the training samples, for each feature,
colour channel or coefficient of sound. Or raw ones: values as they are stored, pixels up to 255.

Nothing is copied: mean and deviation go into the samples' `View`, which travels with them and with
member files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ostraka.core.kind import NORMED, Kind
from ostraka.core.samples import Samples
from ostraka.data.dataset import Dataset

CHUNK = 1024
"""Samples read at once."""

WORDS: Mapping[Kind, tuple[str, str]] = {
    "image": ("images", " channels"),
    "table": ("features", ""),
    "sound": ("recordings", " coefficients"),
}
"""Samples of a kind in words, and what has a mean and a deviation each."""

LEAST = 1e-30
"""A deviation below it is none: 32-bit numbers end at 1e-38, and dividing by it would give no
number."""


def standardise(data: Dataset, rows: Tensor, mode: str) -> tuple[Dataset, list[str]]:
    """The data as the setting `standardise` wants it shown, by its training `rows`, and what is to
    be said of it."""
    train = data.train
    chosen = data.own_view or bool(train.view.mean)
    if mode == "off" or (mode == "auto" and (chosen or not train.x.is_floating_point())):
        return data, []
    if mode == "raw":
        places = train.shape[NORMED[train.view.kind]]
        return _shown(data, (0.0,) * places, (train.view.scale,) * places), []
    mean, std = statistics(replace(train, rows=rows))
    shown = _shown(data, mean, std)
    what, entries = WORDS[train.view.kind]
    each = f" for each of the {len(mean)}{entries}" if len(mean) > 1 else ""
    return shown, [
        f"{what} were standardised by the training data (mean 0, deviation 1{each}); --standardise "
        "off leaves them as they are"
    ]


def statistics(samples: Samples) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(mean, standard deviation) along the axis that the kind of the samples names.

    An entry that is constant has the deviation 1.
    """
    count = len(samples) * samples.x[0].numel() // samples.shape[NORMED[samples.view.kind]]
    sums, lows, highs = zip(
        *((v.sum(dim=1), v.amin(dim=1), v.amax(dim=1)) for v in _parts(samples)), strict=True
    )
    mean = torch.stack(sums).sum(dim=0) / count
    squares = [(values - mean[:, None]).square().sum(dim=1) for values in _parts(samples)]
    std = (torch.stack(squares).sum(dim=0) / count).sqrt()
    constant = torch.stack(lows).amin(dim=0) == torch.stack(highs).amax(dim=0)
    std[constant | (std < LEAST)] = 1.0
    return tuple(mean.tolist()), tuple(std.tolist())


def _parts(samples: Samples) -> Iterator[Tensor]:
    """The values of each entry [C, n], some samples at a time, scaled but not yet shifted."""
    axis = 1 + NORMED[samples.view.kind]
    for part in samples.chunks(CHUNK):
        yield part.stored().movedim(axis, 0).flatten(1).double() * samples.view.scale


def _shown(data: Dataset, mean: tuple[float, ...], std: tuple[float, ...]) -> Dataset:
    sides = (data.train, data.test)
    train, test = (replace(one, view=replace(one.view, mean=mean, std=std)) for one in sides)
    return replace(data, train=train, test=test)
