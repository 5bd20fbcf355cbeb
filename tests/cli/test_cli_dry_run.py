"""`--dry-run`: what would be done and needed, with nothing trained for good and nothing written."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ostraka.data.sources import load
from ostraka.methods.fedavg import FedAvg
from ostraka.runs.config import make
from ostraka.runs.estimate import Estimator, Trial, _seconds
from ostraka.runs.plan import make_plan
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
    """200 samples among 3 parties: 67, 67 and 66, each 4 batches of 17; 5 epochs and 4 rounds."""
    words = ("run", "fedavg", *WORDS, "--rounds", "4", "--set", "local.epochs=5", "--dry-run")
    found = ostraka(*words, "--json").json()
    assert [(p["samples"], p["classes"], p["steps"]) for p in found["parties"]] == [
        (67, 10, 20)
    ] * 2 + [(66, 10, 20)]
    assert (found["rounds"], found["steps"]) == (4, 4 * 3 * 20)
    # mlp with 8x8 inputs: 64*128+128, 128*64+64, 64*10+10
    assert (found["net"], found["parameters"]) == ("mlp", 8320 + 8256 + 650)
    assert found["seconds"] > 0
    assert found["memory"] > 4 * found["parameters"]
    shown = ostraka(*words).out
    assert "mlp, 17,226 parameters" in shown
    assert "Nothing was trained or written." in shown
    assert list(Path().iterdir()) == []


def test_few_samples_are_counted_with_the_minimum_of_steps(ostraka: Ostraka) -> None:
    """Pooled training makes the steps of all rounds in one; an epoch of fedvc is of `samples`."""
    words = ("--data", "digits", "--partition", "iid", "--parties", "2", "--train-per-class", "4")
    steps = {
        "fedov": 1200,  # 120 for each of ten classes
        "fedavg": 40,  # 20 samples in batches of 5, ten epochs
        "centralised": 20 * 40,  # 40 samples in batches of 10, 200 epochs
        "fedvc": 40,  # 256 in batches of 32, five epochs
    }
    for method, count in steps.items():
        found = ostraka("run", method, *words, "--dry-run", "--json").json()
        assert {p["steps"] for p in found["parties"]} == {count}, method
        assert found["steps"] == sum(p["steps"] for p in found["parties"]) * found["rounds"]


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
    assert (whole["steps"], third["steps"]) == (180, 60)
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


@pytest.fixture
def uneven(ostraka: Ostraka) -> tuple[str, ...]:
    """Parties with 2, 3 and 1 of the labels: 20, 30 and 10 samples."""
    labels = load("digits").train.labels.numpy()
    held = ([0, 1], [2, 3, 4], [5])
    rows = [[int(i) for c in own for i in np.flatnonzero(labels == c)[:10]] for own in held]
    Path("mine.json").write_text(json.dumps({"parties": rows, "partial": True}))
    words = ("run", "fedova", "--data", "digits", "--partition", "file:mine.json")
    short = ("--set", "local.epochs=3", "--set", "local.batch=10")
    return *words, "--engine", "serial", "--rounds", "3", *short, "--json"


@pytest.mark.parametrize(("outliers", "lonely"), [("none", 0), ("dd", 3)])
def test_every_network_that_a_party_trains_is_counted(
    outliers: str, lonely: int, uneven: tuple[str, ...], ostraka: Ostraka
) -> None:
    """3 epochs of 2, 3 and 1 batches, for 2, 3 and (only against outliers) 1 network."""
    found = ostraka(*uneven, "--set", f"outliers={outliers}", "--dry-run").json()
    assert [p["steps"] for p in found["parties"]] == [2 * 6, 3 * 9, lonely]
    assert found["steps"] == 3 * (12 + 27 + lonely)


@pytest.mark.parametrize("known", ["false", "true"])
def test_bytes_follow_the_networks_that_are_sent(
    known: str, uneven: tuple[str, ...], ostraka: Ostraka
) -> None:
    """All networks go down, or, where labels are known, those of the labels from round 2 on;
    those that were trained come up: 2, 3 and none."""
    words = (*uneven, "--set", f"labels_known={known}")
    guess, real = ostraka(*words, "--dry-run").json(), ostraka(*words, "--out", "mine").json()
    assert guess["bytes_down"] == real["bytes_down"]
    assert guess["bytes_up"] == pytest.approx(real["bytes_up"], rel=0.01)


def test_seconds_grow_with_the_steps_of_all_networks() -> None:
    """2 networks in 4 steps each took 8 s. 3 networks in 9 steps each are 27 steps; and where
    steps are not told, 3 networks on half of the samples are 3/4 of the work."""
    trial = Trial(size=20, trainings=2, steps=8, seconds=8.0, answer_seconds=0.0, sent={})
    assert _seconds(trial, 30, 3, 27) == 27.0
    assert _seconds(trial, 10, 0, 0) == 0.0
    untold = replace(trial, steps=None)
    assert _seconds(untold, 10, 3, None) == 6.0


def test_a_party_is_asked_for_its_trainings_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parties there are: 100 parties are not asked 100 times each."""
    asked: list[int] = []

    def trainings(*given: object) -> int:
        asked.append(1)
        return 1

    monkeypatch.setattr(FedAvg, "trainings", trainings)
    values = {"method": "fedavg", "data": "digits", "partition": "iid", "parties": 100}
    Estimator().of(make_plan(make({**values, "engine": "serial"})))
    assert len(asked) <= 10 * 100
