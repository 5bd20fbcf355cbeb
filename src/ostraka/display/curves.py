"""Accuracy against rounds, bytes sent, or anything else that grows."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.tables import human_bytes
from ostraka.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, distinct for colour-blind eyes; yellow is left out, too pale on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("D", "s", "^", "v", "P", "X", "*")
COLUMNS = 3
"""Panels side by side."""
WIDE = 30
"""Largest byte count in smallest ones from which on the axis is logarithmic."""


FEW, SHORT = 6, 30
"""So many names of so many letters have room within a panel."""


class Curve(NamedTuple):
    """One method: `values[s][i]` is the accuracy in percent of seed s at `x[i]` (rounds, bytes).

    A `reference` has no place on the axis (training on pooled data):
    it is a line across, at its last values.
    """

    label: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]
    reference: bool = False


def accuracy_curve(
    curves: Sequence[Curve], path: Path, title: str = "", xlabel: str = "round"
) -> None:
    """Draw the mean over seeds as a line and one sample standard
    deviation to either side as a band.
    """
    accuracy_curves({title: curves}, path, xlabel)


def accuracy_curves(
    panels: Mapping[str, Sequence[Curve]],
    path: Path,
    xlabel: str = "round",
    in_bytes: bool = False,
) -> None:
    """Draw a panel for each title.

    What has one point only (a one-shot method) is a marker with its deviation.
    """
    check_suffix(path)
    if not panels or not all(panels.values()):
        raise DataError("there is nothing to draw; give at least one curve")
    columns = min(COLUMNS, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure = new_figure(7 if columns == 1 else 4.6 * columns, 4.2 if lines == 1 else 3.6 * lines)
    labels = list(dict.fromkeys(curve.label for curves in panels.values() for curve in curves))
    for i, (title, curves) in enumerate(panels.items()):
        axes = figure.add_subplot(lines, columns, i + 1)
        for curve in curves:
            _draw(axes, curve, labels.index(curve.label))
        _finish(axes, curves, in_bytes)
        axes.set_xlabel(xlabel)
        axes.set_ylabel("accuracy (%)" if i % columns == 0 else "")
        if title:
            axes.set_title(title, loc="left", fontsize=11)
    _legend(figure, labels)
    save(figure, path)


def _draw(axes: "Axes", curve: Curve, number: int) -> None:
    """One curve; `number` decides its colour and strokes, the same in every panel."""
    mean, std = mean_and_std(curve)
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    colour = COLOURS[number % len(COLOURS)]
    line: dict[str, Any] = {"color": colour, "label": curve.label}
    band: dict[str, Any] = {"color": colour, "linewidth": 0}
    if curve.reference:
        axes.axhline(mean[-1], linestyle=(0, (5, 3)), linewidth=1.2, **line)
        if std is not None:
            axes.axhspan(mean[-1] - std[-1], mean[-1] + std[-1], alpha=0.1, **band)
    elif len(curve.x) == 1:
        marker = MARKERS[number % len(MARKERS)]
        axes.errorbar(curve.x, mean, yerr=std, fmt=marker, markersize=7, capsize=3, **line)
    else:
        marker = "o" if len(curve.x) <= 15 else ""
        axes.plot(curve.x, mean, linestyle=dash, marker=marker, markersize=4, **line)
        if std is not None:
            axes.fill_between(curve.x, mean - std, mean + std, alpha=0.18, **band)


def _finish(axes: "Axes", curves: Sequence[Curve], in_bytes: bool) -> None:
    """Axes and grid."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    values = [x for curve in curves if not (in_bytes and curve.reference) for x in curve.x]
    if in_bytes:  # ticks in kB, MB, GB; logarithmic where the values spread widely
        if values and min(values) > 0 and max(values) > WIDE * min(values):
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            axes.locator_params(axis="x", nbins=6)
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: human_bytes(value).replace(".0 ", " "))
        )
    else:  # few ticks; of counts, as of rounds, at whole numbers, even where there is one point
        whole = all(float(value).is_integer() for value in values)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=whole, min_n_ticks=1))
        if whole and max(values) - min(values) < 1:
            axes.set_xlim(min(values) - 0.9, max(values) + 0.9)
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: "Figure", labels: Sequence[str]) -> None:
    """Within each panel where the names are few and short, else once, below all of them."""
    if len(labels) <= FEW and max(map(len, labels)) <= SHORT:
        for axes in figure.axes:
            axes.legend(frameon=False, fontsize=9)
        return
    entries = {
        label: line
        for axes in figure.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    wide = figure.get_figwidth() * 12  # letters of this size that fit the figure's width
    columns = max(int(wide // (max(map(len, labels)) + 8)), 1)
    figure.legend(
        [entries[label] for label in labels],
        labels,
        loc="outside lower center",
        frameon=False,
        fontsize=9,
        ncols=min(columns, len(labels)),
    )
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * rows)


def mean_and_std(curve: Curve) -> tuple[np.ndarray, np.ndarray | None]:
    """Mean over seeds at each point, and the sample standard deviation (None for one seed)."""
    lengths = sorted({len(seed) for seed in curve.values})
    if lengths != [len(curve.x)]:
        raise DataError(
            f"curve {curve.label!r} has {len(curve.x)} points but seeds with {lengths or 'no'} "
            "values; give one value for each point and seed"
        )
    values = np.asarray(curve.values, dtype=float)
    return values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else None
