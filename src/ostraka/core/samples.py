"""Samples: stored values, labels, and how stored values become network inputs."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ostraka.core.augmentation import augmentation
from ostraka.core.kind import NORMED, Kind
from ostraka.core.seeds import torch_rng
from ostraka.errors import DataError


@dataclass(frozen=True)
class View:
    """How stored values become inputs: `(value * scale - mean) / std`, then, in training,
    augmentation.

    `mean` and `std` are empty where unused; else they have a value for each channel of images, each
    feature of rows, each coefficient of sound. `unit` says how values are stored, whatever is then
    made of them: 255 for bytes from 0 to 255, 1 for values as they are; 0 stands for that which
    `scale` brings to 1.
    """

    scale: float = 1.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    augment: str = "none"
    kind: Kind = "image"
    unit: float = 0.0

    def __post_init__(self) -> None:
        if not self.unit:  # nine digits: 1 / (1 / 49) is not 49
            object.__setattr__(self, "unit", float(f"{1 / (abs(self.scale) or 1.0):.9g}"))

    @classmethod
    def of_unit(cls, unit: float, kind: Kind) -> "View":
        """Values of this unit brought to 1, and nothing else."""
        return cls(1 / unit, kind=kind, unit=unit)

    def apply(self, values: Tensor) -> Tensor:
        """Stored values [B, ...] as float inputs."""
        x = values.to(torch.float32, copy=True)
        if self.scale != 1.0:
            x.mul_(self.scale)
        if self.mean:
            places = [1] * x.dim()
            places[1 + NORMED[self.kind]] = -1
            mean, std = (v.to(x.device).view(places) for v in self._statistics)
            x.sub_(mean).div_(std)
        return x

    @cached_property
    def _statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and deviation as tensors, made once: a row may have thousands of features."""
        return torch.tensor(self.mean), torch.tensor(self.std)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a tensor would make another process map shared memory for a few
        numbers."""
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}


@dataclass(frozen=True)
class Samples:
    """Rows of one shared storage. A subset copies indices only, so a thousand parties cost no more
    memory than one.

    `x` is [N, ...] uint8 or float32, `y` is [N] int64 or None (unlabelled); `rows` says which of
    them this view holds.
    """

    x: Tensor
    y: Tensor | None = None
    rows: Tensor | None = None
    view: View = View()

    def __post_init__(self) -> None:
        if self.y is not None and len(self.y) != len(self.x):
            raise DataError(
                f"{len(self.x)} samples came with {len(self.y)} labels; give one label for each "
                "sample"
            )

    def __len__(self) -> int:
        return len(self.x) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.x.shape[1:])

    @property
    def labels(self) -> Tensor:
        """The labels of these rows."""
        if self.y is None:
            raise DataError(
                "these samples carry no labels; a method that learns from labels cannot use them"
            )
        return self.y if self.rows is None else self.y[self.rows]

    @property
    def row_numbers(self) -> Tensor:
        """Which rows of the storage these are [N]."""
        return torch.arange(len(self.x)) if self.rows is None else self.rows

    def take(self, index: Tensor | slice) -> "Samples":
        """The samples at `index` (positions within this view)."""
        return replace(self, rows=_pick(self.rows, index, len(self.x)))

    def chunks(self, size: int) -> Iterator["Samples"]:
        """The same samples in order, at most `size` at a time."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def stored(self, index: Tensor | slice | None = None) -> Tensor:
        """The values of the samples at `index` (default: all) as they are stored, bytes or
        floats."""
        rows = self.rows if index is None else _pick(self.rows, index, len(self.x))
        return self.x if rows is None else self.x.index_select(0, rows.to(self.x.device))

    def with_labels(self, y: Tensor) -> "Samples":
        """The same samples, in storage of their own, with one label `y` for each."""
        return Samples(self.stored(), y, view=self.view)

    def in_unit(self, unit: float) -> "Samples":
        """The same samples, seen alike, with their values stored in another unit."""
        own = self.view
        if own.unit == unit:
            return self
        x = (self.x.double() * (unit / own.unit)).float()
        return replace(self, x=x, view=replace(own, unit=unit, scale=own.scale * own.unit / unit))

    def unlabelled(self) -> "Samples":
        """The same samples without their labels."""
        return replace(self, y=None)

    def inputs(
        self, index: Tensor | slice | None = None, rng: torch.Generator | None = None
    ) -> Tensor:
        """Network inputs [B, ...] of the samples at `index` (default: all); augmented when `rng` is
        given."""
        x = self.view.apply(self.stored(index))
        if rng is not None and self.view.augment != "none":
            x = augmentation(self.view.augment)(x, rng)
        return x

    def counts(self, classes: int) -> Tensor:
        """Number of samples of each class."""
        return torch.bincount(self.labels, minlength=classes)

    def split(self, share: float, seed: int) -> tuple["Samples", "Samples"]:
        """(the rest, a random `share`), stratified by class where labels exist: each class gives
        its rounded share."""
        rng = torch_rng(seed, "split")
        order = torch.randperm(len(self), generator=rng)
        if self.y is None:
            cut = round(len(self) * share)
            return self.take(order[cut:].sort().values), self.take(order[:cut].sort().values)
        labels = self.labels.cpu()[order]  # a party that trains on another device splits there too
        held = torch.zeros(len(self), dtype=torch.bool)
        for label in labels.unique():
            mine = order[labels == label]
            held[mine[: round(len(mine) * share)]] = True
        return self.take((~held).nonzero().squeeze(1)), self.take(held.nonzero().squeeze(1))

    def compact(self) -> "Samples":
        """The same samples in storage that holds these rows and no others."""
        if self.rows is None:
            return self
        rows = self.rows.to(self.x.device)
        return replace(self, x=self.x[rows], y=None if self.y is None else self.y[rows], rows=None)

    def to(self, device: str | torch.device) -> "Samples":
        """The same samples on another device; whatever trains or predicts follows them there.

        Only these rows are moved, not the storage that they may share with a thousand parties.
        """
        there, here = torch.device(device), self.x.device
        if there.type == here.type and there.index in (None, here.index):
            return self
        own = self.compact()
        return replace(own, x=own.x.to(there), y=None if own.y is None else own.y.to(there))

    def share_memory(self) -> "Samples":
        """The same samples in memory that worker processes can map instead of copying."""
        tensors = (self.x, self.y, self.rows)
        for tensor in tensors:
            if tensor is not None and tensor.device.type == "cpu":
                tensor.share_memory_()
        return self


def stored_values(x: Any) -> Tensor:
    """A tensor, or an array or list of numbers, as stored values: bytes or floats."""
    values = x if isinstance(x, Tensor) else _as_tensor(x)
    if values.dtype != torch.uint8 and not values.is_floating_point():
        raise DataError(
            f"values of {values.dtype} were given; samples are asked as they are stored, pixels as "
            "uint8 and features as float32: convert them, for example x.astype('uint8')"
        )
    return values


def _as_tensor(x: Any) -> Tensor:
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"values of {array.dtype} were given; samples are asked as numbers: pixels as uint8, "
            "features as float32, all of one shape"
        )
    # torch takes neither the other byte order nor arrays that are read backwards
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def _pick(rows: Tensor | None, index: Tensor | slice, total: int) -> Tensor:
    if rows is not None:
        return rows[index]
    return torch.arange(total)[index] if isinstance(index, slice) else index
