"""`ostraka show`: stored runs and grids, without their data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ostraka.runs.results import BesidePublished
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


@pytest.mark.parametrize("style", ["rich", "markdown", "csv"])
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


def test_published_figures_are_shown_again(ostraka: Ostraka) -> None:
    """They are stored with the records: a configuration with all settings written
    out does not tell what was chosen.
    """
    ostraka(*GRID)
    records = jsonfile.read_json(Path("grid/results.json"))
    told = {
        "value": 80.0,
        "std": None,
        "table": "Table 1",
        "ours": records[0]["accuracy"],
        "difference": 1.0,
    }
    records[0]["published"] = {"accuracy": told}
    jsonfile.write_json(Path("grid/results.json"), records)
    assert "Beside the published figures" in ostraka("show", "grid", "--format", "markdown").out


def test_compare_stores_published_figures(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = BesidePublished(80.0, None, "Table 1", ours=10.0, difference=-70.0)
    monkeypatch.setattr(
        "ostraka.display.published.with_published",
        lambda configs, records: [
            replace(record, published={"accuracy": told}) for record in records
        ],
    )
    ostraka(*GRID)
    assert [
        r["published"]["accuracy"]["value"] for r in jsonfile.read_json(Path("grid/results.json"))
    ] == [80.0] * 4


def test_cells_of_other_calls(ostraka: Ostraka, fragile: str) -> None:
    """Earlier cells with other settings are counted, unfinished and failed ones named."""
    words = ("compare", "solo", fragile, *TINY, "--out", "grid", "--set")
    ostraka(*words, "local.epochs=1")
    ostraka(*words, "local.epochs=2")
    shown = ostraka("show", "grid", "--json").json()
    assert [cell["status"] for cell in shown["cells"]] == ["ok", "failed"]
    assert "1 finished cells of earlier calls with other settings are not shown" in shown["notes"]
    assert any(
        note.startswith("not finished: fragile--digits--iid--s0--") for note in shown["notes"]
    )


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
