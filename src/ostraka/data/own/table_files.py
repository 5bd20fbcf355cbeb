"""Tables as files: CSV and Parquet.

CSV is a line with the names of the columns, then a line for each row. Columns are separated by a
comma, a semicolon, a tab or a bar; the first line tells which. Text is UTF-8, and in double quotes
where it has the separator or a line break in it. Parquet is read by pyarrow.
"""

import csv
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ostraka.data.dataset import Array
from ostraka.data.own.collection import some
from ostraka.data.own.columns import Raw, cell, number, tidy
from ostraka.data.sources.files import check_memory, free_memory, in_units
from ostraka.errors import DataError

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}

SWELLING = 12
"""How many times the memory of its file a table of short texts may take."""

BINARY = {b"PK": "an Excel file or an archive", b"PAR1": "a Parquet file", b"\xd0\xcf": "Excel"}
"""How files begin that are no text."""


def read_csv(path: Path) -> tuple[list[Raw], list[str]]:
    """The columns of a table, and notes."""
    text = _text(path)
    separator = _separator(path, text)
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if not row:
                continue
            if rows and len(row) != len(rows[0]):
                raise DataError(
                    f"{path}, line {reader.line_num}: {len(row)} values, but there are "
                    f"{len(rows[0])} columns ({some(rows[0])}), separated by "
                    f"{SEPARATORS[separator]}; correct the line (text with a separator in it goes "
                    "into double quotes)"
                )
            rows.append(row)
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: {error}; a quote is not closed, or stands inside of "
            "a value: write it twice there, and the value in quotes"
        ) from None
    names = _names(path, rows)
    if len(rows) == 1:
        raise DataError(f"{path} has names of columns, but no rows; give at least one row")
    notes = []
    if separator != "," and path.suffix.lower() == ".csv":
        notes.append(f"columns of {path.name} are separated by {SEPARATORS[separator]}")
    if not text.endswith(("\n", "\r")):
        notes.append(f"the last line of {path.name} does not end; look whether it was cut short")
    columns = [Raw(name, partial(_column, rows, at)) for at, name in enumerate(names)]
    return columns, notes


def _column(rows: Sequence[Sequence[str]], at: int) -> list[str | None]:
    return [cell(row[at]) for row in rows[1:]]


def _text(path: Path) -> str:
    size, free = path.stat().st_size, free_memory()
    if size * SWELLING > free:
        raise DataError(
            f"{path} has {in_units(size)}; as a table it may take more than the {in_units(free)} "
            "of free memory: store it as Parquet, or give fewer rows"
        )
    content = path.read_bytes()
    if not content.strip():
        raise DataError(f"{path} is empty; give a line with the names of the columns, and rows")
    for start, what in BINARY.items():
        if content.startswith(start):
            raise DataError(f"{path} is {what}, whatever its name says; save it as CSV (UTF-8)")
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content:
        raise DataError(f"{path} is no text in UTF-8; save it as CSV (UTF-8)")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: the byte {content[error.start]:#x} is no UTF-8 (a file of an "
            "older program?); save it as CSV (UTF-8)"
        ) from None


def _separator(path: Path, text: str) -> str:
    """What separates the columns: of the known ones, that which the first line has most of."""
    first = text.lstrip("\r\n").splitlines()[0]
    bare = "".join(first.split('"')[::2])  # without what stands in quotes
    best = max(SEPARATORS, key=bare.count)
    if not bare.count(best):
        raise DataError(
            f"{path}: the first line ({first[:60]!r}) has one column only; separate columns by "
            f"{', '.join(SEPARATORS.values())}, and give a column with the classes and one more"
        )
    return best


def _names(path: Path, rows: Sequence[Sequence[str]]) -> list[str]:
    names = [tidy(name) for name in rows[0]]
    for at, name in enumerate(names):
        if not name:
            raise DataError(
                f"{path}: column {at + 1} has no name; name it, or remove it (pandas: "
                "to_csv(..., index=False))"
            )
        if name in names[:at]:
            raise DataError(f"{path} has two columns called {name!r}; rename one of them")
    if all(number(name) == number(name) for name in names):
        raise DataError(
            f"{path}: its first line holds numbers ({some(names)}); give the names of the columns "
            "there"
        )
    return names


VALUE = 64
"""Bytes that a value may take while it is read."""


def read_parquet(path: Path) -> list[Raw]:
    """The columns of a table."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            f"{path}: Parquet files are read by pyarrow, which is not installed; pip install "
            "'ostraka[tables]', or save the table as CSV"
        ) from None
    try:
        with arrow.parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            names = list(schema.names)
            groups = range(file.metadata.num_row_groups)
            size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
            bare = [tidy(name) for name in names]
            if twice := [name for name in bare if bare.count(name) > 1]:
                raise DataError(f"{path} has two columns called {twice[0]!r}; rename one of them")
            if not rows or not names:
                raise DataError(f"{path} has {rows} rows of {len(names)} columns; give some")
            each = max(VALUE * len(names), size // rows)
            check_memory(path, rows, each, "give fewer rows or columns")
            table = file.read(columns=names, use_threads=False)
            return [_raw(path, arrow, tidy(name), table.column(name)) for name in names]
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise DataError(
            f"{path} is no Parquet file, or it is damaged ({str(error)[:200]}); write it again, or "
            "save the table as CSV"
        ) from None


def _raw(path: Path, arrow: Any, name: str, column: Any) -> Raw:
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_temporal(kind):
        raise DataError(
            f"{path}: column {name!r} holds dates or times; make a number of it that means "
            "something, such as the age or the days since an event, or remove it"
        )
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        values: Array = np.array(column.cast(arrow.float64()).to_numpy(), np.float64)
        return Raw(name, partial(_numbers_as_text, values), values)
    if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
        return Raw(name, partial(_texts, column.to_pylist()))
    if types.is_null(kind):
        return Raw(name, partial(_texts, [None] * len(column)))
    raise DataError(
        f"{path}: column {name!r} holds values of the type {kind}; numbers, text and truth values "
        "are read: change or remove it"
    )


def _texts(values: Sequence[Any]) -> list[str | None]:
    return [None if value is None else cell(str(value)) for value in values]


def _numbers_as_text(values: Array) -> list[str | None]:
    return [
        None if np.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
        for value in values.tolist()
    ]
