"""Training of a generator: stopped and gone on with to the bit, from any images, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ostraka.core.seeds import torch_rng
from ostraka.errors import ConfigError, DataError, Interrupted
from ostraka.nets.generator import draw_images
from ostraka.runs.generator import load_generator
from ostraka.runs.generator_training import Told, train_generator

SMALL: dict[str, Any] = {"epochs": 2, "batch": 32, "latent": 3, "width": 1, "judge_width": 2}


def images(folder: Path, count: int = 80, **more: Any) -> str:
    x = np.random.default_rng(0).integers(0, 256, (count, 8, 8), np.uint8)
    np.savez(folder / "x.npz", x=x, **more)
    return str(folder / "x.npz")


def test_a_stopped_training_goes_on_to_the_bit(tmp_path: Path) -> None:
    """A kill in the middle of the second epoch; saved after every step."""
    data = images(tmp_path)
    whole = train_generator(data, tmp_path / "a.safetensors", **SMALL)
    told = list[int]()

    def stop(now: Told) -> None:
        told.append(now.epoch)
        if len(told) == 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="the same command goes on"):
        train_generator(data, tmp_path / "b.safetensors", tell=stop, save_seconds=0, **SMALL)
    assert (tmp_path / "b.safetensors.progress").exists()
    assert not (tmp_path / "b.safetensors").exists()
    again = train_generator(data, tmp_path / "b.safetensors", tell=stop, **SMALL)
    assert told == [1, 2], "the first epoch was not made again"
    assert again.sha256 == whole.sha256
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert not (tmp_path / "b.safetensors.progress").exists()


def test_stopped_before_anything_was_saved(tmp_path: Path) -> None:
    def stop(now: Told) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"in its first 20 seconds.*command begins anew"):
        train_generator(images(tmp_path), tmp_path / "g.safetensors", tell=stop, **SMALL)
    assert not list(tmp_path.glob("g.*"))


def test_stopped_inside_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ostraka.runs import generator_training as module

    data, steps, told = images(tmp_path, 160), list[int](), list[Told]()
    whole = train_generator(data, tmp_path / "a.safetensors", tell=told.append, **SMALL)
    usual = module._Training._one_step

    def killed(self: Any, real: Any, noise: Any) -> tuple[float, float]:
        steps.append(1)
        if len(steps) == 8:  # the third of five steps of the second epoch
            raise KeyboardInterrupt
        return usual(self, real, noise)

    monkeypatch.setattr(module._Training, "_one_step", killed)
    with pytest.raises(Interrupted):
        train_generator(data, tmp_path / "b.safetensors", save_seconds=0, **SMALL)
    last = list[Told]()
    again = train_generator(data, tmp_path / "b.safetensors", tell=last.append, **SMALL)
    assert len(steps) == 8 + 3
    assert again.sha256 == whole.sha256
    assert last == told[1:], "the mean losses are those of the whole epoch"


def test_noise_and_order_are_drawn_anew_in_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ostraka.runs import generator_training as module

    met, usual = list[tuple[float, ...]](), module._Training._one_step

    def seen(self: Any, real: torch.Tensor, noise: torch.Tensor) -> tuple[float, float]:
        met.append((float(real.double().sum()), float(noise.double().sum())))
        return usual(self, real, noise)

    monkeypatch.setattr(module._Training, "_one_step", seen)
    train_generator(images(tmp_path, 160), tmp_path / "a.safetensors", **SMALL)
    assert len(met) == 2 * 5
    assert all(len(set(values)) == len(met) for values in zip(*met, strict=True))


def test_other_settings_do_not_go_on_with_it(tmp_path: Path) -> None:
    data = images(tmp_path)

    def stop(now: Told) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train_generator(data, tmp_path / "g.safetensors", tell=stop, save_seconds=0, **SMALL)
    begun = (tmp_path / "g.safetensors.progress").read_bytes()
    with pytest.raises(ConfigError, match=r"begun with other settings.*remove it to begin anew"):
        train_generator(data, tmp_path / "g.safetensors", **{**SMALL, "seed": 1})
    assert (tmp_path / "g.safetensors.progress").read_bytes() == begun


def test_a_folder_is_refused_before_anything_trains(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder; give a file in it"):
        train_generator(images(tmp_path), tmp_path, tell=lambda told: pytest.fail("it trains"))


def test_the_card_says_where_it_is_from(tmp_path: Path) -> None:
    train_generator("digits", tmp_path / "g.safetensors", images=100, seed=4, **SMALL)
    card = load_generator(tmp_path / "g.safetensors")
    assert (card.shape, card.low, card.high) == ((1, 8, 8), 0.0, 1.0)
    assert card.about["classes"] == [str(digit) for digit in range(10)]
    told = {key: card.about[key] for key in ("data", "images", "seed", "epochs", "batch")}
    assert told == {"data": "digits", "images": 100, "seed": 4, "epochs": 2, "batch": 32}
    assert len(card.about["fingerprint"]) == 32


def test_what_is_finished_is_not_trained_again(tmp_path: Path) -> None:
    """It is the generator that is there, unless it is another one; that stays as it is."""
    data, out = images(tmp_path), tmp_path / "g.safetensors"
    made = train_generator(data, out, **SMALL)
    before = out.read_bytes(), out.stat().st_mtime_ns
    again = train_generator(data, out, tell=lambda told: pytest.fail("it trains"), **SMALL)
    assert again.sha256 == made.sha256
    for other in ({"epochs": 3}, {"seed": 1}):
        with pytest.raises(ConfigError, match=r"is there already, and is not what"):
            train_generator(data, out, **{**SMALL, **other})
    assert (out.read_bytes(), out.stat().st_mtime_ns) == before
    (tmp_path / "notes.txt").write_text("no generator")
    with pytest.raises(ConfigError, match="Choose another --out, or delete it"):
        train_generator(data, tmp_path / "notes.txt", **SMALL)


@pytest.mark.parametrize("kind", ["npy", "npz", "labelled"])
def test_images_with_and_without_labels(tmp_path: Path, kind: str) -> None:
    """The same images give the same generator, whatever they are stored in."""
    data = images(tmp_path)
    x = np.load(data)["x"]
    if kind == "npy":
        data = str(tmp_path / "x.npy")
        np.save(data, x)
    if kind == "labelled":
        y = np.arange(80) % 2
        np.savez(tmp_path / "y.npz", x_train=x, y_train=y, x_test=x[:4], y_test=y[:4])
        data = str(tmp_path / "y.npz")
    made = train_generator(data, tmp_path / "g.safetensors", **{**SMALL, "epochs": 1})
    first = train_generator(images(tmp_path), tmp_path / "h.safetensors", **{**SMALL, "epochs": 1})
    assert made.sha256 == first.sha256


def test_numbers_keep_their_range(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(-3, 5, (70, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    made = train_generator(str(tmp_path / "x.npy"), tmp_path / "g.safetensors", **SMALL)
    assert (made.low, made.high) == (float(x.min()), float(x.max()))


def test_it_learns(tmp_path: Path) -> None:
    """White left halves, black right ones: so are the images that it makes."""
    x = np.zeros((256, 8, 8), np.uint8)
    x[:, :, :4] = 255
    np.save(tmp_path / "x.npy", x)
    made = train_generator(
        str(tmp_path / "x.npy"),
        tmp_path / "g.safetensors",
        epochs=25,
        batch=64,
        width=2,
        lr=0.002,
        judge_lr=0.001,
    )
    drawn = draw_images(made, 50, (1, 8, 8), torch_rng(0))
    assert drawn[..., :4].mean() > 0.8
    assert drawn[..., 4:].mean() < 0.2
    assert torch.isfinite(drawn).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": 20}, "trained on 20 images here; give between 64"),
        ({"images": 81}, "which are there"),
        ({"batch": 81}, "give between 81"),
        ({"epochs": 0}, "epochs"),
        ({"latent": 5000}, "latent"),
        ({"width": 0}, "width"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train_generator(images(tmp_path), tmp_path / "g.safetensors", **{**SMALL, **given})


def test_data_that_is_no_images(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.ones((90, 4), np.float32))
    with pytest.raises(DataError, match="a generator makes images"):
        train_generator(str(tmp_path / "rows.npy"), tmp_path / "g.safetensors", **SMALL)
    np.savez(tmp_path / "other.npz", z=np.ones(3))
    with pytest.raises(DataError, match="has no images: it holds z"):
        train_generator(str(tmp_path / "other.npz"), tmp_path / "g.safetensors", **SMALL)
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(DataError, match="no array of numbers"):
        train_generator(str(tmp_path / "bad.npy"), tmp_path / "g.safetensors", **SMALL)
    np.save(tmp_path / "one.npy", np.ones((90, 8, 8), np.float32))
    with pytest.raises(ConfigError, match="nothing to learn"):
        train_generator(str(tmp_path / "one.npy"), tmp_path / "g.safetensors", **SMALL)
