"""The generators of a run: the file that a setting names, or the small one in this package."""

from functools import lru_cache
from importlib.resources import as_file
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import torch

from ostraka.core.generator import TrainedGenerator
from ostraka.core.samples import Samples
from ostraka.data.dataset import Dataset
from ostraka.errors import ConfigError, StoreError, choices
from ostraka.nets.generator import fits
from ostraka.store.generator import read_generator

READY = "ready"
AUTO = "auto"
"""The same one, where nobody has asked for it by name."""
WITHOUT = (
    "Without such images expect far less: with six known classes an AUROC of 97 with them and of "
    "53 without on Fashion-MNIST, of 81 and of 45 on fashion-4k (docs/results/fedos.md)"
)
"""What the figures of a generator are worth that has seen the unknown classes."""
APART = 2.0
"""Ranges of values that differ by more than this factor are another world."""
FILE = "generator-fashion-4k.safetensors"
"""Trained on the images in this package: ostraka train-generator --data fashion-4k."""


def load_generator(name: str | Path = READY) -> TrainedGenerator:
    """A trained generator: a file that `ostraka train-generator` wrote, or the one in this package
    ("ready", or "auto"). A file that does not hold one is refused, with the reason.
    """
    if str(name) not in (READY, AUTO):
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


def told_of(generator: TrainedGenerator, name: str, data: str, held: Dataset) -> list[str]:
    """What must be said beside figures of a run on the data called `data` that draws from it.

    Whoever knows the unknown classes in training measures nothing: one that has seen images of them
    is refused unless it was asked for by name.
    """
    about, chosen = dict[str, Any](generator.about), name != AUTO
    name = name if chosen else READY
    known, unknown = held.classes, held.info.get("unknown", ())
    notes, shape = [], held.train.shape
    low, high = span_of(held.train)
    if not 1 / APART <= (high - low) / (generator.high - generator.low) <= APART:
        notes.append(
            f"the generator {name} makes values from {generator.low:g} to {generator.high:g}, the "
            f"images of {data} lie between {low:g} and {high:g}: whoever sees both tells them "
            "apart at once, and learns nothing else; give images of the same range (as bytes, "
            "they have it)"
        )
    if tuple(generator.shape) != tuple(shape):
        made, used = ("x".join(map(str, s)) for s in (generator.shape, shape))
        notes.append(f"the generator {name} makes images of {made}; they are resized to {used}")
    seen = {*about.get("classes", ()), *((*known, *unknown) if about.get("data") == data else ())}
    strangers = seen & {*unknown}
    of = f"trained on images of {len(strangers)} unknown classes ({choices(strangers)})"
    if strangers and not chosen:
        raise ConfigError(
            f"the generator in this package was {of}, and a result of it measures nothing. Train "
            "one on other images (ostraka train-generator), or name this one to see what it does "
            "(objective.generator=ready, or objective.outliers=generator:ready)"
        )
    if strangers:
        notes.append(
            f"the generator {name} was {of}: the figures of unknown samples tell how well such "
            f"images are found again. {WITHOUT}"
        )
    elif seen & {*known}:
        notes.append(
            f"the generator {name} was trained on images like those of {data}, which a server "
            "would not have; train one on other images (ostraka train-generator) for honest figures"
        )
    elif unknown and not seen:
        notes.append(
            f"the generator {name} does not tell which classes its images are of; if unknown ones "
            f"are among them, the figures of unknown samples are too good. {WITHOUT}"
        )
    return notes
