"""Histories of finished runs as curves: seeds together, settings apart,
bytes with those of the start.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.display import rounds
from ostraka.display.curves import Curve
from ostraka.display.rounds import (
    History,
    draw_networks,
    draw_rounds,
    histories,
    panels,
    read_history,
    smoothed,
)
from ostraka.errors import ConfigError, StoreError
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.results import Summary

ONE = History(
    "fedavg",
    "",
    "digits / iid",
    0,
    {"local.lr": 0.1, "mu": 1},
    True,
    (1, 2),
    (10, 20),
    (50.0, 60.0),
)


def run(out: Path, **values: Any) -> Summary:
    small = {
        "data": "digits",
        "train_per_class": 6,
        "partition": "iid",
        "parties": 2,
        "engine": "serial",
    }
    given = {"method": "fedavg", **small, "set": {"rounds": 2, "local": {"epochs": 1}}, **values}
    return execute(make_plan(config.make(given)), RunDir(out))


def test_seeds_are_one_curve_and_other_settings_another() -> None:
    """Labels name what differs, and only that; bytes are the seeds' mean:
    (10 + 14) / 2 and (20 + 26) / 2.
    """
    seed = replace(ONE, seed=1, sent=(14, 26), accuracy=(52.0, 64.0))
    faster = replace(ONE, settings={"local.lr": 0.2, "mu": 1})
    [first, second] = panels([ONE, seed, faster], "bytes")["digits / iid"]
    assert first == ("fedavg (local.lr=0.1)", [12, 23], [(50.0, 60.0), (52.0, 64.0)], False)
    assert second.label == "fedavg (local.lr=0.2)"
    assert panels([ONE, seed], "rounds")["digits / iid"][0][:2] == ("fedavg", (1, 2))


def test_places_are_panels_and_starts_are_named() -> None:
    elsewhere = replace(ONE, place="digits / labels:2")
    started = replace(ONE, start="fedkt")
    drawn = panels([ONE, elsewhere, started], "rounds")
    assert {place: [c.label for c in curves] for place, curves in drawn.items()} == {
        "digits / iid": ["fedavg", "fedavg from fedkt"],
        "digits / labels:2": ["fedavg"],
    }


def test_what_exchanges_nothing_is_a_reference() -> None:
    assert panels([replace(ONE, talks=False)], "rounds")["digits / iid"][0].reference


def test_a_seed_counts_once() -> None:
    with pytest.raises(ConfigError, match="fedavg on digits / iid was given twice for a seed"):
        panels([ONE, ONE], "rounds")


def test_histories_of_runs_and_of_what_follows_them(tmp_path: Path) -> None:
    """The bytes of a run that starts from another begin where the other's ended."""
    first = run(tmp_path / "a")
    second = run(tmp_path / "b", seed=3, start_from=str(tmp_path / "a"))
    [one, two], unfinished = histories([tmp_path / "a", tmp_path / "b"])
    assert unfinished == []
    total = first.bytes_up + first.bytes_down
    assert (one.rounds, one.sent[-1], one.accuracy[-1]) == ((1, 2), total, first.accuracy)
    assert (two.rounds, two.sent[0], two.accuracy[0]) == ((0, 1, 2), total, first.accuracy)
    assert two.sent[-1] == total + second.bytes_up + second.bytes_down
    assert (two.start, two.seed) == ("fedavg", 3)
    draw_rounds([one, two], "bytes", tmp_path / "x.svg")
    assert "fedavg from fedavg" in (tmp_path / "x.svg").read_text()


def test_stored_runs_of_two_seeds_are_one_curve(tmp_path: Path) -> None:
    """Their configurations differ in the seed and in the model that each
    starts from, and in nothing else.
    """
    for seed in (0, 1):
        run(tmp_path / f"start-{seed}", seed=seed)
        run(tmp_path / f"next-{seed}", seed=seed, start_from=str(tmp_path / f"start-{seed}"))
    for name, label in (("start", "fedavg"), ("next", "fedavg from fedavg")):
        [curve] = panels(histories([tmp_path / f"{name}-{seed}" for seed in (0, 1)])[0], "rounds")[
            "digits / iid"
        ]
        assert (curve.label, len(curve.values)) == (label, 2)


def test_what_is_no_finished_run(tmp_path: Path) -> None:
    assert read_history(tmp_path) is None
    with pytest.raises(ConfigError, match="holds no finished run"):
        histories([tmp_path])
    with pytest.raises(ConfigError, match=r"there is no folder .*gone"):
        histories([tmp_path / "gone"])
    run(tmp_path / "grid" / "cells" / "a")
    shutil.copytree(tmp_path / "grid" / "cells" / "a", tmp_path / "grid" / "cells" / "b")
    RunDir(tmp_path / "grid" / "cells" / "b").summary.unlink()
    with pytest.raises(
        ConfigError, match="b is not finished; finish it with: ostraka run --resume --out"
    ):
        histories([tmp_path / "grid" / "cells" / "b"])
    found, unfinished = histories([tmp_path / "grid"])
    assert len(found) == 1
    assert unfinished == [tmp_path / "grid" / "cells" / "b"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run of two rounds."""
    home = RunDir(tmp_path_factory.mktemp("finished") / "run")
    run(home.root)
    return home


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [], "is missing or has no rounds, though the run is finished"),
        (
            lambda rows: rows[:1],
            "ends in round 1 with an accuracy of .*: lines are missing or of another run",
        ),
        (lambda rows: rows[::-1], "line 2 of .* is not the next evaluated round"),
        (lambda rows: [rows[0], rows[0], rows[1]], "line 2 of .* is not the next evaluated round"),
        (
            lambda rows: [rows[0] | {"test": {}}, rows[1]],
            "line 1 of .* is not the next evaluated round",
        ),
        (
            lambda rows: [rows[0] | {"round": "1"}, rows[1]],
            "line 1 of .* is not the next evaluated round",
        ),
        (
            lambda rows: [rows[0] | {"test": {"accuracy": float("nan")}}, rows[1]],
            "line 1: its accuracy is nan",
        ),
    ],
)
def test_metrics_that_are_not_those_of_the_run_are_refused(
    finished: RunDir, tmp_path: Path, change: Callable[[list[Any]], list[Any]], message: str
) -> None:
    rows = [json.loads(line) for line in finished.metrics.read_text().splitlines()]
    home = RunDir(tmp_path / "run")
    shutil.copytree(finished.root, home.root)
    home.metrics.write_text("".join(json.dumps(row) + "\n" for row in change(rows)))
    with pytest.raises(StoreError, match=message):
        histories([home.root])


def test_a_missing_or_cut_metrics_file_is_refused(finished: RunDir, tmp_path: Path) -> None:
    """A finished run has a last line that is whole: what a kill leaves is no excuse."""
    home = RunDir(tmp_path / "run")
    shutil.copytree(finished.root, home.root)
    home.metrics.write_text(home.metrics.read_text()[:-20])
    with pytest.raises(StoreError, match=r"metrics\.jsonl"):
        histories([home.root])
    home.metrics.unlink()
    with pytest.raises(StoreError, match=r"metrics\.jsonl is missing"):
        histories([home.root])


def test_smoothing_is_the_mean_of_the_rounds_to_come() -> None:
    """Of 1, 2, 6, 7 with two rounds each: 1.5, 4, 6.5; the last round has no next one."""
    curve = Curve("a", (1, 2, 3, 4), [(1.0, 2.0, 6.0, 7.0)])
    assert smoothed(curve, 2) == Curve("a", (1, 2, 3), [[1.5, 4.0, 6.5]])
    assert smoothed(curve, 1) is curve
    line = curve._replace(reference=True)
    assert smoothed(line, 9) is line
    with pytest.raises(ConfigError, match="a has 4 evaluated rounds; --smooth 5"):
        smoothed(curve, 5)


def test_networks_stand_beside_the_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(rounds, "accuracy_curves", lambda shown, *_, **__: drawn.update(shown))
    two = {"a": (90.0, 91.0), "b": (80.0, 82.0)}
    plain = replace(ONE, rounds=(1, 2), sent=(1, 2), accuracy=(50.0, 60.0))
    own = replace(plain, method="fedova", networks=two)
    draw_networks([own, plain], tmp_path / "x.svg")
    (curves,) = drawn.values()
    assert [curve.label for curve in curves][2:] == ["network a", "network b"]
    assert curves[3].values == [(80.0, 82.0)]
    with pytest.raises(ConfigError, match="take one of fedova"):
        draw_networks([plain], tmp_path / "x.svg")
