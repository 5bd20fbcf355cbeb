"""`ostraka compare` beside published figures, and `--shared`."""

import csv
from pathlib import Path

import pytest

from ostraka.display.published import Published
from tests.cli.calling import ONE_EPOCH, Ostraka

GRID = (
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


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a paper had fedavg's accuracy on any data."""

    def found(
        data: str, partition: str, net: str, method: str, *rest: object, **more: object
    ) -> Published | None:
        mine = method == "fedavg" and "accuracy" in rest
        return Published(50.0, 1.5, "fedov-1", ("network: mlp for x",)) if mine else None

    monkeypatch.setattr("ostraka.display.published.published", found)


def test_published_figures_stand_beside_ours(ostraka: Ostraka, figure: None) -> None:
    words = ("compare", "fedavg", "solo", *GRID, *ONE_EPOCH, "--out", "grid")
    shown = ostraka(*words, "--format", "markdown").out
    assert "**Beside the published figures (%)**" in shown
    [line] = [line for line in shown.splitlines() if "fedov-1" in line]
    assert line.startswith("| fedavg | digits / iid | accuracy |")
    assert "50.0 ± 1.5" in line
    cells = {cell["method"]: cell for cell in ostraka(*words, "--json").json()["cells"]}
    told = cells["fedavg"]["published"]["accuracy"]
    assert told["difference"] == pytest.approx(cells["fedavg"]["accuracy"] - 50.0)
    assert "published" not in cells["solo"]
    assert told["differs"][:2] == ["network: mlp for x", "training samples per class: 20 for all"]
    assert "[1] network: mlp for x; training samples per class: 20 for all;" in shown
    assert (
        "[1] network: mlp for x; training samples per class" in Path("grid/results.tex").read_text()
    )
    [row] = csv.DictReader(Path("grid/published.csv").read_text().splitlines())
    assert row["differs"].startswith("network: mlp for x; training samples per class: 20 for all;")


def test_without_published_figures_nothing_is_added(ostraka: Ostraka) -> None:
    assert "published" not in ostraka("compare", "fedavg", *GRID, *ONE_EPOCH, "--out", "grid").out
    assert not Path("grid/published.csv").exists()


def test_shared_samples_from_the_command_line(ostraka: Ostraka) -> None:
    words = ("run", "data-sharing-10", *GRID, *ONE_EPOCH, "--out", "run")
    refused = ostraka(*words, "--json")
    assert refused.code == 2
    assert "needs shared" in refused.err
    done = ostraka(*words, "--shared", "0.2", "--json")
    assert done.code == 0
    assert "shared = 0.2" in Path("run/config.toml").read_text()
