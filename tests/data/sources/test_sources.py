"""Finding datasets by name, and the built-in ones."""

import os
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.data.sources import available, data_dirs, load
from ostraka.errors import DataError


def write(path, value=0):
    x = np.full((2, 3, 3), value, np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x_train=x, y_train=np.array([0, 1]), x_test=x, y_test=np.array([0, 1]))


def test_bundled_fashion():
    found = load("fashion-4k", [])
    assert found.train.x.shape == (4000, 1, 28, 28)
    assert found.train.counts(10).tolist() == [400] * 10
    assert found.test.counts(10).tolist() == [100] * 10
    assert found.classes[8] == "Bag"
    assert found.train.inputs().max() == 1.0
    assert "MIT" in found.info["licence"]
    assert load("embedded-fashion-mnist-4k", []).name == "fashion-4k"


def test_the_notice_travels_with_the_bundled_data():
    notice = files("ostraka.data.sources").joinpath("bundled", "NOTICE").read_text()
    assert "Copyright (c) 2017 Zalando SE" in notice
    assert "Permission is hereby granted" in notice


def test_digits_split_is_fixed_and_stratified():
    """Of every digit each fifth sample is for testing:
    the library's fifth zero is the first test zero.
    """
    from sklearn.datasets import load_digits

    found, library = load("digits", []), load_digits()
    assert (len(found.train), len(found.test)) == (1442, 355)
    fifth = np.flatnonzero(library.target == 0)[4]
    first_test_zero = int((found.test.labels == 0).nonzero()[0])
    assert np.array_equal(found.test.x[first_test_zero, 0].numpy(), library.images[fifth])
    share = found.test.counts(10) / (found.test.counts(10) + found.train.counts(10))
    assert ((share > 0.19) & (share <= 0.2)).all()
    assert found.train.inputs().max() == 1.0


@pytest.mark.parametrize(
    ("name", "loader"),
    [("iris", "load_iris"), ("wine", "load_wine"), ("breast-cancer", "load_breast_cancer")],
)
def test_tables_of_the_library_are_those_it_loads(name, loader):
    """Test rows are each fifth of a class; put back, they are the library's own, in its order."""
    from sklearn import datasets

    found, library = load(name, []), getattr(datasets, loader)()
    assert found.classes == tuple(library.target_names)
    assert found.kind == "table"
    x, y = library.data.astype(np.float32), library.target
    for c in range(len(found.classes)):
        mine = x[y == c]
        fifth = np.arange(len(mine)) % 5 == 4
        assert np.array_equal(found.test.x[found.test.labels == c].numpy(), mine[fifth])
        assert np.array_equal(found.train.x[found.train.labels == c].numpy(), mine[~fifth])
    assert found.info["licence"] == "CC BY 4.0"


def test_digits_as_rows_are_the_digits():
    rows, images = load("digits-rows", []), load("digits", [])
    for mine, others in ((rows.train, images.train), (rows.test, images.test)):
        assert torch.equal(mine.x, others.x.flatten(1).float())
        assert torch.equal(mine.labels, others.labels)
    assert rows.classes == images.classes


def test_tables_need_the_library(monkeypatch):
    monkeypatch.setattr("ostraka.data.sources.library.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"wine_data.csv comes with scikit-learn.*pip install"):
        load("wine", [])


def test_the_first_folder_wins_and_plain_goes_before_packed(tmp_path):
    write(tmp_path / "one" / "own.npz", 1)
    write(tmp_path / "two" / "own.npz", 2)
    (tmp_path / "two" / "own.packed.npz").write_bytes(b"not even read")
    write(tmp_path / "two" / "deeper" / "other.npz", 3)
    one, two = tmp_path / "one", tmp_path / "two"
    assert load("own", [one, two]).train.x.max() == 1
    assert load("own", [two, one]).train.x.max() == 2
    assert load("other", [one, two]).train.x.max() == 3
    listed = [found for found in available([one, two]) if found.name == "own"]
    assert [found.path for found in listed] == [one / "own.npz"]


def test_names_are_forgiving(tmp_path):
    write(tmp_path / "My_Data.npz")
    assert load("my-data", [tmp_path]).name == "my-data"
    assert load("MY_DATA", [tmp_path]).name == "my-data"


def test_a_path_instead_of_a_name(tmp_path, monkeypatch):
    write(tmp_path / "own.npz", 5)
    assert load(str(tmp_path / "own.npz")).train.x.max() == 5
    monkeypatch.chdir(tmp_path)
    assert load("own.npz").train.x.max() == 5
    with pytest.raises(DataError, match=r"absent.npz does not exist"):
        load("./absent.npz")
    with pytest.raises(DataError, match=r"not a dataset of a known kind. Known kinds: .*NAME.npz"):
        load(f"{tmp_path}/")


def test_missing_data_says_where_it_looked_and_what_to_put_there(tmp_path):
    write(tmp_path / "usps.npz")
    with pytest.raises(DataError) as caught:
        load("mnist", [tmp_path, tmp_path / "absent"])
    text = str(caught.value)
    assert f"Looked in: {tmp_path}, {tmp_path / 'absent'} (does not exist)" in text
    assert "mnist.npz" in text
    assert "--data-dir or OSTRAKA_DATA" in text
    assert "Found now: breast-cancer, digits, digits-rows, fashion-4k, iris, usps, wine" in text
    with pytest.raises(DataError, match=r"Did you mean 'usps'\?"):
        load("upss", [tmp_path])
    with pytest.raises(DataError, match=r"no folder \(none was given\).*cifar-10-batches-bin"):
        load("cifar-10", [])


@pytest.mark.parametrize("name", ["cifar-10", "CIFAR-10", "cifar_10", "cifar10"])
def test_a_missing_set_is_not_suggested_in_its_own_place(name):
    with pytest.raises(DataError) as caught:
        load(name, [])
    assert f"no dataset {name!r} was found. Looked in:" in str(caught.value)


def test_another_spelling_is_suggested_for_what_is_there(tmp_path):
    with pytest.raises(DataError, match=r"found\. Looked in"):
        load("fmnits", [tmp_path])
    write(tmp_path / "fashion-mnist.npz")
    with pytest.raises(DataError, match=r"Did you mean 'fmnist'\?"):
        load("fmnits", [tmp_path])


def test_data_dirs_join_option_and_variable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.setenv("OSTRAKA_DATA", os.pathsep.join(["b", "c", ""]))
    assert data_dirs(os.pathsep.join(["a", "b"])) == [Path("a"), Path("b"), Path("c")]
    assert data_dirs(None) == [Path("b"), Path("c")]
    monkeypatch.delenv("OSTRAKA_DATA")
    assert data_dirs() == []
    (tmp_path / "file").write_text("")
    for option, wrong in (
        ("nowhere", "does not exist"),
        (f"a{os.pathsep}file", "is a file, not a folder"),
        ("", "no"),
    ):
        with pytest.raises(DataError, match=wrong):
            data_dirs(option)


def test_the_variable_is_used_when_no_folder_is_given(tmp_path, monkeypatch):
    write(tmp_path / "own.npz", 4)
    monkeypatch.setenv("OSTRAKA_DATA", str(tmp_path))
    assert load("own").train.x.max() == 4
    assert "own" in {found.name for found in available()}
