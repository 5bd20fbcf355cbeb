"""The generators of a run: the file that a setting names, or the small one in this package."""

from functools import lru_cache
from importlib.resources import as_file
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

from ostraka.core.generator import TrainedGenerator
from ostraka.errors import StoreError
from ostraka.nets.generator import fits
from ostraka.store.generator import read_generator

READY = "ready"
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


def told_of(generator: TrainedGenerator, name: str, data: str, shape: tuple[int, ...]) -> list[str]:
    """What must be said beside figures of a run that draws from it."""
    about: dict[str, Any] = dict(generator.about)
    notes = []
    if tuple(generator.shape) != tuple(shape):
        made, seen = ("x".join(map(str, s)) for s in (generator.shape, shape))
        notes.append(f"the generator {name} makes images of {made}; they are resized to {seen}")
    if about.get("data") == data or (name == READY and "fashion" in data):
        notes.append(
            f"the generator {name} was trained on images like those of {data}, which a server "
            "would not have; train one on other images (ostraka train-generator) for honest figures"
        )
    return notes
