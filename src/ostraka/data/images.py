"""Images without labels: those of any data set, or a file that has nothing but images."""

from pathlib import Path

import numpy as np

from ostraka.core.samples import Samples, View
from ostraka.data.dataset import PIXELS, Array, as_samples
from ostraka.data.fingerprint import hash_of
from ostraka.data.sources import data_dirs, load
from ostraka.data.sources.npz import NEEDED, read_arrays
from ostraka.errors import DataError

ALONE = ("x", "x_train", "images")
"""What the one array of images may be called in a file without labels."""


def load_images(name: str, data_dir: str | None = None) -> tuple[Samples, str, tuple[str, ...]]:
    """The training images called `name`, a hash of their values, and the classes that they are of.

    `name` is a data set, or a file: any that a run reads, a .npy array, or a .npz with images
    alone (`x`, `x_train` or `images`).
    """
    alone, classes = _alone(Path(name).expanduser()), tuple[str, ...]()
    if alone is None:
        data = load(name, data_dirs(data_dir))
        if data.kind != "image":
            raise DataError(
                f"{name} holds samples of the kind {data.kind}; a generator learns from images"
            )
        samples, classes = data.train.unlabelled(), data.classes
    else:
        samples = as_samples(name, alone, PIXELS if alone.dtype == np.uint8 else View())
    return samples, hash_of(samples.x), classes


def _alone(path: Path) -> Array | None:
    """The images of a file that has no labels; None: it is no such file."""
    if path.suffix == ".npy" and path.is_file():
        try:
            values: Array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is no array of numbers that can be read: {error}") from None
        return values
    if path.suffix == ".npz" and path.is_file():
        arrays = read_arrays(path)
        if not any(key in arrays for key in NEEDED if key.startswith("y_")):
            named = [key for key in ALONE if key in arrays]
            if not named:
                raise DataError(
                    f"{path} has no images: it holds {', '.join(sorted(arrays)) or 'nothing'}; "
                    f"call the array {' or '.join(ALONE)}"
                )
            return arrays[named[0]]
    return None
