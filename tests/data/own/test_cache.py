"""What is kept of a folder is checked, not trusted."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.data.own import Collection, Form, images, read
from ostraka.data.own.cache import cache_folder
from tests.data.own.making import image, pets


@pytest.fixture
def large(folder: Path) -> Path:
    """As many images as are kept."""
    return pets(folder, each=100, size=(2, 2))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the images that are decoded from now on."""
    names: list[str] = []
    plain = images.decoded

    def listening(file: images.File, *rest: object) -> object:
        names.append(file.name)
        return plain(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("ostraka.data.own.images.decoded", listening)
    return names


def kept() -> list[Path]:
    return sorted(cache_folder().glob("*"))


def same(one: Collection, two: Collection) -> bool:
    plain = [replace(each, samples=None, digest="").__dict__ for each in (one, two)]  # type: ignore[arg-type]
    return (
        plain[0] == plain[1]
        and torch.equal(one.samples.x, two.samples.x)
        and torch.equal(one.samples.labels, two.samples.labels)
        and one.samples.view == two.samples.view
        and one.digest == two.digest
    )


def test_a_folder_is_decoded_once(large: Path, decoded: list[str]) -> None:
    first = read(large)
    assert len(decoded) == 200
    second = read(large)
    assert len(decoded) == 200
    assert same(first, second)
    (file,) = kept()
    assert (file.stat().st_mode & 0o777, cache_folder().stat().st_mode & 0o777) == (0o600, 0o700)


def test_small_folders_and_those_who_ask_keep_nothing(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(pets(tmp_path / "few"))
    read(large, cache=False)
    monkeypatch.setenv("OSTRAKA_CACHE", "off")
    read(large)
    assert not cache_folder().exists()


@pytest.mark.parametrize("change", ["content", "time", "added", "removed", "renamed"])
def test_what_changed_is_read_again(large: Path, decoded: list[str], change: str) -> None:
    first, path = read(large), large / "cat" / "0.png"
    decoded.clear()
    if change == "content":
        image(path, (2, 2), seed=12345)
    elif change == "time":
        os.utime(path, ns=(1, 1))
    elif change == "added":
        image(large / "cat" / "new.png", (2, 2), seed=12345)
    elif change == "removed":
        path.unlink()
        image(large / "cat" / "new.png", (2, 2), seed=0)
    else:
        path.rename(large / "dog" / "moved.png")
    second = read(large)
    assert decoded
    assert same(first, second) == (change == "time")
    assert len(kept()) == 1  # one file for a folder


def test_another_form_is_kept_beside_it(large: Path) -> None:
    plain, small = read(large), read(large, Form("image", (3, 1, 1)))
    assert len(kept()) == 2
    assert same(read(large), plain)
    assert same(read(large, Form("image", (3, 1, 1))), small)
    assert not read(large, labelled=False).labelled
    assert len(kept()) == 3


@pytest.mark.parametrize("at", [0, 20, 50, 60, 300, -1])
def test_a_damaged_byte_is_noticed(large: Path, decoded: list[str], at: int) -> None:
    first = read(large)
    (file,) = kept()
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(bytes(content))
    decoded.clear()
    second = read(large)
    assert len(decoded) == 200
    assert second.notes == (f"{file} was damaged; it was made anew",)
    assert torch.equal(first.samples.x, second.samples.x)
    assert read(large).notes == ()


@pytest.mark.parametrize("length", [0, 10, 56, 100, 1000])
def test_a_file_that_was_cut_short_is_noticed(large: Path, length: int) -> None:
    first = read(large)
    (file,) = kept()
    file.write_bytes(file.read_bytes()[:length])
    second = read(large)
    assert "was damaged" in second.notes[0]
    assert torch.equal(first.samples.x, second.samples.x)


def test_a_cache_that_cannot_be_written_is_a_note(
    large: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = read(large)
    assert len(found) == 200
    assert "could not be kept in" in found.notes[0]
    assert "OSTRAKA_CACHE=off" in found.notes[0]


def test_a_full_disk_is_a_note(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "No space left on device" in read(large).notes[0]
    assert kept() == []


def test_samples_from_the_cache_are_those_of_the_files(large: Path) -> None:
    read(large)
    found = read(large)
    from PIL import Image

    for item, row in zip(found.items, found.samples.x, strict=True):
        assert np.array_equal(np.asarray(Image.open(large / item)), row[0].numpy())
