"""The tables of a grid: made of its records, stored beside its cells, shown."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ostraka.display.comparison import comparison, open_answers, over_rounds, per_domain
from ostraka.display.formats import FORMATS
from ostraka.display.latex import latex
from ostraka.display.published import METRICS, beside
from ostraka.display.tables import Table
from ostraka.display.wide import show_wide
from ostraka.errors import ConfigError, writing
from ostraka.runs.config import Config, build_method, canonical_method, has_rounds
from ostraka.runs.grid import RECORDS, read_records
from ostraka.runs.record import RunDir
from ostraka.runs.results import Record
from ostraka.runs.start import HALF_TEST


def tables_of(
    cells: Sequence[Config], labels: Sequence[str], records: Sequence[Record]
) -> tuple[list[Table], list[Table], Table | None]:
    """The tables of all records, those of rounds, domains, open answers and published figures,
    and of these the last one.
    """
    tables = comparison(records)
    tables[0] = replace(
        tables[0], notes=(*tables[0].notes, *exchanges(cells, labels), *public_samples(cells))
    )
    known = beside(records)
    return (
        tables,
        [
            *over_rounds(records),
            *per_domain(records),
            *open_answers(records),
            *([known] if known else []),
        ],
        known,
    )


def exchanges(cells: Sequence[Config], labels: Sequence[str]) -> list[str]:
    """What to say where some methods of a grid have several rounds and others cannot."""
    built = {label: build_method(cell) for label, cell in zip(labels, cells, strict=True)}
    rounds = {name: method.rounds for name, method in built.items() if has_rounds(method)}
    several = [f"{name} {count}" for name, count in rounds.items()]
    single = [name for name in built if name not in rounds]
    if not single or all(count == 1 for count in rounds.values()):
        return []
    return [f"rounds: {', '.join(several)}; one exchange and no more: {', '.join(single)}"]


def public_samples(cells: Sequence[Config]) -> list[str]:
    """What to say where half of the test samples serve as public ones."""
    if all(cell.public != HALF_TEST for cell in cells):
        return []
    needy = dict.fromkeys(
        canonical_method(cell.method) for cell in cells if build_method(cell).needs.public
    )
    users = f" ({', '.join(needy)})" if needy else ""
    return [
        (
            f"half of the test samples are public, without labels{users}; "
            "every method is scored on the other half"
        )
    ]


def store(
    out: Path, tables: list[Table], more: Sequence[Table] = (), known: Table | None = None
) -> None:
    """Write the tables beside the cells.

    `known` is that of `more` which holds published figures, if there are any.
    """
    files = {
        "results.md": "\n\n".join(table.markdown() for table in [*tables, *more]) + "\n",
        "results.tex": latex([*tables, *more]),
        **{f"{name}.csv": table.csv() for table, name in zip(tables, METRICS, strict=False)},
        **({"published.csv": known.csv()} if known is not None else {}),
    }
    for name, text in files.items():
        with writing(out / name):
            (out / name).write_text(text, encoding="utf-8")


def show(tables: list[Table], style: str, out: Path, drawn: Sequence[str] = ()) -> None:
    """Print the tables, and where everything lies."""
    console = Console()
    as_text = FORMATS[style]
    if as_text is not None:
        print(as_text(tables))
        return
    for table in tables:
        show_wide(console, table)
    files = ", ".join(
        ("results.md", "results.tex", "accuracy.csv", "results.json", *drawn, "cells/")
    )
    console.print(f"Results: {out} ({files})", soft_wrap=True, highlight=False)


def show_tables(tables: Sequence[Table], style: str, as_json: bool) -> None:
    """Print tables that belong to no folder of their own."""
    as_text = FORMATS[style]
    if as_json:
        notes = [note for table in tables for note in table.notes]
        print(json.dumps({"tables": [table.records() for table in tables], "notes": notes}))
    elif as_text is not None:
        print(as_text(list(tables)))
    else:
        for table in tables:
            show_wide(Console(), table)


def show_json(tables: Sequence[Table], records: Sequence[Record], out: Path) -> None:
    """Print records, tables and notes as one JSON object."""
    shown = {
        "cells": [record.to_json() for record in records],
        "tables": [table.records() for table in tables],
        "notes": [note for table in tables for note in table.notes],
        "out": str(out),
    }
    print(json.dumps(shown))


def show_stored(folder: Path, style: str, as_json: bool) -> None:
    """Show the grid in a folder once more, from its stored files alone."""
    records, notes = _stored(folder)
    done = [(record.method, record.summary.out) for record in records if record.summary]
    cells = [RunDir(folder / "cells" / Path(out).name).stored_config() for _, out in done]
    tables, more, _ = tables_of(cells, [method for method, _ in done], records)
    tables[0] = replace(tables[0], notes=(*tables[0].notes, *notes))
    if as_json:
        show_json([*tables, *more], records, folder)
        return
    drawn = [name for name in ("rounds.svg", "bytes.svg") if (folder / name).exists()]
    show([*tables, *more], style, folder, drawn)


def _stored(folder: Path) -> tuple[list[Record], list[str]]:
    """The cells of the last call, then finished ones of earlier calls,
    of equal ones the first; and what to say.
    """
    if not (folder / RECORDS).exists():
        raise ConfigError(
            f"no cell of the grid {folder} has ended yet; go on with it by the same ostraka compare"
        )
    found: dict[tuple[str, ...], Record] = {}
    stored = read_records(folder)
    for record in stored:
        found.setdefault(record.cell, record)
    hidden = len(stored) - len(found)
    notes = (
        [f"{hidden} finished cells of earlier calls with other settings are not shown"]
        if hidden
        else []
    )
    begun = [
        path.name
        for path in sorted((folder / "cells").glob("*"))
        if not RunDir(path).summary.exists()
    ]
    notes += [f"not finished: {', '.join(begun)}"] if begun else []
    return list(found.values()), notes
