"""`ostraka show`: stored runs and grids, without their data."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from ostraka.display.published import Published
from ostraka.store import jsonfile
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka

GRID = ("compare", "solo", "fedavg", *TINY, *ONE_EPOCH, "--seeds", "2", "--out", "grid")


def test_a_finished_run_is_shown_as_it_was(ostraka: Ostraka) -> None:
    first = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--out", "mine")
    assert ostraka("show", "mine").out == first.out
    brief = ostraka("show", "mine", "--json").json()
    assert brief == ostraka("run", "--resume", "--out", "mine", "--json").json()


def test_the_data_is_not_needed_and_a_folder_may_move(ostraka: Ostraka) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (40, 8, 8, 1), dtype=np.uint8), np.arange(40) % 4
    np.savez("own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    words = (
        "--data",
        "own.npz",
        "--partition",
        "iid",
        "--parties",
        "2",
        "--engine",
        "serial",
        *ONE_EPOCH,
    )
    assert ostraka("run", "fedavg", *words, "--out", "here").code == 0
    Path("own.npz").unlink()
    Path("here").rename("there")
    done = ostraka("show", "there")
    assert done.code == 0
    assert "Results: there" in done.out


def test_an_unfinished_run_says_how_far_it_is(ostraka: Ostraka, fragile: str) -> None:
    """Party 1 of three fails: the reports of the other two wait."""
    assert ostraka("run", fragile, *TINY, *ONE_EPOCH, "--out", "mine").code == 3
    done = ostraka("show", "mine")
    assert done.code == 0
    assert "not finished" in done.out
    assert "0 of 1" in done.out
    assert "Go on with: ostraka run --resume --out mine" in done.out
    facts = ostraka("show", "mine", "--json").json()
    assert (facts["status"], facts["evaluated"], facts["rounds"], facts["reports"]) == (
        "unfinished",
        0,
        1,
        2,
    )


@pytest.mark.parametrize("style", ["rich", "markdown", "csv", "latex"])
def test_a_grid_is_shown_as_compare_shows_it(ostraka: Ostraka, style: str) -> None:
    ostraka(*GRID)
    expected = ostraka(*GRID, "--format", style).out
    assert "solo" in expected
    assert ostraka("show", "grid", "--format", style).out == expected


def test_a_grid_as_json(ostraka: Ostraka) -> None:
    expected = ostraka(*GRID, "--json").json()
    found = ostraka("show", "grid", "--json").json()
    assert found["tables"] == expected["tables"]
    assert [c["accuracy"] for c in found["cells"]] == [c["accuracy"] for c in expected["cells"]]


def test_published_figures_are_shown_again(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ostraka.display.published.published",
        lambda *_, **__: Published(80.0, None, "fedov-1", ("parties: 2 for 10",)),
    )
    shown = ostraka(*GRID, "--format", "markdown").out
    assert "Beside the published figures" in shown
    assert "parties: 2 for 10" in shown
    assert ostraka("show", "grid", "--format", "markdown").out == shown
    stored = jsonfile.read_json(Path("grid/results.json"))
    assert [r["published"]["accuracy"]["value"] for r in stored] == [80.0] * 4
    assert stored[0]["published"]["accuracy"]["differs"][0] == "parties: 2 for 10"


def test_cells_of_other_settings_are_rows_of_their_own(ostraka: Ostraka) -> None:
    """One seed at 2 epochs, two at 1: three figures, never averaged over both."""
    words = ("compare", "solo", *TINY, "--out", "grid")
    long = ostraka(*words, "--seeds", "2", "--epochs", "2", "--json").json()["cells"]
    [short] = ostraka(*words, "--seeds", "1", "--epochs", "1", "--json").json()["cells"]
    found = ostraka("show", "grid", "--json").json()
    place = "digits / iid"
    rows = {row["method"]: row[place] for row in found["tables"][0]}
    assert list(rows) == ["solo (local.epochs=1)", "solo (local.epochs=2)"]
    assert (rows["solo (local.epochs=1)"]["n"], rows["solo (local.epochs=2)"]["n"]) == (1, 2)
    assert rows["solo (local.epochs=1)"]["mean"] == short["accuracy"]
    mean = (long[0]["accuracy"] + long[1]["accuracy"]) / 2
    assert rows["solo (local.epochs=2)"]["mean"] == pytest.approx(mean)
    told = [(cell["seed"], cell["settings"]["local.epochs"]) for cell in found["cells"]]
    assert told == [(0, 1), (0, 2), (1, 2)]
    # the stored tables are of all cells, the printed ones of the last call
    assert "solo (local.epochs=2)" in Path("grid/results.md").read_text()
    assert "local.epochs" not in ostraka(*words, "--seeds", "1", "--epochs", "1").out


def test_accuracy_csv_has_a_row_for_each_cell_of_the_folder(ostraka: Ostraka) -> None:
    words = ("compare", "solo", "fedavg", *TINY[2:], *ONE_EPOCH, "--out", "grid", "--data")
    ostraka(*words, "digits", "--known", "6")
    ostraka(*words, "digits", "iris", "--lr", "0.5", "--seeds", "2")
    text = Path("grid/accuracy.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 2 * 2 * 2 + 2
    first = rows[0]
    assert list(first)[:4] == ["method", "data", "partition", "seed"]
    assert {"known", "local.lr", "auroc", "cpu_seconds", "error"} <= first.keys()
    assert "local.epochs" not in first  # no two cells differ in it
    assert [(row["known"], row["local.lr"]) for row in rows[-2:]] == [("6", "0.02"), ("6", "0.004")]
    cells = ostraka("show", "grid", "--json").json()["cells"]
    assert [float(row["accuracy"]) for row in rows] == [cell["accuracy"] for cell in cells]
    assert [row["auroc"] != "" for row in rows] == [False] * 8 + [True] * 2


def test_a_setting_of_the_whole_run_is_told_across_methods(ostraka: Ostraka) -> None:
    ostraka("compare", "solo", *TINY, *ONE_EPOCH, "--known", "6", "--out", "grid")
    ostraka("compare", "fedavg", *TINY, *ONE_EPOCH, "--out", "grid")
    rows = ostraka("show", "grid", "--json").json()["tables"][0]
    assert [row["method"] for row in rows] == ["fedavg", "solo (known=6)"]


def test_variants_keep_their_names_in_later_calls(ostraka: Ostraka) -> None:
    ostraka("compare", "fedavg:lr=0.5", *TINY, *ONE_EPOCH, "--out", "grid")
    ostraka("compare", "solo", *TINY, *ONE_EPOCH, "--out", "grid")
    rows = ostraka("show", "grid", "--json").json()["tables"][0]
    assert [row["method"] for row in rows] == ["solo", "fedavg:lr=0.5"]


def test_a_failed_call_loses_nothing(ostraka: Ostraka, fragile: str) -> None:
    """Its failures are told, and the tables still have all that finished before."""
    words = ("compare", *TINY, "--out", "grid", "--epochs")
    ostraka(*words, "1", "solo")
    good = jsonfile.read_json(Path("grid/results.json"))[0]["accuracy"]
    assert ostraka(*words, "2", fragile).code == 3
    rows = list(csv.DictReader(Path("grid/accuracy.csv").read_text().splitlines()))
    assert [(row["method"], row["status"]) for row in rows] == [
        ("fragile", "failed"), ("solo", "ok")
    ]  # fmt: skip
    assert f"| solo | **{good:.2f} †** |" in Path("grid/results.md").read_text()
    shown = ostraka("show", "grid", "--json").json()
    assert [cell["status"] for cell in shown["cells"]] == ["failed", "ok"]
    assert any(
        note.startswith("not finished: fragile--digits--iid--s0--") for note in shown["notes"]
    )


def test_a_model_to_start_from_that_was_trained_again_is_not_averaged(ostraka: Ostraka) -> None:
    """Cells of one row, place and seed that began with different models are rows of their own."""
    ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--out", "first")
    words = ("compare", "fedprox", *TINY, *ONE_EPOCH, "--start-from", "first", "--out", "grid")
    ostraka(*words)
    shutil.rmtree("first")
    Path("grid/results.json").rename("old.json")
    [old] = jsonfile.read_json(Path("old.json"))
    ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--seed", "1", "--out", "first")
    [new] = ostraka(*words, "--json").json()["cells"]
    assert old["settings"] == new["settings"]
    assert old["start"]["digest"] != new["start"]["digest"]
    found = ostraka("show", "grid", "--json").json()
    rows = {row["method"]: row["digits / iid"]["mean"] for row in found["tables"][0]}
    digest = old["start"]["digest"]
    assert rows == {
        "fedprox": new["accuracy"],
        f"fedprox (start_digest={digest})": old["accuracy"],
    }


def test_models_to_start_from_of_other_settings_are_rows_of_their_own(ostraka: Ostraka) -> None:
    for name, lr in (("a", "0.1"), ("b", "0.5")):
        ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--lr", lr, "--out", name)
        words = ("compare", "fedprox", *TINY, *ONE_EPOCH, "--out", "grid")
        ostraka(*words, "--start-from", name)
    rows = ostraka("show", "grid", "--json").json()["tables"][0]
    assert len({row["method"] for row in rows}) == 2
    assert all(row["method"].startswith("fedprox (start_from=fedavg ") for row in rows)


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("nowhere", "there is no folder or file nowhere"),
        ("file", "file has 0 bytes, which is no safetensors file"),
        ("empty", "empty is neither a run nor a grid; give the folder of one"),
        (".", ". is neither a run nor a grid; it has some in it: begun, mine"),
        ("begun", "no cell of the grid begun has ended yet"),
    ],
)
def test_what_is_neither_a_run_nor_a_grid(ostraka: Ostraka, folder: str, message: str) -> None:
    Path("file").write_text("")
    Path("empty").mkdir()
    Path("begun/cells/x").mkdir(parents=True)
    Path("mine").mkdir()
    Path("mine/config.toml").write_text("")
    done = ostraka("show", folder)
    assert done.code == 2
    assert message in done.err
