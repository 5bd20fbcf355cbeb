"""The tables of a grid: made of its records, stored beside its cells, shown."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from ostraka.display.comparison import comparison, open_answers, over_rounds, per_domain
from ostraka.display.formats import FORMATS, latex
from ostraka.display.published import beside, with_published
from ostraka.display.tables import Table, show_wide
from ostraka.errors import ConfigError
from ostraka.runs.config import Config, build_method, canonical_method
from ostraka.runs.grid import RECORDS, read_records, write_records
from ostraka.runs.record import RunDir
from ostraka.runs.results import Record
from ostraka.runs.rows import csv_of, distinct, flat_rows
from ostraka.runs.start import HALF_TEST
from ostraka.store.codec import write_atomically


@dataclass(frozen=True)
class StoredGrid:
    """The cells in the folder of a grid: those of the last call, then finished ones of earlier
    calls.
    """

    folder: Path
    records: Sequence[Record]
    configs: Sequence[Config | None]
    """What each ran with; None for one that failed."""
    notes: tuple[str, ...] = ()

    def head(self, count: int) -> "StoredGrid":
        """The first cells alone, and nothing said of others."""
        return StoredGrid(self.folder, self.records[:count], self.configs[:count])

    def tables(self) -> list[Table]:
        """Accuracy and AUROC, then rounds, domains, open answers, and published figures."""
        records, named = self.records, distinct(self.records)
        first, *others = comparison(records)
        told = (*exchanges(named), *self._public_samples(named), *self.notes)
        known = beside(records)
        return [
            replace(first, notes=(*first.notes, *told)),
            *others,
            *over_rounds(records),
            *per_domain(records),
            *open_answers(records),
            *([known] if known else []),
        ]

    def _public_samples(self, named: Sequence[Record]) -> list[str]:
        """What to say where half of the test samples serve as public ones."""
        halved = [record for record in named if record.settings.get("public") == HALF_TEST]
        needy = dict.fromkeys(
            canonical_method(config.method)
            for config in self.configs
            if config and config.public == HALF_TEST and build_method(config).needs.public
        )
        users = f" ({', '.join(needy)})" if needy else ""
        scored = dict.fromkeys(record.method for record in halved)
        who = "every method" if len(halved) == len(named) else ", ".join(scored)
        return [
            f"half of the test samples are public, without labels{users}; {who} is scored on the "
            "other half"
        ] * bool(halved)

    def save(self) -> None:
        """Write the tables of all cells beside them, and a row of CSV for each cell."""
        tables, known = self.tables(), beside(self.records)
        files = {
            "results.md": "\n\n".join(table.markdown() for table in tables) + "\n",
            "results.tex": latex(tables),
            "accuracy.csv": csv_of(flat_rows(self.records)),
            **({"published.csv": known.csv()} if known is not None else {}),
        }
        write_records(self.folder, self.records)  # now with the published figures
        for name, text in files.items():
            write_atomically(self.folder / name, text.encode())

    def show(self, style: str, as_json: bool, drawn: Sequence[str]) -> None:
        """Print the tables, and where everything lies."""
        tables, as_text = self.tables(), FORMATS[style]
        if as_json:
            cells = [record.to_json() for record in self.records]
            print(json.dumps({"cells": cells, **_plain(tables), "out": str(self.folder)}))
            return
        show_tables(tables, style, as_json=False)
        if as_text is None:
            files = ("results.md", "results.tex", "accuracy.csv", RECORDS, *drawn, "cells/")
            words = f"Results: {self.folder} ({', '.join(files)})"
            Console().print(words, soft_wrap=True, highlight=False)


def stored_grid(folder: Path) -> StoredGrid:
    """The grid in a folder, from its stored files alone."""
    if not (folder / RECORDS).exists():
        raise ConfigError(
            f"no cell of the grid {folder} has ended yet; go on with it by the same ostraka compare"
        )
    records: list[Record] = []
    for record in read_records(folder):
        if record.cell in {other.cell for other in records} and record.summary:
            # the model it starts from was trained again since: not a second result of one seed
            digest = record.summary.start.digest if record.summary.start else ""
            record = replace(record, settings={**record.settings, "start_digest": digest})
        records.append(record)
    configs = [
        RunDir(folder / "cells" / Path(r.summary.out).name).stored_config() if r.summary else None
        for r in records
    ]
    cells = sorted((folder / "cells").glob("*"))
    begun = [path.name for path in cells if not RunDir(path).summary.exists()]
    notes = (f"not finished: {', '.join(begun)}",) if begun else ()
    return StoredGrid(folder, with_published(configs, records), configs, notes)


def exchanges(records: Sequence[Record]) -> list[str]:
    """What to say where some methods of a grid have several rounds and others cannot."""
    rounds = {r.method: r.settings["rounds"] for r in records if "rounds" in r.settings}
    several = [f"{name} {count}" for name, count in rounds.items()]
    single = dict.fromkeys(r.method for r in records if r.method not in rounds)
    if not single or all(count == 1 for count in rounds.values()):
        return []
    return [f"rounds: {', '.join(several)}; one exchange and no more: {', '.join(single)}"]


def show_tables(tables: Sequence[Table], style: str, as_json: bool) -> None:
    """Print tables."""
    as_text = FORMATS[style]
    if as_json:
        print(json.dumps(_plain(tables)))
    elif as_text is not None:
        print(as_text(list(tables)))
    else:
        for table in tables:
            show_wide(Console(), table)


def _plain(tables: Sequence[Table]) -> dict[str, object]:
    notes = [note for table in tables for note in table.notes]
    return {"tables": [table.records() for table in tables], "notes": notes}
