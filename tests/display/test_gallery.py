"""The picture of outliers: every operation has a column with its name, in gray and in colour."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ostraka.core.net import Recipe
from ostraka.core.samples import Samples, View
from ostraka.display import gallery
from ostraka.display.gallery import draw_gallery
from ostraka.errors import ConfigError

PLAIN = [
    "sample", "crop", "blur", "erase", "cut", "rotate", "cutpaste", "stretch", "elastic", "mirror",
    "morph", "patches", "patchswap", "turn", "random",
]  # fmt: skip


def samples(shape: tuple[int, ...], count: int = 8) -> Samples:
    x = torch.rand(count, *shape, generator=torch.Generator().manual_seed(0))
    return Samples(x, torch.arange(count) % 3)


def titles(path: Path) -> list[str]:
    return re.findall(r"<text [^>]*>([^<]+)</text>", path.read_text())


SOUND = [
    "sample", "elastic", "patchswap", "mask", "shift", "paste", "swap", "bandswap", "reverse",
    "speed", "exchange", "shuffle", "noise", "mixup", "extrapolate", "extreme", "negate", "permute",
    "random",
]  # fmt: skip


def test_sound_has_columns_of_its_own(tmp_path: Path) -> None:
    path, some = tmp_path / "outliers.svg", samples((1, 20, 16))
    draw_gallery(replace(some, view=View(kind="sound")), path, count=2)
    assert titles(path) == SOUND


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 20, 16)], ids=str)
def test_every_operation_has_a_column(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "outliers.svg"
    draw_gallery(samples(shape), path, count=2)
    assert titles(path) == PLAIN
    assert path.read_text().count("<image") == 2 * len(PLAIN)


def test_a_member_adds_its_enhanced_outliers(tmp_path: Path) -> None:
    net = Recipe("simple-cnn").build_net((1, 16, 16), 3, unknown=True, seed=0)
    path = tmp_path / "outliers.svg"
    draw_gallery(samples((1, 16, 16)), path, net=net, count=1)
    assert titles(path) == [*PLAIN, "enhanced", "change x25"]


def test_the_seed_decides_the_picture(tmp_path: Path) -> None:
    one, same, other = (tmp_path / f"{name}.svg" for name in ("one", "same", "other"))
    for path, seed in ((one, 0), (same, 0), (other, 1)):
        draw_gallery(samples((1, 8, 8)), path, seed, count=1)
    assert one.read_bytes() == same.read_bytes() != other.read_bytes()


def test_only_images_of_one_or_three_channels_are_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="1 or 3 channels"):
        draw_gallery(samples((2, 16, 16)), tmp_path / "outliers.svg")


def test_standardised_samples_fill_the_range_of_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, torch.Tensor] = {}
    monkeypatch.setattr(gallery, "_draw", lambda columns, path: drawn.update(columns))
    x = torch.arange(2 * 100.0).view(2, 1, 10, 10) + 50
    samples = Samples(x, torch.tensor([0, 1]), view=View(mean=(149.5,), std=(57.7,)))
    gallery.draw_gallery(samples, Path("x.png"), count=2)
    assert drawn["sample"].min().item() == 0.0
    assert drawn["sample"].max().item() == pytest.approx(1.0)
    # values 50 to 249, evenly
    assert drawn["sample"][0, 0, 0, 1].item() == pytest.approx(1 / 199, rel=1e-4)
