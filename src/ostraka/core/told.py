"""What a party tells of samples that it kept from training:
a few quantiles of its network's answers to them.

Whoever trained on a sample is too sure of it, so only held-out samples can tell how
often a network will call a sample of a known class unknown. `LEVELS` are dense where
promises are made: below one in five.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ostraka.errors import ReportRefused

LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.95, 1.0)
"""Shares of the held-out samples at which quantiles are told. The low ones place the line; where
one sure owner is enough to answer, the high ones do.
"""
CURVES = ("claims", "refusals", "standing")
"""Names of the quantiles in a card's calibration numbers."""
HELD = "held"
"""Name of the number of held-out samples there."""
DOUBT = "doubt"
"""Name of the mean log odds of *unknown* there."""
PLACES = "typicality"
"""Name of the embedding statistics there."""

FARTHEST = 1e9
"""Log odds beyond this are nobody's, and would overflow where many are weighed together."""


def quantiles(values: Tensor) -> tuple[float, ...]:
    """The quantiles of `values` [N] at LEVELS, linear between neighbours."""
    levels = torch.tensor(LEVELS, dtype=torch.float64)
    return tuple(torch.quantile(values.double().cpu(), levels).tolist())


def read(curves: Tensor, shares: Tensor) -> Tensor:
    """Values of curves [..., LEVELS] at `shares` [..., N] (from 0 to 1),
    linear between the levels.
    """
    levels = torch.tensor(LEVELS, dtype=shares.dtype)
    place = torch.bucketize(shares.contiguous(), levels).clamp(1, len(LEVELS) - 1)
    low, high = levels[place - 1], levels[place]
    part = (shares - low) / (high - low)
    curves = curves.to(shares.dtype).expand(*shares.shape[:-1], len(LEVELS))
    return curves.gather(-1, place - 1) * (1 - part) + curves.gather(-1, place) * part


def curve(numbers: Mapping[str, Any], name: str) -> tuple[float, ...] | None:
    """The told quantiles of that name; None if there are none."""
    told = tuple(numbers.get(name, ()))
    return told if len(told) == len(LEVELS) and held(numbers) > 0 else None


def held(numbers: Mapping[str, Any]) -> int:
    """How many held-out samples the told numbers rest on."""
    return int(numbers.get(HELD, 0))


def check_told(numbers: Mapping[str, Any]) -> None:
    """Refuse quantiles that are none: of another number than the levels, or falling; and log odds
    beyond all measure, with which one party could make the answers of all no numbers.
    """
    for name in (DOUBT, *CURVES):
        told = numbers.get(name, 0.0)
        for value in told if isinstance(told, list | tuple) else (told,):
            if not isinstance(value, int | float) or not abs(value) <= FARTHEST:
                raise ReportRefused(
                    f"its card tells {value!r:.40} as {name}; it takes log odds up to {FARTHEST:g}"
                )
    for name in CURVES:
        if name not in numbers:
            continue
        told = list(numbers[name])
        if len(told) != len(LEVELS):
            raise ReportRefused(
                f"its card tells {len(told)} quantiles of {name}; there are {len(LEVELS)} levels"
            )
        if any(later < earlier for earlier, later in pairwise(told)):
            raise ReportRefused(
                f"its card tells quantiles of {name} that fall: {told}; "
                "quantiles rise with the level"
            )


def check_places(places: Any, classes: int, width: int) -> None:
    """Refuse embedding statistics, or the descriptions of their tensors, that are not those of
    `classes` classes in an embedding of `width` values."""
    wanted = {
        "means": (torch.float32, (classes, width)),
        "precision": (torch.float32, (width, width)),
        "usual": (torch.float32, (classes, 2)),
        "placed": (torch.bool, (classes,)),
    }
    if not isinstance(places, Mapping) or places.keys() != wanted.keys():
        raise ReportRefused(f"its card tells a {PLACES} that is not made of {', '.join(wanted)}")
    for name, (dtype, shape) in wanted.items():
        found = places[name]
        if (getattr(found, "dtype", None), tuple(getattr(found, "shape", ()))) != (dtype, shape):
            raise ReportRefused(
                f"its card tells {PLACES}.{name} that is no tensor of {dtype} and {list(shape)}"
            )
