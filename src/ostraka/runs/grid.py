"""Grids: many runs that differ in method, data, partition or seed, each in its own folder, each resumable."""

import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

from ostraka.core import settings
from ostraka.errors import ConfigError, OstrakaError
from ostraka.runs.config import Config, build_method, canonical_method, chosen, make
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.start import find_start, pinned
from ostraka.runs.watch import Watch
from ostraka.store import codec

Record = dict[str, Any]
"""One finished or failed cell: the run's summary, or an error, with `status`."""


@dataclass(frozen=True)
class Grid:
    """What to compare. `base` holds every other value of a run; `per_method` lays settings over it for one method."""

    methods: tuple[str, ...]
    data: tuple[str, ...]
    partitions: tuple[str, ...]
    seeds: tuple[int, ...]
    base: Mapping[str, Any]
    per_method: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        for name in ("methods", "data", "partitions", "seeds"):
            values = getattr(self, name)
            if not values:
                raise ConfigError(f"the grid has no {name}; name at least one")
            if len(set(values)) != len(values):
                raise ConfigError(f"the grid names {name} twice: {', '.join(map(str, values))}")
        strangers = set(self.per_method) - set(self.methods)
        if strangers:
            raise ConfigError(
                f"settings were given for {', '.join(sorted(strangers))}, which the grid does not compare"
            )

    def cells(self) -> list[Config]:
        """Every run of the grid; a method that cannot be built is refused before anything trains."""
        out = []
        for data, partition, seed, method in product(self.data, self.partitions, self.seeds, self.methods):
            values = settings.merge(self.base, {"method": method, "data": data, "partition": partition, "seed": seed})
            values = settings.merge(values, {"set": dict(self.per_method.get(method, {}))})
            config = make(values)
            build_method(config)
            out.append(pinned(config, find_start(config)))
        return out


def run_grid(grid: Grid, out: Path, watch: Callable[[Config, int, int], Watch] | None = None) -> list[Record]:
    """Run every cell that is not finished yet; a failed one is recorded and does not stop the others.

    One-shot cells share the members they train. Records are written to `results.json` after every cell, and with them
    those of every other finished cell that lies in the folder.
    """
    cells = grid.cells()
    others = _finished(out, {cell_folder(config, out) for config in cells})
    records: list[Record] = []
    for number, config in enumerate(cells):
        follower = watch(config, number + 1, len(cells)) if watch else Watch()
        records.append(_run_cell(config, out, follower))
        follower.run_ends(records[-1])
        codec.write_json(out / "results.json", records + others)
    return records


def _finished(out: Path, leave_out: Set[Path]) -> list[Record]:
    """The records of a folder's finished cells, but for some."""
    found = ((folder, RunDir(folder).finished()) for folder in sorted((out / "cells").glob("*")))
    return [{**done, "status": "ok"} for folder, done in found if done is not None and folder not in leave_out]


def cell_folder(config: Config, out: Path) -> Path:
    """The folder of a cell: readable, and different whenever anything that decides the numbers is."""
    name = "--".join((canonical_method(config.method), Path(config.data).name, config.partition, f"s{config.seed}"))
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    digest = blake2b(repr(sorted(chosen(config).items())).encode(), digest_size=4).hexdigest()
    return out / "cells" / f"{safe}--{digest}"


def _run_cell(config: Config, out: Path, watch: Watch) -> Record:
    home = RunDir(cell_folder(config, out))
    named = {
        "method": canonical_method(config.method),
        "data": config.data,
        "partition": config.partition,
        "seed": config.seed,
    }
    try:
        done = home.finished()
        summary = done or execute(make_plan(config), home, watch, resume=True, shelf=out / "shelf")
    except OstrakaError as error:
        if error.exit_code == 130:
            raise
        return {**named, "status": "failed", "error": str(error)}
    except Exception as error:  # one broken cell must not cost the others; its traceback is kept beside it
        home.root.mkdir(parents=True, exist_ok=True)
        (home.root / "failures.log").write_text(traceback.format_exc())
        return {
            **named,
            "status": "failed",
            "error": f"{type(error).__name__}: {error} (see {home.root / 'failures.log'})",
        }
    return {**summary, **named, "status": "ok"}


def parse_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """`3` is the seeds 0, 1 and 2; a list is itself."""
    if isinstance(seeds, int):
        if seeds < 1:
            raise ConfigError(f"seeds is {seeds}; give a number of at least 1, or a list of seeds")
        return tuple(range(seeds))
    return tuple(seeds)
