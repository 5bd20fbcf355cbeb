"""A dataset: training and test samples with class names, checked before anything trains on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ostraka.core.augmentation import check_augment
from ostraka.core.kind import Kind, check_form
from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples, View
from ostraka.data.labels import class_names
from ostraka.errors import DataError

Array = NDArray[Any]

PIXELS = View(scale=1 / 255)
"""Stored bytes as inputs in [0, 1]."""

CIFAR100_MEAN = (0.50708, 0.48655, 0.44092)
CIFAR100_STD = (0.26733, 0.25644, 0.27615)
"""Channel statistics of CIFAR-100's 50,000 training images."""


USUAL = (1, 3, 4)
"""Channels of grey and colour images."""

LARGEST = 1e30
"""Far below the end of 32-bit numbers (3e38): differences and sums of inputs must stay finite."""

DOMAIN = "domain"
"""The column that says which domain a sample is from."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """`columns`: one value for each row of the training storage (such as "speaker"); `info`: where
    it is from.

    `test_columns` are those of the test storage. Data whose two sides have the column "domain" is
    judged by domain. `own_view`: the reader knows how its values become inputs, and they are not
    standardised unless a run asks for it. The kind of its samples stands in their view.
    """

    name: str
    classes: tuple[str, ...]
    train: Samples
    test: Samples
    columns: Mapping[str, Array] = field(default_factory=dict)
    test_columns: Mapping[str, Array] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    own_view: bool = False

    def __post_init__(self) -> None:
        view = self.train.view
        if view.kind != self.test.view.kind:
            raise DataError(
                f"{self.name}: training samples are of the kind {view.kind}, test samples of the "
                f"kind {self.test.view.kind}; both must be of one kind"
            )
        check_form(view.kind, self.train.shape, self.name)
        check_augment(view.augment, view.kind)

    @property
    def kind(self) -> Kind:
        """What one sample is."""
        return self.train.view.kind

    @property
    def test_domains(self) -> Array | None:
        """The domain of every row of the test storage, where training samples have one too."""
        return self.test_columns.get(DOMAIN) if DOMAIN in self.columns else None


@dataclass(frozen=True, eq=False)
class Arrays:
    """What a reader found, before any check.

    Images are [N, H, W], [N, H, W, C] or [N, C, H, W], rows of a table [N, D], sound
    [N, frames, coefficients]. A reader that does not say the `kind` has rows or images.
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    classes: tuple[str, ...] = ()
    columns: Mapping[str, Array] = field(default_factory=dict)
    test_columns: Mapping[str, Array] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    classes_from: str = ""
    """The file that gives the names of the classes, for error messages."""
    kind: Kind | None = None


def assemble(name: str, arrays: Arrays, view: View | None = None) -> Dataset:
    """A checked dataset. Bytes are kept as bytes and scaled to [0, 1] by the view; floats are kept
    as float32."""
    check(name, arrays.x_train, arrays.y_train, arrays.x_test, arrays.y_test)
    classes = class_names(name, arrays.y_train, arrays.y_test, arrays.classes, arrays.classes_from)
    columns = _checked_columns(name, "train", arrays.columns, len(arrays.y_train))
    test_columns = _checked_columns(name, "test", arrays.test_columns, len(arrays.y_test))
    kind = arrays.kind or usual_kind(arrays.x_train)
    x_train, x_test = (channels_first(name, x, kind) for x in (arrays.x_train, arrays.x_test))
    own_view = view is not None
    view = replace(default_view(name, x_train) if view is None else view, kind=kind)
    return Dataset(
        name=name,
        classes=classes,
        train=Samples(_tensor(x_train), _tensor(arrays.y_train.astype(np.int64)), view=view),
        test=Samples(
            _tensor(x_test),
            _tensor(arrays.y_test.astype(np.int64)),
            view=replace(view, augment="none"),
        ),
        columns=columns,
        test_columns=test_columns,
        info=dict(arrays.info),
        own_view=own_view,
    )


def as_samples(name: str, x: Array, view: View) -> Samples:
    """Checked images without labels."""
    _check_values(name, "x", x)
    return Samples(_tensor(channels_first(name, x, "image")), view=view)


def default_view(name: str, x: Array) -> View:
    """Pixels in [0, 1], nothing else; CIFAR's colour images are augmented in training as in the
    FedOV experiments."""
    view = PIXELS if x.dtype == np.uint8 else View()
    if not name.startswith("cifar") or x.shape[1:] != (3, 32, 32):
        return view
    if name.startswith(("cifar100", "cifar-100")):
        return replace(view, mean=CIFAR100_MEAN, std=CIFAR100_STD, augment="pad-crop-flip-rotate")
    return replace(view, augment="pad-crop-flip")


def usual_kind(x: Array) -> Kind:
    """The kind of stored samples of which nothing else is said: rows are a table, all else
    images."""
    return "table" if x.ndim == 2 else "image"


def channels_first(name: str, x: Array, kind: Kind) -> Array:
    """Images as [N, C, H, W], sound as [N, 1, frames, coefficients]; rows [N, D] stay as they
    are."""
    if kind != "table" and x.ndim == 3:
        return x[:, None]
    last = kind == "image" and x.ndim == 4 and channels_last(name, x.shape)
    return x.transpose(0, 3, 1, 2) if last else x


def channels_last(name: str, shape: Sequence[int]) -> bool:
    """Whether images [N, ., ., .] are [N, H, W, C]; what could be read either way is refused."""
    _, first, middle, last = shape
    if last in USUAL:
        return first not in (1, 3)
    if first not in USUAL and last < min(first, middle):
        raise DataError(
            f"{name}: samples have shape {list(shape)}; is it [N, C, H, W] or [N, H, W, C]? Images "
            "of other than 1, 3 or 4 channels are read as [N, C, H, W], with no more channels than "
            "rows and columns: use x.transpose(0, 3, 1, 2), or rows [N, D]"
        )
    return False


def sample_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of one sample as networks see it, given that of the stored array."""
    if len(shape) == 3:
        return (1, *shape[1:])
    if len(shape) == 4 and channels_last(name, shape):
        return (shape[3], shape[1], shape[2])
    return tuple(shape[1:])


def check(name: str, x_train: Array, y_train: Array, x_test: Array, y_test: Array) -> None:
    """Refuse samples that no method could learn from: wrong types and shapes, NaN, other numbers of
    labels."""
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        _check_values(name, f"x_{part}", x)
        if y.ndim and len(x) != len(y):
            raise DataError(
                f"{name}: x_{part} has {len(x)} samples and y_{part} {len(y)} labels; the two must "
                "agree"
            )
    if x_train.shape[1:] != x_test.shape[1:] or x_train.dtype != x_test.dtype:
        raise DataError(
            f"{name}: training samples are {x_train.dtype} {list(x_train.shape[1:])}, test samples "
            f"{x_test.dtype} {list(x_test.shape[1:])}; bring both to one type and shape"
        )


def _check_values(name: str, key: str, x: Array) -> None:
    if x.dtype.hasobject:
        raise DataError(
            f"{name}: {key} holds Python objects; store it as numbers (uint8 or float32)"
        )
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise DataError(
            f"{name}: {key} is {x.dtype}; store images as uint8 (0 to 255) or features as float32"
        )
    if not 2 <= x.ndim <= 4 or 0 in x.shape:
        raise DataError(
            f"{name}: {key} has shape {list(x.shape)}; give at least one sample, as rows [N, D], "
            "grey images [N, H, W] or colour images [N, H, W, C] or [N, C, H, W]"
        )
    if x.dtype.kind != "f":
        return
    for wrong, what, remedy in (
        (~np.isfinite(x), "a NaN or infinite value", "remove or fill such samples"),
        (
            # 16-bit numbers cannot even be compared with it
            (np.abs(x) if float(np.finfo(x.dtype).max) >= LARGEST else np.zeros(0)) > LARGEST,
            "a value that is too large",
            f"values go from -{LARGEST:g} to {LARGEST:g}: rescale them",
        ),
    ):
        if wrong.any():
            place = np.argwhere(wrong)[0]
            raise DataError(
                f"{name}: {key} has {what} (first in sample {place[0]}: {x[tuple(place)]:g}); "
                f"{remedy}"
            )


def _checked_columns(
    name: str, side: str, columns: Mapping[str, Array], samples: int
) -> dict[str, Array]:
    """Columns with one plain value for each sample; bytes become text."""
    checked = {}
    for column, values in columns.items():
        if len(values) != samples:
            raise DataError(
                f"{name}: column {column!r} has {len(values)} values for {samples} {side} samples; "
                "give one value for each sample"
            )
        if values.dtype.kind not in "iufbSUM":
            raise DataError(
                f"{name}: {column}_{side} is {values.dtype}; a column holds numbers or text"
            )
        try:
            checked[column] = (
                np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
            )
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}: {column}_{side} holds bytes that are not UTF-8 ({error}); store text"
            ) from error
    return checked


def _tensor(values: Array) -> Tensor:
    if values.dtype.kind == "f":
        values = values.astype(np.float32)
    return torch.from_numpy(np.array(values, order="C"))


def known_split(dataset: Dataset, known: Sequence[int]) -> Dataset:
    """Train on the `known` classes only, renumbered in the order given; in the test set all others
    become UNKNOWN.

    Row numbers stay those of the full training set: the storage is kept and `train.rows` lists the
    known samples.
    """
    total, listed = len(dataset.classes), list(known)
    if not listed:
        raise DataError("no known class was given; list at least one class number, such as 0,3,7")
    for c in listed:
        if not 0 <= c < total:
            raise DataError(
                f"known class {c} does not exist: {dataset.name} has classes 0 to {total - 1}"
            )
        if listed.count(c) > 1:
            raise DataError(f"known class {c} is listed twice; list every class once")
    # the last place keeps labels that are already UNKNOWN
    renumber = torch.full((total + 1,), UNKNOWN)
    renumber[torch.tensor(listed)] = torch.arange(len(listed))
    sides = []
    for part in (dataset.train, dataset.test):
        if part.y is None:
            raise DataError("these samples carry no labels; known and unknown classes need them")
        sides.append(replace(part, y=renumber[part.y]))
    (train, test), names = sides, dataset.classes
    return replace(
        dataset,
        classes=tuple(names[c] for c in listed),
        train=train.take((train.labels != UNKNOWN).nonzero().squeeze(1)),
        test=test,
        info={
            **dataset.info,
            "known": [names[c] for c in listed],
            "unknown": [n for c, n in enumerate(names) if c not in listed],
        },
    )


def first_per_class(samples: Samples, n: int, classes: int) -> Tensor:
    """Rows (of the full set, ascending) of the first `n` samples of each class."""
    if n < 1:
        raise DataError(f"{n} training samples per class were asked for; give 1 or more")
    rows, labels, chosen = samples.row_numbers, samples.labels, []
    for c in range(classes):
        mine = rows[labels == c]
        if len(mine) < n:
            raise DataError(
                f"{n} training samples per class were asked for, class {c} has {len(mine)}; ask "
                "for fewer"
            )
        chosen.append(mine[:n])
    return torch.cat(chosen).sort().values
