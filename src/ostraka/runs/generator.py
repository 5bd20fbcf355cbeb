"""The generators of a run: the file that a setting names, or the small one in this package."""

from functools import lru_cache
from importlib.resources import as_file
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import torch

from ostraka.core.generator import TrainedGenerator
from ostraka.core.samples import Samples
from ostraka.errors import StoreError
from ostraka.nets.generator import fits
from ostraka.store.generator import read_generator

READY = "ready"
APART = 2.0
"""Ranges of values that differ by more than this factor are another world."""
FILE = "generator-fashion-4k.safetensors"
"""Trained on the images in this package: ostraka train-generator --data fashion-4k."""


def load_generator(name: str | Path = READY) -> TrainedGenerator:
    """A trained generator: a file that `ostraka train-generator` wrote, or the one in this package
    ("ready"). A file that does not hold one is refused, with the reason.
    """
    if str(name) != READY:
        path = Path(name).expanduser()
        return _read(path, *_stamp(path))
    with as_file(files_of("ostraka.data.sources").joinpath("bundled", FILE)) as path:
        return _read(path, *_stamp(path))


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time of a file; one that is not there is for its reader to tell."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_size, about.st_mtime_ns


@lru_cache(maxsize=4)
def _read(path: Path, size: int, mtime_ns: int) -> TrainedGenerator:
    """The cells of a grid read a file once, as long as its size and time stay the same."""
    generator = read_generator(path)
    wrong = fits(generator)
    if wrong:
        raise StoreError(f"{path} is no generator that can be used: {wrong}")
    return generator


def span_of(images: Samples) -> tuple[float, float]:
    """The least and the greatest value: pixels are scaled to 0 and 1, of numbers what is there."""
    if images.x.dtype == torch.uint8:
        return 0.0, 1.0
    values, scale = images.stored(), images.view.scale
    return float(values.min()) * scale, float(values.max()) * scale


def told_of(generator: TrainedGenerator, name: str, data: str, images: Samples) -> list[str]:
    """What must be said beside figures of a run on these images that draws from it."""
    about: dict[str, Any] = dict(generator.about)
    notes, shape = [], images.shape
    low, high = span_of(images)
    if not 1 / APART <= (high - low) / (generator.high - generator.low) <= APART:
        notes.append(
            f"the generator {name} makes values from {generator.low:g} to {generator.high:g}, the "
            f"images of {data} lie between {low:g} and {high:g}: whoever sees both tells them "
            "apart at once, and learns nothing else; give images of the same range (as bytes, "
            "they have it)"
        )
    if tuple(generator.shape) != tuple(shape):
        made, seen = ("x".join(map(str, s)) for s in (generator.shape, shape))
        notes.append(f"the generator {name} makes images of {made}; they are resized to {seen}")
    if about.get("data") == data or (name == READY and "fashion" in data):
        notes.append(
            f"the generator {name} was trained on images like those of {data}, which a server "
            "would not have; train one on other images (ostraka train-generator) for honest figures"
        )
    return notes
