"""A card: what a party says of its model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ostraka.core.wire import wire

BANDS = {"<10": 0, "10-99": 10, "100-999": 100, ">=1000": 1000}
"""How a party may tell class counts without their exact numbers, and the least that each says."""


def band_of(count: int) -> str:
    """The band that a count lies in."""
    return [name for name, least in BANDS.items() if count >= least][-1]


def banded(counts: tuple[int, ...]) -> tuple[int, ...]:
    """What is known of counts that are told as bands: the least that each can be."""
    return tuple(BANDS[band_of(count)] for count in counts)


@wire("card/1")
@dataclass(frozen=True)
class Card:
    """Size, class counts if the party agrees to tell them, scores and calibration numbers.

    Counts are in the order of the classes that its model was trained for.
    """

    party: int
    size: int
    counts: tuple[int, ...] | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    calibration: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"party {self.party}"
