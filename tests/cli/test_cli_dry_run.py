"""`--dry-run`: what would be done and needed, with nothing trained for good and nothing written."""

from pathlib import Path

import pytest

from tests.cli.calling import TINY, Ostraka

WORDS = (
    "--data",
    "digits",
    "--partition",
    "iid",
    "--parties",
    "3",
    "--train-per-class",
    "20",
    "--engine",
    "serial",
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first trial is enough."""
    monkeypatch.setattr("ostraka.runs.estimate.TRIAL_SECONDS", 0.0)


def test_a_run_is_counted_exactly(ostraka: Ostraka) -> None:
    """200 samples among 3 parties: 67, 67 and 66, each 2 batches of 64 (or 66:
    2); 5 epochs and 4 rounds.
    """
    words = ("run", "fedavg", *WORDS, "--rounds", "4", "--set", "local.epochs=5", "--dry-run")
    found = ostraka(*words, "--json").json()
    assert [(p["samples"], p["classes"], p["steps"]) for p in found["parties"]] == [
        (67, 10, 10)
    ] * 2 + [(66, 10, 10)]
    assert (found["rounds"], found["steps"]) == (4, 4 * 3 * 10)
    # mlp with 8x8 inputs: 64*128+128, 128*64+64, 64*10+10
    assert (found["net"], found["parameters"]) == ("mlp", 8320 + 8256 + 650)
    assert found["seconds"] > 0
    assert found["memory"] > 4 * found["parameters"]
    shown = ostraka(*words).out
    assert "mlp, 17,226 parameters" in shown
    assert "Nothing was trained or written." in shown
    assert list(Path().iterdir()) == []


def test_bytes_are_those_of_the_run(ostraka: Ostraka) -> None:
    words = ("run", "fedavg", *WORDS, "--rounds", "2", "--set", "local.epochs=1", "--json")
    guess, real = ostraka(*words, "--dry-run").json(), ostraka(*words, "--out", "mine").json()
    assert guess["bytes_down"] == real["bytes_down"]
    assert guess["bytes_up"] == pytest.approx(real["bytes_up"], rel=0.01)


def test_a_fraction_of_the_parties_costs_its_share(ostraka: Ostraka) -> None:
    """One of three parties in each of three rounds: 3 reports, not 9."""
    words = (
        "run",
        "fedavg",
        *WORDS,
        "--rounds",
        "3",
        "--set",
        "local.epochs=5",
        "--dry-run",
        "--json",
    )
    whole, third = ostraka(*words).json(), ostraka(*words, "--set", "fraction=0.34").json()
    assert (whole["steps"], third["steps"]) == (90, 30)
    assert whole["bytes_up"] == 3 * third["bytes_up"] > 0


def test_what_exchanges_nothing_sends_nothing(ostraka: Ostraka) -> None:
    found = ostraka("run", "centralised", *WORDS, "--dry-run", "--json").json()
    assert (found["bytes_up"], found["bytes_down"]) == (0, 0)
    assert [(p["name"], p["samples"], p["classes"]) for p in found["parties"]] == [
        ("all data", 200, 10)
    ]


def test_a_mistake_is_found_by_a_dry_run(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedavg", *TINY, "--net", "simple-cnn", "--dry-run")
    assert done.code == 2
    assert "cannot take images of 8x8" in done.err


def test_a_grid_has_a_line_for_every_cell_and_a_sum_of_the_rest(ostraka: Ostraka) -> None:
    words = ("compare", "solo", "fedavg", *WORDS, "--set", "local.epochs=1", "--out", "grid")
    guess = ostraka(*words, "--seeds", "2", "--dry-run", "--json").json()
    assert [(c["method"], c["seed"], c["finished"]) for c in guess["cells"]] == [
        ("solo", 0, False),
        ("fedavg", 0, False),
        ("solo", 1, False),
        ("fedavg", 1, False),
    ]
    assert guess["seconds"] == pytest.approx(sum(cell["seconds"] for cell in guess["cells"]))
    assert not Path("grid").exists()
    ostraka(*words)
    again = ostraka(*words, "--seeds", "2", "--dry-run", "--json").json()
    assert [cell["finished"] for cell in again["cells"]] == [True, True, False, False]
    assert again["seconds"] == pytest.approx(sum(cell["seconds"] for cell in again["cells"][2:]))
    shown = ostraka(*words, "--seeds", "2", "--dry-run").out
    assert "4 cells, 2 of them finished" in shown
    assert all(len(line) <= 80 for line in shown.splitlines()[:-1])


def test_public_samples_count_once_for_each_party(ostraka: Ostraka) -> None:
    words = (
        "run",
        "feddf",
        *WORDS,
        "--public",
        "half-test",
        "--set",
        "local.epochs=1",
        "--set",
        "distil.epochs=1",
    )
    guess, real = (
        ostraka(*words, "--dry-run", "--json").json(),
        ostraka(*words, "--json", "--out", "mine").json(),
    )
    assert guess["bytes_down"] == real["bytes_down"]
    assert "the time leaves out the training distil" in guess["notes"]
