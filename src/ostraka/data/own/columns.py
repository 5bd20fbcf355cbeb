"""Columns of a table as they are stored, before anything is made of them."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ostraka.data.dataset import LARGEST, Array
from ostraka.data.own.collection import in_order, some
from ostraka.data.own.folder import printable
from ostraka.data.own.form import Column
from ostraka.errors import DataError

MISSING = frozenset({"", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "NULL", "null", "?"})
"""What stands for a missing value in text."""

MOST_LEVELS = 100
"""Values that a category may have; more are free text or the names of people."""

MOSTLY = 0.5
"""A column of which more than this part are numbers is one of numbers."""

DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?|\d{4}/\d{1,2}/\d{1,2}.*"
    r"|\d{1,2}:\d{2}(:\d{2})?|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}"
)
COMMA = re.compile(r"[+-]?\d*,\d+")
"""A number with a decimal comma."""


@dataclass(frozen=True)
class Raw:
    """One column: a text or None for each row.

    `numbers`, of a file that stores numbers as such, are all of its values, NaN where missing.
    """

    name: str
    cells: Callable[[], Sequence[str | None]]
    numbers: Array | None = None

    @cached_property
    def texts(self) -> Sequence[str | None]:
        """Its values as text."""
        return self.cells()

    @cached_property
    def parsed(self) -> Array:
        """Its values as numbers: NaN where missing, and where they are none."""
        if self.numbers is not None:
            return self.numbers
        return np.array([number(text) for text in self.texts])

    @cached_property
    def odd(self) -> list[int]:
        """The rows whose values are no numbers."""
        if self.numbers is not None:
            return []
        empty = np.flatnonzero(np.isnan(self.parsed)).tolist()
        return [row for row in empty if self.texts[row] is not None]

    @property
    def present(self) -> int:
        """How many rows have a value."""
        if self.numbers is not None:
            return int((~np.isnan(self.numbers)).sum())
        return sum(text is not None for text in self.texts)


def cell(text: str) -> str | None:
    """A text without the spaces around it; None: it stands for a missing value."""
    bare = text.strip()
    return (
        None if bare in MISSING else bare if bare.isascii() and bare.isprintable() else tidy(bare)
    )


def tidy(text: str) -> str:
    """A text in one spelling (NFC), without what breaks a line."""
    return printable(unicodedata.normalize("NFC", text).strip())


def number(text: str | None) -> float:
    """The number that a text is, or NaN."""
    if text is None or "_" in text:  # Python reads 1_000 as a number
        return float("nan")
    try:
        return float(text)
    except ValueError:
        return float("nan")


def infer(raw: Raw, owner: str) -> Column:
    """What a column is: numbers, whose missing ones become the median, or a category."""
    where = f"{owner}: column {raw.name!r}"
    if not raw.present:
        raise DataError(f"{where} is empty; remove it")
    numeric = raw.present - len(raw.odd)
    if not raw.odd:
        return Column(raw.name, fill=float(np.nanmedian(_finite(raw, owner))))
    if numeric > MOSTLY * raw.present:
        row = raw.odd[0]
        raise DataError(
            f"{where} holds numbers, but row {row + 1} has {raw.texts[row]!r} ({len(raw.odd):,} of "
            f"{raw.present:,} rows are no numbers); correct them, or leave them empty if the value "
            "is missing"
        )
    texts = {text for text in raw.texts if text is not None}
    for pattern, words in (
        (DATE, "holds dates or times; make a number of it that means something, such as the age "
         "or the days since an event, or remove it"),
        (COMMA, "holds numbers with a decimal comma; save them with a decimal point"),
    ):  # fmt: skip
        if sum(pattern.fullmatch(text) is not None for text in texts) > MOSTLY * len(texts):
            raise DataError(f"{where} {words} (such as {sorted(texts)[0]!r})")
    if len(texts) > MOST_LEVELS:
        raise DataError(
            f"{where} has {len(texts):,} different texts ({some(sorted(texts))}); at most "
            f"{MOST_LEVELS} make a category. Is it free text, or who somebody is? Remove it, or "
            "list the columns that shall be used"
        )
    return Column(raw.name, levels=in_order(texts))


def encoded(raw: Raw, column: Column, owner: str) -> tuple[Array, list[str]]:
    """The features of a column [rows, width], and notes."""
    if column.levels:
        return _category(raw, column)
    where = f"{owner}: column {raw.name!r}"
    if raw.odd:
        row = raw.odd[0]
        raise DataError(
            f"{where} must hold numbers, but row {row + 1} has {raw.texts[row]!r} "
            f"({len(raw.odd):,} such rows); correct them, or list the levels of a category"
        )
    values = _finite(raw, owner)
    gaps = np.isnan(values)
    count = int(gaps.sum())
    if not count:
        return values[:, None], _counted(values, raw.name)
    if column.fill is None:
        raise DataError(
            f"{where} is missing in {count:,} rows (first: row {int(gaps.argmax()) + 1}), and the "
            "form does not say what stands for it; give the column a fill, or remove these rows"
        )
    note = f"column {raw.name!r} is missing in {count:,} rows; {column.fill:g} stands for it"
    return np.where(gaps, column.fill, values)[:, None], [note]


def _finite(raw: Raw, owner: str) -> Array:
    values = raw.parsed
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{owner}: column {raw.name!r} has {values[row]:g} in row {row + 1}; numbers go from "
            f"-{LARGEST:g} to {LARGEST:g}: correct it, or leave it empty if the value is missing"
        )
    return values


def _counted(values: Array, name: str) -> list[str]:
    """A note on a column that only counts the rows."""
    if len(values) < 20 or not (np.diff(values) == 1).all():
        return []
    return [
        f"column {name!r} counts the rows ({values[0]:g}, {values[1]:g}, ...); it says nothing "
        "about a sample: leave it out, or the order of the rows is learnt"
    ]


def _category(raw: Raw, column: Column) -> tuple[Array, list[str]]:
    place = {level: at for at, level in enumerate(column.levels)}
    values = np.zeros((len(raw.texts), len(place)))
    strange: dict[str, int] = {}
    missing = 0
    for row, text in enumerate(raw.texts):
        if text in place:
            values[row, place[text]] = 1
        elif text is None:
            missing += 1
        else:
            strange[text] = strange.get(text, 0) + 1
    notes = []
    if missing:
        notes.append(
            f"column {raw.name!r} is missing in {missing:,} rows; encoded as none of its levels"
        )
    if strange:
        told = [f"{text!r} {count:,} times" for text, count in strange.items()]
        notes.append(
            f"column {raw.name!r} has {len(strange):,} values that the form does not list "
            f"({some(told)}); encoded as none of its levels"
        )
    return values, notes
