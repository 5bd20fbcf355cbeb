"""`ostraka train-generator`: a generator of images, for fedos and for outliers."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostraka.cli.options import place
from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from ostraka.runs.generator_training import Told

NAME = "train-generator"

EXAMPLE = """\
examples:
  ostraka train-generator --data digits --epochs 2 --out generator.safetensors
  ostraka run fedos --set objective.generator=generator.safetensors --rounds 3

Stopped, the same command goes on where it was; finished, it leaves the file as it is.
"""

NUMBERS: dict[str, tuple[type, str, str]] = {
    "epochs": (int, "E", "passes over the images (default 25)"),
    "images": (int, "N", "learn from N images, drawn at random (default: all)"),
    "batch": (int, "B", "images per step (default 128)"),
    "latent": (int, "N", "random numbers that an image is made from (default 25)"),
    "width": (int, "N", "channels of the generator's narrowest layer (default 16)"),
    "judge_width": (int, "N", "channels of the discriminator's first layer (default 32)"),
    "lr": (float, "L", "learning rate of the generator (default 4e-4)"),
    "judge_lr": (float, "L", "learning rate of the discriminator (default 2e-4)"),
    "seed": (int, "S", "seed of everything random (default 0)"),
}
"""The settings of the training: kind, what stands for the value, help."""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="train a generator of images (DCGAN) for fedos",
        description="Train a DCGAN on unlabelled images; write its generator and a picture.",
        epilog=EXAMPLE,
    )
    parser.add_argument(
        "--data",
        default="fashion-4k",
        metavar="D",
        help="data set or file, also one without labels: .npy, or .npz with x (default fashion-4k)",
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)"
    )
    parser.add_argument(
        "--out",
        type=place,
        required=True,
        metavar="FILE",
        help="where to write it, such as generator.safetensors",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="where to draw samples (default: beside the generator, as .png)",
    )
    for name, (kind, metavar, words) in NUMBERS.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, metavar=metavar, help=words)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Train, write, draw."""
    from ostraka.display.canvas import check_suffix
    from ostraka.display.gallery import draw_images_of
    from ostraka.runs.generator_training import train_generator

    picture: Path = options.picture or options.out.with_suffix(".png")
    check_suffix(picture)  # before anything trains
    if picture.resolve() == options.out.resolve():
        raise ConfigError(
            f"the generator and the picture of its images would both be {picture}; name the "
            "generator otherwise (--out generator.safetensors), or the picture (--picture)"
        )
    there = options.out.exists()  # another file than its own is refused
    given = {name: getattr(options, name) for name in NUMBERS}
    made = train_generator(
        options.data,
        options.out,
        options.data_dir,
        None if options.quiet else _Follow(),
        **{name: value for name, value in given.items() if value is not None},
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
