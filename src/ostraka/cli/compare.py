"""`ostraka compare`: methods side by side over data sets, partitions and seeds."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostraka.cli.options import add_outcome_options, add_run_options, place, values_from
from ostraka.core import settings
from ostraka.errors import ConfigError, writing
from ostraka.report.latex import latex
from ostraka.report.tables import Table
from ostraka.runs.config import Config, build_method, canonical_method, make, parse_assignments

if TYPE_CHECKING:
    from ostraka.runs.grid import Grid

NAME = "compare"

EXAMPLE = """\
examples:
  ostraka compare solo closed-voting fedavg --partition labels:2 iid --seeds 3
  ostraka compare fedavg centralised --rounds 10 --set local.epochs=1
  ostraka compare solo fedavg --set fedavg:rounds=5 --out runs/mine
  ostraka compare fedprox --rounds 20 --start-from runs/mine
  ostraka compare fedov fedavg --seeds 3 --dry-run
--rounds is for the methods that can have several.
--set METHOD:NAME=VALUE is for one method.
If a method needs public samples and has none, all get --public half-test.
A second call skips what is finished; a killed one goes on where it was.
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="compare methods over data, partitions and seeds",
        description="Run every combination of methods, data, partitions and seeds.\n"
        "Prints mean ± standard deviation over the seeds, the best in bold,\n"
        "and beside them what papers have published for the same cells.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="methods or presets (ostraka list methods)")
    parser.add_argument("--data", nargs="+", metavar="D", help="data sets; default: fashion-4k")
    parser.add_argument("--partition", nargs="+", metavar="P", help="partitions; default: labels:2")
    parser.add_argument("--seeds", metavar="N|A,B", help="number of seeds (3: 0, 1, 2) or a list; default: 1")
    add_run_options(parser)
    parser.add_argument(
        "--out",
        type=place,
        default=Path("runs/compare"),
        metavar="DIR",
        help="folder of the grid (default: runs/compare)",
    )
    parser.add_argument(
        "--format", choices=tuple(FORMATS), default="rich", help="how the table is printed (default: rich)"
    )
    add_outcome_options(parser)
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Run the grid, print and store its tables."""
    from ostraka.cli.progress import follow_grid, loudness
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.report.published import with_published
    from ostraka.report.rounds import draw_all
    from ostraka.runs.folder import check_free
    from ostraka.runs.grid import cell_folder, run_grid
    from ostraka.store import codec

    grid = make_grid(options)
    cells = grid.cells()
    check_free(options.out, "grid")
    keep_freed_memory()  # votes and evaluation run in this process
    if options.dry_run:
        from ostraka.cli.costs import show_grid

        return show_grid(cells, options.out, options.json)
    with follow_grid(loudness(options)) as follow:
        records = with_published(cells, run_grid(grid, options.out, follow))
    others = codec.read_json(options.out / "results.json")[len(records) :]
    codec.write_json(options.out / "results.json", [*records, *others])  # now with the published figures
    tables, more, known = tables_of(cells, records)
    store(options.out, tables, more, known)
    tables += more
    drawn = draw_all([cell_folder(cell, options.out) for cell in cells], options.out)
    if options.json:
        notes = [note for table in tables for note in table.notes]
        print(
            json.dumps(
                {"cells": records, "tables": [t.records() for t in tables], "notes": notes, "out": str(options.out)}
            )
        )
    else:
        show(tables, options.format, options.out, drawn)
    return 3 if any(record["status"] == "failed" for record in records) else 0


def tables_of(
    cells: Sequence[Config], records: Sequence[Mapping[str, Any]]
) -> tuple[list[Table], list[Table], Table | None]:
    """The tables of all records, those of single domains and published figures, and of these the published one."""
    from ostraka.report.published import beside
    from ostraka.report.tables import comparison, per_domain

    tables = comparison(records)
    tables[0] = replace(tables[0], notes=(*tables[0].notes, *exchanges(cells), *public_samples(cells)))
    known = beside(records)
    return tables, [*per_domain(records), *([known] if known else [])], known


def make_grid(options: argparse.Namespace) -> "Grid":
    """The grid that the file and the options describe; `METHOD:NAME=VALUE` sets something for one method."""
    from ostraka.runs.grid import Grid
    from ostraka.runs.start import HALF_TEST

    single = [pair for pair in options.set if ":" in pair.partition("=")[0]]
    options.set = [pair for pair in options.set if pair not in single]
    values = values_from(options)
    from ostraka.data.sources import data_dirs

    data_dirs(values.get("data_dir"))  # a folder that is not there is one mistake, not one in every cell
    methods = options.methods or values.pop("methods", [])
    if not methods:
        raise ConfigError("name the methods to compare, for example: ostraka compare closed-voting fedavg")
    per_method: dict[str, Any] = dict(values.pop("method", {}))
    for pair in single:
        method, _, rest = pair.partition(":")
        per_method[method] = settings.merge(per_method.get(method, {}), parse_assignments([rest]))
    values.pop("methods", None)
    rounds = values.get("set", {}).pop("rounds", None)
    if rounds is not None:
        per_method = with_rounds(methods, rounds, per_method)
    grid = Grid(
        methods=tuple(methods),
        data=_several(options.data or values.pop("data", "fashion-4k"), values, "data"),
        partitions=_several(options.partition or values.pop("partition", "labels:2"), values, "partition"),
        seeds=_seeds(options.seeds if options.seeds is not None else values.pop("seeds", 1), values),
        base=values,
        per_method=per_method,
    )
    if "public" not in values and any(build_method(cell).needs.public for cell in grid.cells()):
        return replace(grid, base={**values, "public": HALF_TEST})
    return grid


def with_rounds(methods: Sequence[str], rounds: Any, per_method: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of single methods, with `rounds` for all that can have several and have no number of their own."""
    several = [method for method in methods if not build_method(make({"method": method})).one_shot]
    if not several and rounds != 1:
        raise ConfigError(f"rounds is {rounds}, but {', '.join(methods)} have one exchange each; leave --rounds out")
    return {**per_method, **{m: settings.merge({"rounds": rounds}, per_method.get(m, {})) for m in several}}


def exchanges(cells: Sequence[Config]) -> list[str]:
    """What to say where some methods of a grid have several rounds and others cannot."""
    built = {canonical_method(cell.method): build_method(cell) for cell in cells}
    several = [f"{name} {method.rounds}" for name, method in built.items() if not method.one_shot]
    single = [name for name, method in built.items() if method.one_shot]
    if not single or all(method.rounds == 1 for method in built.values()):
        return []
    return [f"rounds: {', '.join(several)}; one exchange and no more: {', '.join(single)}"]


def public_samples(cells: Sequence[Config]) -> list[str]:
    """What to say where half of the test samples serve as public ones."""
    from ostraka.runs.start import HALF_TEST

    if all(cell.public != HALF_TEST for cell in cells):
        return []
    needy = dict.fromkeys(canonical_method(cell.method) for cell in cells if build_method(cell).needs.public)
    users = f" ({', '.join(needy)})" if needy else ""
    return [f"half of the test samples are public, without labels{users}; every method is scored on the other half"]


def _several(given: str | list[str], values: dict[str, Any], name: str) -> tuple[str, ...]:
    values.pop(name, None)
    return (given,) if isinstance(given, str) else tuple(given)


def _seeds(given: str | int | list[int], values: dict[str, Any]) -> tuple[int, ...]:
    from ostraka.runs.grid import parse_seeds

    values.pop("seeds", None)
    if not isinstance(given, str):
        return parse_seeds(given)
    try:
        return parse_seeds([int(part) for part in given.split(",")] if "," in given else int(given))
    except ValueError:
        raise ConfigError(f"--seeds is {given!r}; give a number (3) or a list (4,7,9)") from None


FORMATS: dict[str, Callable[[Sequence[Table]], str] | None] = {
    "rich": None,
    "markdown": lambda tables: "\n".join(table.markdown() for table in tables),
    "csv": lambda tables: "\n".join(table.csv() for table in tables),
    "latex": latex,
}
"""How tables are printed; rich is for the terminal and depends on its width."""


def store(out: Path, tables: list[Table], more: Sequence[Table] = (), known: Table | None = None) -> None:
    """Write the tables beside the cells; `known` is that of `more` which holds published figures, if there are any."""
    from ostraka.report.published import METRICS

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
    from rich.console import Console

    from ostraka.cli.display import show_wide

    console = Console()
    as_text = FORMATS[style]
    if as_text is not None:
        print(as_text(tables))
        return
    for table in tables:
        show_wide(console, table)
    files = ", ".join(("results.md", "results.tex", "accuracy.csv", "results.json", *drawn, "cells/"))
    console.print(f"Results: {out} ({files})", soft_wrap=True, highlight=False)
