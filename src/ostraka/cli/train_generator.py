"""`ostraka train-generator`: a generator of images, for fedos and for outliers."""

import argparse
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ostraka.cli.options import DATA_DIR, given, option, place
from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from ostraka.runs.generator_training import Told

NAME = "train-generator"
HELP = "train a generator of images (DCGAN) for fedos"
DESCRIPTION = "Train a DCGAN on unlabelled images; write its generator and a picture."
EXAMPLE = """\
examples:
  ostraka train-generator --data digits --epochs 2 --out generator.safetensors
  ostraka run fedos --set objective.generator=generator.safetensors --rounds 3

Stopped, the same command resumes where it was; finished, it leaves the file as
it is.
"""

OPTIONS = (
    option(
        "--data D",
        "data set or file, also one without labels: .npy, or .npz with x (default fashion-4k)",
        default="fashion-4k",
    ),
    DATA_DIR,
    option("--out FILE", "where to write it, such as generator.safetensors", place, required=True),
    option(
        "--picture FILE", "where to draw samples (default: beside the generator, as .png)", Path
    ),
    option("--epochs E", "passes over the images (default 25)", int),
    option("--images N", "learn from N images, drawn at random (default: all)", int),
    option("--batch B", "images per step (default 128)", int),
    option("--latent N", "random numbers that an image is made from (default 25)", int),
    option("--width N", "channels of the generator's narrowest layer (default 16)", int),
    option("--judge-width N", "channels of the discriminator's first layer (default 32)", int),
    option("--lr L", "learning rate of the generator (default 4e-4)", float),
    option("--judge-lr L", "learning rate of the discriminator (default 2e-4)", float),
    option("--seed S", "seed of everything random (default 0)", int),
    option("-q --quiet", "no progress"),
)


def act(options: argparse.Namespace) -> int:
    """Train, write, draw."""
    from ostraka.display.canvas import check_suffix
    from ostraka.display.gallery import draw_images_of
    from ostraka.runs.generator_training import GeneratorSettings, train_generator

    picture: Path = options.picture or options.out.with_suffix(".png")
    check_suffix(picture)  # before anything trains
    if picture.resolve() == options.out.resolve():
        raise ConfigError(
            f"the generator and the picture of its images would both be {picture}; name the "
            "generator otherwise (--out generator.safetensors), or the picture (--picture)"
        )
    there = options.out.exists()  # another file than its own is refused
    made = train_generator(
        options.data,
        options.out,
        options.data_dir,
        None if options.quiet else _Follow(),
        **given(options, (spec.name for spec in fields(GeneratorSettings))),
    )
    draw_images_of(made, picture)
    size = "x".join(map(str, made.shape))
    count = sum(tensor.numel() for tensor in made.params.values())
    title = "There already" if there else "Generator"
    print(f"{title}: {options.out} ({count:,} numbers, images of {size}). Drawn: {picture}")
    return 0


class _Follow:
    """Prints a line after every epoch."""

    def __init__(self) -> None:
        self.began, self.first = time.monotonic(), -1

    def __call__(self, told: "Told") -> None:
        """One line: epoch, losses, time left."""
        if self.first < 0:
            self.first = told.epoch - 1
        each = (time.monotonic() - self.began) / (told.epoch - self.first)
        left = each * (told.epochs - told.epoch)
        print(
            f"epoch {told.epoch}/{told.epochs}: discriminator {told.judge_loss:.3f}, generator "
            f"{told.loss:.3f}; about {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )
