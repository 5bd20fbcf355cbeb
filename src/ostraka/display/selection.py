"""Which members were chosen: a map of the members, accuracy against the size of a team,
every team there is, and the parties' data beside what their members can do.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.curves import COLOURS, MARKERS
from ostraka.display.tables import cut
from ostraka.voting.choice import NOWHERE, Choice
from ostraka.voting.inspection import Inspection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 60
"""Members up to which each is named in the map, and parties that are named below their bars."""
BESIDE = 0.12
"""How far apart marks of teams of one size stand."""
UNCHOSEN = {"all": "*", "best": "h"}
"""Marks, black ones, of teams that no selector chose."""
LISTED = 16
"""Classes that fit into the legend."""


def draw_clusters(
    rows: NDArray[np.float64], choice: Choice, names: Sequence[str], path: Path, title: str = ""
) -> None:
    """Draw members by their rows in two principal components.

    Colour and marker are the cluster, a ring is a member that votes,
    a cross one that was left out before.
    """
    check_suffix(path)
    places, shares = _two_dimensions(rows)
    figure = new_figure(6.4, 5.0)
    axes = figure.add_subplot()
    groups = np.array(choice.groups or [0] * len(rows))
    for group in sorted(set(groups.tolist())):
        x, y = places[groups == group].T
        if group == NOWHERE:
            axes.scatter(x, y, s=36, color="0.6", marker="x", label="left out before")
            continue
        colour = COLOURS[group % len(COLOURS)]
        marker = ("o", *MARKERS)[group // len(COLOURS) % (len(MARKERS) + 1)]
        axes.scatter(x, y, s=30, color=colour, marker=marker, linewidths=0)
    x, y = places[list(choice.chosen)].T
    axes.scatter(x, y, s=150, facecolors="none", edgecolors="black", linewidths=1.4, label="votes")
    if len(rows) <= FEW:
        for name, (x, y) in zip(names, places, strict=True):
            axes.annotate(cut(name, 12), (x, y), (7, 5), textcoords="offset points", fontsize=6)
        axes.set_xmargin(0.12)  # a name stands to the right of its place
    axes.set_xlabel(f"first principal component ({100 * shares[0]:.0f} % of the variance)")
    axes.set_ylabel(f"second ({100 * shares[1]:.0f} %)")
    axes.tick_params(labelsize=7)
    axes.set_title(title, fontsize=9, loc="left")
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    save(figure, path)


def _two_dimensions(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[float]]:
    """Rows in their two principal components, and what share of the variance each has."""
    from sklearn.decomposition import PCA

    places, shares = np.zeros((len(rows), 2)), [0.0, 0.0]
    count = min(2, len(rows) - 1, rows.shape[1])
    if count > 0 and (rows != rows[0]).any():
        found = PCA(count, svd_solver="full").fit(rows)
        places[:, :count] = found.transform(rows)
        shares[:count] = found.explained_variance_ratio_.tolist()
    return places, shares


def draw_teams(
    found: Inspection, teams: Mapping[str, Sequence[int]], path: Path, title: str = ""
) -> None:
    """Draw the accuracy of every team against its size, and mark those of the selectors, side by
    side where they have one size; black are `all` and `best`, which nobody chose.
    """
    check_suffix(path)
    figure = new_figure(6.8, 4.4)
    axes = figure.add_subplot()
    sizes = np.array([len(team) for team in found.accuracy], dtype=float)
    values = 100 * np.array(list(found.accuracy.values()))
    # beside each other, so that many equal ones are seen as many
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(sizes))
    axes.scatter(sizes + spread, values, s=4, color="0.75", linewidths=0)
    for place, (name, team) in enumerate(teams.items()):
        own, rank = found.accuracy[tuple(sorted(team))], found.rank(team)
        level = [other for other, one in teams.items() if len(one) == len(team)]
        beside = BESIDE * (level.index(name) - (len(level) - 1) / 2)
        axes.scatter(
            [len(team) + beside],
            [100 * own],
            s=60,
            color="black" if name in UNCHOSEN else COLOURS[place % (len(COLOURS) - 1)],
            marker=UNCHOSEN.get(name, MARKERS[place % (len(MARKERS) - 1)]),
            edgecolors="white",
            label=f"{name}: {100 * own:.2f} %, rank {rank} of {len(found.accuracy)}",
            zorder=3,
        )
    axes.set_xlabel("members of the team")
    axes.set_ylabel("accuracy (%)")
    axes.set_xticks(range(1, int(sizes.max()) + 1))
    axes.set_title(title, fontsize=9, loc="left")
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    save(figure, path)


def draw_parties(
    counts: NDArray[np.int64],
    names: Sequence[str],
    classes: Sequence[str],
    lines: Mapping[str, Sequence[float | None]],
    path: Path,
    title: str = "",
) -> None:
    """Draw each party's samples by class [M, K] as a bar,
    and accuracies of its member, in percent, as lines.
    """
    check_suffix(path)
    figure = new_figure(max(6.4, min(16.0, 2.5 + 0.28 * len(names))), 4.6)
    axes = figure.add_subplot()
    below, places = np.zeros(len(names)), np.arange(len(names))
    shades = _shades(len(classes))
    for label, name in enumerate(classes):
        axes.bar(
            places,
            counts[:, label],
            bottom=below,
            color=shades[label],
            label=cut(name, 14) if len(classes) <= LISTED else None,
        )
        below = below + counts[:, label]
    axes.set_ylabel("samples")
    axes.set_xlabel("party")
    every = -(-len(names) // FEW)
    axes.set_xticks(places[::every], [cut(name, 12) for name in names[::every]], rotation=90)
    axes.tick_params(labelsize=7)
    _lines(axes, places, lines)
    axes.set_title(title, fontsize=9, loc="left")
    if lines or len(classes) <= LISTED:
        figure.legend(fontsize=7, frameon=False, loc="outside right center")
    save(figure, path)


def _lines(
    axes: "Axes", places: NDArray[np.int64], lines: Mapping[str, Sequence[float | None]]
) -> None:
    other = axes.twinx()
    for place, (name, values) in enumerate(lines.items()):
        shown = [np.nan if value is None else value for value in values]
        colour = ("#D55E00", "#0072B2", "#000000")[place % 3]
        other.plot(places, shown, color=colour, marker="os^"[place % 3], markersize=4,
                   linewidth=1.4, label=name)  # fmt: skip
    other.set_ylim(0, 102)
    other.set_ylabel("accuracy (%)")
    other.tick_params(labelsize=7)


def _shades(count: int) -> list[tuple[float, float, float, float]]:
    """Pale colours, so that lines before them are seen."""
    from matplotlib import colormaps

    wheel = colormaps["Set3" if count <= 12 else "terrain"]
    each = [i if count <= 12 else i / max(1, count - 1) for i in range(count)]
    return [wheel(one) for one in each]
