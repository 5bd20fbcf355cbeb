"""Where the parties' closed-set and open-set subnetworks lie: Figures 3, 4 and 6 of FedPD
(Yang et al., ICCV 2023).

Above, one party's first layer: which of its weights belong to which subnetwork. Below, for every
unit (a channel of a convolution) and every party, which share of the unit's weights is in the
closed-set and in the open-set subnetwork.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ostraka.alignment.masks import MaskRecord
from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

LAYERS = 6
"""At most so many layers are drawn: the first, the last, and others evenly between."""

HIGHEST = 2.4
"""Inches of a layer's picture at most; of more parties than it has
lines for only some are numbered.
"""

PARTS = (
    ("neither", "0.93"),
    ("closed set only", "#0072B2"),
    ("open set only", "#D55E00"),
    ("shared", "#009E73"),
)
"""Names and colours of the codes 0 to 3."""


def draw_masks(kept: MaskRecord, path: Path, party: int = 0) -> None:
    """Draw one party's first layer and all parties' subnetworks."""
    check_suffix(path)
    if party not in kept.parties:
        have = ", ".join(map(str, kept.parties))
        raise ConfigError(
            f"party {party} sent no masks in the last round; parties that did: {have}"
        )
    layers = chosen(list(kept.close))
    each = 0.35 + min(max(0.18 * len(kept.parties), 0.5), HIGHEST)
    figure = new_figure(9, 2.6 + each * len(layers) + 0.5)
    grid = figure.add_gridspec(len(layers) + 1, 2, height_ratios=[2.4, *[each] * len(layers)])
    _first_layer(figure.add_subplot(grid[0, :]), kept, party, next(iter(kept.close)))
    rows, image = [], None
    for i, layer in enumerate(layers, 1):
        parts = ("closed", kept.close[layer]), ("open", kept.open[layer])
        for column, (name, values) in enumerate(parts):
            axes = figure.add_subplot(grid[i, column])
            image = _units(axes, values, kept.parties)
            # the mean over pairs of parties of the weights in both masks over those in either
            overlap = kept.overlap[layer][column].numpy()
            pairs = overlap[np.triu_indices(len(overlap), 1)]
            said = f", two parties agree on {float(pairs.mean()):.0%}" if len(pairs) else ""
            axes.set_title(
                f"{layer.removesuffix('.weight')}, {name} set{said}", fontsize=8, loc="left", pad=3
            )
            rows.append(axes)
    assert image is not None
    bar = figure.colorbar(image, ax=rows, pad=0.01, aspect=40)
    bar.set_label("share of the unit's weights", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    rows[-2].set_xlabel("unit", fontsize=8)
    rows[-1].set_xlabel("unit", fontsize=8)
    save(figure, path)


def chosen(layers: list[str]) -> list[str]:
    """At most LAYERS of them, first and last among them."""
    if len(layers) <= LAYERS:
        return layers
    return [layers[round(i * (len(layers) - 1) / (LAYERS - 1))] for i in range(LAYERS)]


def _first_layer(axes: "Axes", kept: MaskRecord, party: int, layer: str) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    place = kept.parties.index(party)
    codes, shares = kept.first[place].numpy(), kept.shares[layer][place]
    colours = ListedColormap([colour for _, colour in PARTS])
    axes.imshow(codes, cmap=colours, vmin=0, vmax=3, aspect="auto", interpolation="nearest")
    axes.set_title(
        f"party {party}, {layer.removesuffix('.weight')}: its weights", fontsize=9, loc="left"
    )
    axes.set_xlabel("weight of the unit", fontsize=8)
    axes.set_ylabel("unit", fontsize=8)
    axes.tick_params(labelsize=7)
    patches = [
        Patch(color=colour, label=f"{name} {float(share):.0%}")
        for (name, colour), share in zip(PARTS, shares, strict=True)
    ]
    where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.98)}
    axes.legend(handles=patches, fontsize=8, frameon=False, ncols=4, **where)


def _units(axes: "Axes", values: Tensor, parties: tuple[int, ...]) -> "AxesImage":
    image = axes.imshow(
        values.numpy(), cmap="viridis", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    every = -(-len(parties) // int(HIGHEST / 0.18))
    axes.set_yticks(range(0, len(parties), every), [str(p) for p in parties[::every]])
    axes.set_ylabel("party", fontsize=7)
    axes.tick_params(labelsize=7, length=2)
    return image
