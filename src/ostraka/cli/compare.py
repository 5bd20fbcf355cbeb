"""`ostraka compare`: methods side by side over data sets, partitions and seeds."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from ostraka.cli.display import Display, show_wide
from ostraka.cli.options import add_run_options, values_from
from ostraka.core import settings
from ostraka.errors import ConfigError
from ostraka.report.published import METRICS, beside, with_published
from ostraka.report.tables import Table, comparison
from ostraka.runs.config import Config, parse_assignments
from ostraka.runs.grid import Grid, parse_seeds, run_grid

NAME = "compare"

EXAMPLE = """\
examples:
  ostraka compare solo closed-voting fedavg --partition labels:2 iid --seeds 3
  ostraka compare fedavg centralised --rounds 10 --set local.epochs=1
  ostraka compare solo fedavg --set fedavg:rounds=5 --out runs/mine
--set METHOD:NAME=VALUE is for one method.
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
        type=Path,
        default=Path("runs/compare"),
        metavar="DIR",
        help="folder of the grid (default: runs/compare)",
    )
    parser.add_argument(
        "--format", choices=("rich", "markdown", "csv"), default="rich", help="how the table is printed (default: rich)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Run the grid, print and store its tables."""
    grid = make_grid(options)
    records = with_published(grid.cells(), run_grid(grid, options.out, Follow(options.json)))
    tables = comparison(records)
    known = beside(tables, records)
    tables += [known] if known else []
    store(options.out, tables, known)
    if options.json:
        notes = [note for table in tables for note in table.notes]
        print(
            json.dumps(
                {"cells": records, "tables": [t.records() for t in tables], "notes": notes, "out": str(options.out)}
            )
        )
    else:
        show(tables, options.format, options.out)
    return 3 if any(record["status"] == "failed" for record in records) else 0


def make_grid(options: argparse.Namespace) -> Grid:
    """The grid that the file and the options describe; `METHOD:NAME=VALUE` sets something for one method."""
    single = [pair for pair in options.set if ":" in pair.partition("=")[0]]
    options.set = [pair for pair in options.set if pair not in single]
    values = values_from(options)
    methods = options.methods or values.pop("methods", [])
    if not methods:
        raise ConfigError("name the methods to compare, for example: ostraka compare closed-voting fedavg")
    per_method: dict[str, Any] = dict(values.pop("method", {}))
    for pair in single:
        method, _, rest = pair.partition(":")
        per_method[method] = settings.merge(per_method.get(method, {}), parse_assignments([rest]))
    values.pop("methods", None)
    return Grid(
        methods=tuple(methods),
        data=_several(options.data or values.pop("data", "fashion-4k"), values, "data"),
        partitions=_several(options.partition or values.pop("partition", "labels:2"), values, "partition"),
        seeds=_seeds(options.seeds if options.seeds is not None else values.pop("seeds", 1), values),
        base=values,
        per_method=per_method,
    )


def _several(given: str | list[str], values: dict[str, Any], name: str) -> tuple[str, ...]:
    values.pop(name, None)
    return (given,) if isinstance(given, str) else tuple(given)


def _seeds(given: str | int | list[int], values: dict[str, Any]) -> tuple[int, ...]:
    values.pop("seeds", None)
    if not isinstance(given, str):
        return parse_seeds(given)
    try:
        return parse_seeds([int(part) for part in given.split(",")] if "," in given else int(given))
    except ValueError:
        raise ConfigError(f"--seeds is {given!r}; give a number (3) or a list (4,7,9)") from None


class Follow:
    """Makes a display for every cell in turn, and closes the one before."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.current: Display | None = None

    def __call__(self, config: Config, number: int, total: int) -> Display:
        """The display of cell `number` of `total`."""
        if self.current is not None:
            self.current.__exit__(None, None, None)
        title = f"[{number}/{total}] {config.method}, {config.data}, {config.partition}, seed {config.seed}"
        self.current = Display(title, [f"party {i}" for i in range(100_000)], self.quiet)
        return self.current.__enter__()


def store(out: Path, tables: list[Table], known: Table | None = None) -> None:
    """Write the tables beside the cells; `known` is the last of them if there are published figures."""
    (out / "results.md").write_text("\n\n".join(table.markdown() for table in tables) + "\n")
    for table, name in zip([t for t in tables if t is not known], METRICS, strict=False):
        (out / f"{name}.csv").write_text(table.csv())
    if known is not None:
        (out / "published.csv").write_text(known.csv())


def show(tables: list[Table], style: str, out: Path) -> None:
    """Print the tables."""
    console = Console()
    for table in tables:
        if style == "rich":
            show_wide(console, table)
        else:
            print(table.markdown() if style == "markdown" else table.csv())
    if style == "rich":
        console.print(
            f"Results: {out} (results.md, accuracy.csv, results.json, cells/)", soft_wrap=True, highlight=False
        )
