"""`ostraka compare`: finished cells are skipped, failed ones reported, members trained once."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from ostraka.methods.panel import PanelMethod
from ostraka.runs.division import load_once
from ostraka.store import jsonfile
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka, Result

GRID = (
    "--data",
    "digits",
    "--parties",
    "3",
    "--train-per-class",
    "6",
    "--engine",
    "serial",
    *ONE_EPOCH,
)


def seconds_of(result: Result) -> dict[tuple[str, int], float]:
    return {(cell["method"], cell["seed"]): cell["seconds"] for cell in result.json()["cells"]}


def test_a_second_call_trains_nothing(ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "compare",
        "solo",
        "fedavg",
        *GRID,
        "--partition",
        "iid",
        "--seeds",
        "2",
        "--json",
        "--out",
        "grid",
    )
    first = ostraka(*words)
    assert first.code == 0
    assert len(first.json()["cells"]) == 4

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a finished cell was run again")

    monkeypatch.setattr("ostraka.runs.grid.execute", forbidden)
    again = ostraka(*words)
    assert again.code == 0
    assert seconds_of(again) == seconds_of(first)


SETTINGS = ("--set", "local.batch=7", "--set", "fraction=0.5", "--set", "local.lr=0.5")
IN_OTHER_ORDER = (*SETTINGS[4:], *SETTINGS[2:4], *SETTINGS[:2])


def test_settings_in_another_order_are_the_same_cell(ostraka: Ostraka) -> None:
    words = ("compare", "fedavg", *GRID, "--partition", "iid", "--json", "--out", "grid")
    first, again = (ostraka(*words, *given).json()["cells"] for given in (SETTINGS, IN_OTHER_ORDER))
    assert again == first
    assert len(list(Path("grid/cells").iterdir())) == 1
    done = ostraka(
        "compare", "fedavg:lr=0.5,batch=7", "fedavg:batch=7,lr=0.5", *GRID, "--out", "grid"
    )
    assert done.code == 2
    assert "are the same run; name one of them" in done.err


def test_a_default_that_is_written_out_is_the_same_cell(ostraka: Ostraka) -> None:
    words = ("compare", "fedavg", *GRID, "--partition", "iid", "--json", "--out", "grid")
    first = ostraka(*words).json()["cells"]
    again = ostraka(*words, "--set", "fraction=1.0", "--lr", "0.02").json()["cells"]
    assert again == first
    assert len(list(Path("grid/cells").iterdir())) == 1


def test_a_failed_cell_is_reported_and_the_others_go_on(ostraka: Ostraka, fragile: str) -> None:
    done = ostraka("compare", fragile, "solo", *GRID, "--partition", "iid", "--out", "grid")
    assert done.code == 3
    assert "failed [1]" in done.out
    assert "the disk of this party is full" in " ".join(done.out.split())
    cells = jsonfile.read_json(Path("grid/results.json"))
    status = {cell["method"]: cell["status"] for cell in cells}
    assert status == {"fragile": "failed", "solo": "ok"}


def test_members_are_trained_once_for_all_methods_that_use_them(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []
    update = PanelMethod.local_update

    def counted(self: PanelMethod, rnd: object, party: object, memory: object) -> object:
        trained.append(party.id)  # type: ignore[attr-defined]
        return update(self, rnd, party, memory)  # type: ignore[arg-type]

    monkeypatch.setattr(PanelMethod, "local_update", counted)
    done = ostraka(
        "compare", "solo", "closed-voting", *GRID, "--partition", "iid", "--json", "--out", "grid"
    )
    assert done.code == 0
    assert sorted(trained) == [0, 1, 2]
    assert [cell["reused"] for cell in done.json()["cells"]] == [0, 3]


def test_tables_as_rich_markdown_csv_and_json(ostraka: Ostraka) -> None:
    words = (
        "compare",
        "solo",
        "fedavg",
        *GRID,
        "--partition",
        "iid",
        "labels:5",
        "--seeds",
        "2",
        "--rounds",
        "1",
        "--out",
        "grid",
    )
    rich = ostraka(*words)
    assert rich.code == 0
    assert "digits / labels:5" in rich.out
    assert all(len(line) <= 80 for line in rich.out.splitlines())
    markdown = ostraka(*words, "--format", "markdown").out
    assert markdown.startswith("**Accuracy (%)**")
    assert "| method | digits / iid | digits / labels:5 |" in markdown
    rows = list(csv.DictReader(io.StringIO(ostraka(*words, "--format", "csv").out)))
    assert [row["method"] for row in rows] == ["solo", "fedavg"]
    assert rows[0]["digits / iid n"] == "2"
    latex = ostraka(*words, "--format", "latex").out
    assert r"method & digits / iid & digits / labels:5 & CPU time" in latex
    assert latex.strip() == Path("grid/results.tex").read_text().strip()
    found = ostraka(*words, "--json").json()
    assert found.keys() == {"cells", "tables", "notes", "out"}
    assert found["tables"][0][0]["digits / iid"]["n"] == 2
    assert {"balanced_accuracy", "f1", "confusion"} <= found["cells"][0].keys()
    assert {path.name for path in Path("grid").iterdir()} >= {
        "results.md",
        "accuracy.csv",
        "results.json",
        "cells",
    }


def test_open_set_grids_have_an_auroc_table(ostraka: Ostraka) -> None:
    done = ostraka(
        "compare", "solo", *GRID, "--partition", "iid", "--known", "7", "--format", "markdown"
    )
    assert "**AUROC (%)**" in done.out
    [row] = csv.DictReader(Path("runs/compare/accuracy.csv").read_text().splitlines())
    assert 0 <= float(row["auroc"]) <= 100


def test_open_set_grids_tell_how_the_open_answer_does(ostraka: Ostraka) -> None:
    words = ("compare", "solo", "fedov", *GRID, "--partition", "iid")
    shown = ostraka(*words, "--known", "7", "--format", "markdown", "--out", "open").out
    assert "**Open answers (%): digits / iid**" in shown
    assert "| method | balanced | known refused | unknown refused |" in shown
    assert "**Open answers (%): digits / iid**" in Path("open/results.md").read_text()
    solo, fedov = ostraka(*words, "--known", "7", "--json", "--out", "open").json()["cells"]
    assert (solo["known_refused"], solo["unknown_refused"]) == (0.0, 0.0)
    assert fedov["open_balanced_accuracy"] == fedov["open"]["balanced_accuracy"]
    assert ostraka("show", "open", "--format", "markdown").out == shown
    assert "Open answers" not in ostraka(*words, "--format", "markdown", "--out", "closed").out


def test_a_grid_file_and_settings_of_one_method(ostraka: Ostraka) -> None:
    Path("grid.toml").write_text(
        'methods = ["solo", "fedavg"]\n'
        'data = ["digits"]\n'
        'partition = ["iid"]\n'
        "seeds = [4, 7]\n"
        "parties = 3\n"
        "train_per_class = 6\n"
        'engine = "serial"\n'
        "[set.local]\n"
        "epochs = 1\n"
        "[method.fedavg]\n"
        "rounds = 2\n"
    )
    cells = ostraka("compare", "--config", "grid.toml", "--json", "--out", "a").json()["cells"]
    assert [(c["method"], c["seed"], c["rounds"]) for c in cells] == [
        ("solo", 4, 1),
        ("fedavg", 4, 2),
        ("solo", 7, 1),
        ("fedavg", 7, 2),
    ]
    given = ("--seeds", "1", "--set", "fedavg:rounds=3", "--json", "--out", "b")
    over = ostraka("compare", "fedavg", "solo", "--config", "grid.toml", *given).json()["cells"]
    assert [(c["method"], c["seed"], c["rounds"]) for c in over] == [
        ("fedavg", 0, 3),
        ("solo", 0, 1),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name the methods to compare"),
        (("fedavg", "fedavg"), "the grid names methods twice"),
        (("fedavg", "--seeds", "some"), "(3 means 0, 1, 2) or a list (4,7,9)"),
        (("fedavg", "--seeds", "0"), "seeds is 0; give a number from 1"),
        (("fedavg", "--set", "solo:local.epochs=1"), "settings were given for solo"),
        (("fedavg", "sollo"), "Did you mean 'solo'?"),
        (("fedova:outliers=none", "fedova"), "fedova:outliers=none and fedova are the same run"),
        (("fedavg:lr=0.02", "fedavg"), "fedavg:lr=0.02 and fedavg are the same run; name one"),
        (("fedavg", "--partition", "labels:2", "#C=2"), "the grid names partitions twice"),
        (("feddf", "--public", "nowhere"), "no dataset 'nowhere' was found"),
        (("fedavg", "--rate-from", "validation"), "give --validation 0.05"),
        (("fedavg", "--partition", "labels:11"), "labels:11"),
    ],
)
def test_mistakes_are_refused_before_anything_trains(
    ostraka: Ostraka, words: tuple[str, ...], message: str
) -> None:
    seeds = () if "--seeds" in words else ("--seeds", "3")
    done = ostraka("compare", *words, *TINY[:2], *seeds)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not Path("runs").exists()


def test_all_mistakes_are_told_at_once_each_in_one_line(ostraka: Ostraka) -> None:
    """Two methods, two data sets, two partitions, three seeds; one of each pair is wrong, and
    what was good before stays as it is.
    """
    good = ("compare", "solo", *GRID, "--partition", "iid", "--out", "grid")
    ostraka(*good)
    before = {path: path.read_bytes() for path in Path("grid").glob("*.*")}
    done = ostraka(
        "compare", "solo", "sollo", *GRID[2:], "--data", "digits", "mnits",
        "--partition", "iid", "dirichelt:0.5", "--seeds", "3", "--out", "grid",
    )  # fmt: skip
    assert done.code == 2
    first, *lines = done.err.splitlines()
    assert first == "ostraka: the grid has 3 mistakes; nothing was trained or written:"
    assert [line.split("'")[1] for line in lines] == ["sollo", "dirichelt", "mnits"]
    assert {path: path.read_bytes() for path in Path("grid").glob("*.*")} == before
    assert len(list(Path("grid/cells").iterdir())) == 1
    assert ostraka(*good[:2], "sollo", "solso", *good[2:], "--dry-run").err.count("unknown") == 2
    nobody = ostraka("compare", "sollo", "--data", "mnits", "--seeds", "3").err
    assert nobody.startswith("ostraka: the grid has 2 mistakes")
    # the data of the folders that were named, among the parties that were asked for
    x, y = np.zeros((4, 5), np.float32), np.arange(4) % 2
    np.savez("own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    own = ("--data", "own.npz", "--partition", "iid", "--parties", "2")
    assert ostraka("compare", "sollo", *own).err.count("\n") == 1


def test_nothing_trains_where_one_cell_could_not(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistake is in the last cell alone: a division among more parties than it has rows."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("something was trained")

    monkeypatch.setattr("ostraka.runs.grid.execute", forbidden)
    words = ("compare", "solo", *GRID[2:], "--data", "digits", "iris", "--parties", "50")
    done = ostraka(*words, "--partition", "iid", "--out", "grid", "--train-per-class", "6")
    assert done.code == 2
    assert not Path("grid").exists()


def test_finished_cells_need_no_data_to_be_checked(ostraka: Ostraka) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (40, 8, 8, 1), dtype=np.uint8), np.arange(40) % 4
    np.savez("own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    words = ("compare", "solo", *GRID[2:], "--data", "own.npz", "--partition", "iid")
    assert ostraka(*words, "--out", "grid").code == 0
    Path("own.npz").unlink()
    load_once.cache_clear()
    assert ostraka(*words, "--out", "grid").code == 0
    gone = ostraka(*words, "--seeds", "2", "--out", "grid")
    assert gone.code == 2
    assert "own.npz" in gone.err


def test_cpu_time_counts_members_that_were_trained_once_for_two_rows(ostraka: Ostraka) -> None:
    words = ("compare", "solo", "closed-voting", *GRID[: -len(ONE_EPOCH)], "--partition", "iid")
    done = ostraka(*words, "--set", "local.epochs=40", "--json", "--out", "grid").json()
    solo, vote = done["cells"]
    assert (solo["reused"], vote["reused"]) == (0, 3)
    assert vote["cpu_seconds"] > 0.5 * solo["cpu_seconds"]
    assert list(done["tables"][0][0]) == ["method", "digits / iid", "CPU time", "up", "down"]
    [note] = [note for note in done["notes"] if note.startswith("trained once and shared")]
    assert "closed-voting took members that another row or call had trained" in note


def test_a_method_that_needs_public_samples_halves_the_test_set_for_all(ostraka: Ostraka) -> None:
    """FedDF cannot do without; the others are then scored on the same half."""
    words = (
        "compare",
        "fedavg",
        "feddf",
        *GRID,
        "--set",
        "feddf:distil.epochs=1",
        "--partition",
        "iid",
        "--json",
    )
    done = ostraka(*words, "--out", "grid").json()
    alone = ostraka(
        "compare", "fedavg", *GRID, "--partition", "iid", "--json", "--out", "alone"
    ).json()
    configs = [path.read_text() for path in Path("grid/cells").glob("*/config.toml")]
    assert len(configs) == 2
    assert all('public = "half-test"' in text for text in configs)
    assert any(
        "(feddf); every method is scored on the other half" in note for note in done["notes"]
    )
    assert not any("half" in note for note in alone["notes"])


def test_rounds_are_for_the_methods_that_can_have_several(ostraka: Ostraka) -> None:
    """A number of the method's own goes first; the table says who has one exchange."""
    words = (
        "solo",
        "fedavg",
        "fedprox",
        *GRID,
        "--partition",
        "iid",
        "--rounds",
        "3",
        "--set",
        "fedprox:rounds=2",
    )
    done = ostraka("compare", *words, "--json", "--out", "grid").json()
    assert {cell["method"]: cell["rounds"] for cell in done["cells"]} == {
        "solo": 1,
        "fedavg": 3,
        "fedprox": 2,
    }
    assert "rounds: fedavg 3, fedprox 2; one exchange and no more: solo" in done["notes"]
    assert "one exchange and no more: solo" in Path("grid/results.md").read_text()
    refused = ostraka("compare", "solo", "closed-voting", *GRID, "--rounds", "3")
    assert refused.code == 2
    assert "solo, closed-voting have one exchange each; leave --rounds out" in refused.err


def test_grids_with_rounds_are_drawn(ostraka: Ostraka) -> None:
    words = ("compare", "solo", "closed-voting", "fedavg", *GRID, "--partition", "iid", "labels:5")
    assert "rounds.svg" not in ostraka(*words, "--rounds", "1", "--out", "grid").out
    assert not Path("grid/rounds.svg").exists()
    assert (
        "results.json, rounds.svg, bytes.svg, cells/"
        in ostraka(*words, "--rounds", "2", "--out", "grid").out
    )
    for name, axis in (("rounds", "round"), ("bytes", "sent up and down so far")):
        text = Path(f"grid/{name}.svg").read_text()
        for expected in (
            "digits / iid",
            "digits / labels:5",
            "solo",
            "closed-voting",
            "fedavg",
            axis,
        ):
            assert expected in text


def test_a_grid_starts_from_another(ostraka: Ostraka) -> None:
    plain = (*GRID, "--partition", "iid", "--seeds", "2", "--json")
    made = ostraka("compare", "fedavg", *plain, "--out", "a").json()["cells"]
    next_ = ostraka("compare", "fedprox", *plain, "--start-from", "a", "--out", "b").json()["cells"]
    assert [cell["start"]["accuracy"] for cell in next_] == [cell["accuracy"] for cell in made]
    refused = ostraka("compare", "fedprox", *plain, "--start-from", "nowhere", "--out", "c")
    assert refused.code == 2
    assert "there is no folder nowhere to start from" in refused.err
