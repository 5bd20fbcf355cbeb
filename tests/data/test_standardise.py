"""Standardised inputs: by hand, and as a run sees them."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from ostraka.core.samples import Samples, View
from ostraka.core.settings import build, values_of
from ostraka.data.sources import load
from ostraka.data.standardise import statistics
from ostraka.errors import ConfigError, DataError
from ostraka.runs.config import make
from ostraka.runs.division import divide
from ostraka.runs.plan import make_plan

ROWS = np.array([[0.0, 7.0, 100.0], [2.0, 7.0, 300.0], [0.0, 7.0, 100.0], [2.0, 7.0, 300.0]])
LABELS = np.array([0, 0, 1, 1])


def store(name, x=ROWS, y=LABELS, x_test=None, **more):
    test = x[:2] if x_test is None else x_test
    np.savez(
        name, x_train=x, y_train=y, x_test=test, y_test=np.arange(len(test)) % (y.max() + 1), **more
    )


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def divided(name="rows.npz", **values):
    return divide(make({"data": f"./{name}", "partition": "iid", "parties": 2, **values}))


def test_rows_by_hand():
    """0 and 2 have mean 1 and deviation 1.

    A constant is only shifted; 100 and 300 have mean 200, deviation 100.
    """
    store("rows.npz", x_test=np.array([[4.0, 8.0, 0.0], [1.0, 7.0, 200.0]]))
    found = divided()
    assert found.data.train.view.mean == (1.0, 7.0, 200.0)
    assert found.data.train.view.std == (1.0, 1.0, 100.0)
    assert found.data.train.inputs().tolist() == [[-1, 0, -1], [1, 0, 1], [-1, 0, -1], [1, 0, 1]]
    assert found.data.test.inputs().tolist() == [[3, 1, -2], [0, 0, 0]]
    assert found.shown == (
        (
            "features were standardised by the training data (mean 0, deviation 1 for each of the "
            "3); --standardise off leaves them as they are"
        ),
    )
    assert found.data.train.x[1].tolist() == [2, 7, 300]  # the stored values stay


def test_float_images_by_channel():
    x = np.zeros((4, 2, 5, 5), np.float32)
    x[::2, 0], x[:, 1] = 8, 3
    store("images.npz", x)
    found = divided("images.npz")
    assert (found.data.train.view.mean, found.data.train.view.std) == ((4.0, 3.0), (4.0, 1.0))
    assert found.data.train.inputs()[:, :, 0, 0].tolist() == [[1, 0], [-1, 0], [1, 0], [-1, 0]]


def test_what_is_left_as_it_is():
    store("rows.npz")
    store("bytes.npz", np.arange(4 * 25).reshape(4, 5, 5).astype(np.uint8))
    scales = {"feature_scale": np.ones(5, np.float32), "feature_offset": np.zeros(5, np.float32)}
    store("mfcc.npz", np.arange(4 * 25).reshape(4, 5, 5).astype(np.uint8), **scales)
    store("cifar100.npz", np.zeros((4, 3, 32, 32), np.float32))
    assert divided(standardise="off").data.train.view == View(kind="table")
    assert divided("bytes.npz").data.train.view == View(scale=1 / 255)
    found = divided("mfcc.npz").data  # its reader has standardised it
    assert (found.train.view, found.kind) == (View(kind="sound"), "sound")
    assert divided("cifar100.npz").data.train.view.mean == (0.50708, 0.48655, 0.44092)
    assert not any(divided(name).shown for name in ("bytes.npz", "mfcc.npz", "cifar100.npz"))
    assert divide(make({"data": "digits", "partition": "iid"})).data.train.view == View(
        scale=1 / 16
    )


def test_on_standardises_bytes_too():
    """0 and 255 are shown as 0 and 1, then with mean 1/2 and deviation 1/2."""
    x = np.zeros((4, 5, 5), np.uint8)
    x[:2] = 255
    store("bytes.npz", x)
    seen = divided("bytes.npz", standardise="on").data.train
    assert seen.view.scale == 1 / 255
    assert torch.allclose(seen.inputs()[:, 0, 0, 0], torch.tensor([1.0, 1.0, -1.0, -1.0]))


def test_raw_values_are_those_that_are_stored():
    """A data set's own mean and deviation are left out, too. What a view scales to [0, 1] stays
    what it was: generators and public samples go by it.
    """
    x = np.array([0, 3, 100, 255], np.uint8)[:, None, None] + np.zeros((4, 5, 5), np.uint8)
    store("bytes.npz", x)
    store("cifar100.npz", np.full((4, 3, 32, 32), 7.0, np.float32))
    for name in ("bytes.npz", "cifar100.npz"):
        found = divided(name, standardise="raw")
        for seen in (found.data.train, found.data.test):
            stored = seen.stored().float()
            torch.testing.assert_close(seen.inputs(), stored, rtol=1e-6, atol=0)
        assert found.data.train.view.scale == divided(name).data.train.view.scale
        assert not found.shown


def test_sound_by_coefficient():
    """Frames [1, 10] and [3, 30], then [5, 10] and [7, 30]:
    means 4 and 20, deviations 5**0.5, 10.
    """
    x = np.array([[[1.0, 10.0], [3.0, 30.0]], [[5.0, 10.0], [7.0, 30.0]]])
    store("sound.npz", np.tile(x, (2, 1, 1)), kind=np.array("sound"))
    found = divided("sound.npz")
    assert (found.data.kind, found.data.train.shape) == ("sound", (1, 2, 2))
    assert found.data.train.view.mean == (4.0, 20.0)
    assert found.data.train.view.std == pytest.approx((5**0.5, 10.0))
    assert found.data.train.inputs()[0, 0, :, 1].tolist() == [-1.0, 1.0]
    assert torch.allclose(
        found.data.train.inputs()[0, 0, :, 0], torch.tensor([-3.0, -1.0]) / 5**0.5
    )
    assert found.shown[0].startswith("recordings were standardised")
    assert "for each of the 2 coefficients" in found.shown[0]


def test_the_statistics_are_those_of_the_samples_in_use():
    """Class 2, the server's validation samples and rows of no party are not in them."""
    x = np.array([[0.0], [4.0], [10.0], [30.0], [1000.0], [2000.0]])
    store("rows.npz", x, np.array([0, 1, 0, 1, 2, 2]))
    assert divided(known=2).data.train.view.mean == (11.0,)  # 0, 4, 10, 30
    assert divided(known=2, train_per_class=1).data.train.view.mean == (2.0,)  # 0, 4
    Path("two.json").write_text(json.dumps({"parties": [[0], [3]], "partial": True}))
    found = divided(partition="file:two.json", known=2)
    assert (found.data.train.view.mean, found.data.train.view.std) == ((15.0,), (15.0,))
    held = divided(known=2, validation=0.5)
    kept = np.delete(x[:4, 0], held.held.samples.rows.numpy())
    assert held.data.train.view.mean == (kept.mean(),)
    assert held.held.samples.view == held.data.test.view
    shared = divided(known=2, shared=0.5)
    assert shared.data.train.view.mean == (11.0,)
    assert shared.shared.view == shared.data.train.view


def test_public_samples_are_seen_as_the_training_samples_are():
    store("rows.npz")
    store("other.npz", ROWS * 3 + 1)
    plan = make_plan(
        make(
            {
                "data": "./rows.npz",
                "public": "./other.npz",
                "partition": "iid",
                "parties": 2,
                "method": "feddf",
            }
        )
    )
    assert plan.task.commons.public.inputs()[1].tolist() == pytest.approx([6.0, 15.0, 7.01])
    assert plan.notes[0].startswith("features were standardised by the training data")
    store("bytes.npz", ROWS.clip(0, 255).astype(np.uint8))
    with pytest.raises(
        DataError,
        match=r"'./bytes.npz' are stored as torch.uint8, those of './rows.npz' as torch.flo",
    ):
        make_plan(
            make({"data": "./rows.npz", "public": "./bytes.npz", "partition": "iid", "parties": 2})
        )


def test_public_bytes_are_brought_to_the_units_of_the_training_samples():
    """Bytes to 255 beside scikit-learn's 17 levels: 240 of 255 is 240 * 16 / 255 of 16."""
    found = load("digits", [])
    whole = (found.train.x.numpy()[:, 0] * 15).astype(np.uint8)
    np.savez(
        "big.npz",
        x_train=whole,
        y_train=found.train.y.numpy(),
        x_test=whole[:50],
        y_test=found.train.y[:50].numpy(),
    )
    values = {"data": "digits", "public": "./big.npz", "partition": "iid", "standardise": "on"}
    plan = make_plan(make(values))
    public = plan.task.commons.public
    assert public.view == plan.task.view == plan.test.samples.view
    assert (public.x.dtype, public.y) == (torch.float32, None)
    assert torch.allclose(public.x, torch.from_numpy(whole)[:, None] * (16 / 255))
    mean, std = plan.task.view.mean[0], plan.task.view.std[0]
    expected = (torch.from_numpy(whole)[:, None] / 255 - mean) / std
    assert torch.allclose(public.inputs(), expected, atol=1e-5)


def test_public_samples_in_the_same_units_stay_as_they_are_stored():
    store("bytes.npz", np.arange(4 * 64).reshape(4, 8, 8).astype(np.uint8))
    store("more.npz", np.arange(4 * 64)[::-1].reshape(4, 8, 8).astype(np.uint8))
    values = {"data": "./bytes.npz", "public": "./more.npz", "partition": "iid", "parties": 2}
    plan = make_plan(make(values))
    assert plan.task.commons.public.x.dtype == torch.uint8
    assert plan.task.commons.public.view == plan.task.view
    store("sound.npz", np.zeros((4, 8, 8), np.uint8), kind=np.array("sound"))
    with pytest.raises(
        DataError, match=r"of the kind sound, those of './bytes.npz' of the kind im"
    ):
        make_plan(make({**values, "public": "./sound.npz"}))


def test_a_start_must_have_seen_the_same():
    from ostraka.api import run

    store("rows.npz")
    same = {
        "data": "./rows.npz",
        "partition": "iid",
        "parties": 2,
        "engine": "serial",
        "set": {"local": {"epochs": 1}},
    }
    run(method="fedavg", out="one", **same)
    with pytest.raises(
        ConfigError, match="was trained with standardise 'auto', this run has 'off'"
    ):
        make_plan(make({**same, "start_from": "one", "standardise": "off"}))


def test_values_far_apart_and_nearly_none():
    """A deviation that 32-bit numbers cannot hold is none;
    sums of large numbers do not overflow.
    """
    tiny = torch.tensor([[0.0], [1e-45]])
    assert statistics(Samples(tiny))[1] == (1.0,)
    large = Samples(torch.tensor([[1e30], [-1e30]]))
    mean, std = statistics(large)
    assert torch.isfinite(Samples(large.x, view=View(mean=mean, std=std)).inputs()).all()


def test_a_constant_is_found_although_its_mean_is_rounded():
    """A thousand times 7/255, added up, is not quite a thousand times it:
    there would be a deviation of 1e-17.
    """
    constant = Samples(torch.full((1000, 1), 7, dtype=torch.uint8), view=View(scale=1 / 255))
    assert statistics(constant)[1] == (1.0,)


def test_more_samples_than_are_read_at_once():
    x = torch.arange(5000.0).view(-1, 1)
    mean, std = statistics(Samples(x, rows=torch.arange(1, 5000)))
    assert mean == (2500.0,)
    assert std[0] == pytest.approx(((4999**2 - 1) / 12) ** 0.5)


def test_a_view_of_many_features_travels():
    view = View(mean=tuple(np.arange(500) / 7), std=(2.0,) * 500)
    seen = view.apply(torch.ones(2, 500))
    assert seen[0, 7].item() == 0.0
    again = pickle.loads(pickle.dumps(view))
    assert again == view
    assert set(vars(again)) == {"scale", "mean", "std", "augment", "kind", "unit"}
    assert torch.equal(again.apply(torch.ones(2, 500)), seen)
    assert build(View, json.loads(json.dumps(values_of(view)))) == view


def test_too_large_values_name_the_sample():
    x = ROWS.copy()
    x[2, 1] = 1e300
    store("rows.npz", x)
    with pytest.raises(
        DataError,
        match=r"too large \(first in sample 2: 1e\+300\); values go from -1e\+30 to 1e\+30",
    ):
        divided()
    store("small.npz", ROWS.astype(np.float16))
    assert divided("small.npz").data.train.view.mean == (1.0, 7.0, 200.0)
