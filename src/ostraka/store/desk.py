"""Where the pieces of a run in progress lie: messages, reports, memories and half-finished training.

Every file is written atomically, and a report is written last. So a report that exists is whole, its memory exists,
and a run that was killed finds exactly what is missing.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final, overload

from ostraka.core.method import Report
from ostraka.core.progress import Progress
from ostraka.core.wire import wire
from ostraka.store import codec


@wire
@dataclass(frozen=True)
class Envelope:
    """A stored report with what it cost: seconds, CPU-seconds and bytes sent up."""

    report: Report[Any]
    seconds: float
    cpu_seconds: float
    bytes_up: int


@dataclass(frozen=True)
class Desk:
    """The folder of a run in progress. `reports` may lie elsewhere, so that several runs can share trained members."""

    root: Path
    reports: Path | None = None

    def message(self, round_index: int, party: int | None) -> Path:
        """The message of a round, for one party or (None) for all."""
        name = "all" if party is None else f"p{party:05d}"
        return self.root / "messages" / f"r{round_index:05d}" / f"{name}.safetensors"

    def report(self, round_index: int, party: int) -> Path:
        """A party's report."""
        home = self.reports if self.reports is not None else self.root / "reports"
        return home / f"r{round_index:05d}" / f"p{party:05d}.safetensors"

    def memory(self, round_index: int, party: int) -> Path:
        """What a party keeps after a round."""
        return self.root / "memory" / f"p{party:05d}" / f"r{round_index:05d}.safetensors"

    def progress(self, round_index: int, party: int) -> Path:
        """The folder of a party's half-finished training."""
        home = self.reports.parent if self.reports is not None else self.root
        return home / "progress" / f"r{round_index:05d}" / f"p{party:05d}"

    def memory_before(self, round_index: int, party: int) -> Path | None:
        """The newest memory of a party from before a round."""
        folder = self.memory(round_index, party).parent
        older = sorted(p for p in folder.glob("r*.safetensors") if p.name < f"r{round_index:05d}.safetensors")
        return older[-1] if older else None

    def clear_round(self, round_index: int, keep_reports: bool) -> None:
        """Remove what a finished, checkpointed round no longer needs."""
        shutil.rmtree(self.message(round_index, None).parent, ignore_errors=True)
        shutil.rmtree(self.progress(round_index, 0).parent, ignore_errors=True)
        if not keep_reports and self.reports is None:
            shutil.rmtree(self.report(round_index, 0).parent, ignore_errors=True)
        for folder in (self.root / "memory").glob("p*"):
            outdated = sorted(p for p in folder.glob("r*.safetensors") if p.name <= f"r{round_index:05d}.safetensors")
            for path in outdated[:-1]:
                path.unlink()


@final
class DiskProgress(Progress):
    """Half-finished training in a folder; remembers the CPU time that earlier attempts spent."""

    def __init__(
        self, folder: Path, watch: Callable[[float, float | None], None] | None = None, every_seconds: float = 60.0
    ) -> None:
        self.folder = folder
        self.watch = watch
        self.every_seconds = every_seconds
        self.spent_before = 0.0
        self.started = time.process_time()

    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved under `name`, or None."""
        path = self._path(name)
        if not path.exists():
            return None
        saved = codec.load(path)
        self.spent_before = max(self.spent_before, saved["cpu_seconds"])
        values: Mapping[str, Any] = saved["values"]
        return values

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep values under `name`, atomically."""
        codec.save(self._path(name), {"cpu_seconds": self.cpu_seconds(), "values": dict(values)})

    def tell(self, done: float, loss: float | None) -> None:
        """Pass the share done and the loss to whoever watches."""
        if self.watch is not None:
            self.watch(done, loss)

    def cpu_seconds(self) -> float:
        """CPU time of this attempt and of the saved ones before it."""
        return self.spent_before + time.process_time() - self.started

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"


@dataclass(frozen=True)
class StoredReports(Sequence[Report[Any]]):
    """Reports that load when they are looked at, so a thousand of them never lie in memory together."""

    paths: tuple[Path, ...]

    @overload
    def __getitem__(self, index: int) -> Report[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> "StoredReports": ...
    def __getitem__(self, index: int | slice) -> "Report[Any] | StoredReports":
        if isinstance(index, slice):
            return StoredReports(self.paths[index])
        envelope: Envelope = codec.load(self.paths[index])
        return replace(envelope.report, memory={})

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Report[Any]]:
        return (self[i] for i in range(len(self)))
