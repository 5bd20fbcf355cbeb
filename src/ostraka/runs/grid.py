"""Grids: many runs that differ in method, data, partition or seed, each in its own folder, each resumable."""

import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

from ostraka.core import settings
from ostraka.errors import ConfigError, OstrakaError, StoreError, writing
from ostraka.runs.api import prepare
from ostraka.runs.config import Config, build_method, canonical_method, chosen, make
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan
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
    unwritten: StoreError | None = None
    for number, config in enumerate(cells):
        follower = watch(config, number + 1, len(cells)) if watch else Watch()
        records.append(_run_cell(config, out, follower))
        follower.run_ends(records[-1])
        try:
            codec.write_json(out / "results.json", records + others)
            unwritten = None
        except StoreError as error:  # the other cells go on; what they find is in their own folders
            unwritten = error
    if unwritten is not None:
        raise unwritten
    return records


def _finished(out: Path, leave_out: Set[Path]) -> list[Record]:
    """The records of a folder's finished cells, but for some; a damaged one is not among them."""
    records = []
    for folder in sorted((out / "cells").glob("*")):
        if folder not in leave_out:
            with suppress(StoreError):  # whoever asks for that very cell is told
                done = RunDir(folder).finished()
                records += [{**done, "status": "ok"}] if done is not None else []
    return records


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
        ready = prepare(config, home, resume=True)
        summary = execute(ready, home, watch, resume=True, shelf=out / "shelf") if isinstance(ready, Plan) else ready
    except OstrakaError as error:
        if error.exit_code == 130:
            raise
        return {**named, "status": "failed", "error": str(error)}
    except Exception as error:  # one broken cell must not cost the others; its traceback is kept beside it
        return {**named, "status": "failed", "error": f"{type(error).__name__}: {error} ({_keep_traceback(home)})"}
    return {**summary, **named, "status": "ok"}


def _keep_traceback(home: RunDir) -> str:
    """Write the present error's traceback beside the cell; where it is, or why it could not be written."""
    log = home.root / "failures.log"
    try:
        with writing(log):
            home.root.mkdir(parents=True, exist_ok=True)
            log.write_text(traceback.format_exc(), encoding="utf-8")
    except StoreError as error:
        return str(error)
    return f"see {log}"


def parse_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """`3` is the seeds 0, 1 and 2; a list is itself."""
    if isinstance(seeds, int):
        if seeds < 1:
            raise ConfigError(f"seeds is {seeds}; give a number of at least 1, or a list of seeds")
        return tuple(range(seeds))
    return tuple(seeds)
