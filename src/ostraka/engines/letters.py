"""Letters between a server and nodes, and what carries them.

`engines.flower` has a line over Flower's grid, tests have one in memory: who is asked, who has
answered and how long is waited (`engines.remote`) knows only this.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

Fact = str | int | float
"""A plain value that every carrier knows."""

About = Literal["party", "order"]
"""Who are you, or: carry this out."""


@dataclass(frozen=True)
class Letter:
    """What is sent to a node, or what it answers: plain facts, and parts of any size."""

    node: int
    about: About
    facts: Mapping[str, Fact] = field(default_factory=dict)
    parts: Mapping[str, bytes] = field(default_factory=dict)
    answers: str = ""
    """Of an answer, the letter that it answers."""
    error: str = ""
    """Of an answer, why the node could not give one."""
    lost: bool = False
    """Of an answer, that none will come: the carrier has lost the letter, or the node it went to.
    It may be sent again."""


def too_large(size: int, largest: float) -> str:
    """Why an answer of `size` bytes is refused by a server that takes `largest` megabytes; empty:
    it is not."""
    if size <= largest * 1e6:
        return ""
    return (
        f"its answer has {size / 1e6:,.1f} MB, and the server takes at most {largest:,g}. Raise "
        "engine.largest at the server (--set engine.largest=MB), or train a smaller network"
    )


def shown(given: object, most: int = 500) -> str:
    """Text that a node wrote, without signs that a terminal obeys, and not endless."""
    text = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in str(given)[:most]
    )
    return text + (" ..." if len(str(given)) > most else "")


def number(given: object) -> float | None:
    """A number that a node told; None: it told none that can be one."""
    told = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if told and isfinite(given) else None  # type: ignore[arg-type]


@dataclass(frozen=True)
class Node:
    """A machine that can be written to now."""

    id: int
    key: bytes = b""
    """The public key that it has proved to hold; empty where the line does not tell."""
    since: str = ""
    """When it last joined: another value after it was started again."""


class Line(ABC):
    """A way to send letters to nodes."""

    @abstractmethod
    def nodes(self) -> Sequence[Node]:
        """The nodes that are there now."""

    @abstractmethod
    def send(self, letter: Letter, seconds: float) -> str:
        """Send a letter that is of no use after so many seconds; its name, to ask for the answer.

        Empty: it was not taken.
        """

    @abstractmethod
    def fetch(self, names: Collection[str]) -> Iterable[Letter]:
        """The answers to these letters that have come since the last time, one after the other."""
