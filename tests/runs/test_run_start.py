"""Runs that start from the model of another: what is taken, what it costs,
what is refused, what is resumed.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.errors import ConfigError, Interrupted, StoreError
from ostraka.runs import config
from ostraka.runs.grid import Grid, cell_folder, run_grid
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.runs.results import Record, Summary
from ostraka.runs.watch import Watch
from ostraka.store import codec, jsonfile

BASE: dict[str, Any] = {
    "train_per_class": 10,
    "partition": "iid",
    "parties": 3,
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [8]}},
}
QUICK = {"local": {"epochs": 1}}
STUDENT = {**QUICK, "distil": {"epochs": 1}}


def run(out: Path, method: str = "fedavg", **values: Any) -> dict[str, Any]:
    given = {**BASE, "method": method, "set": QUICK, **values}
    return execute(make_plan(config.make(given)), RunDir(out))


@pytest.fixture
def start(tmp_path: Path) -> Path:
    run(tmp_path / "start")
    return tmp_path / "start"


def test_the_first_model_is_the_last_of_the_other_run(start: Path, tmp_path: Path) -> None:
    """Training for no step changes nothing: the result is the start,
    bit for bit, and so is its accuracy.
    """
    still = {"local": {"steps": 0}, "rounds": 2}
    summary = run(tmp_path / "next", "fedprox", set=still, start_from=str(start))
    first = load_state(start)[1]
    last = load_state(tmp_path / "next")[1]
    assert all(torch.equal(last[name], first[name]) for name in first)
    before = RunDir(start).finished()
    assert before is not None
    assert summary.accuracy == before.accuracy == summary.start.accuracy
    assert summary.start.method == "fedavg"


@pytest.mark.parametrize(
    "method", ["fedavg", "fedprox", "fednova", "scaffold", "fedvc", "fedir", "centralised", "feddf"]
)
def test_every_averaging_method_begins_there(start: Path, tmp_path: Path, method: str) -> None:
    values = {
        **BASE,
        "method": method,
        "set": QUICK,
        "public": "half-test",
        "start_from": str(start),
    }
    plan = make_plan(config.make(values))
    model = plan.method.single_model(plan.method.init(plan.task, 0))
    first = load_state(start)[1]
    assert model is not None
    assert all(torch.equal(model[name], first[name]) for name in first)


def test_round_0_is_evaluated_and_no_round_of_the_run(start: Path, tmp_path: Path) -> None:
    """Without a step all rounds are as good as the start,
    the best is round 1: round 0 does not count.
    """
    still = {"local": {"steps": 0}, "rounds": 2}
    summary = run(tmp_path / "next", set=still, start_from=str(start))
    assert [row.round for row in RunDir(tmp_path / "next").read_metrics()] == [0, 1, 2]
    assert summary.best.round == 1


def test_bytes_of_the_start_are_counted_once(start: Path, tmp_path: Path) -> None:
    """The model goes down with the message of round 1, as a random one would: the same bytes as
    without a start. What the run before had cost is said apart.
    """
    plain = run(tmp_path / "plain", set={**QUICK, "rounds": 2})
    summary = run(tmp_path / "next", set={**QUICK, "rounds": 2}, start_from=str(start))
    assert summary.bytes_down == plain.bytes_down
    rows = RunDir(tmp_path / "next").read_metrics()
    assert [row.bytes_down for row in rows] == [0, plain.bytes_down / 2, plain.bytes_down]
    assert rows[-1].bytes_up == summary.bytes_up
    before = RunDir(start).finished()
    assert before is not None
    assert summary.start.bytes_up == before.bytes_up
    third = run(tmp_path / "third", start_from=str(tmp_path / "next"))
    assert third.start.bytes_up == before.bytes_up + summary.bytes_up


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("closed-voting", STUDENT),
        ("fedov", STUDENT),
        ("fedkt", {**QUICK, "student": {"epochs": 1}, "teachers": 1}),
        ("scaffold", QUICK),
        ("feddf", STUDENT),
        ("centralised", QUICK),
    ],
)
def test_whatever_ends_in_one_network_can_be_a_start(
    tmp_path: Path, method: str, settings: dict[str, Any]
) -> None:
    """FedOV's Figure 4 without further settings:
    the student has one output for each class, as cross-entropy has.
    """
    made = run(tmp_path / "a", method, public="half-test", set=settings)
    summary = run(tmp_path / "b", "fedprox", public="half-test", start_from=str(tmp_path / "a"))
    assert summary.start.accuracy == made.accuracy


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        (
            {"method": "closed-voting"},
            {},
            "a run of closed-voting, whose result is not one network",
        ),
        (
            {},
            {"method": "closed-voting"},
            "closed-voting makes its models itself and takes no start",
        ),
        (
            {},
            {"net": {"name": "mlp", "options": {"hidden": [9]}}},
            r"first\.\w+ is \(8.*\) there and \(9.*\) here",
        ),
        ({}, {"set": {**QUICK, "objective": "proser"}}, "open-set objectives have one more"),
        ({}, {"known": 9}, "start from a run with the same data and known classes"),
        ({"public": "half-test"}, {}, "scored on that half too. Add --public half-test"),
        (
            {},
            {"validation": 0.2},
            "may have learnt from this run's validation samples, since it differs in validation",
        ),
        ({"validation": 0.2}, {"validation": 0.2, "seed": 1}, "since it differs in seed"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_trains(
    tmp_path: Path, first: dict[str, Any], then: dict[str, Any], words: str
) -> None:
    run(tmp_path / "a", **{"method": "fedavg", **first})
    with pytest.raises(ConfigError, match=words):
        run(tmp_path / "b", **{"method": "fedavg", "start_from": str(tmp_path / "a"), **then})
    assert not (tmp_path / "b").exists()


def test_the_same_protocol_is_accepted(tmp_path: Path) -> None:
    for name, more in (("half", {"public": "half-test"}), ("held", {"validation": 0.2})):
        run(tmp_path / name, **more)
        assert (
            run(tmp_path / f"{name}-next", start_from=str(tmp_path / name), **more).start
            is not None
        )


def test_a_start_that_is_not_there_or_not_finished(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no folder .*nowhere to start from"):
        run(tmp_path / "b", start_from=str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="holds no finished run"):
        run(tmp_path / "b", start_from=str(tmp_path / "empty"))


def test_a_start_is_known_by_its_content(start: Path, tmp_path: Path) -> None:
    """Stopped, its start moved: resumed from the new place.

    A start with other tensors is refused.
    """

    class Stop(Watch):
        def evaluated(self, index: int, accuracy: float | None) -> None:
            if index == 1:
                raise KeyboardInterrupt

    values = {**BASE, "method": "fedavg", "set": {**QUICK, "rounds": 2}, "start_from": str(start)}
    home = RunDir(tmp_path / "next")
    with pytest.raises(Interrupted):
        execute(make_plan(config.make(values)), home, Stop())
    moved = start.rename(tmp_path / "moved")
    stored = config.make({**config.read_toml(home.config), "start_from": str(moved)})
    summary = execute(make_plan(stored), home, resume=True)
    straight = run(tmp_path / "straight", set={**QUICK, "rounds": 2}, start_from=str(moved))
    assert summary.accuracy == straight.accuracy
    assert codec.encode(load_state(home.root)[1]) == codec.encode(
        load_state(tmp_path / "straight")[1]
    )
    run(tmp_path / "other", seed=5)
    with pytest.raises(ConfigError, match="it is not the model that this run was begun with"):
        make_plan(
            config.make({**config.read_toml(home.config), "start_from": str(tmp_path / "other")})
        )


def grid(*methods: str, seeds: tuple[int, ...] = (0, 1), **base: Any) -> Grid:
    return Grid(methods, ("fashion-4k",), ("iid",), seeds, {**BASE, "set": QUICK, **base}, {})


def summaries(records: list[Record]) -> list[Summary]:
    return [record.summary for record in records if record.summary is not None]


def test_every_seed_of_a_grid_starts_from_its_own_run(tmp_path: Path) -> None:
    first, after = tmp_path / "first", tmp_path / "after"
    made = summaries(run_grid(grid("fedavg"), first))
    found = summaries(run_grid(grid("fedprox", start_from=str(first)), after))
    starts = [summary.start for summary in found if summary.start]
    assert [start.accuracy for start in starts] == [m.accuracy for m in made]
    assert [Path(start.out) for start in starts] == [Path(m.out).resolve() for m in made]
    again = grid("fedprox", start_from=str(first)).cells()
    assert [cell_folder(cell, after) for cell in again] == [Path(s.out) for s in found]
    assert cell_folder(again[0], after) != cell_folder(grid("fedprox").cells()[0], after)
    with pytest.raises(ConfigError, match=r"seed 2, to start from; it has: none"):
        grid("fedprox", seeds=(2,), start_from=str(first)).cells()
    run_grid(grid("centralised"), first)
    with pytest.raises(ConfigError, match=r"it has: centralised--.*, fedavg--"):
        grid("fedprox", start_from=str(first)).cells()


def test_results_keep_the_finished_cells_of_earlier_calls(tmp_path: Path) -> None:
    """Two methods, then one of them on a new seed: three cells, each once,
    those of this call first.
    """
    run_grid(grid("solo", "fedavg", seeds=(0,)), tmp_path)
    shown = run_grid(grid("fedavg", seeds=(0, 1)), tmp_path)
    assert len(shown) == 2
    listed = jsonfile.read_json(tmp_path / "results.json")
    assert [(r["method"], r["seed"], r["status"]) for r in listed] == [
        ("fedavg", 0, "ok"),
        ("fedavg", 1, "ok"),
        ("solo", 0, "ok"),
    ]
