"""What a sample must look like so that the samples of all parties fit together, and what else is
asked of a reader."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any, Literal

from ostraka.core.kind import FORMS, KINDS, Kind
from ostraka.core.settings import build, values_of
from ostraka.data.names import flaw
from ostraka.errors import ConfigError, DataError, choices, did_you_mean

CHANNELS = (1, 3, 4)
"""Channels that an image may have: grey, colours, colours with transparency."""

MOST = 2**28
"""Values that one sample may have at most."""

Part = Literal["train", "test"]
"""Of data that is stored in two parts."""


@dataclass(frozen=True)
class Column:
    """One column of a table: a number, or a category with the values `levels`.

    A category is one feature for each level, 1 for the one that the row has and 0 for the others;
    a row whose value is missing, or none of them, has 0 everywhere. A missing number becomes
    `fill`; None: it is refused.
    """

    name: str
    levels: tuple[str, ...] = ()
    fill: float | None = None

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return len(self.levels) or 1


@dataclass(frozen=True)
class Form:
    """What a sample must look like; part of a task file.

    None, or nothing, stands for "as it is found"; the form of a `Collection` says all of it.
    """

    kind: Kind | None = None
    shape: tuple[int, ...] | None = None
    """Of one sample: channels x height x width, features, or 1 x frames x coefficients."""
    label: str | None = None
    """Tables: the name of the column with the classes."""
    columns: tuple[Column, ...] = ()
    """Tables: those that become features, in this order."""
    rate: int = 16000
    """Sound: samples per second that MFCC are made from; recordings of other rates are resampled.
    """
    white: int = 65535
    """Images of 16 bits: the value that becomes 255 (4095 for 12 bits stored as 16)."""

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        if self.shape is not None:
            self._check_shape(self.shape)
        self._check_columns()
        if not 1000 <= self.rate <= 384000:
            raise ConfigError(f"rate is {self.rate}; give 1000 to 384000 samples per second")
        if not 1 <= self.white <= 65535:
            raise ConfigError(f"white is {self.white}; give 1 to 65535, a value of 16 bits")

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        said = _sides(shape)
        if not shape or min(shape) < 1:
            raise ConfigError(f"the shape is {said!r}; every side must be at least 1")
        size = prod(shape)
        if size > MOST:
            raise ConfigError(f"the shape is {said}, {size:,} values; at most {MOST:,} are taken")
        if self.kind is None:
            return
        axes = FORMS[self.kind]
        if len(shape) != len(axes) or (self.kind == "sound" and shape[0] != 1):
            raise ConfigError(
                f"the shape is {said}, but the kind {self.kind} has samples of "
                f"{' x '.join(axes)}; give as many numbers"
            )
        if self.kind == "image" and shape[0] not in CHANNELS:
            raise ConfigError(
                f"the shape is {said}: {shape[0]} channels; images have 1 (grey), 3 (colours) or "
                "4 (colours and transparency), given first: channels x height x width"
            )

    def _check_columns(self) -> None:
        if self.kind not in (None, "table") and (self.columns or self.label is not None):
            raise ConfigError(
                f"the kind is {self.kind}, but columns or a label column were given; only tables "
                "have columns"
            )
        wrong = flaw([column.name for column in self.columns], "column")
        for column in self.columns:
            wrong = wrong or flaw(column.levels, f"column {column.name!r}, level")
            if column.fill is not None and (column.levels or not isfinite(column.fill)):
                wrong = wrong or (
                    f"column {column.name!r} has fill {column.fill}; fill is a finite number, and "
                    "for columns of numbers only"
                )
            if column.name == self.label:
                wrong = wrong or f"column {column.name!r} is a feature and the label, too"
        if wrong:
            raise ConfigError(f"{wrong}; correct the columns of the form")
        if self.columns and self.shape is not None and self.shape != (self.width,):
            raise ConfigError(
                f"the shape is {_sides(self.shape)}, but the columns make "
                f"{self.width} features; leave the shape out, or correct it"
            )

    @property
    def width(self) -> int:
        """How many features the columns make."""
        return sum(column.width for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """What each feature that the columns make is called."""
        return tuple(
            f"{column.name} = {level}" if level else column.name
            for column in self.columns
            for level in column.levels or ("",)
        )

    def check_kind(self, kind: Kind, owner: str) -> None:
        """Refuse samples of another kind than this form asks for."""
        if self.kind not in (None, kind):
            raise DataError(
                f"{owner} holds samples of the kind {kind}; {self.kind} is asked for: give other "
                "data, or correct the kind"
            )

    def found(self, kind: Kind, shape: tuple[int, ...], owner: str) -> "Form":
        """This form, completed by what `owner` holds; a DataError if that is something else."""
        self.check_kind(kind, owner)
        if self.shape not in (None, shape):
            assert self.shape is not None
            raise DataError(
                f"{owner}: one sample is {_sides(shape)}; {_sides(self.shape)} is asked for: "
                "bring the samples to this shape, or correct it"
            )
        return replace(self, kind=kind, shape=shape)

    @classmethod
    def of(cls, values: Mapping[str, Any], path: str = "") -> "Form":
        """A form from plain values, as a TOML or JSON file has them; `path` is where they stand.

        A column is its name, or a table with `name` and `levels` or `fill`.
        """
        listed = values.get("columns", [])
        if not isinstance(listed, list | tuple):
            raise ConfigError(f"{path + 'columns'!r} takes a list of columns; {listed!r} was given")
        _check_kind(values.get("kind"))
        rest = {key: value for key, value in values.items() if key != "columns"}
        columns = tuple(_column(one, f"{path}columns.") for one in listed)
        return replace(build(cls, rest, path=path, owner="a form"), columns=columns)

    def values(self) -> dict[str, Any]:
        """The plain values from which `of` makes an equal form; without those that say nothing."""
        usual = values_of(Form())
        told = {key: value for key, value in values_of(self).items() if value != usual[key]}
        if self.columns:
            told["columns"] = [
                {key: value for key, value in values_of(one).items() if value not in (None, [])}
                for one in self.columns
            ]
        return told


def _sides(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _check_kind(kind: Any) -> None:
    if kind is not None and kind not in KINDS:
        raise ConfigError(
            f"the kind is {kind!r}.{did_you_mean(str(kind), KINDS)} Kinds: {choices(KINDS)}"
        )


def _column(given: Any, path: str) -> Column:
    if isinstance(given, str):
        return Column(given)
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"{path.rstrip('.')!r} holds {given!r}; a column is its name, or a table with name, "
            "and levels or fill"
        )
    return build(Column, given, path=path, owner="a column")


ANYTHING = Form()
"""Whatever a path holds."""


@dataclass(frozen=True)
class Asked:
    """A path, and how it shall be read.

    `part`: None is train, and says so where there are others.
    `labelled`: None takes labels where there are some, True needs them, False leaves them.
    `skip_broken`: leave out files that cannot be read, with a counted note, instead of an error.
    """

    path: Path
    form: Form = ANYTHING
    labelled: bool | None = None
    part: Part | None = None
    skip_broken: bool = False
    cache: bool = True

    @property
    def which(self) -> Part:
        """The part that is read."""
        return self.part or "train"
