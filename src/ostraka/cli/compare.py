"""`ostraka compare`: methods side by side over data sets, partitions and seeds."""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostraka.cli.options import (
    add_outcome_options,
    add_run_options,
    check_local,
    loudness,
    option,
    place,
    values_from,
)
from ostraka.core import settings
from ostraka.core.values import convert
from ostraka.display.formats import FORMATS
from ostraka.errors import ConfigError
from ostraka.runs.config import build_method, canonical_method, has_rounds, make, parse_assignments

if TYPE_CHECKING:
    from ostraka.runs.grid import Grid

NAME = "compare"
HELP = "compare methods over data, partitions and seeds"
DESCRIPTION = """\
Run every combination of methods, data, partitions and seeds.
Prints mean ± standard deviation over the seeds, the best in bold,
and beside them what papers have published for the same cells.
"""
EXAMPLE = """\
examples:
  ostraka compare solo closed-voting fedavg --partition labels:2 iid --seeds 3
  ostraka compare fedavg centralised --rounds 10 --set local.epochs=1
  ostraka compare solo fedavg --set fedavg:rounds=5 --out runs/mine
  ostraka compare fedavg:lr=0.01 fedavg:lr=0.1 --rounds 10 --epochs 1
  ostraka compare fedprox --rounds 20 --start-from runs/mine
  ostraka compare fedov fedavg --seeds 3 --dry-run
--rounds is for the methods that can have several.
--set METHOD:NAME=VALUE is for one method. METHOD:NAME=VALUE,... as a method has
settings of its own, so that one method can be compared with itself.
If a method needs public samples and has none, all get --public half-test.
A second call skips what is finished; a killed one goes on where it was.
"""

OPTIONS = (
    option("methods METHOD", "methods or presets (ostraka list methods)", nargs="*"),
    option("--data D", "data sets; default: fashion-4k", nargs="+"),
    option("--partition P", "partitions; default: labels:2", nargs="+"),
    option("--seeds N|A,B", "number of seeds (3: 0, 1, 2) or a list; default: 1"),
    option("--seed S", "this one seed, instead of --seeds", int),
    add_run_options,
    option(
        "--out DIR",
        "folder of the grid (default: runs/compare)",
        place,
        default=Path("runs/compare"),
    ),
    option(
        "--format",
        "how the table is printed (default: rich)",
        choices=tuple(FORMATS),
        default="rich",
    ),
    add_outcome_options,
)


def act(options: argparse.Namespace) -> int:
    """Run the grid, print and store its tables."""
    from ostraka.display.costs import show_grid
    from ostraka.display.grid import stored_grid
    from ostraka.display.progress import follow_grid
    from ostraka.display.rounds import draw_all
    from ostraka.engines.memory import keep_freed_memory
    from ostraka.runs.folder import check_free
    from ostraka.runs.grid import cell_folder, run_grid

    grid = make_grid(options)
    check_free(options.out, "grid")
    keep_freed_memory()  # votes and evaluation run in this process
    if options.dry_run:
        show_grid(grid.check(options.out), options.out, options.json)
        return 0
    with follow_grid(loudness(options)) as follow:
        count = len(run_grid(grid, options.out, follow))
    stored = stored_grid(options.out)
    stored.save()
    drawn = draw_all([cell_folder(cell, options.out) for cell in grid.cells()], options.out)
    shown = stored.head(count)
    shown.show(options.format, options.json, drawn)
    return 3 if any(record.status == "failed" for record in shown.records) else 0


def make_grid(options: argparse.Namespace) -> "Grid":
    """The grid that the file and the options describe.

    `METHOD:NAME=VALUE` sets something for one method.
    """
    from ostraka.runs.grid import Grid, Mistakes
    from ostraka.runs.start import HALF_TEST

    single = [pair for pair in options.set if ":" in pair.partition("=")[0]]
    options.set = [pair for pair in options.set if pair not in single]
    values = values_from(options)
    from ostraka.data.sources import data_dirs

    _check_groups(values)
    # a folder that is not there is one mistake, not one in every cell
    data_dirs(convert(values.get("data_dir"), str | None, "data_dir"))
    methods = options.methods or _several(values, "methods", ())
    if not methods:
        raise ConfigError(
            "name the methods to compare, for example: ostraka compare closed-voting fedavg"
        )
    per_method: dict[str, Any] = dict(values.pop("method", {}))
    for pair in single:
        method, _, rest = pair.partition(":")
        per_method[method] = settings.merge(per_method.get(method, {}), parse_assignments([rest]))
    built = _built(methods)
    check_local(options, built)
    rounds = values.get("set", {}).pop("rounds", None)
    if rounds is not None:
        per_method = with_rounds(built, rounds, per_method)
    grid = Grid(
        methods=tuple(methods),
        data=tuple(options.data or _several(values, "data", ("fashion-4k",))),
        partitions=tuple(options.partition or _several(values, "partition", ("labels:2",))),
        seeds=_seeds(options, values),
        base={key: value for key, value in values.items() if key not in AXES},
        per_method=per_method,
    )
    cells = grid.attempt(Mistakes())  # what is wrong with the others is said by `Grid.check`
    if "public" not in values and any(build_method(cell).needs.public for cell in cells):
        return replace(grid, base={**grid.base, "public": HALF_TEST})
    return grid


def _built(words: Sequence[str]) -> dict[str, Any]:
    """The methods that words of a grid name, as they are by default; those that there are."""
    built = {}
    for word in words:
        name = canonical_method(word.partition(":")[0])
        with suppress(ConfigError):
            built[name] = build_method(make({"method": name}))
    return built


def with_rounds(
    built: Mapping[str, Any], rounds: Any, per_method: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of single methods, with `rounds` for all that can have several and have no
    number of their own.
    """
    several = [name for name, method in built.items() if has_rounds(method)]
    if built and not several and rounds != 1:
        raise ConfigError(
            f"rounds is {rounds}, but {', '.join(built)} have one exchange each; leave --rounds out"
        )
    per_method = {canonical_method(name): given for name, given in per_method.items()}
    return {
        **per_method,
        **{m: settings.merge({"rounds": rounds}, per_method.get(m, {})) for m in several},
    }


def _check_groups(values: Mapping[str, Any]) -> None:
    """Refuse what is no table where a grid looks into one."""
    per_method = values.get("method", {})
    groups = {"set": values.get("set", {}), "method": per_method}
    if isinstance(per_method, Mapping):
        groups |= {f"method.{name}": given for name, given in per_method.items()}
    for name, given in groups.items():
        if not isinstance(given, Mapping):
            example = "[method.fedavg]" if name.startswith("method") else "[set]"
            raise ConfigError(
                f"{name!r} is a table of settings, such as {example}; {given!r} was given"
            )


AXES = ("methods", "data", "partition", "seeds", "seed")
"""What a grid has several of."""


def _several(values: Mapping[str, Any], name: str, default: Sequence[str]) -> Sequence[str]:
    """What the file lists under `name`; one alone needs no list."""
    given = values.get(name, default)
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise ConfigError(f"{name!r} takes a name or a list of names; {given!r} was given")
    return listed


def _seeds(options: argparse.Namespace, values: Mapping[str, Any]) -> tuple[int, ...]:
    """The options' seeds, or else the file's; `seed` is a single one."""
    from ostraka.runs.grid import parse_seeds

    places: list[Mapping[str, Any]] = [{"seeds": options.seeds, "seed": options.seed}, values]
    for given in (
        {key: held[key] for key in ("seeds", "seed") if held.get(key) is not None}
        for held in places
    ):
        if len(given) > 1:
            raise ConfigError(f"give seeds ({given['seeds']}) or seed ({given['seed']}), not both")
        if given:
            return parse_seeds(given.get("seeds", [given.get("seed")]))
    return parse_seeds(1)
