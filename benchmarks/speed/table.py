"""What is measured: tables of cells, each done by several variants."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

Lap = Callable[[], None]
"""A job that has rounds of its own calls it at the start of each and at the end of the last: the
time that counts is then the mean between two calls, and not that of the whole job."""


@final
@dataclass(frozen=True)
class Job:
    """Something to be timed, and how much work it is."""

    run: Callable[[Lap], object]
    work: float = 1.0
    """In the unit of its table; variants may do different amounts."""


OURS, BEFORE = "ostraka", "ostraka before"
"""This package, and that of another checkout (`--against`)."""

PLAIN = "plain torch"
LAST = "plain torch, channels_last"
KEPT = "plain torch, memory kept"
LAST_KEPT = "plain torch, channels_last, memory kept"
PLAINS = (PLAIN, LAST, KEPT, LAST_KEPT)
"""Torch as one writes it, in both memory layouts, with and without glibc told to keep freed
memory, as our workers tell it (`engines.memory`)."""


@final
@dataclass(frozen=True)
class Table:
    """Cells (rows) that the same variants do in turn."""

    name: str
    title: str
    unit: str
    """What is counted in one CPU-second, or for `less`, the CPU-seconds themselves."""
    cells: Mapping[str, str]
    """The name of each row and its words."""
    variants: Sequence[str]
    opponents: Sequence[str]
    """The best of these, by the median, is what ratios are to."""
    job: Callable[[str, str, bool], Job]
    """The job of a cell and a variant, small if the third is true."""
    rounds: int = 9
    """How often every variant does every cell."""
    warm: bool = True
    """Whether a first round is not counted."""
    counts: Literal["rate", "less"] = "rate"
    alone: bool = True
    """Whether jobs stay in their process; if not, the CPU-seconds of their children count."""
    memory: bool = False
    """Whether peak memory is shown."""
    effort: Mapping[str, float] | None = None
    """Millions of operations for one unit of work of a cell, where the share of the core's matrix
    products is shown."""


def layout(variant: str) -> bool:
    """Whether a plain variant has the channels last."""
    return variant in (LAST, LAST_KEPT)


def keeps_memory(variant: str) -> bool:
    """Whether the C library is told to keep freed memory."""
    return variant in (KEPT, LAST_KEPT, OURS, BEFORE)
