"""Where the pieces of a run in progress lie: messages, reports,
memories and half-finished training.

Every file is written atomically, and a report is written last. So a report that exists is whole,
its memory exists, and a run that was killed finds exactly what is missing. After a power cut a
report of a method of many rounds may exist and not be whole (`codec.write_atomically`): its digest
tells, and it is made again.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final, overload

from ostraka.core.method import Report
from ostraka.core.progress import Progress
from ostraka.core.wire import wire
from ostraka.store import codec
from ostraka.store.files import retire


@wire("envelope/1")
@dataclass(frozen=True)
class Envelope:
    """A stored report with what it cost: seconds, CPU-seconds and bytes sent up."""

    report: Report[Any]
    seconds: float
    cpu_seconds: float
    bytes_up: int


def seal(what: str, owner: str, round_index: int, party: int) -> codec.Seal:
    """What a file of a run in progress says of itself."""
    return {"what": what, "run": owner, "round": round_index, "party": party}


@dataclass(frozen=True)
class Place:
    """Where a value lies, and what it must say of itself there."""

    path: Path
    seal: codec.Seal

    def save(self, value: Any, beside: codec.Beside | None = None) -> None:
        """Put `value` here, atomically and sealed, but for tensors that lie in files beside it."""
        codec.save(self.path, value, self.seal, beside=beside)

    def load(self) -> Any:
        """The value here; one that belongs elsewhere is refused."""
        return codec.load(self.path, self.seal)

    def write(self, data: bytes, durable: bool = True) -> None:
        """Put a value here that was encoded with this place's seal elsewhere, atomically."""
        codec.write_atomically(self.path, data, durable, private=True)

    def read(self) -> bytes:
        """The encoded value here; one that is damaged or belongs elsewhere is refused."""
        data = codec.read_bytes(self.path)
        codec.check(data, str(self.path), self.seal)
        return data

    def exists(self) -> bool:
        """Whether something lies here."""
        return self.path.exists()

    def inside(self, name: str) -> "Place":
        """A value of the folder that this place is, under a name of its own."""
        return Place(self.path / f"{name}.safetensors", {**self.seal, "name": name})


@dataclass(frozen=True)
class Desk:
    """The folder of a run in progress.

    Reports may lie on a `shelf` instead, a folder named after all that they depend on, so that
    several runs can share trained members; they then belong to the shelf and not to the run.
    """

    root: Path
    run: str = ""
    shelf: Path | None = None

    def message(self, round_index: int, party: int | None) -> Path:
        """The message of a round, for one party or (None) for all;
        written anew whenever the round begins.
        """
        name = "all" if party is None else f"p{party:05d}"
        return self.root.joinpath("messages", f"r{round_index:05d}", f"{name}.safetensors")

    def report(self, round_index: int, party: int) -> Place:
        """A party's report."""
        name = f"p{party:05d}.safetensors"
        path = self._home().joinpath("reports", f"r{round_index:05d}", name)
        return Place(path, self._seal("report", round_index, party))

    def memory(self, round_index: int, party: int) -> Place:
        """What a party keeps after a round."""
        path = self.root.joinpath("memory", f"p{party:05d}", f"r{round_index:05d}.safetensors")
        return Place(path, self._seal("memory", round_index, party))

    def progress(self, round_index: int, party: int) -> Place:
        """The folder of a party's half-finished training."""
        path = self._home().joinpath("progress", f"r{round_index:05d}", f"p{party:05d}")
        return Place(path, self._seal("half-finished training", round_index, party))

    def _home(self) -> Path:
        return self.root if self.shelf is None else self.shelf

    def _seal(self, what: str, round_index: int, party: int) -> codec.Seal:
        return seal(what, self.owner, round_index, party)

    @property
    def owner(self) -> str:
        """What files here say of whose they are."""
        return self.run if self.shelf is None else self.shelf.name

    def reports_of(self, round_index: int) -> set[str]:
        """The names of the files that lie where a round's reports go."""
        folder = self.report(round_index, 0).path.parent
        return {entry.name for entry in os.scandir(folder)} if folder.exists() else set()

    def clear_until(self, round_index: int) -> None:
        """Remove what finished, checkpointed rounds no longer need, this one and those before."""
        homes = [self.message(0, None), self.progress(0, 0).path]
        homes += [self.report(0, 0).path] if self.shelf is None else []
        for home in (path.parent.parent for path in homes):
            for folder in home.glob("r[0-9]*"):
                if int(folder.name[1:]) <= round_index:
                    retire(folder)
            with suppress(OSError):  # it is not there, or holds what is to come
                home.rmdir()


@final
class Memories:
    """Every party's newest memory of a finished round.

    Folders are looked into once, when a run begins or goes on: of thousands of parties a round
    may draw ten.
    """

    def __init__(self, desk: Desk, finished: int) -> None:
        self.desk = desk
        self.rounds: dict[int, int] = {}
        """The round of each party's newest memory."""
        for path in sorted(desk.memory(0, 0).path.parent.parent.glob("p*/r*.safetensors")):
            party, index = int(path.parent.name[1:]), int(path.stem[1:])
            if index <= finished:  # a later one is of a round that will be gone on with
                self.round_ends(index, [party])

    def newest(self, party: int) -> Place | None:
        """A party's memory, None if it keeps nothing."""
        index = self.rounds.get(party)
        return None if index is None else self.desk.memory(index, party)

    def round_ends(self, round_index: int, parties: Iterable[int]) -> None:
        """These parties' memories of a checkpointed round replace their older ones."""
        for party in parties:
            older = self.newest(party)
            if older is not None and self.rounds[party] != round_index:
                older.path.unlink(missing_ok=True)
            self.rounds[party] = round_index


@final
class DiskProgress(Progress):
    """Half-finished training in a folder; remembers the CPU time that earlier attempts spent."""

    def __init__(
        self,
        place: Place,
        watch: Callable[[float, float | None], None] | None = None,
        every_seconds: float = 60.0,
    ) -> None:
        self.place = place
        self.watch = watch
        self.every_seconds = every_seconds
        self.spent_before = 0.0
        self.started = time.process_time()

    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved under `name`, or None."""
        place = self.place.inside(name)
        if not place.exists():
            return None
        saved = place.load()
        self.spent_before = max(self.spent_before, saved["cpu_seconds"])
        values: Mapping[str, Any] = saved["values"]
        return values

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep values under `name`, atomically."""
        self.place.inside(name).save({"cpu_seconds": self.cpu_seconds(), "values": dict(values)})

    def tell(self, done: float, loss: float | None) -> None:
        """Pass the share done and the loss to whoever watches."""
        if self.watch is not None:
            self.watch(done, loss)

    def cpu_seconds(self) -> float:
        """CPU time of this attempt and of the saved ones before it."""
        return self.spent_before + time.process_time() - self.started


@dataclass(frozen=True)
class StoredReports(Sequence[Report[Any]]):
    """Reports that load when they are looked at,
    so a thousand of them never lie in memory together.
    """

    places: tuple[Place, ...]
    held: Mapping[Path, codec.Opened] = field(default_factory=dict)
    """Some that were opened when they arrived: whoever looks at one gets a copy of its own. They
    need not have been written."""

    @overload
    def __getitem__(self, index: int) -> Report[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> "StoredReports": ...
    def __getitem__(self, index: int | slice) -> "Report[Any] | StoredReports":
        if isinstance(index, slice):
            return StoredReports(self.places[index], self.held)
        place = self.places[index]
        held = self.held.get(place.path)
        envelope: Envelope = place.load() if held is None else held.copy()
        return replace(envelope.report, memory={})

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Report[Any]]:
        return (self[i] for i in range(len(self)))
