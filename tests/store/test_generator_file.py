"""Generator files: what was written is read, anything else is refused with its reason."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from ostraka.core.generator import TrainedGenerator
from ostraka.core.samples import Samples, View
from ostraka.data.dataset import Dataset
from ostraka.errors import ConfigError, StoreError
from ostraka.runs.config import make
from ostraka.runs.generator import READY, load_generator, told_of
from ostraka.runs.plan import make_plan
from ostraka.store import codec
from ostraka.store import generator as files
from ostraka.store.generator import read_generator, save_generator
from ostraka.testing.stage import untrained_generator

OWN = replace(untrained_generator(), about={"data": "digits", "epochs": 3, "seed": 1})


def written(path: Path, **changes: Any) -> Path:
    """A file whose content was changed before it was written."""
    made = save_generator(path, OWN)
    content = {
        "generator": 1,
        "shape": made.shape,
        "latent": made.latent,
        "width": made.width,
        "range": (made.low, made.high),
        "about": dict(made.about),
        "sha256": made.sha256,
        "weights": dict(made.params),
        **changes,
    }
    given = {key: value for key, value in content.items() if value is not None}
    path.write_bytes(codec.encode(given, bare="weights"))
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    made = save_generator(tmp_path / "g.safetensors", OWN)
    found = load_generator(tmp_path / "g.safetensors")
    assert (found.shape, found.latent, found.width) == ((1, 8, 8), 3, 1)
    assert (found.low, found.high, found.about) == (-1.0, 1.0, OWN.about)
    assert found.sha256 == made.sha256 != ""
    assert all(torch.equal(found.params[name], OWN.params[name]) for name in OWN.params)
    with safe_open(tmp_path / "g.safetensors", "pt") as file:  # any reader lists the tensors
        assert set(file.keys()) == set(OWN.params)
    assert (
        written(tmp_path / "h.safetensors").read_bytes()
        == (tmp_path / "g.safetensors").read_bytes()
    ), "the same generator is the same file"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"generator": 2}, "format 2; this version reads 1"),
        ({"generator": None}, "holds no generator"),
        ({"generator": True}, "holds no generator"),
        ({"shape": (1, 8)}, "its shape is"),
        ({"shape": (1, 8, 100_000)}, "its shape is"),
        ({"shape": (2, 8, 8)}, "its shape is"),
        ({"latent": 10**9}, "its latent is 1000000000"),
        ({"latent": 0}, "its latent is 0"),
        ({"width": 1000}, "its width is 1000"),
        ({"width": None}, "its width is missing"),
        ({"range": (1.0, 0.0)}, "its range is"),
        ({"range": (0.0,)}, "its range is"),
        ({"about": None}, "its about is missing"),
        ({"sha256": "0"}, "do not fit the hash"),
        ({"shape": (3, 8, 8)}, "layers.6.weight is torch.float32 of shape"),
        ({"width": 2}, "and must be torch.float32 of shape"),
    ],
)
def test_a_card_that_cannot_be_true_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        load_generator(written(tmp_path / "g.safetensors", **changes))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(tmp_path: Path, value: float) -> None:
    bad = dict(OWN.params)
    bad["layers.0.weight"] = torch.full_like(bad["layers.0.weight"], value)
    made = save_generator(tmp_path / "g.safetensors", replace(OWN, params=bad))
    assert made.sha256
    with pytest.raises(StoreError, match=r"layers\.0\.weight is not finite"):
        read_generator(tmp_path / "g.safetensors")


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="ostraka train-generator --data DATA --out"):
        load_generator(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(StoreError, match="5 bytes, which is no safetensors file"):
        load_generator(tmp_path / "text.safetensors")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="is a pipe"):  # and nobody waits for its writer
        load_generator(tmp_path / "pipe")
    whole = save_generator(tmp_path / "g.safetensors", OWN) and (tmp_path / "g.safetensors")
    data = bytearray(whole.read_bytes())
    data[-5] ^= 1
    whole.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        load_generator(whole)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    with pytest.raises(StoreError, match="a generator has at most 10"):
        read_generator(whole)


def test_one_whose_images_are_no_numbers_is_refused(tmp_path: Path) -> None:
    """Both ends of its range are finite, and what lies between them is not."""
    save_generator(tmp_path / "g.safetensors", replace(OWN, low=-1e308, high=1e308))
    with pytest.raises(StoreError, match="the values of its images are NaN or infinite"):
        load_generator(tmp_path / "g.safetensors")


def test_the_ready_one_is_the_small_dcgan_of_the_bundled_images() -> None:
    ready = load_generator()
    assert (ready.shape, ready.latent, ready.width) == ((1, 28, 28), 25, 16)
    assert ready.about["data"] == "fashion-4k"
    assert ready.about["images"] == 4000
    assert ready.about["classes"][8] == "Bag"


@pytest.mark.parametrize(
    ("name", "data", "side", "said"),
    [
        (READY, "digits", 8, ["makes images of 1x28x28; they are resized to 1x8x8"]),
        (READY, "fashion-mnist", 28, ["which a server would not have"]),
        (READY, "mnist", 28, []),
        ("mine", "fashion-4k", 28, ["which a server would not have"]),
    ],
)
def test_what_is_said_of_a_generator(name: str, data: str, side: int, said: list[str]) -> None:
    pixels = torch.zeros(2, 1, side, side, dtype=torch.uint8)
    held = _held(
        Samples(pixels, torch.zeros(2)), ("Bag", "Coat") if "fashion" in data else ("A", "B")
    )
    notes = told_of(_like_ready(), name, data, held)
    assert len(notes) == len(said)
    assert all(words in note for words, note in zip(said, notes, strict=True))


@pytest.mark.parametrize(
    ("high", "scale", "told"), [(255.0, 1.0, 1), (255.0, 1 / 255, 0), (1.5, 1.0, 0), (0.4, 1.0, 1)]
)
def test_numbers_of_another_range_are_told_of(high: float, scale: float, told: int) -> None:
    """A generator of values from 0 to 1 beside images from 0 to `high`, as their view scales."""
    x = torch.tensor([0.0, high]).view(2, 1, 1, 1).expand(2, 1, 28, 28)
    images = Samples(x, torch.zeros(2), view=View(scale=scale))
    notes = told_of(replace(_like_ready(), low=0.0, high=1.0), "mine", "own.npz", _held(images))
    assert len(notes) == told
    assert all(
        f"makes values from 0 to 1, the images of own.npz lie between 0 and {high:g}" in note
        for note in notes
    )


SEEN = "was trained on images of 1 unknown classes (Bag): "
NOT_SEEN = "an AUROC of 97 with them and of 53 without on Fashion-MNIST"


@pytest.mark.parametrize(
    ("about", "data", "said"),
    [
        ({"data": "fashion-4k", "classes": ["Bag", "Coat"]}, "fashion-mnist", SEEN),
        ({"data": "own.npz", "classes": []}, "own.npz", SEEN),
        ({"data": "all.npy", "classes": []}, "own.npz", "does not tell which classes"),
        ({"data": "fashion-4k", "classes": ["Coat"]}, "fashion-mnist", "a server would not have"),
        ({"data": "letters", "classes": ["A", "B"]}, "fashion-mnist", ""),
    ],
)
def test_a_generator_that_has_seen_unknown_classes_comes_with_both_halves_of_the_note(
    about: dict[str, Any], data: str, said: str
) -> None:
    """By the names of the classes on its card, or as it was trained on the very data."""
    images = Samples(torch.zeros(2, 1, 28, 28, dtype=torch.uint8), torch.zeros(2))
    held = _held(images, ("Coat",), ("Bag",))
    notes = told_of(replace(_like_ready(), about=about), "mine.safetensors", data, held)
    assert len(notes) == bool(said)
    assert said in "".join(notes)
    if "unknown" in said or "does not tell" in said:
        assert NOT_SEEN in notes[0]
        assert "mine.safetensors" in notes[0]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"method": "fedos"}, "objective.generator=ready"),
        (
            {"method": "fedov", "set": {"objective": {"outliers": "generator"}}},
            "objective.outliers=generator:ready",
        ),
    ],
)
def test_the_packaged_one_is_refused_where_it_has_seen_unknown_classes(
    settings: dict[str, Any], name: str
) -> None:
    """Unless it is asked for by name; where it has not, or no class is unknown, it is there."""
    base = {"data": "fashion-4k", "parties": 2, "partition": "iid", "train_per_class": 5}
    with pytest.raises(ConfigError, match=r"4 unknown classes \(Ankle boot, Bag, Shirt") as caught:
        make_plan(make({**base, **settings, "known": 6}))
    assert name in str(caught.value)
    key, _, value = name.removeprefix("objective.").partition("=")
    chosen = {**base, **settings, "set": {"objective": {key: value}}}
    plan = make_plan(make({**chosen, "known": 6}))
    assert sum("ready was trained on images of 4 unknown" in note for note in plan.notes) == 1
    assert sum(NOT_SEEN in note for note in plan.notes) == 1
    all_known = make_plan(make({**base, **settings}))
    assert any("ready was trained on images like those" in note for note in all_known.notes)
    make_plan(make({**base, **settings, "data": "digits", "known": 6}))


def _held(images: Samples, known: tuple[str, ...] = (), unknown: tuple[str, ...] = ()) -> Dataset:
    return Dataset("toy", known, images, images, info={"unknown": list(unknown)})


def _like_ready() -> TrainedGenerator:
    about = {"data": "fashion-4k", "classes": ["Bag", "Coat"]}
    return replace(OWN, shape=(1, 28, 28), low=0.0, about=about)
