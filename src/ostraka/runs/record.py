"""The folder of a run: configuration, partition, environment, metrics, summary, checkpoint and model."""

import fcntl
import json
import os
import platform
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from ostraka.core.settings import values_of
from ostraka.errors import ConfigError, StoreError
from ostraka.nets import native
from ostraka.runs.config import Config, build_method, flat, identity, make, read_toml, write_toml
from ostraka.store import codec
from ostraka.store.desk import Desk


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

    def desk(self, reports: Path | None = None) -> Desk:
        """Where the pieces of the run in progress lie."""
        return Desk(self.root / "work", reports)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of this folder while this one lives."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigError(
                    f"another run is at work in {self.root}; wait for it or choose another --out"
                ) from None
            yield

    def begin(self, config: Config, resume: bool) -> None:
        """Write the configuration of a new run, or check that the one to resume is the same."""
        if self.config.exists():
            self._check_same(config, resume)
        codec.write_atomically(self.config, write_toml(values_of(config)).encode())
        codec.write_json(self.root / "environment.json", environment())

    def stored_config(self) -> Config:
        """The configuration of a run that was begun before."""
        if not self.config.exists():
            raise ConfigError(
                f"there is no run to resume in {self.root}: {self.config.name} is missing; start without --resume"
            )
        return make(read_toml(self.config))

    def finished(self) -> dict[str, Any] | None:
        """The summary of a finished run."""
        if not self.summary.exists():
            return None
        summary: dict[str, Any] = codec.read_json(self.summary)
        return summary

    def read_metrics(self) -> list[dict[str, Any]]:
        """All evaluated rounds so far; a last line that a kill cut short is left out."""
        if not self.metrics.exists():
            return []
        rows = []
        for line in self.metrics.read_text().splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def write_metrics(self, rows: list[dict[str, Any]]) -> None:
        """Replace the metrics."""
        codec.write_atomically(self.metrics, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def add_metrics(self, row: Mapping[str, Any]) -> None:
        """Append one evaluated round."""
        with self.metrics.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def resume_command(self) -> str:
        """What to type to go on with this run."""
        return f"ostraka run --resume --out {shlex.quote(str(self.root))}"

    def _check_same(self, config: Config, resume: bool) -> None:
        if not resume:
            state = "a finished run" if self.summary.exists() else "a run that is not finished"
            raise ConfigError(f"{self.root} holds {state}; add --resume to go on with it, or choose another --out")
        old, new = (dict(flat(identity(c))) for c in (self.stored_config(), config))
        different = [key for key in {**old, **new} if new.get(key) != old.get(key)]
        if different:
            was = ", ".join(f"{key} = {old.get(key)!r} (now {new.get(key)!r})" for key in different)
            raise ConfigError(
                f"the run in {self.root} was begun with {was}; resume with the same or choose another --out"
            )


def environment() -> dict[str, Any]:
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
        "convolution": native.describe(),
        "torch_threads": torch.get_num_threads(),
    }


def load_run(root: Path) -> tuple[Config, Any]:
    """Configuration and final state of a finished run."""
    home = RunDir(root)
    if not home.model.exists():
        raise StoreError(
            f"{root} holds no finished run ({home.model.name} is missing); finish it with {home.resume_command()}"
        )
    config = home.stored_config()
    build_method(config)  # importing the method registers the types of its state
    return config, codec.load(home.model)["state"]
