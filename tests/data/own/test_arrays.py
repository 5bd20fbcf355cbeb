"""Own data in .npz files."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.data.own import Form, in_both, read
from ostraka.errors import DataError

X = np.arange(3 * 4 * 4, dtype=np.uint8).reshape(3, 4, 4)


def write(path: Path, **arrays: object) -> Path:
    np.savez(path / "own.npz", **arrays)
    return path / "own.npz"


def test_images_with_labels_named_beside_them(tmp_path: Path) -> None:
    found = read(write(tmp_path, x=X, y=[2, 0, 2], classes=["ant", "bee", "cat"]))
    assert found.classes == ("ant", "cat")  # those it holds
    assert found.samples.labels.tolist() == [1, 0, 1]
    assert found.samples.x.dtype == torch.uint8
    assert found.form == Form("image", (1, 4, 4))
    assert found.samples.inputs().max() == 47 / 255
    assert found.items == ("sample 0", "sample 1", "sample 2")
    assert found.counts() == {"ant": 1, "cat": 2}
    assert found.for_classes(["cat", "dog", "ant"]).labels.tolist() == [0, 2, 0]
    assert found.unlabelled().y is None
    assert found.notes == ()


def test_a_file_and_what_stands_beside_it_must_be_of_one_kind(tmp_path: Path) -> None:
    path = write(tmp_path, x=X, y=[2, 0, 2], kind="sound")
    assert read(path).form.kind == "sound"
    path.with_suffix(".json").write_text(json.dumps({"kind": "image"}))
    with pytest.raises(DataError, match="its kind is image and sound"):
        read(path)


def test_names_may_stand_in_the_json_file_or_be_the_labels(tmp_path: Path) -> None:
    path = write(tmp_path, x=X, y=[0, 1, 1])
    assert read(path).classes == ("0", "1")
    path.with_suffix(".json").write_text(json.dumps({"class_names": ["a", "b"]}))
    assert read(path).classes == ("a", "b")
    assert read(write(tmp_path, x=X, y=["b", "a", "b"])).classes == ("a", "b")


def test_numbers_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    assert read(write(tmp_path, x=X, y=[10, 9, 2])).classes == ("2", "9", "10")


def test_parts(tmp_path: Path) -> None:
    path = write(tmp_path, x_train=X, y_train=[0, 1, 1], x_test=X[:1], y_test=[1])
    train, test = read(path), read(path, part="test")
    assert (len(train), len(test)) == (3, 1)
    assert "part test too" in train.notes[0]
    assert in_both(train.samples, test.samples).tolist() == [0]


def test_labels_may_be_needed_or_left(tmp_path: Path) -> None:
    path = write(tmp_path, x=X, y=[0, 1, 1])
    assert not read(path, labelled=False).labelled
    with pytest.raises(DataError, match="no labels"):
        read(write(tmp_path, x=X), labelled=True)
    with pytest.raises(DataError, match="has no labels"):
        read(write(tmp_path, x=X)).for_classes(["0"])


def test_quantised_sound_and_rows(tmp_path: Path) -> None:
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    sound = read(write(tmp_path, x=X, feature_scale=scale, feature_offset=-scale))
    assert sound.form == Form("sound", (1, 4, 4))
    assert sound.samples.x[0, 0, 0].tolist() == [-1.0, 0.0, 3.0, 8.0]
    rows = read(write(tmp_path, x=np.arange(6).reshape(3, 2)))
    assert rows.form == Form("table", (2,))
    assert rows.samples.x.dtype == torch.float32


def test_class_that_a_task_does_not_have(tmp_path: Path) -> None:
    found = read(write(tmp_path, x=X, y=["cat", "dgo", "cat"]))
    with pytest.raises(DataError, match=r"1 class \(dgo\).*Did you mean 'dog'\?.*cat, dog"):
        found.for_classes(["cat", "dog"])


def test_two_spellings_of_one_name_are_one_class(tmp_path: Path) -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    found = read(write(tmp_path, x=X, y=[composed, apart, composed]))
    assert found.classes == (composed,)
    assert found.for_classes([apart]).labels.tolist() == [0, 0, 0]


def test_the_same_content_in_two_classes_is_noted(tmp_path: Path) -> None:
    found = read(write(tmp_path, x=X[[0, 1, 0]], y=["a", "a", "b"]))
    assert (
        "the same content as one of another class (sample 0 (a) = sample 2 (b))" in found.notes[0]
    )


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    one = read(write(tmp_path, x=X, y=["a", "a", "b"])).digest
    assert one == read(write(tmp_path, x=X, y=["a", "a", "b"])).digest
    assert one != read(write(tmp_path, x=X, y=["a", "b", "b"])).digest
    assert one != read(write(tmp_path, x=X, y=["a", "a", "c"])).digest
    assert one != read(write(tmp_path, x=X + 1, y=["a", "a", "b"])).digest
