"""Broken and hostile data: each gets a sentence that names the file and says what to do.

Nothing else than our own errors is raised, and nothing takes long (see conftest).
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ostraka.data.own import Column, Form, read
from ostraka.errors import OstrakaError
from tests.data.own.making import as_bits, bmp, image, pets, png, tone, wav

Make = Callable[[Path], Path]


def holding(name: str, content: bytes | str) -> Make:
    """Two good images, and a third file in the folder of the cats."""

    def make(folder: Path) -> Path:
        raw = content.encode() if isinstance(content, str) else content
        (pets(folder) / "cat" / name).write_bytes(raw)
        return folder

    return make


def one(name: str, content: bytes | str) -> Make:
    """A single file."""

    def make(folder: Path) -> Path:
        raw = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(raw)
        return folder / name

    return make


def half(path: Path) -> Path:
    """The file with the second half of it gone."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def cut_image(end: str) -> Make:
    def make(folder: Path) -> Path:
        half(image(pets(folder) / "cat" / f"cut.{end}", (64, 64), colours=True))
        return folder

    return make


def wrong_check(folder: Path) -> Path:
    content = bytearray(image(pets(folder, 1) / "cat" / "0.png").read_bytes())
    content[30] ^= 255  # in the check sum of its header
    (folder / "cat" / "0.png").write_bytes(bytes(content))
    return folder


def mixed_sizes(folder: Path) -> Path:
    image(pets(folder) / "dog" / "wide.png", (4, 9))
    return folder


def saved(name: str, values: Any) -> Make:
    def make(folder: Path) -> Path:
        Image.fromarray(values).save(pets(folder) / "cat" / name)
        return folder

    return make


def a_gif(folder: Path) -> Path:
    Image.new("L", (4, 4)).save(pets(folder) / "cat" / "x.gif")
    (folder / "cat" / "x.gif").rename(folder / "cat" / "x.png")
    return folder


def linked(inside: str, target: str) -> Make:
    def make(folder: Path) -> Path:
        outside = folder.parent / "outside"
        image(outside / "secret.png")
        (pets(folder) / inside).symlink_to(outside / target)
        return folder

    return make


def many_classes(folder: Path) -> Path:
    for number in range(1001):
        place = folder / f"{number}"
        place.mkdir()
        (place / "x.png").write_bytes(b"never opened")
    return folder


def loose_images(folder: Path) -> Path:
    return image(folder / "a.png").parent


def named(name: bytes) -> Make:
    def make(folder: Path) -> Path:
        os.rename(pets(folder) / "dog", os.fsencode(folder) + b"/" + name)
        return folder

    return make


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "rows.csv")
    return folder / "rows.csv"


def only_pipes(folder: Path) -> Path:
    (folder / "cat").mkdir()
    os.mkfifo(folder / "cat" / "x.png")
    return folder


def both_kinds(folder: Path) -> Path:
    (pets(folder) / "cat" / "purr.wav").write_bytes(b"")
    return folder


def loop(folder: Path) -> Path:
    (folder / "round").symlink_to(folder / "round")
    return folder / "round"


def a_part(folder: Path) -> Path:
    pets(folder / "train")
    return folder


def recording(content: bytes) -> Make:
    return one("x.wav", content)


def arrays(**given: Any) -> Make:
    def make(folder: Path) -> Path:
        np.savez(folder / "x.npz", **given)
        return folder / "x.npz"

    return make


def parquet(**columns: Any) -> Make:
    def make(folder: Path) -> Path:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.table(columns), folder / "x.parquet")
        return folder / "x.parquet"

    return make


def cut_parquet(folder: Path) -> Path:
    path = parquet(a=[1.0, 2.0], label=["x", "y"])(folder)
    path.write_bytes(path.read_bytes()[:-9] + b"PAR1")
    return path


def rows(*lines: str) -> Make:
    return one("x.csv", "\n".join(lines) + "\n")


GREY = Form("image", (1, 4, 4))
LOUD = as_bits(tone(440), 16)
FLOATS = np.array([0.0, np.nan, 0.5], "<f4").tobytes()
DAYS = ["2024-01-31", "2023-02-28", "1999-12-31"]

IMAGES: dict[str, tuple[Make, str, dict[str, Any]]] = {
    "truncated PNG": (cut_image("png"), r"cat/cut.png is truncated or damaged .*fetch it", {}),
    "truncated JPEG": (cut_image("jpg"), r"cat/cut.jpg is truncated or damaged", {"form": GREY}),
    "truncated TIFF": (cut_image("tif"), r"cat/cut.tif is truncated or damaged", {"form": GREY}),
    "truncated BMP": (cut_image("bmp"), r"cat/cut.bmp is truncated or damaged", {"form": GREY}),
    "text as PNG": (
        holding("a.png", "Hello, I am no image"),
        r"cat/a.png is no image, whatever its name says: it begins with b'Hello.*remove it",
        {},
    ),
    "empty PNG": (holding("a.png", b""), r"cat/a.png is empty \(0 bytes\)", {}),
    "GIF as PNG": (a_gif, r"cat/x.png is no image.*PNG, JPEG, TIFF, BMP", {}),
    "wrong check sum": (wrong_check, r"cat/0.png is truncated or damaged|cat/0.png is no", {}),
    "bomb of 50,000 x 50,000": (
        holding("bomb.png", png(50000, 50000, 1)),
        r"cat/bomb.png is larger than 80 million pixels; it was not unpacked",
        {"form": GREY},
    ),
    "smaller bomb": (
        holding("bomb.png", png(9200, 9200)),
        r"cat/bomb.png is larger than 80 million",
        {},
    ),
    "bomb as BMP": (holding("b.bmp", bmp(60000, 60000)), r"cat/b.bmp is larger than 80", {}),
    "many times its size": (
        holding("b.png", png(8000, 8000)),
        r"cat/b.png says that it has 8000 x 8000 pixels, but only",
        {},
    ),
    "mixed sizes": (
        mixed_sizes,
        r"images of 2 sizes \(height x width: 4 of 4x4, 1 of 4x9\); say which shape",
        {},
    ),
    "floats": (
        saved("f.tif", np.ones((4, 4), np.float32)),
        r"cat/f.tif is stored as 'F'.*8 or 16 bits",
        {"form": GREY},
    ),
    "below zero": (
        saved("i.tif", np.full((4, 4), -5, np.int32)),
        r"cat/i.tif has values from -5 to -5; 16 bits go from 0",
        {"form": GREY},
    ),
    "above 16 bits": (
        saved("i.tif", np.full((4, 4), 70000, np.int32)),
        r"cat/i.tif has values from 70000 to 70000",
        {"form": GREY},
    ),
    "empty folder": (lambda folder: folder, r"holds nothing that is read \(0 files", {}),
    "folder of texts": (one("../own/a.txt", "x"), r"a.txt: .txt cannot be read; read are", {}),
    "no sub-folders": (loose_images, r"holds 1 images, but no sub-folders", {"labelled": True}),
    "link to a file outside": (
        linked("cat/x.png", "secret.png"),
        r"cat/x.png in .* is a link that leads out of the folder, to .*secret.png; copy",
        {},
    ),
    "link to a folder outside": (linked("more", ""), r"more in .* is a link that leads out", {}),
    "more classes than 1000": (many_classes, r"1,001 classes \(.*at most 1,000", {}),
    "class with a line break": (named(b"a\nb"), r"a line break or another control", {}),
    "class that is no UTF-8": (named(b"caf\xe9"), r"control character", {}),
    "images and recordings": (both_kinds, r"4 images and 1 recordings; say which kind", {}),
    "images for a table": (pets, r"of the kind image; table is asked", {"form": Form("table")}),
    "one image with a label": (
        lambda folder: image(folder / "a.png"),
        r"is one image and has no label",
        {"labelled": True},
    ),
    "pipes only": (only_pipes, r"holds nothing that is read \(0 files", {}),
    "all broken": (
        lambda folder: holding("a.png", "x")(folder) / "cat",
        r"none of 1 files can be read; the first: a.png is no image",
        {"skip_broken": True, "only": "a.png"},
    ),
    "no test part": (pets, r"has no part test; put these samples", {"part": "test"}),
    "no test part beside train": (a_part, r"has no part test", {"part": "test"}),
}

TABLES: dict[str, tuple[Make, str, dict[str, Any]]] = {
    "empty table": (one("x.csv", " \n"), r"x.csv is empty; give a line with the names", {}),
    "no rows": (rows("a,label"), r"x.csv has names of columns, but no rows", {}),
    "ragged": (
        rows("a,b,label", "1,2,x", "1,2,3,x"),
        r"x.csv, line 3: 4 values, but there are 3 columns \(a, b, label\), separated by a comma",
        {},
    ),
    "quote not closed": (rows("a,label", '"1,x', "2,y"), r"x.csv, line 3: .*a quote is not", {}),
    "quote inside": (rows("a,label", '"a"b,x'), r"x.csv, line 2: .*write it twice", {}),
    "endless value": (rows("a,label", "1" * 200_000 + ",x"), r"line 2: field larger", {}),
    "one column": (rows("a b label", "1 2 x"), r"one column only; separate columns by", {}),
    "two separators": (rows("a;b;label", "1,2,x"), r"1 values, but there are 3.*semicolon", {}),
    "infinite": (rows("a,label", "1,x", "inf,y"), r"column 'a' has inf in row 2; numbers go", {}),
    "huge": (rows("a,label", "1e300,x"), r"column 'a' has 1e\+300 in row 1", {}),
    "dates": (
        rows("seen,label", *(f"{day},x" for day in DAYS)),
        r"column 'seen' holds dates or times; make a number .*days since.*'1999-12-31'",
        {},
    ),
    "other dates": (rows("t,label", "31.1.24,x", "1/2/2024,y"), r"column 't' holds dates", {}),
    "decimal commas": (rows("a;label", "1,5;x", "2,5;y"), r"decimal comma; save them with", {}),
    "UTF-16": (one("x.csv", "a,label\n1,x\n".encode("utf-16")), r"is no text in UTF-8", {}),
    "Latin-1": (
        one("x.csv", "a,label\n1,café\n".encode("latin-1")),
        r"x.csv, line 2: the byte 0xe9 is no UTF-8",
        {},
    ),
    "Excel as CSV": (one("x.csv", b"PK\x03\x04xxxx"), r"is an Excel file or an archive", {}),
    "bytes as CSV": (one("x.csv", b"a,label\n\0\0,x\n"), r"is no text in UTF-8", {}),
    "a name twice": (rows("a,a,label", "1,2,x"), r"two columns called 'a'; rename", {}),
    "no name": (rows(",a,label", "0,1,x"), r"column 1 has no name.*index=False", {}),
    "no names": (rows("1,2,3", "4,5,6"), r"first line holds numbers \(1, 2, 3\)", {}),
    "label mistyped": (
        rows("age,drug", "1,x"),
        r"no column 'durg' with the classes. Did you mean 'drug'\? Its columns: age, drug",
        {"form": Form(label="durg"), "labelled": True},
    ),
    "label not said": (
        rows("a,b", "1,2"),
        r"Name the one with the classes: --label",
        {"labelled": True},
    ),
    "two labels": (rows("a,label,class", "1,x,y"), r"several columns that could be", {}),
    "class missing": (rows("a,label", "1,x", "2,"), r"1 rows have no class .*row 2", {}),
    "10,000 classes": (
        rows("a,label", *(f"{i},{i}" for i in range(10_000))),
        r"x.csv, column 'label' has 10,000 classes .*numbers, dates or people",
        {},
    ),
    "a story as a class": (
        rows("a,label", f"1,{'once upon a time ' * 20}"),
        r"a class has a name of 339 letters \(once upon .*Is it free text",
        {},
    ),
    "free text": (
        rows("who,label", *(f"patient no. {i},x" for i in range(101))),
        r"column 'who' has 101 different texts .*at most 100 make a category",
        {},
    ),
    "text among numbers": (
        rows("a,label", "1,x", "2,x", "12 mg,y"),
        r"column 'a' holds numbers, but row 3 has '12 mg' \(1 of 3 rows",
        {},
    ),
    "column absent": (
        rows("ag,label", "1,x"),
        r"lacks 1 column \(age\) of the form. Did you mean 'ag'\?",
        {"form": Form(columns=(Column("age"),))},
    ),
    "value missing": (
        rows("a,label", "1,x", ",y"),
        r"column 'a' is missing in 1 rows \(first: row 2\).*give the column a fill",
        {"form": Form(columns=(Column("a"),))},
    ),
    "category for a number": (
        rows("a,label", "red,x"),
        r"column 'a' must hold numbers, but row 1 has 'red'",
        {"form": Form(columns=(Column("a"),))},
    ),
    "empty column": (rows("a,b,label", "1,,x"), r"column 'b' is empty; remove it", {}),
    "classes only": (rows("label;", "x;"), r"column 2 has no name", {}),
    "another width": (
        rows("a,b,label", "1,2,x"),
        r"one sample is 2; 5 is asked for",
        {"form": Form("table", (5,))},
    ),
    "pipe": (pipe, r"rows.csv is neither a file nor a folder", {}),
    "folder of tables": (
        lambda folder: rows("a,label", "1,x")(folder).parent,
        r"is a folder with 1 tables; give the file itself: .*x.csv",
        {},
    ),
    "text as Parquet": (one("x.parquet", "a,label\n"), r"x.parquet is no Parquet file", {}),
    "damaged Parquet": (cut_parquet, r"x.parquet is no Parquet file, or it is damaged", {}),
    "lists in Parquet": (parquet(a=[[1], [2]]), r"column 'a' holds values of the type list", {}),
    "dates in Parquet": (
        parquet(a=np.array(DAYS, "datetime64[D]")),
        r"column 'a' holds dates or times; make a number",
        {},
    ),
}

SOUNDS: dict[str, tuple[Make, str, dict[str, Any]]] = {
    "text as WAV": (recording(b"Hello, no sound."), r"x.wav is no WAV file: it begins", {}),
    "empty WAV": (recording(b""), r"x.wav is empty \(0 bytes\)", {}),
    "truncated WAV": (
        recording(wav(LOUD)[:-100]),
        r"x.wav is truncated: 32,000 bytes of samples are announced, 31,900 are there",
        {},
    ),
    "header only": (recording(wav(b"")[:36]), r"x.wav is truncated: it has no samples", {}),
    "no sound": (recording(wav(b"")), r"x.wav holds no sound", {}),
    "samples undescribed": (
        recording(b"RIFF\0\0\0\0WAVEdata\x04\0\0\0aaaa"),
        r"does not say how its samples are stored",
        {},
    ),
    "mu-law": (recording(wav(LOUD, kind=7, bits=8)), r"x.wav is stored as mu-law; 8, 16", {}),
    "12 bits": (recording(wav(LOUD, bits=12)), r"x.wav is stored as 12 bits", {}),
    "no rate": (recording(wav(LOUD, rate=0)), r"1 channels of 0 samples per second", {}),
    "no channels": (recording(wav(LOUD, channels=0)), r"has 0 channels", {}),
    "not a number": (
        recording(wav(FLOATS, kind=3, bits=32)),
        r"x.wav holds samples that are infinite, NaN",
        {},
    ),
    "endless chunk": (
        recording(wav(LOUD, before=b"LIST\xff\xff\xff\xff")),
        r"x.wav is truncated: it has no samples",
        {},
    ),
    "too many coefficients": (
        recording(wav(LOUD)),
        r"50 coefficients are asked for; 40 bands",
        {"form": Form("sound", (1, 50, 50))},
    ),
    "a recording with a label": (
        recording(wav(LOUD)),
        r"is one recording and has no label",
        {"labelled": True},
    ),
}

ARRAYS: dict[str, tuple[Make, str, dict[str, Any]]] = {
    "text as npz": (one("x.npz", "hello"), r"is not an .npz file: it begins with", {}),
    "pickles": (arrays(x=np.array([{}], object)), r"these are pickles", {}),
    "no x": (arrays(z=np.ones((2, 2))), r"has no array x_train or x \(it has: z\)", {}),
    "NaN": (arrays(x=np.full((2, 2), np.nan)), r"first in sample 0\); correct or remove", {}),
    "floats as images": (
        arrays(x=np.ones((2, 4, 4))),
        r"x is float64, from 1 to 1; images are kept as bytes",
        {},
    ),
    "a label too few": (
        arrays(x=np.ones((3, 2)), y=[0, 1]),
        r"y is int64 \[2\] beside 3 samples; give one",
        {},
    ),
    "label without a name": (
        arrays(x=np.ones((2, 2)), y=[0, 2], classes=["a", "b"]),
        r"y has label 2, but 2 classes have names, for labels 0 to 1",
        {},
    ),
    "10,000 classes as numbers": (
        arrays(x=np.ones((10_000, 1)), y=np.arange(10_000)),
        r"x.npz has 10,000 classes",
        {},
    ),
    "scales of another length": (
        arrays(x=np.ones((2, 3, 4)), feature_scale=np.ones(3), feature_offset=np.ones(4)),
        r"feature_scale is float64 .*for each of the 4 coefficients",
        {},
    ),
    "empty name of a class": (arrays(x=np.ones((2, 2)), y=["a", " "]), r"has an empty name", {}),
    "strange kind": (
        arrays(x=np.ones((2, 2)), kind="smell"),
        r"its kind is smell; .*: image, sound, table",
        {},
    ),
    "no such file": (lambda folder: folder / "no.csv", r"no.csv does not exist", {}),
    "NUL in the name": (lambda folder: Path(f"{folder}/a\0.csv"), r"cannot be read|not exist", {}),
    "link to itself": (loop, r"round (cannot be read|does not exist)", {}),
    "unknown kind": (one("x.dcm", "x"), r"x.dcm: .dcm cannot be read; read are folders of", {}),
}

CASES = {**IMAGES, **TABLES, **SOUNDS, **ARRAYS}


@pytest.mark.parametrize("case", CASES)
def test_broken_data_gets_its_sentence(case: str, folder: Path) -> None:
    make, words, options = CASES[case]
    path = make(folder)
    if only := options.get("only"):
        for file in path.iterdir():
            if file.name != only:
                file.unlink()
    kept = {key: value for key, value in options.items() if key != "only"}
    with pytest.raises(OstrakaError, match=words):
        read(path, **kept)


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 40
