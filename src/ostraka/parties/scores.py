"""How unknown samples are to a member: its unknown scores, as shares of samples by score.

Drawn from what its party told of held-out samples, or from data that somebody has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from ostraka.core.member import Member
from ostraka.core.names import normal
from ostraka.core.told import LEVELS, curve, held
from ostraka.data.own import Collection, Form, read
from ostraka.errors import DataError

BINS = 14
"""Ranges of scores, about."""


@final
@dataclass(frozen=True)
class Series:
    """The unknown scores of some samples."""

    name: str
    samples: int
    shares: tuple[float, ...]
    """Of the samples, by range of scores."""
    refused: float
    """The share of the samples that is called unknown."""


@final
@dataclass(frozen=True)
class Picture:
    """Unknown scores of one or two groups of samples, over the same ranges."""

    edges: tuple[float, ...]
    """One more than there are ranges; one of them is the threshold where there is one."""
    threshold: float | None
    """Above it the answer is unknown; None: it never is."""
    series: tuple[Series, ...]
    basis: str
    """Which samples these are."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "series": [dict(vars(one)) for one in self.series]}


def told_picture(member: Member) -> Picture | None:
    """From the quantiles that the party told of samples that it held out; None: it told none."""
    refusals = curve(member.card.calibration, "refusals")
    if refusals is None or not member.model.objective.refuses:
        return None
    scores = -np.array(refusals)[::-1]
    below = 1.0 - np.array(LEVELS)[::-1]
    edges = _edges([float(scores[0]), float(scores[-1])], 0.0)
    reached = np.interp(edges, scores, below, left=0.0, right=1.0)
    count = held(member.card.calibration)
    own = Series(
        name="its own classes",
        samples=count,
        shares=tuple(np.diff(reached).tolist()),
        refused=float(1.0 - np.interp(0.0, scores, below, left=0.0, right=1.0)),
    )
    return Picture(tuple(edges), 0.0, (own,), f"{count} held-out samples, by what its party tells")


def data_picture(
    member: Member, data: str | Path | Collection, form: Form | None = None
) -> Picture:
    """From samples: of the classes that the member has seen, and of all others; of unlabelled ones
    all together. `form` is that of the task, which says the columns of tables.
    """
    wanted = form or Form(member.model.view.kind, member.model.shape)
    named = not isinstance(data, Collection) and Path(data).suffix.lower() != ".npz"
    if form is None and wanted.kind == "table" and named:
        raise DataError(
            f"{data} is a table with named columns, and a member file does not say which of them "
            "it was trained on; give the task (--task task.toml)"
        )
    found = data if isinstance(data, Collection) else read(data, wanted)
    stored = found.samples.in_unit(member.model.view.unit).stored()
    scores = member.predictor().scores(stored)
    open_ended = scores.threshold == float("inf")
    values = scores.unknown.double().numpy()
    edges = _edges([float(values.min()), float(values.max())], None if open_ended else 0.0)
    refused = (scores.unknown > scores.threshold).double().numpy()
    series = [
        Series(
            name=name,
            samples=int(mine.sum()),
            shares=tuple((np.histogram(values[mine], edges)[0] / mine.sum()).tolist()),
            refused=float(refused[mine].mean()),
        )
        for name, mine in _groups(member, found).items()
        if mine.any()
    ]
    basis = f"{len(found):,} samples of {found.name}"
    return Picture(tuple(edges), None if open_ended else 0.0, tuple(series), basis)


def _groups(member: Member, found: Collection) -> Mapping[str, np.ndarray]:
    if not found.labelled:
        return {"all samples": np.ones(len(found), dtype=bool)}
    seen = set(map(normal, seen_classes(member)))
    known = torch.tensor([name in seen for name in found.classes])
    mine = known[found.samples.labels].numpy()
    return {"its own classes": mine, "other classes": ~mine}


def seen_classes(member: Member) -> tuple[str, ...]:
    """The classes of which a member's party has samples, as far as it tells; else all of its
    model's.
    """
    counts = member.card.counts
    if counts is None:
        return member.model.classes
    return tuple(n for n, count in zip(member.model.classes, counts, strict=True) if count)


def _edges(span: Sequence[float], threshold: float | None) -> np.ndarray:
    """Ends of equal ranges that cover the span; the threshold is one of them."""
    low, high = span
    width = max(high - low, 1e-6) / (BINS - 2)
    base = low if threshold is None else threshold
    first, last = floor((low - base) / width), ceil((high - base) / width)
    return base + width * np.arange(first, max(last, first + 1) + 1)
