"""Tables as Parquet files, read by pyarrow."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ostraka.data.dataset import Array
from ostraka.data.own.columns import Raw, cell, tidy
from ostraka.data.sources.files import check_memory
from ostraka.errors import DataError

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
            _check(path, names, rows, size)
            table = file.read(columns=names, use_threads=False)
            return [_raw(path, arrow, tidy(name), table.column(name)) for name in names]
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise DataError(
            f"{path} is no Parquet file, or it is damaged ({str(error)[:200]}); write it again, or "
            "save the table as CSV"
        ) from None


def _check(path: Path, names: Sequence[str], rows: int, size: int) -> None:
    bare = [tidy(name) for name in names]
    twice = [name for name in bare if bare.count(name) > 1]
    if twice:
        raise DataError(f"{path} has two columns called {twice[0]!r}; rename one of them")
    if not rows or not names:
        raise DataError(f"{path} has {rows} rows of {len(names)} columns; give some")
    each = max(VALUE * len(names), size // rows)
    check_memory(path, rows, each, "give fewer rows or columns")


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
