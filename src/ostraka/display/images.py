"""A picture of samples that a generator makes."""

from pathlib import Path

import torch

from ostraka.core.generator import TrainedGenerator
from ostraka.core.seeds import torch_rng
from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.nets.generator import draw_images

ROWS = COLUMNS = 10
INCHES = 6.0


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
