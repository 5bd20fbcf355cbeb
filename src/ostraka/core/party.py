"""A party: one participant and its own data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ostraka.core.progress import NoProgress, Progress
from ostraka.core.samples import Samples
from ostraka.errors import PartitionError


@dataclass(frozen=True)
class PartyRef:
    """What the server knows of a party: its number, its size and its name."""

    id: int
    size: int
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"party {self.id}"


def labels(names: Sequence[str]) -> tuple[str, ...]:
    """A label of its own for every party, in their order: the names, or,
    where two are alike, number and name.
    """
    if len(set(names)) == len(names):
        return tuple(names)
    return tuple(f"{party}: {name}" for party, name in enumerate(names))


@dataclass(frozen=True)
class Party:
    """One participant at work on its own machine."""

    ref: PartyRef
    samples: Samples
    progress: Progress = NoProgress()

    @property
    def id(self) -> int:
        """The party's number."""
        return self.ref.id

    def at_work(self, progress: Progress, device: str = "cpu") -> "Party":
        """The same party with a place for half-finished work, and its samples on `device`."""
        return replace(self, progress=progress, samples=self.samples.to(device))


@dataclass(frozen=True)
class Parties:
    """All parties of a simulation over one storage: a party is made when it is asked for,
    so a thousand are cheap.
    """

    samples: Samples
    rows: Tensor
    """Training rows of all parties, one party after the other."""
    ends: tuple[int, ...]
    """Where each party's rows end."""
    names: tuple[str, ...]

    @classmethod
    def of(cls, samples: Samples, rows: Sequence[Tensor], names: Sequence[str] = ()) -> "Parties":
        """Parties that hold the given rows of `samples.x`."""
        if not rows:
            raise PartitionError("a federation needs at least one party; none was given")
        ends = torch.tensor([len(r) for r in rows]).cumsum(0).tolist()
        names = tuple(names) or tuple(f"party {i}" for i in range(len(rows)))
        return cls(replace(samples, rows=None), torch.cat(list(rows)), tuple(ends), names)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> Party:
        start, stop = self._span(index)
        ref = PartyRef(index, stop - start, self.names[index])
        return Party(ref, replace(self.samples, rows=self.rows[start:stop]))

    def __iter__(self) -> Iterator[Party]:
        return (self[i] for i in range(len(self)))

    def roster(self) -> tuple[PartyRef, ...]:
        """What the server knows of the parties."""
        spans = [self._span(i) for i in range(len(self))]
        return tuple(
            PartyRef(i, stop - start, self.names[i]) for i, (start, stop) in enumerate(spans)
        )

    def pooled(self) -> "Parties":
        """One party that holds everything."""
        return Parties(self.samples, self.rows, (len(self.rows),), ("all data",))

    def share_memory(self) -> "Parties":
        """The same parties in memory that worker processes can map instead of copying."""
        self.rows.share_memory_()
        self.samples.share_memory()
        return self

    def _span(self, index: int) -> tuple[int, int]:
        if not 0 <= index < len(self.ends):
            raise IndexError(
                f"there are {len(self.ends)} parties, numbered from 0; {index} was asked for"
            )
        return (self.ends[index - 1] if index else 0), self.ends[index]
