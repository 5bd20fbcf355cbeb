"""Grids: many runs that differ in method, data, partition or seed,
each in its own folder, each resumable.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ostraka.core import settings
from ostraka.core.digest import digest_of
from ostraka.data.partitions.spec import format_spec, parse
from ostraka.data.sources.find import canonical
from ostraka.errors import ConfigError, OstrakaError, PartitionError, StoreError, writing
from ostraka.runs.api import prepare
from ostraka.runs.config import Config, build_method, canonical_method, chosen, make
from ostraka.runs.division import divide
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.results import Record
from ostraka.runs.rows import settings_of
from ostraka.runs.start import find_start, pinned
from ostraka.runs.variant import as_values, label_of, read_variant
from ostraka.runs.watch import Watch
from ostraka.store import jsonfile
from ostraka.store.files import opened_log, sweep

MANY = 10_000
"""The largest number of seeds; a larger one was meant as a list of one seed."""


@dataclass(frozen=True)
class Mistakes:
    """What is wrong with a grid: each mistake once, however many cells it concerns."""

    found: dict[str, None] = field(default_factory=dict)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what the block refuses, and go on after it."""
        try:
            yield
        except OstrakaError as error:
            self.found.setdefault(str(error))

    def refuse(self) -> None:
        """Raise an error with one line for each mistake, if there are any."""
        lines = list(self.found)
        if len(lines) > 1:
            lines.insert(0, f"the grid has {len(lines)} mistakes; nothing was trained or written:")
        if lines:
            raise ConfigError("\n  ".join(lines))


@dataclass(frozen=True)
class Grid:
    """What to compare.

    `base` holds every other value of a run; `per_method` lays settings over it for one
    method. A method may come with settings of its own, which lie over all others, and
    so several times: `fedavg:lr=0.1`.
    """

    methods: tuple[str, ...]
    data: tuple[str, ...]
    partitions: tuple[str, ...]
    seeds: tuple[int, ...]
    base: Mapping[str, Any]
    per_method: Mapping[str, Mapping[str, Any]]

    def cells(self) -> list[Config]:
        """Every run of the grid; methods and settings that cannot be built are refused."""
        mistakes = Mistakes()
        cells = self.attempt(mistakes)
        mistakes.refuse()
        return cells

    def check(self, out: Path) -> list[Config]:
        """As `cells`, and every run that is not begun in `out` yet could begin: its data is there,
        can be divided, and suits the method and the network. Nothing is trained or written.
        """
        mistakes = Mistakes()
        cells = self.attempt(mistakes)
        run_wide = {k: v for k, v in self.base.items() if k not in ("set", "net", "engine")}
        for data, partition, seed in product(self.data, self.partitions, self.seeds):
            place = {"data": data, "partition": partition, "seed": seed}
            here = [c for c in cells if (c.data, c.partition, c.seed) == (data, partition, seed)]
            new = [c for c in here if not RunDir(cell_folder(c, out)).marks.exists()]
            with mistakes.noted():
                if new or not here:  # data and partition are looked at without any method, too
                    division = divide(new[0] if new else make({**run_wide, **place}))
                for cell in new:
                    with mistakes.noted():
                        make_plan(cell, division=division)
        mistakes.refuse()
        return cells

    def attempt(self, mistakes: Mistakes) -> list[Config]:
        """The runs of the grid that can be built; why others cannot goes to `mistakes`."""
        with mistakes.noted():
            self._refuse_repeats()
        cells: list[Config] = []
        seen: dict[str, str] = {}
        for data, partition, seed, word in self._combinations():
            with mistakes.noted():
                config = self._cell(data, partition, seed, word)
                same = seen.setdefault(digest_of(chosen(config)), label_of(word))
                if same != label_of(word):
                    raise ConfigError(
                        f"{same} and {label_of(word)} are the same run; name one of them"
                    )
                cells.append(config)
        return cells

    def _cell(self, data: str, partition: str, seed: int, word: str) -> Config:
        method, own = read_variant(word)
        method = canonical_method(method)
        values = settings.merge(
            self.base, {"method": method, "data": data, "partition": partition, "seed": seed}
        )
        for name, given in self.per_method.items():
            if canonical_method(name) == method:
                values = settings.merge(values, as_values(dict(given)))
        config = make(settings.merge(values, own))
        build_method(config)
        return pinned(config, find_start(config))

    def _refuse_repeats(self) -> None:
        """Refuse what is named twice, also in another spelling, and settings of nobody."""
        spelt = {
            "methods": [label_of(word) for word in self.methods],
            "data": [canonical(name) for name in self.data],
            "partitions": [_usual(spec) for spec in self.partitions],
            "seeds": self.seeds,
        }
        for name, values in spelt.items():
            if not values:
                raise ConfigError(f"the grid has no {name}; name at least one")
            if len(set(values)) != len(values):
                given = ", ".join(map(str, getattr(self, name)))
                raise ConfigError(f"the grid names {name} twice: {given}; name each once")
        compared = {canonical_method(word.partition(":")[0]) for word in self.methods}
        strangers = [name for name in self.per_method if canonical_method(name) not in compared]
        if strangers:
            raise ConfigError(
                f"settings were given for {', '.join(sorted(strangers))}, "
                "which the grid does not compare"
            )

    def labels(self) -> list[str]:
        """What each of `cells` is called in tables: its method,
        and the settings that it came with.
        """
        return [label_of(word) for *_, word in self._combinations()]

    def _combinations(self) -> Iterator[tuple[str, str, int, str]]:
        return product(self.data, self.partitions, self.seeds, self.methods)


def _usual(partition: str) -> str:
    """The usual spelling of a partition; what is none stays as it is."""
    try:
        return format_spec(parse(partition))
    except PartitionError:
        return partition


def run_grid(
    grid: Grid, out: Path, watch: Callable[[Config, str, int, int], Watch] | None = None
) -> list[Record]:
    """Run every cell that is not finished yet.

    All are checked before the first trains. A failed one is recorded and does not stop the others.
    One-shot cells share the members they train. Records are written to `results.json` after every
    cell, and with them those of every other finished cell that lies in the folder.
    """
    cells, labels = grid.check(out), grid.labels()
    sweep(out / "shelf")
    others = _finished(out, {cell_folder(config, out) for config in cells})
    records: list[Record] = []
    unwritten: StoreError | None = None
    for number, config in enumerate(cells):
        follower = watch(config, labels[number], number + 1, len(cells)) if watch else Watch()
        records.append(_run_cell(config, labels[number], out, follower))
        follower.run_ends(records[-1])
        sweep(out / "shelf")
        try:
            write_records(out, [*records, *others])
            unwritten = None
        except StoreError as error:  # the other cells go on; what they find is in their own folders
            unwritten = error
    if unwritten is not None:
        raise unwritten
    return records


def _finished(out: Path, leave_out: Set[Path]) -> list[Record]:
    """The records of a folder's finished cells, but for some; a damaged one is not among them.

    They keep the names that earlier calls gave them.
    """
    records, names = [], dict[str, str]()
    with suppress(StoreError):
        stored = read_records(out)
        names = {Path(one.summary.out).name: one.method for one in stored if one.summary}
    for folder in sorted((out / "cells").glob("*")):
        if folder not in leave_out:
            with suppress(StoreError, ConfigError):  # whoever asks for that very cell is told
                home = RunDir(folder)
                done = home.finished()
                if done is not None:
                    done = replace(done, method=names.get(folder.name, done.method))
                    records.append(Record.of(done, settings_of(home.stored_config())))
    return records


RECORDS = "results.json"
"""The file of a grid's records."""


def write_records(out: Path, records: Sequence[Record]) -> None:
    """Write the records of a grid into its folder."""
    jsonfile.write_json(out / RECORDS, [record.to_json() for record in records])


def read_records(out: Path) -> list[Record]:
    """The records in the folder of a grid."""
    path = out / RECORDS
    held = jsonfile.read_json(path)
    if not isinstance(held, list):
        raise StoreError(f"{path} holds no list of records; run the same ostraka compare again")
    return [Record.from_json(one, f"{path}, record {i}") for i, one in enumerate(held, start=1)]


def cell_folder(config: Config, out: Path) -> Path:
    """The folder of a cell: readable, and different whenever anything that decides the numbers
    is.
    """
    name = "--".join(
        (
            canonical_method(config.method),
            Path(config.data).name,
            config.partition,
            f"s{config.seed}",
        )
    )
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    return out / "cells" / f"{safe}--{digest_of(chosen(config), 4)}"


def _run_cell(config: Config, label: str, out: Path, watch: Watch) -> Record:
    home = RunDir(cell_folder(config, out))
    record = Record(label, config.data, config.partition, config.seed, settings=settings_of(config))
    try:
        ready = prepare(config, home, resume=True)
        summary = (
            execute(ready, home, watch, resume=True, shelf=out / "shelf")
            if isinstance(ready, Plan)
            else ready
        )
    except OstrakaError as error:
        if error.exit_code == 130:
            raise
        return replace(record, error=str(error))
    # one broken cell must not cost the others; its traceback is kept beside it
    except Exception as error:
        said = f"{type(error).__name__}: {error} ({_keep_traceback(home)})"
        return replace(record, error=said)
    return replace(record, summary=replace(summary, method=label))


def _keep_traceback(home: RunDir) -> str:
    """Write the present error's traceback beside the cell.

    Where it is, or why it could not be written.
    """
    log = home.root / "failures.log"
    try:
        with writing(log):
            home.root.mkdir(parents=True, exist_ok=True)
            with opened_log(log, "w") as file:
                file.write(traceback.format_exc())
    except StoreError as error:
        return str(error)
    return f"see {log}"


def parse_seeds(seeds: int | str | Sequence[int]) -> tuple[int, ...]:
    """`3` is the seeds 0, 1 and 2; a list is itself, also as the text `4,7,9`."""
    try:
        if isinstance(seeds, str):
            seeds = [int(part) for part in seeds.split(",")] if "," in seeds else int(seeds)
        if isinstance(seeds, int) and not isinstance(seeds, bool):
            if not 1 <= seeds <= MANY:
                raise ValueError
            return tuple(range(seeds))
        if not isinstance(seeds, list | tuple) or any(type(seed) is not int for seed in seeds):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"seeds is {seeds!r}; give a number from 1 to {MANY} (3 "
            "means 0, 1, 2) or a list (4,7,9)"
        ) from None
    return tuple(seeds)
