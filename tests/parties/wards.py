"""Small wards with pictures of their own, as folders of PNG files or as arrays."""

from pathlib import Path

import numpy as np
from PIL import Image

from ostraka.parties.task_file import TaskFile, make_task

CLASSES = ("bar", "cross", "dot", "frame")
SIDE = 12
SHORT = {"local.epochs": 2, "local.batch": 16}
"""Too short to learn, long enough to have every step."""


def pictures(names: tuple[str, ...], each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`each` grey pictures of every class, with its name."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 40, (each * len(names), SIDE, SIDE)).astype(np.uint8)
    y = np.repeat(names, each)
    for picture, name in zip(x, y, strict=True):
        a, b = rng.integers(2, SIDE - 2, 2)
        if name in ("bar", "cross"):
            picture[a] = 220
        if name == "cross":
            picture[:, b] = 220
        if name == "dot":
            picture[a - 2 : a + 2, b - 2 : b + 2] = 220
        if name == "frame":
            picture[[0, -1]] = picture[:, [0, -1]] = 220
    return x, y


def folder(path: Path, names: tuple[str, ...], each: int, seed: int = 0) -> Path:
    """The same as PNG files, a sub-folder for each class."""
    for i, (picture, name) in enumerate(zip(*pictures(names, each, seed), strict=True)):
        (path / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path / name / f"{i:03d}.png")
    return path


def short_task(**values: object) -> TaskFile:
    """Four classes, two epochs."""
    given = {"kind": "image", "shape": (1, SIDE, SIDE), "net": "mlp", "set": SHORT, **values}
    return make_task(CLASSES, **given)  # type: ignore[arg-type]
