"""A run's vote looks at unlabelled samples only where it is told which: who says so, what that
changes, and where it is said.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ostraka
from ostraka.core.predictor import Placed
from ostraka.display.trust import trust_of
from ostraka.errors import DataError, NeedError
from ostraka.runs.results import Summary
from ostraka.runs.summary import brief
from ostraka.store import codec
from ostraka.voting.ensemble import Ensemble

SMALL: dict[str, Any] = {
    "data": "digits",
    "partition": "labels:2",
    "parties": 4,
    "train_per_class": 40,
    "known": 6,
    "engine": "serial",
    "set": {"local": {"epochs": 2}},
}


def vote(result: ostraka.Result) -> Ensemble:
    """The vote of a run, without its threshold."""
    predictor = result.predictor()
    inner = predictor.inner if isinstance(predictor, Placed) else predictor
    assert isinstance(inner, Ensemble)
    return inner


def own_data(path: Path, test: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (120, 5)).astype(np.float32), np.arange(120) % 4
    x[np.arange(120), y] += 3
    np.savez(path, x_train=x, y_train=y, x_test=test, y_test=np.arange(len(test)) % 4)
    return str(path)


def test_test_samples_decide_nothing(tmp_path: Path) -> None:
    """The same training samples with two different test sets: everything that the run keeps of its
    result is the same, to the bit. With a look at them, it is not.
    """
    rng = np.random.default_rng(1)
    tests = [rng.normal(shift, 1, (60, 5)).astype(np.float32) for shift in (0, 2)]
    for look, same in (("none", True), ("test", False)):
        found = []
        for i, test in enumerate(tests):
            data = own_data(tmp_path / f"{i}.npz", test)
            values = {**SMALL, "data": data, "known": None, "train_per_class": None}
            out = tmp_path / f"{look}-{i}"
            ostraka.run("fedov", out=out, **{**values, "standardise": "off", "look": look})
            found.append(codec.load(out / "model.safetensors"))
        seen = [one["seen"] for one in found]
        if same:
            assert seen == [None, None]
            assert found[0]["thresholds"] == found[1]["thresholds"]
            assert found[0]["answer"] == found[1]["answer"]
        else:
            assert not torch.equal(seen[0].agreement, seen[1].agreement)


def test_by_default_a_run_looks_at_nothing(tmp_path: Path) -> None:
    result = ostraka.run("fedov", out=tmp_path / "run", **SMALL)
    assert (result.summary.looked, result.summary.trust) == ({}, {})
    assert not any("looked" in note for note in result.summary.notes)
    assert "looked" not in brief(result.summary)
    assert vote(result).seen is None


@pytest.mark.parametrize(
    ("values", "of", "most"),
    [
        ({"look": "test"}, "test", 1000),
        ({"look": "validation", "validation": 0.2}, "validation", 90),
        ({"look": "public", "public": "half-test"}, "half-test", 200),
        ({"look": "public", "public": "digits"}, "public", 1000),
    ],
)
def test_a_look_is_told(tmp_path: Path, values: dict[str, Any], of: str, most: int) -> None:
    """In the summary, in a note beside the figures, in what --json prints, and in its file."""
    result = ostraka.run("fedov", out=tmp_path / "run", **SMALL, **values)
    looked, seen = result.summary.looked, vote(result).seen
    assert looked["of"] == of
    assert 0 < looked["samples"] <= most
    assert seen is not None
    assert seen.size == looked["samples"] == result.summary.trust["samples"]
    words = f"looked at {looked['samples']:,} unlabelled {of} samples"
    assert words in result.summary.notes[-1]
    assert brief(result.summary)["looked"] == looked
    held = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert held["looked"] == looked
    assert Summary.from_json(held).looked == looked


def test_a_look_has_no_more_than_a_thousand_samples(tmp_path: Path) -> None:
    values = {**SMALL, "parties": 5, "known": None, "public": "digits", "look": "public"}
    values["train_per_class"] = None
    looked = ostraka.run("fedov", out=tmp_path / "run", **values).summary.looked
    assert looked == {"samples": 1000, "of": "public"}


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"look": "validation"}, "look is validation, but .*validation"),
        ({"look": "public"}, "look is public, but there are no public samples"),
        ({"look": "public", "public": "generator"}, "give look='validation' or test"),
    ],
)
def test_samples_that_are_not_there_are_refused_before_training(
    tmp_path: Path, values: dict[str, Any], what: str
) -> None:
    with pytest.raises(NeedError, match=what):
        ostraka.run("fedov", out=tmp_path / "run", **{**SMALL, "data": "fashion-4k", **values})


def test_who_has_no_use_for_a_look_says_so(tmp_path: Path) -> None:
    summary = ostraka.run("closed-voting", out=tmp_path / "run", look="test", **SMALL).summary
    assert summary.looked == {}
    assert summary.notes[-1] == (
        "look is 'test', but closed-voting has no use for unlabelled samples"
    )


def test_a_grid_says_it_below_its_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ostraka.cli.main import main

    words = "compare fedov --data digits --parties 5 --seeds 1 --engine serial --epochs 1 -q"
    assert main([*words.split(), "--look", "test", "--out", str(tmp_path / "grid")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "fedov looked at 355 unlabelled test samples" in shown
    (record,) = json.loads((tmp_path / "grid" / "results.json").read_text())
    assert record["looked"] == {"samples": 355, "of": "test"}
    assert "355 unlabelled test samples" in (tmp_path / "grid" / "results.md").read_text()


def test_the_figure_trust_looks_for_itself_where_the_run_did_not(tmp_path: Path) -> None:
    for look in ("none", "test"):
        ostraka.run("fedov", out=tmp_path / look, look=look, **SMALL)
    found, by = trust_of(tmp_path / "none")
    assert (found, by) == trust_of(tmp_path / "test")
    assert by == f"by {found['samples']} unlabelled test samples"
    ostraka.run("solo", out=tmp_path / "solo", **SMALL)
    with pytest.raises(DataError, match=r"is of solo.*Use a run of fedov"):
        trust_of(tmp_path / "solo")
