"""The folder of a run: configuration, partition, environment, metrics,
summary, checkpoint and model.
"""

import json
import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from ostraka.core.digest import digest_of
from ostraka.core.settings import values_of
from ostraka.data.fingerprint import differing
from ostraka.data.partitions.given import FromFile
from ostraka.data.partitions.spec import parse
from ostraka.errors import ConfigError, DataError, StoreError, writing
from ostraka.nets import native
from ostraka.runs.config import (
    Config,
    build_method,
    flat,
    identity,
    make,
    read_toml,
    write_toml,
)
from ostraka.runs.folder import check_free
from ostraka.runs.results import MetricsRow, Summary
from ostraka.store import codec, jsonfile
from ostraka.store.desk import Desk, Place
from ostraka.store.files import retire, sweep


@dataclass(frozen=True)
class RunDir:
    """Paths of one run, and how they are read and written."""

    root: Path

    @property
    def config(self) -> Path:
        """The fully resolved configuration."""
        return self.root / "config.toml"

    @property
    def summary(self) -> Path:
        """The final figures; its presence means that the run is finished."""
        return self.root / "summary.json"

    @property
    def marks(self) -> Path:
        """What the run is made of: its own hash, and those of its data and its division."""
        return self.root / "run.json"

    @property
    def partition(self) -> Path:
        """Who holds which training rows."""
        return self.root / "partition.json"

    @property
    def metrics(self) -> Path:
        """One line of figures for every evaluated round."""
        return self.root / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The last finished round and its state."""
        return self.root / "checkpoint.safetensors"

    @property
    def model(self) -> Path:
        """The final state."""
        return self.root / "model.safetensors"

    def desk(self, shelf: Path | None = None) -> Desk:
        """Where the pieces of the run in progress lie; reports on a `shelf` if there is one."""
        return Desk(self.root / "work", self.run, shelf)

    @property
    def run(self) -> str:
        """The hash that all files of this run carry."""
        return str(self.read_marks()["run"])

    def read_marks(self) -> dict[str, Any]:
        """What the run was begun with."""
        if not self.marks.exists():
            raise StoreError(
                f"{self.root} lacks {self.marks.name}, so nothing in it "
                "can be checked; begin a new run"
            )
        marks = jsonfile.read_signed(self.marks)
        if not all(key in marks for key in ("run", "data", "partition")):
            raise StoreError(f"{self.marks} is not what a run writes there; begin a new run")
        return marks

    def checkpoint_place(self) -> Place:
        """The checkpoint, sealed."""
        return Place(self.checkpoint, {"what": "checkpoint", "run": self.run})

    def model_place(self) -> Place:
        """The final state, sealed."""
        return Place(self.model, {"what": "final state", "run": self.run})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of this folder while this one lives."""
        check_free(self.root, "run")
        lock = FileLock(self.root / "lock")
        with writing(self.root / "lock"):
            self.root.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                raise ConfigError(
                    f"another run is at work in {self.root}; wait for it or choose another --out"
                ) from None
        try:
            sweep(self.root)
            yield
        finally:
            with suppress(StoreError):  # one that is damaged is no end: it may be gone on with
                if self.finished() is not None:
                    retire(self.checkpoint)
                    retire(self.root / "work")
            sweep(self.root)
            lock.release()

    def begin(
        self, config: Config, marks: Mapping[str, Any], resume: bool, convolution: str = ""
    ) -> None:
        """Write the configuration of a new run, or check that the one to
        resume is the same on the same data.

        `marks` are the fingerprints of its data ("data", by name), the hash of its
        division ("partition") and, where there is one, of its generator ("generator").
        `convolution` says what carries the network's layers out.
        """
        if self.config.exists():
            self.check_same(config, resume)
            self.check_marks(marks)
        if not self.marks.exists():
            made_of = [identity(config), sorted(_parts(marks)), marks["partition"]]
            made_of += [marks["generator"]] if "generator" in marks else []
            jsonfile.write_signed(self.marks, {"run": digest_of(made_of), **marks})
        codec.write_atomically(self.config, write_toml(values_of(config)).encode())
        jsonfile.write_json(self.root / "environment.json", environment(convolution))

    def stored_config(self) -> Config:
        """The configuration of a run that was begun before."""
        if not self.config.exists():
            raise ConfigError(
                f"there is no run to resume in {self.root}: "
                f"{self.config.name} is missing; start without --resume"
            )
        return make(read_toml(self.config))

    def finished(self) -> Summary | None:
        """The summary of a finished run; one that is not this run's, or was changed, is refused."""
        if not self.summary.exists():
            return None
        held = jsonfile.read_signed(self.summary)
        if held.get("run") != self.run:
            raise StoreError(
                f"{self.summary} is of the run {held.get('run')}, but this folder holds the run "
                f"{self.run}; remove it and go on with: {self.resume_command()}"
            )
        return Summary.from_json(held, str(self.summary))

    def finish(self, summary: Summary) -> Summary:
        """Write the summary, with the hash of the run and a digest;
        returns it as it was written.
        """
        signed = jsonfile.write_signed(self.summary, replace(summary, run=self.run).to_json())
        return Summary.from_json(signed)

    def read_metrics(self) -> list[MetricsRow]:
        """All evaluated rounds so far.

        A last line that a kill cut short is left out, anything else strange refused.
        """
        if not self.metrics.exists():
            return []
        text = self.metrics.read_text(encoding="utf-8", errors="replace")
        rows: list[MetricsRow] = []
        for number, line in enumerate(text.splitlines(keepends=True), start=1):
            if not line.endswith("\n"):
                break
            row = _row(line)
            if row is None or row.run != self.run or (rows and row.round <= rows[-1].round):
                raise StoreError(
                    f"line {number} of {self.metrics} is not the next evaluated round of this run: "
                    f"{line[:40].strip()!r}; the file was changed, so the run must be made anew"
                )
            rows.append(row)
        return rows

    def write_metrics(self, rows: Sequence[MetricsRow]) -> None:
        """Replace the metrics."""
        text = "".join(json.dumps(row.to_json()) + "\n" for row in rows)
        codec.write_atomically(self.metrics, text.encode())

    def add_metrics(self, row: MetricsRow) -> None:
        """Append one evaluated round."""
        with writing(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(replace(row, run=self.run).to_json()) + "\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def federation(self) -> Path | None:
        """The folder of the federation whose run this is; its server alone can go on with it."""
        above = self.root.absolute().parent
        return above if (above / "federation.toml").exists() else None

    def resume_command(self, without_failed: bool = False) -> str:
        """What to type to go on with this run."""
        if self.federation is not None:
            drop = f' (on_failure = "drop" in {self.federation / "run.toml"})'
            words = f"ostraka federation server {shlex.quote(str(self.federation))}"
            return words + (drop if without_failed else "")
        words = f"ostraka run --resume --out {shlex.quote(str(self.root))}"
        return words + (" --on-failure drop" if without_failed else "")

    def check_same(self, config: Config, resume: bool) -> None:
        """Refuse a configuration that is not the one this run was begun with."""
        if not resume:
            state = "a finished run" if self.summary.exists() else "a run that is not finished"
            raise ConfigError(
                f"{self.root} holds {state}; add --resume to go on with it, or choose another --out"
            )
        old, new = (dict(flat(identity(c))) for c in (self.stored_config(), config))
        different = [key for key in {**old, **new} if new.get(key) != old.get(key)]
        if different:
            was = ", ".join(f"{key} = {old.get(key)!r} (now {new.get(key)!r})" for key in different)
            raise ConfigError(
                f"the run in {self.root} was begun with {was}; "
                "resume with the same or choose another --out"
            )

    def check_marks(self, marks: Mapping[str, Any]) -> None:
        """Refuse data or a division that are not those this run was begun with."""
        was = self.read_marks()
        for name, now in marks["data"].items():
            self.refuse_changes(
                name,
                differing(was["data"][name], now["parts"]) if name in was["data"] else ["data"],
            )
        self.check_division(marks["partition"])
        if was.get("generator") != marks.get("generator"):
            raise DataError(
                f"the generator is not the one that the run in {self.root} was begun with: its "
                "file has changed; bring it back, or begin a new run with another --out"
            )

    def check_division(self, digest: str) -> None:
        """Refuse another division among the parties than that of this run."""
        if self.read_marks()["partition"] != digest:
            raise DataError(
                f"the division among the parties is not the one that the run in {self.root} was "
                f"begun with: {self.partition.name} or the file that it was read from has changed; "
                "bring it back, or begin a new run"
            )

    def refuse_changes(self, name: str, changes: Sequence[str]) -> None:
        """Say what has changed in the data of this run, if anything has."""
        if changes:
            raise DataError(
                f"the data {name!r} has changed since the run in {self.root} was "
                f"begun: other {', '.join(changes)}; bring the old data back, or "
                "begin a new run with another --out"
            )


def own_division(home: RunDir, config: Config) -> str:
    """How to divide the data of a run that was begun before: as it did then,
    whatever became of its `file:`.
    """
    rule = parse(config.partition)
    if isinstance(rule, FromFile) and Path(rule.path).expanduser().exists():
        # if it says something else now, the run's hash of its division tells
        return config.partition
    return f"file:{home.partition}" if home.partition.exists() else config.partition


def _parts(marks: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """All hashes of the data's parts."""
    return [
        (name, key, value)
        for name, held in marks["data"].items()
        for key, value in held["parts"].items()
    ]


def _row(line: str) -> MetricsRow | None:
    """A line of metrics, or None if it is none."""
    try:
        return MetricsRow.from_json(json.loads(line))
    except (ValueError, StoreError):
        return None


def environment(convolution: str = "") -> dict[str, Any]:
    """What the numbers of a run may depend on beside its configuration."""
    packages = {}
    for name in ("ostraka", "torch", "numpy", "scikit-learn", "safetensors"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": packages,
        "convolution": convolution or native.describe(),
        "torch_threads": torch.get_num_threads(),
    }


def load_model(root: Path) -> tuple[Config, dict[str, Any]]:
    """Configuration of a finished run and all that `model.safetensors` holds."""
    home = RunDir(root)
    if not home.model.exists():
        raise StoreError(
            f"{root} holds no finished run ({home.model.name} is missing); finish it with "
            f"{home.resume_command()}"
        )
    config = home.stored_config()
    build_method(config)  # importing the method registers the types of its state
    return config, home.model_place().load()


def load_state(root: Path) -> tuple[Config, Any]:
    """Configuration and final state of a finished run."""
    config, model = load_model(root)
    return config, model["state"]


def nothing_in(folder: Path) -> str:
    """Why a folder holds no finished run, and what to do."""
    home = RunDir(folder)
    if not folder.is_dir():
        return f"there is no folder {folder}; give the folders of finished runs or grids"
    if home.config.exists():
        return f"the run in {folder} is not finished; finish it with: {home.resume_command()}"
    return f"{folder} holds no finished run; give the folders of finished runs or grids"
