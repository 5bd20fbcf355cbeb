"""Data through the command line: folders, shapes and sizes,
what is held back, how features are shown.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ostraka.store.member import load_member
from tests.cli.calling import ONE_EPOCH, Ostraka


def test_doctor_says_which_folder_of_the_variable_is_not_there(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("here").mkdir()
    monkeypatch.setenv("OSTRAKA_DATA", os.pathsep.join(["here", "gone"]))
    assert ostraka("doctor", "--json").json()["missing_data_folders"] == ["gone"]


@pytest.mark.parametrize(
    "verb",
    [
        "run fedavg",
        "compare fedavg",
        "partition iid",
        "figure outliers --out x.svg",
        "list data",
        "doctor",
    ],
)
def test_a_data_folder_that_is_not_there_is_an_error(ostraka: Ostraka, verb: str) -> None:
    Path("file").write_text("")
    for folder, wrong in (("./nowhere", "does not exist"), ("./file", "is a file, not a folder")):
        done = ostraka(*verb.split(), "--data-dir", folder)
        assert done.code == 2
        assert f"the data folder {folder[2:]} (--data-dir, data_dir) {wrong}" in done.err


def test_list_data_shows_shapes_and_sizes_and_what_is_damaged(ostraka: Ostraka) -> None:
    x, y = np.zeros((1200, 3, 4), np.uint8), np.arange(1200) % 6
    np.savez("mine.npz", x_train=x, y_train=y, x_test=x[:30], y_test=y[:30])
    Path("bad.npz").write_text("hello")
    lines = {
        line.split()[0]: line
        for line in ostraka("list", "data", "--data-dir", ".").out.splitlines()
        if line.strip()
    }
    assert " ".join(lines["mine"].split()) == "mine 1x3x4 6 1,200 + 30 mine.npz"
    assert "1x28x28" in lines["fashion-4k"]
    assert "4,000 + 1,000" in lines["fashion-4k"]
    assert "bad.npz: is not" in lines["bad"]
    assert "domains:A+B" in lines


def test_what_is_held_back_is_said_where_the_rest_is_too_little(ostraka: Ostraka) -> None:
    done = ostraka(
        "run", "fedavg", "--data", "digits", "--partition", "iid", "--validation", "0.9999"
    )
    assert done.code == 2
    assert (
        "Held back (validation 0.9999): 1442 of 1442 training samples; 0 are left for 10 parties"
        in done.err
    )
    shares = ("--validation", "0.5", "--shared", "0.495")
    done = ostraka("run", "fedavg", "--data", "digits", "--partition", "iid", *shares)
    assert "there are only 7 samples" in done.err
    assert (
        "Held back (validation 0.5, shared 0.495): 1435 of 1442 training samples; 7 are left for 10"
        in done.err
    )
    assert "Held back" not in ostraka("run", "fedavg", "--data", "digits", "--parties", "5000").err


def test_float_features_are_standardised_and_it_is_said(ostraka: Ostraka) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = np.stack([y * 1000 + rng.normal(size=60), rng.normal(size=60)], axis=1)
    np.savez("rows.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    words = (
        "closed-voting",
        "--data",
        "./rows.npz",
        "--partition",
        "iid",
        "--parties",
        "2",
        "--engine",
        "serial",
    )
    done = ostraka("run", *words, *ONE_EPOCH, "--json", "--out", "on").json()
    assert any(
        "mean 0, deviation 1 for each of the 2); --standardise off leaves them" in n
        for n in done["notes"]
    )
    member = load_member(Path("on/members/p00000.safetensors"))
    assert member.model.view.mean == pytest.approx(x.mean(axis=0))
    done = ostraka(
        "run", *words, *ONE_EPOCH, "--json", "--standardise", "off", "--out", "off"
    ).json()
    assert not any("standardised" in note for note in done.get("notes", []))
    assert load_member(Path("off/members/p00000.safetensors")).model.view.mean == ()
    assert "Note" not in ostraka("partition", "iid", "--data", "./rows.npz", "--parties", "2").out


def test_a_class_that_nobody_holds_is_said(ostraka: Ostraka) -> None:
    Path("some.json").write_text(json.dumps({"parties": [[0, 10], [1, 11]], "partial": True}))
    shown = ostraka("partition", "file:some.json", "--data", "digits").out
    assert (
        "Note: no party holds a training sample of 8 of 10 classes: 2, 3, 4, 5, 6 and 3 more"
        in shown
    )


def test_a_division_of_a_table_takes_the_column_of_its_classes(ostraka: Ostraka) -> None:
    rows = "\n".join(f"{n},{n % 3},{'xy'[n % 2]}" for n in range(20))
    Path("t.csv").write_text(f"a,b,species\n{rows}\n")
    words = ("partition", "iid", "--data", "t.csv", "--parties", "2", "--json")
    assert "species" in ostraka(*words).err
    assert ostraka(*words, "--label", "species").json()["classes"] == ["x", "y"]
