"""Domains: several data sets of the same classes as one, every sample marked with the data set that
it is from.

FedPD's benchmark HDR-FL (Yang, Zhu, Liu & Yuan, ICCV 2023) makes five sets of digits the five
parties of a federation. `domains:mnist+usps+mnist-m` joins any list of image sets; `hdr-fl` is the
named list, with those of its sets that are there. Images are brought to one size (bilinear,
antialiased where it shrinks them), grey ones to three equal channels if others have colours; they
are kept as bytes and shown to networks as (value - 0.5) / 0.5.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ostraka.core.samples import Samples, View
from ostraka.data.dataset import DOMAIN, Dataset
from ostraka.errors import DataError

PREFIX = "domains:"
USAGE = "domains:A+B[+...][,size=28]"
SIZE = 28
CHUNK = 4096
"""Images resized at once."""

NAMED: Mapping[str, tuple[str, ...]] = {
    "hdr-fl": ("mnist", "svhn", "usps", "synthdigits", "mnist-m")
}
"""Lists of domains with a name of their own: they work with those of their sets that are found, at
least two."""

LOOK_ALIKES = {"synthdigits": "synthdigits-like"}
"""Stand-ins, taken where the original is not found."""

NOTES = {
    "synthdigits-like": "synthdigits-like is a look-alike of SynthDigits, not the original data"
}
"""What must stand beside every figure of such a set."""


def parse(spec: str) -> tuple[tuple[str, ...], int]:
    """The data sets and the size of a spec `domains:A+B,size=28`."""
    listed, comma, option = spec.removeprefix(PREFIX).partition(",")
    names = tuple(name.strip() for name in listed.split("+"))
    if len(names) < 2 or not all(names):
        raise DataError(
            f"{spec!r} lists {len([n for n in names if n])} data sets; write two or more, as "
            f"{USAGE}"
        )
    if not comma:
        return names, SIZE
    key, _, value = (text.strip() for text in option.partition("="))
    if key != "size" or not value.isdecimal() or int(value) < 1:
        raise DataError(
            f"{spec!r}: {option!r} is not size=N with a whole number of pixels; write {USAGE}"
        )
    return names, int(value)


def choose(name: str, found: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(data sets to use, data sets missing) of a named list, given the names of those found."""
    there = set(found)
    picked = {
        part: next((n for n in (part, LOOK_ALIKES.get(part)) if n in there), None)
        for part in NAMED[name]
    }
    return tuple(n for n in picked.values() if n), tuple(
        part for part, n in picked.items() if n is None
    )


def join(name: str, parts: Sequence[Dataset], size: int, notes: Sequence[str] = ()) -> Dataset:
    """One data set of several; the column "domain" holds the name of the part each sample is
    from."""
    _check(name, parts)
    channels = max(part.train.shape[0] for part in parts)
    view = View(scale=1 / 255, mean=(0.5,) * channels, std=(0.5,) * channels)
    joined, marks = [], []
    for side in ([part.train for part in parts], [part.test for part in parts]):
        labels = torch.cat([samples.labels for samples in side])
        joined.append(Samples(_images(side, channels, size), labels, view=view))
        names = np.array([part.name for part in parts])
        marks.append({DOMAIN: np.repeat(names, [len(samples) for samples in side])})
    (train, test), (columns, test_columns) = joined, marks
    return Dataset(
        name,
        parts[0].classes,
        train,
        test,
        columns,
        test_columns,
        info={
            "kind": "domains",
            "sha256": {part.name: part.info.get("sha256", "") for part in parts},
            "parts": {part.name: dict(part.info) for part in parts},
            "notes": [*notes, *(NOTES[part.name] for part in parts if part.name in NOTES)],
        },
    )


def _images(parts: Sequence[Samples], channels: int, size: int) -> Tensor:
    """All images in one storage, filled a chunk at a time: nothing is held twice at full size."""
    out = torch.empty(sum(len(part) for part in parts), channels, size, size, dtype=torch.uint8)
    start = 0
    for part in parts:
        for stored in part.x.split(CHUNK):
            # not every set of bytes counts to 255: scikit-learn's digits have 17 levels
            x = stored.to(torch.float32) * (part.view.scale * 255)
            if x.shape[2:] != out.shape[2:]:
                x = F.interpolate(x, (size, size), mode="bilinear", antialias=True)
            # grey spreads over the channels
            out[start : start + len(x)] = x.round_().clamp_(0, 255).to(torch.uint8)
            start += len(x)
    return out


def _check(name: str, parts: Sequence[Dataset]) -> None:
    names = [part.name for part in parts]
    for twice in (n for n in names if names.count(n) > 1):
        raise DataError(
            f"{name}: two domains are called {twice}; domains need different names, list each once"
        )
    for part in parts:
        if part.test_columns.get(DOMAIN) is not None:
            raise DataError(
                f"{name}: {part.name} is itself made of domains; list its data sets instead"
            )
        x = part.train.x
        if part.kind != "image" or x.dtype != torch.uint8 or x.shape[1] not in (1, 3):
            raise DataError(
                f"{name}: the samples of {part.name} are {x.dtype} {list(x.shape[1:])} of the kind "
                f"{part.kind}; a domain must be images in bytes (uint8), grey or with three colours"
            )
    first = parts[0]
    for part in parts[1:]:
        if part.classes != first.classes:
            raise DataError(
                f"{name}: domains need the same classes in the same order, but "
                f"{_difference(first, part)}; mend the "
                "class_names of the JSON files beside them, or list other data sets"
            )


def _difference(one: Dataset, other: Dataset) -> str:
    if len(one.classes) != len(other.classes):
        return f"{one.name} has {len(one.classes)} classes and {other.name} {len(other.classes)}"
    pairs = [
        (c, a, b) for c, (a, b) in enumerate(zip(one.classes, other.classes, strict=True)) if a != b
    ]
    shown = ", ".join(
        f"class {c} is {a!r} in {one.name} and {b!r} in {other.name}" for c, a, b in pairs[:3]
    )
    return shown + (f" (and {len(pairs) - 3} more differ)" if len(pairs) > 3 else "")
