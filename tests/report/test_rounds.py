"""Histories of finished runs as curves: seeds together, settings apart, bytes with those of the start."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.errors import ConfigError, DataError
from ostraka.report.rounds import History, draw_rounds, histories, panels, read_history
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir

ONE = History("fedavg", "", "digits / iid", 0, {"local.lr": 0.1, "mu": 1}, True, (1, 2), (10, 20), (50.0, 60.0))


def run(out: Path, **values: Any) -> dict[str, Any]:
    small = {"data": "digits", "train_per_class": 6, "partition": "iid", "parties": 2, "engine": "serial"}
    given = {"method": "fedavg", **small, "set": {"rounds": 2, "local": {"epochs": 1}}, **values}
    return execute(make_plan(config.make(given)), RunDir(out))


def test_seeds_are_one_curve_and_other_settings_another() -> None:
    """Labels name what differs, and only that; bytes are the seeds' mean: (10 + 14) / 2 and (20 + 26) / 2."""
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
    [one, two] = histories([tmp_path / "a", tmp_path / "b"])
    total = first["bytes_up"] + first["bytes_down"]
    assert (one.rounds, one.sent[-1], one.accuracy[-1]) == ((1, 2), total, first["accuracy"])
    assert (two.rounds, two.sent[0], two.accuracy[0]) == ((0, 1, 2), total, first["accuracy"])
    assert two.sent[-1] == total + second["bytes_up"] + second["bytes_down"]
    assert (two.start, two.seed) == ("fedavg", 3)
    draw_rounds([one, two], "bytes", tmp_path / "x.svg")
    assert "fedavg from fedavg" in (tmp_path / "x.svg").read_text()


def test_stored_runs_of_two_seeds_are_one_curve(tmp_path: Path) -> None:
    """Their configurations differ in the seed and in the model that each starts from, and in nothing else."""
    for seed in (0, 1):
        run(tmp_path / f"start-{seed}", seed=seed)
        run(tmp_path / f"next-{seed}", seed=seed, start_from=str(tmp_path / f"start-{seed}"))
    for name, label in (("start", "fedavg"), ("next", "fedavg from fedavg")):
        [curve] = panels(histories([tmp_path / f"{name}-{seed}" for seed in (0, 1)]), "rounds")["digits / iid"]
        assert (curve.label, len(curve.values)) == (label, 2)


def test_what_is_no_finished_run(tmp_path: Path) -> None:
    assert read_history(tmp_path) is None
    with pytest.raises(ConfigError, match="holds no finished run"):
        histories([tmp_path])
    home = RunDir(tmp_path / "old")
    run(home.root)
    home.write_metrics([{k: v for k, v in row.items() if k != "bytes_up"} for row in home.read_metrics()])
    with pytest.raises(DataError, match="kept no bytes by round; run it again"):
        read_history(home.root)
