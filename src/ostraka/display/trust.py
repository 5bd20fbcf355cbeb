"""Whom the vote trusts: agreement of every party with the others, class by class, as a drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.heatmap import FEW_CLASSES, finish, name_axes, separate
from ostraka.errors import DataError
from ostraka.runs.api import load_run
from ostraka.runs.plan import make_plan
from ostraka.runs.promise import look
from ostraka.runs.record import load_state
from ostraka.voting.trust import LOW, low_agreement

MOST_WRITTEN = 20
"""Parties up to which the numbers are written into the cells."""


def trust_of(folder: Path) -> tuple[Mapping[str, Any], str]:
    """What the vote of a finished run found of its members, and by which samples; of one that did
    not look, what it finds now on the test inputs, which its figures did not use.
    """
    result = load_run(folder)
    found, of = result.summary.trust, result.summary.looked.get("of", "")
    if not found:
        config, state = load_state(folder)
        plan = make_plan(replace(config, look="test"))
        seeing, looked = look(plan, plan.method.predictor(plan.task, state))
        found, of = seeing.trust(), looked.get("of", "")
    if not found:
        raise DataError(
            f"the run in {folder} is of {result.summary.method}, whose vote does not estimate "
            "which members to trust. Use a run of fedov with ballot=guarded"
        )
    return found, f"by {found['samples']:,} unlabelled {of} samples"


def draw_trust(
    found: Mapping[str, Any], classes: Sequence[str], path: Path, title: str = ""
) -> None:
    """Draw agreement by party and class into `path`.

    A blank cell is a class that the party does not hold. Low agreement has a thick frame; a star
    stands beside parties that are unusual in this or another way.
    """
    from matplotlib.patches import Rectangle

    check_suffix(path)
    grid = np.array(
        [[np.nan if v is None else v for v in row] for row in found["agreement"]], dtype=float
    )
    rows = [f"{name} *" if name in found["suspects"] else name for name in found["parties"]]
    width = min(max(0.62 * len(classes), 3), 11)
    figure = new_figure(width + 2.6, min(max(0.32 * len(rows), 1.6), 12) + 1.6)
    axes = figure.add_subplot()
    shown = np.ma.masked_invalid(grid)
    image = axes.imshow(
        shown, cmap="RdYlBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    framed = f"class (framed: below {LOW:g}, though another party has the class)"
    name_axes(axes, rows, list(classes), (framed, "party (*: unusual)"))
    if len(rows) <= MOST_WRITTEN:
        separate(axes, *grid.shape)
        if len(classes) <= FEW_CLASSES:
            for row, column in np.argwhere(~np.isnan(grid)).tolist():
                value = grid[row, column]
                place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}
                colour = "white" if abs(value) > 0.75 else "black"
                axes.text(column, row, f"{value:.2f}", color=colour, **place)
    frame: dict[str, Any] = {"fill": False, "edgecolor": "black", "linewidth": 2.0}
    for party, label in low_agreement(found):
        axes.add_patch(Rectangle((label - 0.45, party - 0.45), 0.9, 0.9, **frame))
    bar = finish(figure, image, title, "agreement with the others (blank: not its class)")
    bar.outline.set_visible(False)
    save(figure, path)
