"""The kind of a sample: told by its source, and asked before anything trains."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.core.kind import check_form
from ostraka.core.samples import Samples, View
from ostraka.data.dataset import Arrays, Dataset, assemble
from ostraka.data.sources import load
from ostraka.errors import DataError
from ostraka.runs.config import make
from ostraka.runs.plan import make_plan

SHAPES = {
    (6, 4): ("table", (4,)),
    (6, 9, 8): ("image", (1, 9, 8)),
    (6, 9, 8, 3): ("image", (3, 9, 8)),
    (6, 2, 9, 8): ("image", (2, 9, 8)),
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def store(shape, name="some.npz", dtype=np.float32, **more):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    y = np.arange(len(x)) % 2
    np.savez(name, x_train=x, y_train=y, x_test=x, y_test=y, **more)


@pytest.mark.parametrize(("shape", "expected"), SHAPES.items(), ids=str)
def test_without_a_word_rows_are_a_table_and_all_else_images(shape, expected):
    store(shape)
    found = load("./some.npz")
    assert (found.kind, found.train.shape) == expected
    assert found.test.view.kind == expected[0]


def test_the_file_or_its_sidecar_tells_the_kind():
    store((6, 9, 3), kind=np.array("sound"))
    assert load("./some.npz").kind == "sound"
    store((6, 9, 8))
    beside = Path("some.json")
    beside.write_text(json.dumps({"kind": "sound"}))
    assert load("./some.npz").train.shape == (1, 9, 8)
    assert load("./some.npz").kind == "sound"
    store((6, 9, 8), kind=np.array("image"))
    with pytest.raises(
        DataError, match=r"its kind is image and sound; .* some.json must be one of"
    ):
        load("./some.npz")
    beside.write_text(json.dumps({"kind": "picture"}))
    store((6, 9, 8))
    with pytest.raises(DataError, match=r"its kind is picture; .*: image, sound, table"):
        load("./some.npz")
    beside.write_text(json.dumps({"kind": "table"}))
    with pytest.raises(DataError, match=r"'table', which is features, .* the shape \(9, 8\)"):
        load("./some.npz")


def test_quantised_features_are_sound_and_are_not_standardised():
    scale = {"feature_scale": np.ones(8, np.float32), "feature_offset": np.zeros(8, np.float32)}
    store((6, 9, 8), dtype=np.uint8, **scale)
    assert load("./some.npz").train.view == View(kind="sound")
    plan = make_plan(make({"data": "./some.npz", "partition": "iid", "parties": 2}))
    assert (plan.task.kind, plan.task.view) == ("sound", View(kind="sound"))


def test_a_data_set_is_of_one_kind_and_its_samples_have_its_form():
    y = torch.tensor([0, 1])
    rows = Samples(torch.zeros(2, 3), y)
    with pytest.raises(DataError, match=r"mine: the kind is 'image', .* shape \(3,\); .*table"):
        Dataset("mine", ("a", "b"), rows, rows)
    table = replace(rows, view=View(kind="table"))
    assert Dataset("mine", ("a", "b"), table, table).kind == "table"
    with pytest.raises(DataError, match="kind table, test samples of the kind image"):
        Dataset("mine", ("a", "b"), table, rows)
    flips = replace(rows, view=View(kind="table", augment="pad-crop-flip"))
    with pytest.raises(DataError, match="'pad-crop-flip' is for samples of the kind image; these"):
        Dataset("mine", ("a", "b"), flips, table)
    with pytest.raises(
        DataError, match=r"'sound', which is 1 x frames x coefficients.*\(3, 8, 8\)"
    ):
        check_form("sound", (3, 8, 8))
    check_form("sound", (1, 8, 8))


def test_a_reader_says_the_kind():
    x, y = np.zeros((4, 9, 3), np.float32), np.array([0, 1, 0, 1])
    found = assemble("mine", Arrays(x, y, x, y, kind="sound"))
    assert (found.kind, found.train.shape) == ("sound", (1, 9, 3))
    assert assemble("mine", Arrays(x, y, x, y, kind="sound"), View(2.0)).train.view == View(
        2.0, kind="sound"
    )


@pytest.mark.parametrize("method", ["fedov", "fedavg"])
def test_what_does_not_suit_the_samples_is_refused_before_anything_trains(method):
    store((40, 4))
    rows = {"data": "./some.npz", "partition": "iid", "parties": 2, "method": method}
    assert make_plan(make({**rows, "set": {"objective": "fedov"}})).task.kind == "table"
    wide = {"objective": {"name": "fedov", "outliers": "wide"}}
    with pytest.raises(DataError, match=r"of the outliers 'wide' .* these are of the kind table"):
        make_plan(make({**rows, "set": wide}))
    none = {"objective": {**wide["objective"], "w_destroyed": 0.0, "w_adversarial": 0.0}}
    make_plan(make({**rows, "set": none}))
    flips = {"objective": {"name": "ssb", "augment": "pad-crop-flip"}}
    with pytest.raises(DataError, match="'pad-crop-flip' is for samples of the kind image"):
        make_plan(make({**rows, "set": flips}))
    store((40, 7, 9), "small.npz")
    with pytest.raises(DataError, match="7x9 are too small to destroy; need 8x8"):
        make_plan(make({**rows, "data": "./small.npz", "set": {"objective": "fedov"}}))


def test_the_usual_network_of_a_kind():
    for shape, kind, net in (
        ((6, 16, 16), "image", "simple-cnn"),
        ((6, 16, 16), "sound", "simple-cnn"),
        ((6, 15, 16), "image", "mlp"),
        ((6, 300), "table", "mlp"),
    ):
        name = f"{kind}-{shape[1]}.npz"
        store(shape, name, kind=np.array(kind))
        plan = make_plan(make({"data": f"./{name}", "partition": "iid", "parties": 2}))
        assert plan.task.net.name == net
