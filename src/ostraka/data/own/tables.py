"""Tables: a row is a sample, a column is its class, others become features.

A number is one feature as it stands, a category one for each of its levels. What a form lists is
used, in its order; without a list, every column but that of the classes is, and what it is follows
from its values.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ostraka.core.names import normal
from ostraka.data.own.collection import Collection, collection, listed, note, some
from ostraka.data.own.columns import Raw, encoded, infer, number
from ostraka.data.own.folder import check_classes
from ostraka.data.own.form import Asked, Column, Form
from ostraka.data.own.table_files import read_csv, read_parquet
from ostraka.data.sources.files import check_memory
from ostraka.errors import DataError, did_you_mean

LABELS = ("label", "class", "target")
"""Names of a column that is taken for that of the classes where the form names none."""


def read(asked: Asked) -> Collection:
    """The rows of a table."""
    path = asked.path
    asked.form.check_kind("table", str(path))
    raw, notes = (read_parquet(path), []) if path.suffix.lower() == ".parquet" else read_csv(path)
    table = {column.name: column for column in raw}
    label, said = _label(asked, table)
    labels = None if label is None or asked.labelled is False else _classes(asked, table[label])
    notes += said
    columns, said = _columns(asked, table, label)
    notes += said
    rows = len(next(iter(table.values())).parsed)
    check_memory(path, rows, 16 * Form(columns=tuple(columns)).width, "give fewer columns")
    parts = []
    for column in columns:
        values, said = encoded(table[column.name], column, str(path))
        parts.append(values.astype(np.float32))
        notes += said
    x = np.ascontiguousarray(np.concatenate(parts, axis=1))
    form = asked.form.found("table", (x.shape[1],), str(path))
    form = replace(form, label=label or asked.form.label, columns=columns)
    return collection(
        path.stem, x, labels, [f"row {row + 1}" for row in range(len(x))], form, notes
    )


def _label(asked: Asked, table: Mapping[str, Raw]) -> tuple[str | None, list[str]]:
    """The name of the column with the classes, if there is one, and what is to be said of it."""
    wanted, path = asked.form.label, asked.path
    if wanted is not None:
        if wanted in table:
            return wanted, []
        if asked.labelled:
            raise DataError(
                f"{path} has no column {wanted!r} with the classes."
                f"{did_you_mean(wanted, table)} Its columns: {some(list(table))}"
            )
        said = f"{path.name} has no column {wanted!r} with the classes; read without labels"
        return None, [said] if asked.labelled is None else []
    found = [name for name in table if name.lower() in LABELS]
    if len(found) == 1:
        return found[0], [f"the column {found[0]!r} of {path.name} is taken for the classes"]
    if asked.labelled or found:
        several = f"several columns that could be the classes ({some(found)})"
        none = "no column that is called " + ", ".join(LABELS)
        raise DataError(
            f"{path} has {several if found else none}. Its columns: {some(list(table))}. Name the "
            "one with the classes: --label NAME for ostraka run and ostraka task init (train, vote "
            'and predict take it from the task), or {"label": "NAME"} in '
            f"{path.with_suffix('.json').name} beside it for runs"
        )
    return None, []


def _classes(asked: Asked, column: Raw) -> list[str]:
    """The name of each row's class."""
    gaps = [row for row, text in enumerate(column.texts) if text is None]
    if gaps:
        raise DataError(
            f"{asked.path}: {len(gaps):,} rows have no class in column {column.name!r} (first: row "
            f"{gaps[0] + 1}); fill it in, or remove these rows"
        )
    names = [_class_name(text) for text in column.texts if text is not None]
    check_classes(f"{asked.path}, column {column.name!r}", set(names))
    return names


def _class_name(text: str) -> str:
    """1.0 is 1: a program may have made floats of whole numbers when one of them was missing."""
    value = number(text)
    plain = value.is_integer() and "." in text and abs(value) < 1e15
    return str(int(value)) if plain else normal(text)


def _columns(
    asked: Asked, table: Mapping[str, Raw], label: str | None
) -> tuple[tuple[Column, ...], list[str]]:
    """The columns that become features, and what is to be said of the others."""
    path, wanted = asked.path, asked.form.columns
    if not wanted:
        features = [column for name, column in table.items() if name != label]
        if not features:
            raise DataError(f"{path} has no column besides that of the classes; give features")
        return tuple(infer(column, str(path)) for column in features), []
    absent = [column.name for column in wanted if column.name not in table]
    if absent:
        raise DataError(
            f"{path} lacks {listed(absent, 'column', 'columns')} of the form."
            f"{did_you_mean(absent[0], table)} Its columns: {some(list(table))}"
        )
    named = {column.name for column in wanted} | {label, asked.form.label}
    others = [name for name in table if name not in named]
    return wanted, note(others, "column is", "columns are", "not in the form", "left out")
