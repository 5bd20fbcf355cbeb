"""Accuracy against rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ostraka.errors import DataError
from ostraka.report.canvas import check_suffix, new_figure, save

# Okabe and Ito's colours, distinct for colour-blind eyes; yellow is left out, too pale on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", ":", "-.")


class Curve(NamedTuple):
    """One method: `values[s][i]` is the accuracy in percent of seed s after `rounds[i]` rounds."""

    label: str
    rounds: Sequence[int]
    values: Sequence[Sequence[float]]


def accuracy_curve(
    curves: Sequence[Curve], path: Path, title: str = "", ylabel: str = "accuracy (%)", xlabel: str = "round"
) -> None:
    """Draw the mean over seeds as a line and one sample standard deviation to either side as a band (.svg or .png)."""
    check_suffix(path)
    if not curves:
        raise DataError("there is nothing to draw; give at least one curve")
    figure = new_figure(7, 4.2)
    axes = figure.add_subplot()
    for i, curve in enumerate(curves):
        mean, std = mean_and_std(curve)
        colour = COLOURS[i % len(COLOURS)]
        dash = DASHES[i // len(COLOURS) % len(DASHES)]
        marker = "o" if len(curve.rounds) <= 15 else ""
        axes.plot(curve.rounds, mean, color=colour, linestyle=dash, marker=marker, markersize=4, label=curve.label)
        if std is not None:
            axes.fill_between(curve.rounds, mean - std, mean + std, color=colour, alpha=0.18, linewidth=0)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.locator_params(axis="x", integer=True)
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    save(figure, path)


def mean_and_std(curve: Curve) -> tuple[np.ndarray, np.ndarray | None]:
    """Mean over seeds at each round, and the sample standard deviation (None for one seed)."""
    lengths = sorted({len(seed) for seed in curve.values})
    if lengths != [len(curve.rounds)]:
        raise DataError(
            f"curve {curve.label!r} has {len(curve.rounds)} rounds but seeds with {lengths or 'no'} values; "
            "give one value for each round and seed"
        )
    values = np.asarray(curve.values, dtype=float)
    return values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else None
