"""The grids in examples/: each runs, on a little data, with the command that it names."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ostraka.store.generator import save_generator
from ostraka.testing.stage import untrained_generator
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


FEDOS = sorted(path.stem for path in (EXAMPLES / "fedos").glob("*.toml"))


def commands_of(path: Path) -> list[list[str]]:
    """The `compare` commands in a file's head, without what needs the real data."""
    lines = [line[4:] for line in path.read_text().splitlines() if "   ostraka compare" in line]
    return [line.replace(" --data-dir DIR", "").split() for line in lines]


@pytest.mark.parametrize("name", FEDOS)
def test_fedos(ostraka: Ostraka, name: str, tmp_path: Path) -> None:
    """All of FedOS's grids are what `compare` can plan; data and net are those of the bundled."""
    path = EXAMPLES / "fedos" / f"{name}.toml"
    save_generator(Path("generator.safetensors"), replace(untrained_generator(), low=0.0))
    [command, *_] = commands_of(path)
    assert command[:4] == ["ostraka", "compare", "--config", str(path.relative_to(EXAMPLES.parent))]
    little = ("--data", "digits", "--net", "mlp", "--parties", "4", "--train-per-class", "20")
    words = ("--partition", "iid", "--rounds", "2", *little, "--seeds", "1", "--engine", "serial")
    if name == "figure2":  # its variants are those of lenet5
        words = tuple("fashion-4k" if word == "digits" else word for word in words)
        words = tuple("lenet5" if word == "mlp" else word for word in words)
    done = ostraka("compare", "--config", str(path), *words, "--out", command[-1], "--json")
    assert done.code == 0, done.err
    methods = [cell["method"] for cell in done.json()["cells"]]
    assert methods == tomllib.loads(path.read_text())["methods"]
    if name == "table2_mild":
        shown = ostraka("show", command[-1], "--at", "1,2", "--json")
        assert shown.code == 0, shown.err
        absolute, relative = shown.json()["tables"]
        assert sorted(row["method"] for row in absolute) == sorted(methods[1:])
        assert len(relative) == len(absolute)


def test_fedovas_grids_have_the_networks_of_its_paper() -> None:
    """On Fashion-MNIST that of McMahan et al. with the hidden layer of 512 (docs/papers.md): no
    grid changes an option of it."""
    grids = [tomllib.loads((EXAMPLES / f"fedova/{name}.toml").read_text()) for name in FEDOVA]
    nets = [grid["net"] for grid in grids if grid["data"] == ["fashion-mnist"]]
    assert len(nets) == 9
    assert all(net == {"name": "fedova-cnn"} for net in nets)


@pytest.mark.parametrize("name", FEDOS)
def test_fedos_rate_is_for_training_without_momentum(name: str) -> None:
    """0.1 with the default momentum of 0.9 is at chance on USPS."""
    values = tomllib.loads((EXAMPLES / "fedos" / f"{name}.toml").read_text())
    assert values["set"]["local"]["momentum"] == 0.0


FEDOVA = sorted(path.stem for path in (EXAMPLES / "fedova").glob("*.toml"))


@pytest.mark.parametrize("name", FEDOVA)
def test_fedova(ostraka: Ostraka, name: str) -> None:
    """All of FedOVA's grids are what `compare` can plan, with their own divisions and settings, and
    their figures are drawn; data is bundled, and too small for VGG-11.
    """
    path = EXAMPLES / "fedova" / f"{name}.toml"
    told, commands = tomllib.loads(path.read_text()), commands_of(path)
    parties = "12" if name == "open" else "10"  # of 6 or of 10 classes
    rounds = "10" if name.startswith("figure") else "2"
    words = (*LITTLE, "--parties", parties, "--rounds", rounds, "--set", "local.steps=2")
    for command in commands:
        assert command[1:4] == ["compare", "--config", str(path.relative_to(EXAMPLES.parent))]
        net = ("--net", "mlp") if command[-1].endswith("cifar10") else ()
        done = ostraka("compare", "--config", str(path), *command[4:], *words, *net)
        assert done.code == 0, done.err
        cells = done.json()["cells"]
        assert all(cell["status"] == "ok" for cell in cells)
        assert [c["method"] for c in cells] == told["methods"] * len(told["partition"])
    figures = [line[4:] for line in path.read_text().splitlines() if "   ostraka figure" in line]
    for line in figures:
        drawn = ostraka(*line.split()[1:])
        assert drawn.code == 0, drawn.err
        assert Path(line.split()[-1]).exists()
    assert bool(figures) == name.startswith("figure")


@pytest.mark.parametrize("name", ["table14", "table14_100"])
def test_fedovs_table_14(ostraka: Ostraka, name: str) -> None:
    """Destruction alone, with batch norm; the same members vote and teach."""
    path = EXAMPLES / "fedov" / f"{name}.toml"
    [command] = commands_of(path)
    assert command[:4] == ["ostraka", "compare", "--config", str(path.relative_to(EXAMPLES.parent))]
    methods = tomllib.loads(path.read_text())["methods"]
    students = [name for name in methods if not name.endswith("-paper")]
    short = [f"{name}:local.steps=2" for name in methods]
    short += [f"{name}:distil.epochs=1" for name in students]
    little = ("--parties", "3", "--partition", "iid", "--set", "net.width=1", *LITTLE)
    words = [word for setting in short for word in ("--set", setting)]
    done = ostraka("compare", "--config", str(path), *little, *words, "--out", command[-1])
    assert done.code == 0, done.err
    cells = done.json()["cells"]
    assert [cell["method"] for cell in cells] == methods
    assert all(cell["status"] == "ok" for cell in cells)
    assert [cell["reused"] for cell in cells] == [0, 3, 0, 3, 0]


@pytest.mark.parametrize("name", ["selectors", "paper_division", "combination", "ten"])
def test_dedes(ostraka: Ostraka, name: str) -> None:
    """Every selector of the grids chooses among a few members, which are trained once."""
    path = EXAMPLES / "dedes" / f"{name}.toml"
    little = ("--parties", "4", "--partition", "iid", "--net", "mlp", "--set", "local.epochs=1")
    done = ostraka("compare", "--config", str(path), *LITTLE, *little, "--out", out_of(path))
    assert done.code == 0, done.err
    cells = done.json()["cells"]
    assert [cell["method"] for cell in cells] == tomllib.loads(path.read_text())["methods"]
    assert all(cell["status"] == "ok" for cell in cells)
    trained = [cell for cell in cells if not cell["reused"] and cell["method"] != "centralised"]
    assert len(trained) == 1


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
