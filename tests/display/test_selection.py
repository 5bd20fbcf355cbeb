"""Drawings of a selection, and the verb that makes them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from ostraka.api import run
from ostraka.cli.main import main
from ostraka.display.teams import Members, draw_clusters, draw_parties, draw_teams
from ostraka.errors import ConfigError
from ostraka.voting.choice import NOWHERE, Choice
from ostraka.voting.inspection import Inspection


def test_a_map_names_members_and_says_who_votes(tmp_path: Path) -> None:
    choice = Choice((0, 2), ("", "", "", ""), (0, 0, 1, NOWHERE))
    rows = np.array([[0.0, 1.0], [0.1, 1.0], [3.0, 2.0], [9.0, 9.0]])
    path = tmp_path / "map.svg"
    draw_clusters(rows, choice, ["ada", "bob", "eve", "mal"], path, "a title")
    text = path.read_text()
    for words in ("ada", "bob", "eve", "mal", "votes", "left out before", "a title", "% of the"):
        assert words in text
    draw_clusters(rows[:1], Choice((0,), ("",)), ["ada"], path)
    assert "left out" not in path.read_text()


@pytest.mark.parametrize(("count", "named"), [(60, True), (61, False)])
def test_a_map_of_many_members_names_nobody(count: int, named: bool, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(count, 3))
    path = tmp_path / "map.svg"
    names = [f"ward-{number}" for number in range(count)]
    draw_clusters(rows, Choice((0,), ("",) * count, (0,) * count), names, path)
    assert ("ward-7" in path.read_text()) == named


def test_teams_show_ranks(tmp_path: Path) -> None:
    found = Inspection({(0,): 0.5, (1,): 0.25, (0, 1): 0.75})
    draw_teams(found, {"mine": (1,), "all": (1, 0)}, tmp_path / "teams.svg")
    text = (tmp_path / "teams.svg").read_text()
    assert "mine: 25.00 %, rank 3 of 3" in text
    assert "all: 75.00 %, rank 1 of 3" in text


def test_no_two_teams_have_one_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are as large and as good as each other: they stand side by side."""
    drawn = []
    scatter = Axes.scatter

    def noted(self: Axes, x: Any, y: Any, **how: Any) -> Any:
        drawn.append((tuple(np.round(x, 6)), how.get("color"), how.get("marker")))
        return scatter(self, x, y, **how)

    monkeypatch.setattr(Axes, "scatter", noted)
    found = Inspection({(0,): 0.5, (1,): 0.25, (0, 1): 0.75})
    names = ("dedes", "cv", "ds", "ld", "cover", "rs")
    teams = {**dict.fromkeys(names, (0,)), "all": (0, 1), "best": (0, 1)}
    draw_teams(found, teams, tmp_path / "teams.svg")
    marks = drawn[1:]
    assert len(marks) == len({mark[0] for mark in marks}) == len({mark[1:] for mark in marks}) == 8


def test_parties_show_classes_and_lines(tmp_path: Path) -> None:
    counts = np.array([[3, 0], [1, 4]])
    lines = {"own": [90.0, None], "whole": [50.0, 40.0]}
    draw_parties(counts, ["ada", "bob"], ["ant", "bee"], lines, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for words in ("ada", "bob", "ant", "bee", "own", "whole", "samples"):
        assert words in text
    many = np.ones((70, 30), dtype=np.int64)
    draw_parties(many, list(map(str, range(70))), list(map(str, range(30))), {}, tmp_path / "m.png")


def test_figures_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = {"local": {"epochs": 2}, "select": {"size": 2}}
    where = tmp_path / "run"
    run("dedes", data="digits", partition="dirichlet:0.5", parties=4, engine="serial", set=short,
        out=where)  # fmt: skip
    for kind in ("clusters", "sizes", "parties"):
        out = tmp_path / f"{kind}.svg"
        assert main(["figure", kind, "--run", str(where), "--out", str(out)]) == 0
        assert out.stat().st_size > 1000
    capsys.readouterr()
    assert main(["figure", "teams", "--run", str(where), "--out", str(tmp_path / "t.svg")]) == 0
    told = capsys.readouterr().out
    assert "all: rank " in told
    assert "of 15" in told
    assert "q_statistic" in told
    members = Members.of(where)
    assert members.accuracy(range(4)) == pytest.approx(
        100 * members.inspect().accuracy[(0, 1, 2, 3)]
    )


@pytest.mark.parametrize(
    ("tell", "public", "selector"),
    [
        ("statistics", "none", {"name": "rs", "size": 3, "draw": 7, "every_class": False}),
        ("counts", "mix", {"name": "cover", "size": 3, "by": "counts", "every_class": False}),
    ],
)
def test_a_team_is_judged_as_the_run_would_ask_it(
    tell: str, public: str, selector: dict[str, Any], tmp_path: Path
) -> None:
    """With all that the ballot uses, embedding statistics and public samples; and the team of the
    run's own selector, its settings included, is the run's.
    """
    settings = {
        "local": {"epochs": 8},
        "tell": tell,
        "select": selector,
        "ballot": {"name": "calibrated", "public": public},
    }
    run("fedov", data="digits", partition="labels:3", parties=6, engine="serial", set=settings,
        public="half-test", out=tmp_path)  # fmt: skip
    members = Members.of(tmp_path)
    vote = members.method.ensemble(members.plan.task, members.panel)
    asked = members.plan.test.samples
    right = (vote.scores(asked.stored()).closed == asked.labels)[asked.labels >= 0]
    own = members.choice.chosen
    assert members.selectors(3)[selector["name"]].choose(members.pool).chosen == own
    assert members.accuracy(own) == pytest.approx(100 * float(right.double().mean()))
    assert members.inspect().accuracy[own] == pytest.approx(members.accuracy(own) / 100)


def test_a_run_without_a_vote_is_refused(tmp_path: Path) -> None:
    run("fedavg", data="digits", parties=2, partition="iid", engine="serial",
        set={"local": {"steps": 1}}, out=tmp_path / "run")  # fmt: skip
    with pytest.raises(ConfigError, match="whose members do not vote"):
        Members.of(tmp_path / "run")
