"""Cells of grids as rows: what decides a cell's numbers, how rows are told apart, and one flat
description of each cell, from which CSV files are written.
"""

import csv
import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ostraka.core.digest import digest_of
from ostraka.runs.config import Config, flat, identity, resolve
from ostraka.runs.record import RunDir
from ostraka.runs.results import Record

NAMED = ("data", "partition", "seed", "start_digest")
"""What is not among the settings of a row: columns and seeds."""

NAMES = ("method", "data", "partition", "seed")
"""What names a cell in a flat row; the settings in which cells differ come next."""

FIGURES = (
    "accuracy", "balanced_accuracy", "f1", "mean_last_20", "auroc", "fpr95", "oscr",
    "open_accuracy", "known_refused", "unknown_refused", "open_balanced_accuracy", "rounds",
    "parties", "seconds", "cpu_seconds", "bytes_up", "bytes_down", "reused",
)  # fmt: skip
"""Metrics and costs of a flat row, in the order of the columns."""

RUN_WIDE = {spec.name for spec in fields(Config)} - {"method"}
"""Settings that mean the same for every method."""


def settings_of(config: Config) -> dict[str, Any]:
    """What decides the numbers of a run besides data, partition and seed, by dotted names;
    defaults included.

    An initial model counts as the configuration that it was trained with: seeds start from models
    of their own.
    """
    values = flat(identity(resolve(config)))
    told = {key.removeprefix("set."): value for key, value in values if key not in NAMED}
    if config.start_from is not None:
        home = RunDir(Path(config.start_from))
        own = home.stored_config() if home.config.exists() else None
        told["start_from"] = (
            f"{own.method} {digest_of(settings_of(own), 4)}" if own else config.start_from
        )
    return told


def labels_of(
    names: Sequence[str], settings: Sequence[Mapping[str, Any]], always: Collection[str] = ()
) -> list[str]:
    """The names of rows; where two are alike, also the settings in which they differ, and those of
    `always` in which any two rows do.
    """
    out = []
    for name, own in zip(names, settings, strict=True):
        alike = [other for other, its in zip(settings, names, strict=True) if its == name]
        keys = _differing(own, alike)
        keys += [key for key in _differing(own, settings) if key in always and key not in keys]
        out.append(name + (f" ({', '.join(f'{key}={own[key]}' for key in keys)})" if keys else ""))
    return out


def distinct(records: Sequence[Record]) -> list[Record]:
    """The records under the names of their rows: equal for those that differ in data, partition
    and seed alone, and for no others.
    """
    rows: dict[str, Record] = {}
    for record in records:
        rows.setdefault(record.row, record)
    firsts = list(rows.values())
    settings = [one.settings for one in firsts]
    labels = labels_of([one.method for one in firsts], settings, RUN_WIDE)
    named = dict(zip(rows, labels, strict=True))
    return [replace(record, method=named[record.row]) for record in records]


def flat_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """One flat row for each cell, all with the same keys: its names, the settings in which the
    cells differ, whether it finished, its metrics and costs, and why it failed.
    """
    settings = [record.settings for record in records]
    keys = dict.fromkeys(key for own in settings for key in _differing(own, settings))
    columns = [key for key in keys if key not in (*NAMES, *FIGURES)]
    return [
        {name: getattr(record, name) for name in NAMES}
        | {key: record.settings.get(key) for key in columns}
        | {"status": record.status}
        | {name: _figure(record, name) for name in FIGURES}
        | {"error": record.error}
        for record in records
    ]


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Flat rows as CSV in full precision; what is not there is empty, a list is JSON."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: json.dumps(v) if isinstance(v, list | tuple) else v for key, v in row.items()}
        for row in rows
    )
    return out.getvalue()


def _differing(own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[str]:
    return [key for key in own if len({repr(other.get(key)) for other in others}) > 1]


def _figure(record: Record, name: str) -> Any:
    if record.summary is None:
        return None
    source = record.summary if hasattr(record.summary, name) else record.summary.open
    return getattr(source, name)
