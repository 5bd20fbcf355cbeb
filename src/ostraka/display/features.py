"""A party's view of the world: its member's embedding in two dimensions
(t-SNE), as in FedOV's Figure 2.
"""

from pathlib import Path

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
    x = samples.inputs(mine)
    destroyed = destroy(x, rng, "destruction", samples.view.kind)
    points = torch.cat([net.eval().embed(part) for part in (x, samples.inputs(other), destroyed)])
    layout = TSNE(init="pca", random_state=seed, perplexity=30).fit_transform(points.numpy())
    _draw(layout, labels[mine].numpy(), len(other), seen, names, path)


def _some(mask: Tensor, rng: torch.Generator) -> Tensor:
    index = mask.nonzero().squeeze(1)
    return index[torch.randperm(len(index), generator=rng)[:EACH]]


def _draw(
    layout: np.ndarray,
    own: np.ndarray,
    others: int,
    seen: list[int],
    names: tuple[str, ...],
    path: Path,
) -> None:
    figure = new_figure(6.4, 4.8)
    axes = figure.add_subplot()
    first, second = len(own), len(own) + others
    axes.scatter(
        layout[second:, 0],
        layout[second:, 1],
        s=8,
        color="0.75",
        marker="x",
        linewidths=0.7,
        label="destroyed (outliers)",
    )
    axes.scatter(
        layout[first:second, 0],
        layout[first:second, 1],
        s=8,
        color="0.25",
        marker=".",
        label="unseen classes",
    )
    for place, label in enumerate(seen):
        mine = layout[:first][own == label]
        colour, marker = (
            COLOURS[place % len(COLOURS)],
            MARKERS[place // len(COLOURS) % len(MARKERS)],
        )
        axes.scatter(
            mine[:, 0],
            mine[:, 1],
            s=12,
            color=colour,
            marker=marker,
            label=f"seen: {cut(names[label], 24)}",
        )
    axes.set_xticks([])
    axes.set_yticks([])
    columns = 1 + (len(seen) + 1) // LISTED
    figure.set_figwidth(figure.get_figwidth() + 1.8 * (columns - 1))
    figure.legend(fontsize=8, frameon=False, loc="outside right center", ncols=columns)
    save(figure, path)
