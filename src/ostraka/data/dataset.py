"""A dataset: training and test samples with class names, checked before anything trains on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples, View
from ostraka.errors import DataError

Array = NDArray[Any]

PIXELS = View(scale=1 / 255)
"""Stored bytes as inputs in [0, 1]."""

CIFAR100_MEAN = (0.50708, 0.48655, 0.44092)
CIFAR100_STD = (0.26733, 0.25644, 0.27615)
"""Channel statistics of CIFAR-100's 50,000 training images."""


DOMAIN = "domain"
"""The column that says which domain a sample is from."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """`columns`: one value for each row of the training storage (such as "speaker"); `info`: where it is from.

    `test_columns` are those of the test storage. Data whose two sides have the column "domain" is judged by domain.
    """

    name: str
    classes: tuple[str, ...]
    train: Samples
    test: Samples
    columns: Mapping[str, Array] = field(default_factory=dict)
    test_columns: Mapping[str, Array] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def test_domains(self) -> Array | None:
        """The domain of every row of the test storage, where training samples have one too."""
        return self.test_columns.get(DOMAIN) if DOMAIN in self.columns else None


@dataclass(frozen=True, eq=False)
class Arrays:
    """What a reader found, before any check: images [N, H, W], [N, H, W, C] or [N, C, H, W], or rows [N, D]."""

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    classes: tuple[str, ...] = ()
    columns: Mapping[str, Array] = field(default_factory=dict)
    test_columns: Mapping[str, Array] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)


def assemble(name: str, arrays: Arrays, view: View | None = None) -> Dataset:
    """A checked dataset. Bytes are kept as bytes and scaled to [0, 1] by the view; floats are kept as float32."""
    classes = arrays.classes or _numbered(arrays.y_train, arrays.y_test)
    check(name, classes, arrays.x_train, arrays.y_train, arrays.x_test, arrays.y_test)
    for part, columns, y in (
        ("training", arrays.columns, arrays.y_train),
        ("test", arrays.test_columns, arrays.y_test),
    ):
        for column, values in columns.items():
            if len(values) != len(y):
                raise DataError(
                    f"{name}: column {column!r} has {len(values)} values for {len(y)} {part} samples; "
                    "give one value for each sample"
                )
    x_train, x_test = channels_first(name, arrays.x_train), channels_first(name, arrays.x_test)
    if view is None:
        view = default_view(name, x_train)
    return Dataset(
        name=name,
        classes=tuple(classes),
        train=Samples(_tensor(x_train), _tensor(arrays.y_train.astype(np.int64)), view=view),
        test=Samples(_tensor(x_test), _tensor(arrays.y_test.astype(np.int64)), view=replace(view, augment="none")),
        columns=dict(arrays.columns),
        test_columns=dict(arrays.test_columns),
        info=dict(arrays.info),
    )


def default_view(name: str, x: Array) -> View:
    """Pixels in [0, 1], nothing else; CIFAR's colour images are augmented in training as in the FedOV experiments."""
    view = PIXELS if x.dtype == np.uint8 else View()
    if not name.startswith("cifar") or x.shape[1:] != (3, 32, 32):
        return view
    if name.startswith(("cifar100", "cifar-100")):
        return replace(view, mean=CIFAR100_MEAN, std=CIFAR100_STD, augment="pad-crop-flip-rotate")
    return replace(view, augment="pad-crop-flip")


def channels_first(name: str, x: Array) -> Array:
    """Images as [N, C, H, W]; rows [N, D] stay as they are."""
    if x.ndim == 2:
        return x
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[-1] in (1, 3, 4) and x.shape[1] not in (1, 3):
        return x.transpose(0, 3, 1, 2)
    if x.ndim == 4:
        return x
    raise DataError(
        f"{name}: samples have shape {list(x.shape)}; give rows [N, D], grey images [N, H, W] "
        "or colour images [N, H, W, C] or [N, C, H, W]"
    )


def check(name: str, classes: Sequence[str], x_train: Array, y_train: Array, x_test: Array, y_test: Array) -> None:
    """Refuse what no method could learn from: wrong types, shapes or labels, NaN, a class without samples."""
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        _check_values(name, f"x_{part}", x)
        _check_labels(name, f"y_{part}", y, classes)
        if len(x) != len(y):
            raise DataError(f"{name}: x_{part} has {len(x)} samples and y_{part} {len(y)} labels; the two must agree")
    if x_train.shape[1:] != x_test.shape[1:] or x_train.dtype != x_test.dtype:
        raise DataError(
            f"{name}: training samples are {x_train.dtype} {list(x_train.shape[1:])}, test samples {x_test.dtype} "
            f"{list(x_test.shape[1:])}; bring both to one type and shape"
        )
    empty = np.flatnonzero(np.bincount(y_train.astype(np.int64), minlength=len(classes)) == 0)
    if len(empty):
        listed = ", ".join(f"{c} ({classes[c]})" for c in empty[:5])
        raise DataError(
            f"{name}: no training sample of class {listed}{' and others' if len(empty) > 5 else ''}; "
            f"labels must use every number from 0 to {len(classes) - 1}: renumber them or add samples"
        )


def _check_values(name: str, key: str, x: Array) -> None:
    if x.dtype.hasobject:
        raise DataError(f"{name}: {key} holds Python objects; store it as numbers (uint8 or float32)")
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise DataError(f"{name}: {key} is {x.dtype}; store images as uint8 (0 to 255) or features as float32")
    if not 2 <= x.ndim <= 4 or 0 in x.shape:
        raise DataError(
            f"{name}: {key} has shape {list(x.shape)}; give at least one sample, as rows [N, D], grey images [N, H, W] "
            "or colour images [N, H, W, C]"
        )
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        bad = int(np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(axis=1))[0])
        raise DataError(
            f"{name}: {key} has a NaN or infinite value (first in sample {bad}); remove or fill such samples"
        )


def _check_labels(name: str, key: str, y: Array, classes: Sequence[str]) -> None:
    if y.dtype.hasobject:
        raise DataError(f"{name}: {key} holds Python objects; store labels as whole numbers from 0")
    if y.dtype.kind not in "iu":
        raise DataError(f"{name}: {key} is {y.dtype}; store labels as whole numbers from 0 to {len(classes) - 1}")
    if y.ndim != 1:
        raise DataError(f"{name}: {key} has shape {list(y.shape)}; give one label for each sample: [N]")
    wrong = (y < 0) | (y >= len(classes))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{name}: {key} has label {int(y[at])} at position {at}; with {len(classes)} classes labels go "
            f"from 0 to {len(classes) - 1}"
        )


def _numbered(y_train: Array, y_test: Array) -> tuple[str, ...]:
    """Class names "0", "1", ... when the file gives none."""
    both = [y for y in (y_train, y_test) if y.dtype.kind in "iu" and y.size]
    # Far above any real set of classes; a stray huge label must not make a huge tuple, `check` then reports it.
    count = min(max((int(y.max()) for y in both), default=0) + 1, 100_000)
    return tuple(str(c) for c in range(count))


def _tensor(values: Array) -> Tensor:
    if values.dtype.kind == "f":
        values = values.astype(np.float32)
    return torch.from_numpy(np.array(values, order="C"))


def known_split(dataset: Dataset, known: Sequence[int]) -> Dataset:
    """Train on the `known` classes only, renumbered in the order given; in the test set all others become UNKNOWN.

    Row numbers stay those of the full training set: the storage is kept and `train.rows` lists the known samples.
    """
    total, listed = len(dataset.classes), list(known)
    if not listed:
        raise DataError("no known class was given; list at least one class number, such as 0,3,7")
    for c in listed:
        if not 0 <= c < total:
            raise DataError(f"known class {c} does not exist: {dataset.name} has classes 0 to {total - 1}")
        if listed.count(c) > 1:
            raise DataError(f"known class {c} is listed twice; list every class once")
    renumber = torch.full((total + 1,), UNKNOWN)  # the last place keeps labels that are already UNKNOWN
    renumber[torch.tensor(listed)] = torch.arange(len(listed))
    train, test = (replace(part, y=renumber[_stored_labels(part)]) for part in (dataset.train, dataset.test))
    rows = torch.arange(len(train.x)) if train.rows is None else train.rows
    names = dataset.classes
    return replace(
        dataset,
        classes=tuple(names[c] for c in listed),
        train=replace(train, rows=rows[train.labels != UNKNOWN]),
        test=test,
        info={
            **dataset.info,
            "known": [names[c] for c in listed],
            "unknown": [n for c, n in enumerate(names) if c not in listed],
        },
    )


def _stored_labels(samples: Samples) -> Tensor:
    if samples.y is None:
        raise DataError("these samples carry no labels; known and unknown classes need them")
    return samples.y


def first_per_class(samples: Samples, n: int, classes: int) -> Tensor:
    """Rows (of the full set, ascending) of the first `n` samples of each class."""
    if n < 1:
        raise DataError(f"{n} training samples per class were asked for; give 1 or more")
    rows = torch.arange(len(samples.x)) if samples.rows is None else samples.rows
    labels, chosen = samples.labels, []
    for c in range(classes):
        mine = rows[labels == c]
        if len(mine) < n:
            raise DataError(f"{n} training samples per class were asked for, class {c} has {len(mine)}; ask for fewer")
        chosen.append(mine[:n])
    return torch.cat(chosen).sort().values
