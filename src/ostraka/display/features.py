"""A party's view of the world: its member's embedding in two dimensions
(t-SNE), as in FedOV's Figure 2.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.curves import COLOURS
from ostraka.display.tables import cut
from ostraka.errors import DataError
from ostraka.objectives.destruction import destroy

LISTED = 24
"""Names in one column of the legend."""

MARKERS = ("o", "^", "s", "D", "v", "P", "*")
"""One for each time that the colours have run out."""

EACH = 300
"""Points of each kind."""


@torch.no_grad()
def draw_features(
    net: Net, samples: Samples, seen: list[int], names: tuple[str, ...], path: Path, seed: int = 0
) -> None:
    """Embeddings of seen classes, unseen classes and destroyed samples
    of seen ones, laid out by t-SNE.
    """
    from sklearn.manifold import TSNE

    check_suffix(path)
    labels = samples.labels
    own = torch.isin(labels, torch.tensor(seen))
    if not own.any() or own.all():
        raise DataError(
            "the figure needs samples of classes that the party has seen "
            "and of others; all are of one kind"
        )
    rng = torch_rng(seed, "features")
    mine, other = _some(own, rng), _some(~own, rng)
    inputs = samples.inputs(mine)
    destroyed = destroy(inputs, rng, "destruction", samples.view.kind)
    each = (inputs, samples.inputs(other), destroyed)
    points = torch.cat([net.eval().embed(part) for part in each])
    layout = TSNE(init="pca", random_state=seed, perplexity=30).fit_transform(points.numpy())
    figure = new_figure(6.4, 4.8)
    axes = figure.add_subplot()
    (first, second), (x, y) = (len(mine), len(mine) + len(other)), layout.T
    crosses: dict[str, Any] = {"color": "0.75", "marker": "x", "linewidths": 0.7}
    axes.scatter(x[second:], y[second:], s=8, label="destroyed (outliers)", **crosses)
    unseen = slice(first, second)
    axes.scatter(x[unseen], y[unseen], s=8, color="0.25", marker=".", label="unseen classes")
    for place, label in enumerate(seen):
        colour = COLOURS[place % len(COLOURS)]
        marker = MARKERS[place // len(COLOURS) % len(MARKERS)]
        name = f"seen: {cut(names[label], 24)}"
        its = np.flatnonzero(labels[mine].numpy() == label)
        axes.scatter(x[its], y[its], s=12, color=colour, marker=marker, label=name)
    axes.set_xticks([])
    axes.set_yticks([])
    columns = 1 + (len(seen) + 1) // LISTED
    figure.set_figwidth(figure.get_figwidth() + 1.8 * (columns - 1))
    figure.legend(fontsize=8, frameon=False, loc="outside right center", ncols=columns)
    save(figure, path)


def _some(mask: Tensor, rng: torch.Generator) -> Tensor:
    index = mask.nonzero().squeeze(1)
    return index[torch.randperm(len(index), generator=rng)[:EACH]]
