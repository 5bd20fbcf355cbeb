"""`ostraka show`: a run or a grid once more, from its stored files alone."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostraka.cli.options import place
from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from ostraka.runs.results import Record

NAME = "show"

EXAMPLE = """\
examples:
  ostraka show runs/mine
  ostraka show runs/compare --format markdown
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="show a finished run or grid again, or how far one is",
        description="Show a run or a grid from its stored files; the data is not needed.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=place, metavar="DIR", help="folder of a run or a grid")
    parser.add_argument(
        "--format",
        choices=("rich", "markdown", "csv"),
        default="rich",
        help="how a grid's tables are printed",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Look what the folder holds, and show it."""
    from ostraka.runs.folder import kind_of

    folder: Path = options.folder
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; give the folder of a run or a grid")
    kind = kind_of(folder)
    if kind == "grid":
        return _show_grid(folder, options)
    if kind == "run":
        return _show_run(folder, options)
    inside = sorted(
        path.name for path in folder.iterdir() if path.is_dir() and kind_of(path) in ("run", "grid")
    )
    hint = f"it has some in it: {', '.join(inside[:5])}" if inside else "give the folder of one"
    raise ConfigError(f"{folder} is neither a run nor a grid; {hint}")


def _show_run(folder: Path, options: argparse.Namespace) -> int:
    from rich.console import Console

    from ostraka.cli.display import show_summary
    from ostraka.runs.record import RunDir
    from ostraka.runs.summary import brief

    summary = RunDir(folder).finished()
    if summary is None:
        return _show_unfinished(folder, options)
    summary = replace(summary, out=str(folder))  # it may have been moved since
    if options.json:
        print(json.dumps(brief(summary)))
    else:
        show_summary(Console(), summary)
    return 0


def _show_unfinished(folder: Path, options: argparse.Namespace) -> int:
    from rich.console import Console

    from ostraka.report.tables import Table
    from ostraka.runs.config import build_method
    from ostraka.runs.record import RunDir

    home = RunDir(folder)
    config, rows = home.stored_config(), home.read_metrics()
    evaluated, figure = (rows[-1].round, rows[-1].test.accuracy) if rows else (0, None)
    waiting = len(list(home.desk().root.glob("reports/r*/p*.safetensors")))
    facts = {
        "status": "unfinished",
        "method": config.method,
        "data": config.data,
        "partition": config.partition,
        "seed": config.seed,
        "rounds": build_method(config).exchanges,
        "evaluated": evaluated,
        "accuracy": figure,
        "reports": waiting,
        "resume": home.resume_command(),
        "out": str(folder),
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    accuracy = "none yet" if figure is None else f"{figure:.2f} % (round {evaluated})"
    figures = [
        ("evaluated rounds", f"{evaluated} of {facts['rounds']}"),
        ("accuracy", accuracy),
        ("parties of the next round that are done", str(waiting)),
        ("division", f"{config.partition}, seed {config.seed}"),
    ]
    console = Console()
    console.print(
        Table(
            ("figure", "value"), figures, title=f"{config.method} on {config.data}: not finished"
        ).rich()
    )
    console.print(f"Go on with: {home.resume_command()}", soft_wrap=True, highlight=False)
    return 0


def _show_grid(folder: Path, options: argparse.Namespace) -> int:
    from ostraka.cli.compare import show, tables_of
    from ostraka.runs.record import RunDir

    records, notes = _records(folder)
    done = [(record.method, record.summary.out) for record in records if record.summary]
    cells = [RunDir(folder / "cells" / Path(out).name).stored_config() for _, out in done]
    tables, more, _ = tables_of(cells, [method for method, _ in done], records)
    tables[0] = replace(tables[0], notes=(*tables[0].notes, *notes))
    tables += more
    if options.json:
        notes = [note for table in tables for note in table.notes]
        shown = {
            "cells": [record.to_json() for record in records],
            "tables": [table.records() for table in tables],
            "notes": notes,
            "out": str(folder),
        }
        print(json.dumps(shown))
        return 0
    show(
        tables,
        options.format,
        folder,
        [name for name in ("rounds.svg", "bytes.svg") if (folder / name).exists()],
    )
    return 0


def _records(folder: Path) -> "tuple[list[Record], list[str]]":
    """The cells of the last call, then finished ones of earlier calls, of equal ones the first; and what to say."""
    from ostraka.runs.grid import RECORDS, read_records
    from ostraka.runs.record import RunDir

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
