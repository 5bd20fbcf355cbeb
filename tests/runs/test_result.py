"""What a finished run gives again: figures, a predictor that answers as it did, its members."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ostraka
from ostraka.core.net import Recipe
from ostraka.core.predictor import Placed, Solo
from ostraka.core.samples import View
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.evaluation.evaluate import evaluate
from ostraka.runs.plan import make_plan
from ostraka.runs.promise import placed_at, thresholds
from ostraka.runs.record import RunDir
from ostraka.store import codec
from ostraka.store.task import task_from, task_values

SMALL: dict[str, Any] = {
    "data": "digits",
    "train_per_class": 30,
    "partition": "iid",
    "parties": 3,
    "known": 6,
    "engine": "serial",
    "set": {"local": {"epochs": 2}},
}


def as_the_run_did(out: Path) -> None:
    """All figures of the restored predictor are those of the run's last round, to the bit."""
    home = RunDir(out)
    plan = make_plan(home.stored_config())
    predictor = ostraka.load_run(out).predictor()
    found = evaluate(predictor, plan.test.samples, plan.task.classes, domains=plan.test.domains)
    assert found.as_dict() == home.read_metrics()[-1].test.as_dict()


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("fedavg", {}),
        ("fedov", {}),
        ("fedov", {"look": "test"}),
        ("fedov", {"validation": 0.2}),
        ("fedov", {"threshold": -1.0}),
        ("solo", {"validation": 0.2, "set": {"objective": "proser", **SMALL["set"]}}),
        ("solo", {"threshold": -0.5}),
    ],
)
def test_a_predictor_answers_as_the_run_did(
    tmp_path: Path, method: str, more: dict[str, Any]
) -> None:
    result = ostraka.run(method, out=tmp_path / "run", **{**SMALL, **more})
    assert ostraka.load_run(str(tmp_path / "run")) == result
    assert result.classes == tuple("012345")
    as_the_run_did(tmp_path / "run")


def test_what_a_vote_found_is_not_looked_for_again(tmp_path: Path) -> None:
    result = ostraka.run("fedov", out=tmp_path / "run", **{**SMALL, "look": "test"})
    predictor = result.predictor()
    inner = predictor.inner if isinstance(predictor, Placed) else predictor
    assert inner.seen is not None
    assert not inner.looks


def test_neither_data_nor_place_matter(tmp_path: Path) -> None:
    """The data is gone and the folder has moved: figures, predictor and members are there."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (40, 8, 8, 1), dtype=np.uint8), np.arange(40) % 4
    own = tmp_path / "own.npz"
    np.savez(own, x_train=x, y_train=y, x_test=x, y_test=y)
    values = {**SMALL, "data": str(own), "train_per_class": None, "known": None}
    first = ostraka.run("closed-voting", out=tmp_path / "here", **values)
    asked = torch.from_numpy(x[:5]).permute(0, 3, 1, 2)
    before = first.predictor().scores(asked).known
    own.unlink()
    (tmp_path / "here").rename(tmp_path / "there")
    again = ostraka.load_run(tmp_path / "there")
    assert torch.equal(again.predictor().scores(asked).known, before)
    assert [member.card.party for member in again.members()] == [0, 1, 2]
    assert (again.folder, again.summary.out) == (tmp_path / "there", str(tmp_path / "there"))


def test_a_run_of_one_network_has_no_members(tmp_path: Path) -> None:
    result = ostraka.run("fedavg", out=tmp_path / "run", **SMALL)
    assert result.members() == ()
    accuracy = f"{result.summary.accuracy:.2f}"
    assert (
        repr(result) == f"<Result of fedavg on digits: accuracy {accuracy} %, in {result.folder}>"
    )


def test_what_is_no_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        ostraka.load_run(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="holds no finished run"):
        ostraka.load_run(str(tmp_path))
    (tmp_path / "grid" / "cells").mkdir(parents=True)
    with pytest.raises(
        ConfigError, match=r"is the folder of a grid; give one of its runs, in .*cells"
    ):
        ostraka.load_run(tmp_path / "grid")
    ostraka.run("fedavg", out=tmp_path / "run", **SMALL)
    shutil.copytree(tmp_path / "run", tmp_path / "begun")
    RunDir(tmp_path / "begun").summary.unlink()
    with pytest.raises(ConfigError, match="begun is not finished; finish it with: ostraka run"):
        ostraka.load_run(tmp_path / "begun")


def test_a_task_there_and_back(tmp_path: Path) -> None:
    view = View(1 / 255, (0.5,), (0.25,), kind="table")
    task = Task(("ant", "bee"), (4,), Recipe("mlp", {"hidden": [3]}), view=view)
    path = tmp_path / "task.safetensors"
    codec.save(path, task_values(task))
    assert task_from(codec.load(path)) == task


def test_thresholds_there_and_back() -> None:
    """Of models that stand alone, each has its own, or none; all else has one or none."""
    one, two = Solo({}), Solo({4: Solo({})})
    alone = Solo({0: Placed(one, 1.5), 7: two, 9: Placed(two, -2.0)})
    assert thresholds(alone) == {"0": 1.5, "9": -2.0}
    bare = Solo({0: one, 7: two, 9: two})
    assert placed_at(bare, {"0": 1.5, "9": -2.0}) == alone
    assert placed_at(bare, {}) == bare
