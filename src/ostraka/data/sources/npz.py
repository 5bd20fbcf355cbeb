"""Our .npz files: arrays x_train, y_train, x_test, y_test, and a JSON sidecar with source, licence
and class names.

Further arrays:

* `NAME_train`, one value for each training sample, becomes the column NAME (`speaker_train` ->
  "speaker"), `NAME_test` likewise that of the test samples; with `domain_train` and `domain_test`
  the data has domains;
* `feature_scale` and `feature_offset` say that x holds quantised features: value = x * scale +
  offset, per coefficient. Such features are given to networks standardised: each coefficient has
  mean 0 and standard deviation 1 over all frames of the training set. Cepstral coefficients differ
  in size by two orders of magnitude, and the first would drown the others. The statistics are those
  of the whole training set; constants of this kind would be fixed before a federation starts, as
  the pixel range of images is;
* `kind` (or the entry "kind" of the sidecar): image, table or sound. Without it, x with
  `feature_scale` is sound, rows [N, D] are a table, and everything else is images;
* `x_train_med` and `x_test_med` are packed images: residuals of the lossless MED predictor (LOCO-I,
  the predictor of JPEG-LS), [C, N, H, W] uint8. With a the pixel to the left, b the one above and c
  the one above left (0 outside the image), the prediction is the median of a, b and a + b - c; a
  residual is pixel minus prediction modulo 256. Of three colour planes, red and blue are stored as
  their difference from green, as signed bytes.
"""

from collections.abc import Callable, Collection, Mapping
from importlib.resources import as_file
from importlib.resources import files as files_of
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ostraka.core.kind import KINDS, Kind
from ostraka.core.samples import View
from ostraka.data.dataset import Array, Arrays, Dataset, assemble, sample_shape
from ostraka.data.names import flaw
from ostraka.data.sources import archive
from ostraka.data.sources.files import file_info, sidecar, with_sidecar
from ostraka.data.sources.own import ABOUT, peek_table, read_dataset
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError, choices
from ostraka.registry import SOURCES

T = TypeVar("T")

MED = "_med"
"""The end of the names of packed arrays."""

PACKED = ".packed.npz"
BLOCK = 2048
"""Images decoded at once: the three rows in use then stay in the processor's cache."""

BUNDLED = "embedded-fashion-mnist-4k.npz"
"""The data set inside the package: 4,000 + 1,000 images of Fashion-MNIST (MIT, Zalando; see the
folder's NOTICE)."""

NEEDED = ("x_train", "y_train", "x_test", "y_test")


def read(path: Path, name: str) -> Dataset:
    """The dataset in one .npz file, plain or packed."""
    beside, info = sidecar(path), file_info("packed" if path.name.endswith(PACKED) else "npz", path)
    given, found = beside.get("sha256"), info["sha256"][path.name]
    if given is not None and given != found:
        raise DataError(
            f"{path} is damaged or was changed: its SHA-256 is {found}, its JSON sidecar says "
            f"{given}; fetch the file again or correct the sidecar"
        )
    if _undivided(archive.headers(path)):
        return read_dataset(path, name)
    stored = read_arrays(path)
    _need(stored, path)
    x_train, x_test, view = _features(name, stored)
    arrays = Arrays(
        x_train=x_train,
        y_train=stored["y_train"],
        x_test=x_test,
        y_test=stored["y_test"],
        classes=class_names(path, {}, beside),
        classes_from=str(path.with_suffix(".json")),
        kind=told_kind(path, stored, beside),
        columns=_columns(path, stored, "_train"),
        test_columns=_columns(path, stored, "_test"),
        info={**info, **{key: beside[key] for key in ABOUT if key in beside}},
    )
    return assemble(name, arrays, view)


def read_arrays(path: Path) -> dict[str, Array]:
    """Every array of the file; packed images are decoded, Python objects are refused."""
    stored = archive.arrays(path)
    return {
        key.removesuffix(MED): decode(f"{path}: {key}", values) if key.endswith(MED) else values
        for key, values in stored.items()
    }


def decode(name: str, residuals: Array) -> Array:
    """Images [N, H, W] (one plane) or [N, H, W, C] from residuals [C, N, H, W]; `name` is for the
    error message."""
    if residuals.ndim != 4 or residuals.dtype != np.uint8:
        raise DataError(
            f"{name} is {residuals.dtype} {list(residuals.shape)}; packed images are uint8 [C, N, "
            "H, W]"
        )
    planes, count, height, width = residuals.shape
    images = np.empty((count, height, width, planes), np.uint8)
    for start in range(0, count, BLOCK):
        part = residuals[:, start : start + BLOCK]
        images[start : start + BLOCK] = _colours(
            [_plane(part[k], planes == 3 and k != 1) for k in range(planes)]
        )
    return images[..., 0] if planes == 1 else images


def _plane(residuals: Array, signed: bool) -> Array:
    """One plane [n, H, W] as [H, W, n] int16: pixels depend on their neighbours, so only images run
    in parallel."""
    count, height, width = residuals.shape
    steps = np.ascontiguousarray(residuals.transpose(1, 2, 0)).astype(np.int16)
    plane = np.zeros((height + 1, width + 1, count), np.int16)
    wrapped = np.int8 if signed else np.uint8
    for i in range(1, height + 1):
        for j in range(1, width + 1):
            left, above = plane[i, j - 1], plane[i - 1, j]
            low, high = np.minimum(left, above), np.maximum(left, above)
            # The median of three: a + b - c held between the smaller and the larger of a and b.
            guess = np.minimum(np.maximum(left + above - plane[i - 1, j - 1], low), high)
            plane[i, j] = (guess + steps[i - 1, j - 1]).astype(wrapped)
    return plane[1:, 1:]


def _colours(planes: list[Array]) -> Array:
    """Planes [H, W, n] as images [n, H, W, C], the green difference undone."""
    if len(planes) == 3:
        red, green, blue = planes
        planes = [red + green, green, blue + green]
    return np.stack([plane.astype(np.uint8) for plane in planes], axis=-1).transpose(2, 0, 1, 3)


def peek(path: Path, name: str) -> Summary:
    """What the headers of the arrays say; of the values only the labels are read."""
    found = archive.headers(path)
    if _undivided(found):
        return peek_table(path, name)
    _need({key.removesuffix(MED) for key in found}, path)
    if "x_train" + MED in found:
        planes, count, *sides = found["x_train" + MED].shape
        shape: tuple[int, ...] = (planes, *sides)
    else:
        count, shape = found["x_train"].shape[0], sample_shape(name, found["x_train"].shape)
    classes = len(class_names(path, {}, sidecar(path))) or len(
        np.unique(archive.array(path, "y_train"))
    )
    return Summary(shape, classes, count, prod(found["y_test"].shape[:1]))


def _undivided(keys: Collection[str]) -> bool:
    """Whether there are labelled samples, and none for testing: a share of them is, then."""
    pairs = (("x", "y"), ("x_train", "y_train"))
    tested = any(key in keys for key in ("x_test", "y_test"))
    return not tested and any(x in keys and y in keys for x, y in pairs)


def _need(keys: Collection[str], path: Path) -> None:
    missing = [key for key in NEEDED if key not in keys]
    if missing:
        raise DataError(
            f"{path} has no {', '.join(missing)} (it has: {', '.join(sorted(keys)) or 'nothing'}); "
            f"store the arrays {', '.join(NEEDED)}, or x and y alone"
        )


def _features(name: str, stored: Mapping[str, Array]) -> tuple[Array, Array, View | None]:
    """(x_train, x_test, view): standardised features where the file says so, otherwise what is
    stored."""
    train, test = stored["x_train"], stored["x_test"]
    if not _quantised(stored):
        return train, test, None
    if not (train.ndim == test.ndim == 3 and train.dtype == test.dtype == np.uint8) or not len(
        train
    ):
        raise DataError(
            f"{name}: features are {train.dtype} {list(train.shape)} in training and {test.dtype} "
            f"{list(test.shape)} in test; with feature_scale and feature_offset both must be uint8 "
            "[N, frames, coefficients]"
        )
    scale, offset = (
        per_coefficient(name, key, stored, train.shape[-1])
        for key in ("feature_scale", "feature_offset")
    )
    # Statistics from the counts of the 256 levels: exact, and without a second copy of the data.
    levels = np.arange(256)
    counts = np.stack(
        [np.bincount(train[..., k].ravel(), minlength=256) for k in range(train.shape[-1])]
    )
    values = levels * scale[:, None] + offset[:, None]
    share = counts / counts.sum(axis=1, keepdims=True)
    mean = (share * values).sum(axis=1)
    std = np.sqrt((share * (values - mean[:, None]) ** 2).sum(axis=1))
    std[std == 0] = 1.0
    gain, shift = (scale / std).astype(np.float32), ((offset - mean) / std).astype(np.float32)
    return train * gain + shift, test * gain + shift, View()


def _quantised(stored: Mapping[str, Array]) -> bool:
    return "feature_scale" in stored or "feature_offset" in stored


def told_kind(path: Path, stored: Mapping[str, Array], beside: Mapping[str, Any]) -> Kind | None:
    """The kind that the file or its sidecar tells; None: neither does."""
    told = {str(found) for found in (stored.get("kind"), beside.get("kind")) if found is not None}
    if not told:
        return "sound" if _quantised(stored) else None
    for kind in KINDS:
        if told == {kind}:
            return kind
    raise DataError(
        f"{path}: its kind is {' and '.join(sorted(told))}; the array kind or the entry of "
        f"{path.with_suffix('.json').name} must be one of: {choices(KINDS)}"
    )


def per_coefficient(name: str, key: str, stored: Mapping[str, Array], coefficients: int) -> Array:
    """The finite number that `key` has for each coefficient."""
    values = stored.get(key, np.zeros(0))
    if values.shape != (coefficients,) or values.dtype.kind != "f" or not np.isfinite(values).all():
        got = f"is {values.dtype} {list(values.shape)}" if key in stored else "is missing"
        raise DataError(
            f"{name}: {key} {got}; give one finite float for each of the {coefficients} "
            "coefficients"
        )
    return values.astype(np.float64)


def class_names(
    path: Path, stored: Mapping[str, Array], beside: Mapping[str, Any]
) -> tuple[str, ...]:
    """The names of the classes in the order of their labels: those of the array classes, or else
    those that the sidecar gives; empty: neither does."""
    names, where = beside.get("class_names", []), path.with_suffix(".json")
    if "classes" in stored:
        names, where = stored["classes"].tolist(), path
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise DataError(
            f"{where} gives class_names {str(names)[:80]}; it must be a list of names in label "
            "order"
        )
    wrong = flaw(names, "class")
    if wrong:
        raise DataError(f"{where}: {wrong}; give every class a name of its own, on one line")
    return tuple(names)


def _columns(path: Path, stored: Mapping[str, Array], side: str) -> dict[str, Array]:
    # idx_train only records where a subset's samples stood in the original set.
    others = [key for key in stored if key.endswith(side) and key not in (*NEEDED, f"idx{side}")]
    for key in others:
        if stored[key].ndim == 2 and stored[key].shape[1] == 1:
            raise DataError(
                f"{path}: {key} has shape {list(stored[key].shape)}; store a column as [N]: "
                "reshape(-1)"
            )
    return {key.removesuffix(side): stored[key] for key in others if stored[key].ndim == 1}


def _find_plain(path: Path) -> list[str]:
    plain = path.suffix == ".npz" and not path.name.endswith(PACKED) and path.is_file()
    return [path.name.removesuffix(".npz")] if plain else []


def _find_packed(path: Path) -> list[str]:
    return [path.name.removesuffix(PACKED)] if path.name.endswith(PACKED) and path.is_file() else []


def _bundled(function: Callable[[Path, str], T]) -> Callable[[Path, str], T]:
    """The same of the file inside the package, whatever the path."""

    def called(path: Path, name: str) -> T:
        with as_file(files_of("ostraka.data.sources").joinpath("bundled")) as folder:
            return function(folder / BUNDLED, name)

    return called


for kind, summary, find in (
    ("npz", "NAME.npz with x_train, y_train, x_test, y_test (or x and y)", _find_plain),
    ("packed", "NAME.packed.npz, images as prediction residuals", _find_packed),
):
    SOURCES.add(kind)(Source(kind, summary, read, find, files=with_sidecar, peek=peek))
SOURCES.add("bundled")(
    Source(
        "bundled",
        "the subset of Fashion-MNIST in this package",
        _bundled(read),
        builtin=("fashion-4k",),
        files=_bundled(with_sidecar),
        peek=_bundled(peek),
    )
)
