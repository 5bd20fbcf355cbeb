"""Files that are not what their names say, declare more than they hold,
or have odd labels: one clear error.
"""

import gzip
import io
import json
import os
import zipfile

import numpy as np
import pytest

from ostraka.data.sources import archive, files, idx, load
from ostraka.errors import DataError

Y = np.array([0, 1, 2, 3] * 3)


def arrays(**changed):
    x = np.arange(12 * 9, dtype=np.uint8).reshape(12, 3, 3)
    given = {"x_train": x, "y_train": Y, "x_test": x, "y_test": Y, **changed}
    return {key: value for key, value in given.items() if value is not None}


def refused(path):
    with pytest.raises(DataError) as caught:
        load(str(path))
    return str(caught.value)


def declared(path, shape, body, kind=zipfile.ZIP_STORED):
    """A file whose x_train has a header of its own and `body` behind it."""
    with zipfile.ZipFile(path, "w", kind) as out:
        for key, values in arrays().items():
            raw = io.BytesIO()
            if key == "x_train":
                np.lib.format.write_array_header_1_0(
                    raw, {"descr": "|u1", "fortran_order": False, "shape": shape}
                )
                raw.write(body)
            else:
                np.lib.format.write_array(raw, values)
            out.writestr(f"{key}.npy", raw.getvalue())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty (0 bytes)"),
        (b"\x93NUMPY\x01\x00", "holds a single array (a .npy file under another name)"),
        (
            b"\x80\x04\x95",
            "is a Python pickle under another name, which can run code when opened, and is refused",
        ),
        (b"a,b\n1,2\n", "is not an .npz file: it begins with b'a,b\\n1,'"),
        (b"PK\x03\x04 and no more", "is truncated or damaged"),
    ],
)
def test_other_files_under_the_name(tmp_path, content, message):
    (tmp_path / "own.npz").write_bytes(content)
    assert message in refused(tmp_path / "own.npz")


def test_a_folder_under_the_name(tmp_path):
    (tmp_path / "own.npz").mkdir()
    assert "own.npz is a folder and not a dataset of a known kind" in refused(tmp_path / "own.npz")


def test_a_header_that_declares_more_than_there_is(tmp_path):
    """10^15 bytes; nothing of that size may be asked of the system."""
    declared(tmp_path / "own.npz", (10**9, 10**3, 10**3), b"\0" * 64)
    assert (
        "x_train declares uint8 [1000000000, 1000, 1000], 1 PB, but the file holds 64 bytes"
        in refused(tmp_path / "own.npz")
    )
    declared(tmp_path / "odd.npz", (-12, 3, 3), b"\0" * 64)
    assert "x_train declares the shape [-12, 3, 3]" in refused(tmp_path / "odd.npz")


def test_a_small_file_that_grows_beyond_the_memory(tmp_path, monkeypatch):
    """Two million zeros are two kilobytes in a zip; here the machine has one free megabyte."""
    declared(tmp_path / "own.npz", (2000, 10, 100), b"\0" * 2_000_000, zipfile.ZIP_DEFLATED)
    assert (tmp_path / "own.npz").stat().st_size < 10_000
    monkeypatch.setattr(archive, "free_memory", lambda: 1_000_000)
    monkeypatch.setattr(archive, "array", lambda path, key: pytest.fail("nothing may be read"))
    text = refused(tmp_path / "own.npz")
    assert "declares 2 MB of arrays (the largest: x_train, uint8 [2000, 10, 100], 2 MB)" in text
    assert "more than the 1 MB of free memory" in text


def test_a_gzip_file_that_grows_beyond_the_memory(tmp_path, monkeypatch):
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (tmp_path / f"{name}-ubyte.gz").write_bytes(gzip.compress(b"\0" * 300))
    monkeypatch.setattr(files, "PIECE", 100)
    monkeypatch.setattr(files, "free_memory", lambda: 250)
    with pytest.raises(DataError, match="holds more than the 250 bytes of free memory"):
        idx.read(tmp_path, "mnist")


def test_free_memory_and_units():
    assert 2**20 < files.free_memory() < 2**50
    assert [files.in_units(n) for n in (0, 999, 1000, 2.5e6, 10**15, 10**19)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "2.5 MB",
        "1 PB",
        "1e+04 PB",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"y_train": Y.astype(float)},
            "y_train is float64; labels are stored as whole numbers: store y.astype(numpy.int64",
        ),
        ({"y_train": Y + 0.5}, "y_train has label 0.5 at position 0; labels are whole numbers"),
        ({"y_train": np.where(Y == 2, np.nan, Y)}, "y_train has label nan at position 2"),
        (
            {"y_train": Y > 1},
            "y_train is bool; labels are stored as whole numbers: store y.astype(numpy.int64)",
        ),
        ({"y_train": np.array(list("abcd"))[Y]}, "y_train holds text ('a', 'b', 'c', ...)"),
        (
            {"y_train": np.array(list("abcd"))[Y]},
            "names, y = numpy.unique(labels, return_inverse=True)",
        ),
        (
            {"y_train": np.array(list("abcd"))[Y]},
            'into a JSON file beside the data: {"class_names": [...]}',
        ),
        (
            {"y_train": np.eye(4)[Y]},
            "y_train has shape [12, 4]; give one label for each sample, [N]; this looks one-hot",
        ),
        ({"y_train": np.eye(4, dtype=np.uint8)[Y]}, "store y.argmax(axis=1)"),
        ({"y_train": np.ones((12, 4), int)}, "a sample has one label, not several"),
        (
            {"y_train": Y[:, None]},
            "y_train has shape [12, 1]; give one label for each sample, [N]: store y.reshape(-1)",
        ),
        ({"y_train": np.array(1)}, "y_train has shape []"),
        # the outlier is named, not the classes between it and the others
        (
            {"y_train": np.where(np.arange(12) == 5, 99, Y)},
            (
                "label 99 at position 5 (1 of 12 samples), but none lies from 4 to 98; "
                "the labels below it are 4 cla"
            ),
        ),
        ({"y_train": np.where(np.arange(12) == 5, 2**62, Y)}, f"label {2**62} at position 5"),
        (
            {"y_train": Y + 1, "y_test": Y + 1},
            "labels go from 1 to 4; they must start at 0: store y_train - 1 and y_test - 1",
        ),
        (
            {"y_test": np.where(Y == 1, 7, Y)},
            "y_test has label 7 at position 1, but no training sample has it",
        ),
        (
            {"x_train": np.zeros((12, 8, 8, 2)), "x_test": np.zeros((12, 8, 8, 2))},
            "is it [N, C, H, W] or [N, H, W, C]?",
        ),
        (
            {"site_train": np.zeros((12, 1))},
            "site_train has shape [12, 1]; store a column as [N]: reshape(-1)",
        ),
        (
            {"site_train": np.zeros(12) * 1j},
            "site_train is complex128; a column holds numbers or text",
        ),
        ({"site_train": np.array([b"\xe9"] * 12)}, "site_train holds bytes that are not UTF-8"),
    ],
)
def test_what_is_wrong_with_arrays_is_said(tmp_path, changed, message):
    np.savez(tmp_path / "own.npz", **arrays(**changed))
    assert message in refused(tmp_path / "own.npz")


def test_columns_of_bytes_are_text(tmp_path):
    np.savez(tmp_path / "own.npz", **arrays(site_train=np.array(["é".encode(), b"b"] * 6)))
    assert load(str(tmp_path / "own.npz")).columns["site"].tolist() == ["é", "b"] * 6


def test_channels_that_cannot_be_mistaken(tmp_path):
    """Two channels come first where they are fewer than rows and columns."""
    np.savez(
        tmp_path / "own.npz",
        **arrays(x_train=np.zeros((12, 2, 5, 6)), x_test=np.zeros((12, 2, 5, 6))),
    )
    assert load(str(tmp_path / "own.npz")).train.shape == (2, 5, 6)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["a", "b"],
            (
                "y_train has label 2 at position 2, but {} lists 2 class names, "
                "for labels 0 to 1 (y_train has 4"
            ),
        ),
        (list("abcde"), "no training sample of class 4 (e), but {} lists 5 class names"),
        (["a", "b", "a", "c"], "{}: class 0 and class 2 are both called 'a'"),
        (["a", "b", " ", "c"], "{}: class 2 has an empty name"),
        (["a", "b\nc", "d", "e"], "{}: the name 'b\\nc' of class 1 has a line break"),
        ({"0": "a"}, "{} gives class_names {{'0': 'a'}}; it must be a list"),
    ],
)
def test_class_names_that_do_not_fit(tmp_path, names, message):
    np.savez(tmp_path / "own.npz", **arrays())
    (tmp_path / "own.json").write_text(json.dumps({"class_names": names}))
    assert message.format(tmp_path / "own.json") in refused(tmp_path / "own.npz")


def test_a_sidecar_may_begin_with_a_byte_order_mark(tmp_path):
    np.savez(tmp_path / "own.npz", **arrays())
    (tmp_path / "own.json").write_text(
        '{"class_names": ["é", "b", "c", "北"]}', encoding="utf-8-sig"
    )
    assert load(str(tmp_path / "own.npz")).classes == ("é", "b", "c", "北")
    (tmp_path / "own.json").write_text("[" * 100_000)
    assert "own.json is not readable as JSON" in refused(tmp_path / "own.npz")


@pytest.mark.parametrize(
    "name", ["https://example.org/mnist.npz", "s3://bucket/mnist", "file:///data/x.npz"]
)
def test_nothing_is_downloaded(name):
    text = refused(name)
    assert f"{name} is an address; a run downloads nothing" in text
    assert "--data-dir or OSTRAKA_DATA" in text


def test_numbers_in_a_text_file_are_not_read_but_can_become_a_dataset(tmp_path, monkeypatch):
    """The lines that the message shows are Python, and what they write is read."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{2 * i},{i % 3}" for i in range(30)]
    (tmp_path / "iris.data").write_text("a,b,class\n" + "\n".join(rows))
    for name in ("iris.data", "./iris.data"):
        text = refused(name)
        assert "iris.data: .data files are not read. What is read: " in text
        assert "NAME.npz with x_train, y_train, x_test, y_test" in text
        assert "iris.data.npz" not in text
    exec("\n".join(line.strip() for line in text.splitlines()[1:]))
    found = load("iris.npz")
    assert (len(found.train), len(found.test), found.train.shape) == (24, 6, (2,))
    assert found.classes == ("0", "1", "2")
    for name in ("x.XLSX", "x.json", "x.txt"):
        assert "files are not read" in refused(name)
    for name in ("x.png", "x.wav"):
        assert "give a folder with a sub-folder for each class" in refused(name)
    for name in ("x.csv", "x.parquet", "x.tsv"):
        assert "does not exist" in refused(name)


@pytest.mark.parametrize(
    "name", ["", " ", "~nobody-of-that-name/x.npz", "x" * 300 + ".npz", "./a\0b.npz", "loop.npz"]
)
def test_names_that_no_file_has(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.symlink("loop.npz", "loop.npz")
    assert "is empty" in refused(name) or "does not exist" in refused(name)
