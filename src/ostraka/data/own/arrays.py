"""Own data in a .npz file: `x` and `y`, or `x_train`, `y_train` and perhaps `x_test`, `y_test`.

Labels are whole numbers or names. Whole numbers count into the names in the array `classes`, or
into `class_names` of the JSON file beside it; without either they are names themselves.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ostraka.data.dataset import LARGEST, Array, channels_first, usual_kind
from ostraka.data.own.collection import Collection, collection, some
from ostraka.data.own.folder import check_classes
from ostraka.data.own.form import Asked, Form
from ostraka.data.sources.files import sidecar
from ostraka.data.sources.npz import class_names, per_coefficient, read_arrays, told_kind
from ostraka.errors import DataError

PARTS = {"train": ("_train", ""), "test": ("_test",)}
"""How the arrays of a part end."""


def read(asked: Asked) -> Collection:
    """The samples of one part of the file."""
    path = asked.path
    stored, beside = read_arrays(path), sidecar(path)
    end = next((end for end in PARTS[asked.which] if f"x{end}" in stored), None)
    if end is None:
        wanted = " or ".join(f"x{end}" for end in PARTS[asked.which])
        raise DataError(
            f"{path} has no array {wanted} (it has: {some(sorted(stored)) or 'nothing'}); store "
            "samples as x and labels as y with numpy.savez"
        )
    x, form = _values(path, f"x{end}", stored, beside, asked.form)
    labels = None if asked.labelled is False else _labels(path, end, stored, beside, len(x))
    notes = [] if labels is None else check_classes(path, set(labels))
    if labels is None and asked.labelled:
        raise DataError(f"{path} has no labels: store them as the array y{end}, one for each x")
    notes += [
        f"{path.name} has samples of the part {part} too, which were not read"
        for part, ends in PARTS.items()
        if asked.part is None and part != "train" and any(f"x{other}" in stored for other in ends)
    ]
    return collection(path.stem, x, labels, [f"sample {i}" for i in range(len(x))], form, notes)


def held(x: Any, y: Any, form: Form, name: str = "arrays") -> Collection:
    """Samples that are held as arrays already, with a label for each (None: they have none)."""
    stored = {"x": np.asarray(x)} | ({} if y is None else {"y": np.asarray(y)})
    values, full = _values(Path(name), "x", stored, {}, form)
    labels = _labels(Path(name), "", stored, {}, len(values))
    return collection(name, values, labels, [f"sample {i}" for i in range(len(values))], full)


def _values(
    path: Path, key: str, stored: Mapping[str, Array], beside: Mapping[str, Any], form: Form
) -> tuple[Array, Form]:
    """The samples as they are kept, bytes of images and floats of all else, and their form."""
    x = stored[key]
    if x.dtype.kind not in "iufb" or not 2 <= x.ndim <= 4 or 0 in x.shape:
        raise DataError(
            f"{path}: {key} is {x.dtype} {list(x.shape)}; give at least one sample, of numbers: "
            "rows [N, D], images [N, H, W] or [N, H, W, C], sound [N, frames, coefficients]"
        )
    kind = told_kind(path, stored, beside) or form.kind or usual_kind(x)
    if kind == "image":
        if x.dtype.kind == "f" or x.min() < 0 or x.max() > 255:
            raise DataError(
                f"{path}: {key} is {x.dtype}, from {x.min():g} to {x.max():g}; images are kept as "
                "bytes, 0 (black) to 255 (white): rescale them and store x.astype('uint8')"
            )
    elif "feature_scale" in stored:  # as bytes: value = x * scale + offset, for each coefficient
        keys = ("feature_scale", "feature_offset")
        scale, offset = (per_coefficient(str(path), key, stored, x.shape[-1]) for key in keys)
        x = x * scale + offset
    with np.errstate(over="ignore", invalid="ignore"):
        kept = np.uint8 if kind == "image" else np.float32
        values = channels_first(str(path), x, kind).astype(kept)
    if kind != "image" and (wrong := ~(np.abs(values) <= LARGEST)).any():
        row = int(np.argwhere(wrong)[0][0])
        raise DataError(
            f"{path}: {key} has a NaN, infinite or too large value (first in sample {row}); "
            "correct or remove such samples"
        )
    return np.ascontiguousarray(values), form.found(kind, tuple(values.shape[1:]), str(path))


def _labels(
    path: Path, end: str, stored: Mapping[str, Array], beside: Mapping[str, Any], count: int
) -> list[str] | None:
    """The name of each sample's class; None: the file has no labels."""
    y = stored.get(f"y{end}")
    if y is None:
        return None
    if y.shape != (count,) or y.dtype.kind not in "iuUSb":
        raise DataError(
            f"{path}: y{end} is {y.dtype} {list(y.shape)} beside {count} samples; give one whole "
            "number or one name for each, [N]"
        )
    if y.dtype.kind in "US":
        return [
            name.decode("utf-8", "replace") if isinstance(name, bytes) else name
            for name in y.tolist()
        ]
    names = class_names(path, stored, beside)
    if not names:
        return [str(int(label)) for label in y.tolist()]
    wrong = [label for label in y.tolist() if not 0 <= label < len(names)]
    if wrong:
        raise DataError(
            f"{path}: y{end} has label {wrong[0]}, but {len(names)} classes have names, for labels "
            f"0 to {len(names) - 1}; name every class, or correct the labels"
        )
    return [names[label] for label in y.tolist()]
