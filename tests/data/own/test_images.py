"""Images of all modes and depths, against values known by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ostraka.data.own import Form, read
from ostraka.data.own.form import ANYTHING
from ostraka.errors import DataError
from tests.data.own.making import image, pets


def pixels(path: Path, form: Form = ANYTHING) -> list[list[list[int]]]:
    found: list[list[list[int]]] = read(path, form).samples.x[0].tolist()
    return found


def test_a_folder_has_a_class_for_each_sub_folder(folder: Path) -> None:
    found = read(pets(folder))
    assert found.name == "own"
    assert found.classes == ("cat", "dog")
    assert found.items == ("cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png")
    assert found.samples.labels.tolist() == [0, 0, 1, 1]
    assert found.form == Form("image", (1, 4, 4))
    assert found.samples.x.dtype == torch.uint8
    assert (
        found.samples.x[2, 0].tolist() == np.asarray(Image.open(folder / "dog" / "0.png")).tolist()
    )
    assert found.samples.inputs().max() <= 1
    assert found.notes == ()


def test_labels_may_be_left(folder: Path) -> None:
    found = read(pets(folder), labelled=False)
    assert found.classes == ()
    assert len(found) == 4


def test_one_image_is_a_collection_of_one(folder: Path) -> None:
    found = read(image(folder / "a.PNG"))
    assert (len(found), found.labelled, found.items) == (1, False, ("a.PNG",))


def test_one_sample_is_enough(folder: Path) -> None:
    image(folder / "cat" / "a.png")
    assert read(folder, labelled=True).counts() == {"cat": 1}


@pytest.mark.parametrize("end", ["png", "tif", "bmp"])
def test_lossless_formats_keep_every_value(folder: Path, end: str) -> None:
    path = image(folder / f"a.{end}", (3, 5), colours=True)
    expected = np.asarray(Image.open(path)).transpose(2, 0, 1)
    assert (read(path).samples.x[0].numpy() == expected).all()


def test_jpeg_is_near(folder: Path) -> None:
    Image.new("RGB", (8, 8), (200, 100, 50)).save(folder / "a.jpeg", quality=95)
    assert np.abs(read(folder / "a.jpeg").samples.x[0, :, 3, 3].numpy() - [200, 100, 50]).max() < 5


def test_16_bits_become_8_by_white(folder: Path) -> None:
    """65535 is 255, 32768 is 127.5 (rounded up to 128), 257 is 1 and 128 is 0.498, so 0."""
    values = np.array([[0, 128, 257], [32768, 65534, 65535]], np.uint16)
    for end in ("png", "tif"):
        Image.fromarray(values).save(folder / f"a.{end}")
        assert pixels(folder / f"a.{end}") == [[[0, 0, 1], [128, 255, 255]]]


def test_12_bits_need_their_white(folder: Path) -> None:
    values = np.array([[0, 2048, 4095]], np.uint16)
    Image.fromarray(values).save(folder / "a.png")
    dark = read(folder / "a.png")
    assert dark.samples.x.max() == 16
    assert "reach 4095 where 65535 is white" in dark.notes[0]
    assert "white = 4095" in dark.notes[0]
    light = read(folder / "a.png", Form(white=4095))
    assert light.samples.x[0, 0, 0].tolist() == [0, 128, 255]
    assert light.notes == ()


def test_big_endian_16_bits(folder: Path) -> None:
    """A TIFF by hand: one strip of 2 x 1 values, 0x0101 and 0xffff."""
    tags = [
        (256, 3, 2 << 16), (257, 3, 1 << 16), (258, 3, 16 << 16), (259, 3, 1 << 16),
        (262, 3, 1 << 16), (273, 4, 122), (277, 3, 1 << 16), (278, 3, 1 << 16), (279, 4, 4),
    ]  # fmt: skip
    body = len(tags).to_bytes(2, "big") + b"".join(
        tag.to_bytes(2, "big") + kind.to_bytes(2, "big") + (1).to_bytes(4, "big")
        + value.to_bytes(4, "big")
        for tag, kind, value in tags
    )  # fmt: skip
    content = b"MM\0*\0\0\0\x08" + body + bytes(4)
    assert len(content) == 122
    (folder / "a.tif").write_bytes(content + b"\x01\x01\xff\xff")
    assert pixels(folder / "a.tif") == [[[1, 255]]]


def test_what_is_transparent_lies_on_white(folder: Path) -> None:
    """Half of black on white is grey; all transparent is white, whatever colour is below it."""
    values = np.array([[[0, 0, 0, 255], [0, 0, 0, 0], [0, 0, 0, 128]]], np.uint8)
    Image.fromarray(values).save(folder / "a.png")
    assert pixels(folder / "a.png") == [[[0, 255, 127]]] * 3
    assert pixels(folder / "a.png", Form("image", (1, 1, 3))) == [[[0, 255, 127]]]
    four = pixels(folder / "a.png", Form("image", (4, 1, 3)))
    assert four == values.transpose(2, 0, 1).tolist()


def test_grey_with_transparency(folder: Path) -> None:
    Image.fromarray(np.array([[[10, 255], [10, 0]]], np.uint8)).save(folder / "a.png")
    found = read(folder / "a.png")
    assert found.samples.x[0].tolist() == [[[10, 255]]]


def test_a_palette_is_its_colours(folder: Path) -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([0, 0, 0, 255, 10, 20])
    picture.putpixel((1, 0), 1)
    picture.save(folder / "a.png")
    assert pixels(folder / "a.png") == [[[0, 255]], [[0, 10]], [[0, 20]]]
    picture.save(folder / "clear.png", transparency=0)
    assert pixels(folder / "clear.png") == [[[255, 255]], [[255, 10]], [[255, 20]]]


def test_black_and_white(folder: Path) -> None:
    Image.fromarray(np.array([[True, False]])).save(folder / "a.png")
    assert pixels(folder / "a.png") == [[[255, 0]]]


def test_ink_is_turned_into_light(folder: Path) -> None:
    Image.new("CMYK", (1, 1), (255, 0, 0, 0)).save(folder / "a.tif")
    assert pixels(folder / "a.tif") == [[[0]], [[255]], [[255]]]


def test_the_camera_was_turned(folder: Path) -> None:
    """Orientation 6: the first row of what is stored is the right column of what was seen."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.array([[1, 2, 3]], np.uint8)).save(folder / "a.png", exif=exif)
    found = read(folder / "a.png")
    assert found.form.shape == (1, 3, 1)
    assert found.samples.x[0].tolist() == [[[1], [2], [3]]]


def test_colours_as_grey_and_grey_as_colours(folder: Path) -> None:
    """Grey is 0.299 red + 0.587 green + 0.114 blue."""
    Image.new("RGB", (1, 1), (100, 200, 50)).save(folder / "a.png")
    assert pixels(folder / "a.png", Form("image", (1, 1, 1))) == [[[153]]]
    Image.new("L", (1, 1), 7).save(folder / "b.png")
    assert pixels(folder / "b.png", Form("image", (3, 1, 1))) == [[[7]]] * 3


def test_a_form_scales_and_says_what_it_stretched(folder: Path) -> None:
    Image.fromarray(
        np.kron(np.array([[0, 100], [200, 40]]), np.ones((4, 4))).astype(np.uint8)
    ).save(image(folder / "cat" / "a.png"))
    image(folder / "cat" / "b.png", (8, 16))
    found = read(folder, Form("image", (1, 2, 2)))
    assert found.samples.x[0, 0].tolist()[0][0] < found.samples.x[0, 0].tolist()[0][1]
    assert found.form.shape == (1, 2, 2)
    assert "1 image has other proportions than the shape (cat/b.png); stretched" in found.notes[0]


@pytest.mark.parametrize("turned", [1, 6])
def test_a_large_jpeg_is_decoded_no_finer_than_needed(folder: Path, turned: int) -> None:
    """A ramp from left to right, scaled to 8 x 16: within 2 levels of the mean of each part."""
    exif = Image.Exif()
    exif[0x0112] = turned
    ramp = np.tile(np.linspace(0, 255, 640), (320, 1)).astype(np.uint8)
    Image.fromarray(ramp).save(folder / "a.jpg", quality=95, exif=exif)
    shape = (1, 8, 16) if turned == 1 else (1, 16, 8)
    found = read(folder / "a.jpg", Form("image", shape))
    assert found.notes == ()
    values = found.samples.x[0, 0].numpy()
    row = values[4] if turned == 1 else values[:, 4]
    expected = ramp[0].reshape(16, 40).mean(axis=1)
    assert np.abs(row[1:-1] - expected[1:-1]).max() < 2


def test_mixed_modes_are_read_as_colours(folder: Path) -> None:
    image(folder / "cat" / "a.png")
    image(folder / "cat" / "b.png", colours=True)
    found = read(folder)
    assert found.form.shape == (3, 4, 4)
    assert found.notes == (
        "1 of 2 images are grey, the others have colours; all are read as colours",
    )


def test_the_first_page_is_read(folder: Path) -> None:
    first, second = Image.new("L", (2, 2), 5), Image.new("L", (2, 2), 9)
    first.save(folder / "a.tif", save_all=True, append_images=[second])
    found = read(folder / "a.tif")
    assert found.samples.x.unique().tolist() == [5]
    assert "1 file has several pages or frames (a.tif); the first was read" in found.notes[0]


def test_broken_images_are_left_out_if_asked(folder: Path) -> None:
    (pets(folder) / "cat" / "0.png").write_text("no image")
    with pytest.raises(DataError, match=r"cat/0.png is no image"):
        read(folder)
    found = read(folder, skip_broken=True)
    assert found.items == ("cat/1.png", "dog/0.png", "dog/1.png")
    assert found.samples.labels.tolist() == [0, 1, 1]
    assert (
        found.samples.x[0, 0].tolist() == np.asarray(Image.open(folder / "cat" / "1.png")).tolist()
    )
    assert "1 file (cat/0.png) could not be read, left out; the first: cat/0.png" in found.notes[0]


def test_all_broken_images_are_named_at_once(folder: Path) -> None:
    pets(folder, each=10)
    for number in range(5):
        (folder / "cat" / f"{number}.png").write_text("no image")
    names = r"cat/0.png, cat/1.png, cat/2.png, cat/3.png, cat/4.png"
    with pytest.raises(DataError, match=rf"^5 files \({names}\) cannot be read; the first: cat/0"):
        read(folder)
    with pytest.raises(DataError, match=r"To leave out what cannot be read: --skip-broken \(ostr"):
        read(folder)
    for number in range(5):
        (folder / "dog" / f"{number}.png").write_text("no image")
    with pytest.raises(DataError, match=rf"^at least 6 files \({names} and 1 more\)"):
        read(folder)
    assert len(read(folder, skip_broken=True)) == 10


def test_more_than_a_batch_stays_in_order(folder: Path) -> None:
    for number in range(150):
        Image.new("L", (1, 1), number).save(folder / f"{number:03}.png")
    assert read(folder).samples.x.flatten().tolist() == list(range(150))
