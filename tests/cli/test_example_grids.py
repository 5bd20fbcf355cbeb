"""The grids in examples/: each runs, on a little data, with the command that it names."""

from pathlib import Path

import pytest

from tests.cli.calling import Ostraka

EXAMPLES = Path(__file__).parents[2] / "examples"
LITTLE = (
    "--data",
    "digits",
    "--train-per-class",
    "30",
    "--seeds",
    "1",
    "--engine",
    "serial",
    "--json",
)
ROUNDS = {"fedov_fedprox": [0, 1, 2], "fedkt_fedprox": [0, 1, 2], "fedprox": [1, 2]}
SHORT = {"fedov": ("--set", "distil.epochs=1"), "fedkt": ("--set", "student.epochs=1")}


def out_of(path: Path) -> str:
    """The folder that the file's own command names."""
    [command] = [
        line for line in path.read_text().splitlines() if line.startswith("#   ostraka compare")
    ]
    words = command.split()
    assert words[words.index("--config") + 1] == str(path.relative_to(EXAMPLES.parent))
    return words[words.index("--out") + 1]


def test_figure_4(ostraka: Ostraka) -> None:
    """Starts first; then what begins there is evaluated as round 0,
    with the accuracy of its start.
    """
    cells = {}
    for name in ("fedov", "fedkt", *ROUNDS):
        path = EXAMPLES / "figure4" / f"{name}.toml"
        words = ("--set", "local.epochs=1", *(("--rounds", "2") if name in ROUNDS else SHORT[name]))
        done = ostraka("compare", "--config", str(path), *LITTLE, *words, "--out", out_of(path))
        assert done.code == 0, done.err
        [cells[name]] = done.json()["cells"]
    for name in ("fedov", "fedkt"):
        assert cells[f"{name}_fedprox"]["start"]["accuracy"] == cells[name]["accuracy"]
    drawn = ostraka(
        "figure",
        "rounds",
        "--runs",
        *(f"runs/figure4/{name}" for name in ROUNDS),
        "--out",
        "figure4.svg",
    )
    assert drawn.code == 0
    text = Path("figure4.svg").read_text()
    assert all(
        f">{label}<" in text
        for label in ("fedprox from fedov-distilled", "fedprox from fedkt", "fedprox")
    )


@pytest.mark.parametrize(("name", "fedov"), [("full", "fedov-paper"), ("short", "fedov")])
def test_figure_7(ostraka: Ostraka, name: str, fedov: str) -> None:
    path = EXAMPLES / "figure7" / f"{name}.toml"
    words = (
        "--partition",
        "iid",
        "--rounds",
        "2",
        "--eval-every",
        "1",
        "--set",
        f"{fedov}:local.epochs=1",
        "--out",
        out_of(path),
    )
    done = ostraka("compare", "--config", str(path), *LITTLE, *words)
    assert done.code == 0, done.err
    found = {cell["method"]: cell["rounds"] for cell in done.json()["cells"]}
    assert found == {fedov: 1, "fedavg": 2, "fedprox": 2, "fednova": 2, "scaffold": 2}
    assert Path(out_of(path), "rounds.svg").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rounds",), "the figure 'rounds' needs --runs: the folders of finished runs or grids"),
        (("features",), "the figure 'features' needs --run: the folder of a finished run"),
        (
            ("rounds", "--runs", "nowhere"),
            "there is no folder nowhere; give the folders of finished runs",
        ),
    ],
)
def test_figures_that_lack_something(
    ostraka: Ostraka, words: tuple[str, ...], message: str
) -> None:
    done = ostraka("figure", *words, "--out", "x.svg")
    assert done.code == 2
    assert message in done.err
