"""Pictures of outliers: samples, destroyed samples, and those after enhancement (FedOV, Figure 3);
and of samples that a generator makes.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ostraka.core.generator import TrainedGenerator
from ostraka.core.kind import Kind
from ostraka.core.net import Net
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.errors import ConfigError
from ostraka.nets.generator import draw_images
from ostraka.objectives.adversarial import enhance
from ostraka.objectives.destruction import FEDOV, GEOMETRY, OPERATIONS, destroy

SHOWN: Mapping[Kind, tuple[str, ...]] = {
    "image": (*FEDOV, "cutpaste", *GEOMETRY),
    "sound": (
        *("elastic", "patchswap", "mask", "shift", "paste", "swap"),
        *(name for name, operation in OPERATIONS.items() if "image" not in operation.kinds),
    ),
}
"""The operations that have a column."""

ROWS = COLUMNS = 10
INCHES = 6.0
"""Of the picture of what a generator makes."""

CELL = 0.8
"""Inches from one picture to the next."""


def draw_gallery(
    samples: Samples, path: Path, seed: int = 0, net: Net | None = None, count: int = 6
) -> None:
    """One row per sample: itself, each operation, one drawn from the mix `auto` and,
    with a trained `net`, that one enhanced.

    Enhancement moves every pixel by at most 0.01, which no eye sees:
    the last column shows the change, enlarged.
    """
    check_suffix(path)
    kind = samples.view.kind
    if kind == "table" or samples.shape[0] not in (1, 3):
        raise ConfigError(
            f"a gallery shows images of 1 or 3 channels; these samples have shape {samples.shape}"
        )
    x = samples.inputs(first_of_each_class(samples, count))
    rng = torch_rng(seed, "gallery")
    # Inputs need not lie between 0 and 1: black and white are the samples' own.
    black, white = x.min(), x.max()

    def shade(images: Tensor) -> Tensor:
        return (images - black) / (white - black).clamp(min=1e-12)

    columns = [("sample", shade(x))]
    columns += [(name, shade(destroy(x, rng, name, kind))) for name in SHOWN[kind]]
    mixed = destroy(x, rng, "auto", kind)
    columns.append(("random", shade(mixed)))
    if net is not None:
        enhanced = enhance(net.eval(), mixed).contiguous()
        columns.append(("enhanced", shade(enhanced)))
        columns.append(("change x25", 0.5 + 25 * (enhanced - mixed)))
    _draw(columns, path)


def first_of_each_class(samples: Samples, count: int) -> Tensor:
    """Positions of the first sample of each class,
    at most `count` of them, then more of the same.
    """
    labels = samples.labels
    firsts = [int((labels == c).nonzero()[0]) for c in labels.unique().tolist() if c >= 0]
    more = [i for i in range(len(labels)) if i not in firsts]
    return torch.tensor((firsts + more)[:count])


def _draw(columns: list[tuple[str, Tensor]], path: Path) -> None:
    rows = len(columns[0][1])
    figure = new_figure(CELL * len(columns), CELL * rows + 0.25)
    grid = figure.subplots(rows, len(columns), squeeze=False)
    for place, (name, images) in enumerate(columns):
        grid[0][place].set_title(name, fontsize=8)
        for axes, image in zip(grid[:, place], images, strict=True):
            shown = image.clamp(0, 1).permute(1, 2, 0).squeeze(-1).numpy()
            axes.imshow(shown, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
    save(figure, path)


def draw_images_of(generator: TrainedGenerator, path: Path, seed: int = 0) -> None:
    """A hundred samples, ten in a row."""
    check_suffix(path)
    made = draw_images(generator, ROWS * COLUMNS, generator.shape, torch_rng(seed, "picture"))
    shown = (made - generator.low) / (generator.high - generator.low)
    channels, height, width = generator.shape
    framed = torch.ones(ROWS * COLUMNS, channels, height + 1, width + 1)
    framed[:, :, :height, :width] = shown.clamp(0, 1)
    rows = framed.view(ROWS, COLUMNS, channels, height + 1, width + 1)
    mosaic = rows.permute(0, 3, 1, 4, 2).reshape(ROWS * (height + 1), COLUMNS * (width + 1), -1)
    figure = new_figure(INCHES, INCHES * height / width)
    figure.set_layout_engine("none")  # no room around the one picture
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(mosaic.squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    save(figure, path)
