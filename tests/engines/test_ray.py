"""The Ray engine: the same bits as serial, on several nodes, with workers that are lost."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import ostraka
from ostraka.engines.base import Outcome
from ostraka.engines.ray import RayEngine
from ostraka.engines.serial import Serial
from ostraka.errors import ConfigError
from ostraka.store.desk import Desk
from tests.engines.test_engines import contents, run
from tests.engines.toy_work import Odd, OnceAsleep, OnceKilled, Telling, do, jobs, work

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]


def engine(cluster: Any, **settings: Any) -> RayEngine:
    return RayEngine(address=cluster.address, **settings)


def test_two_rounds_with_memories_give_the_bits_of_serial(cluster: Any, tmp_path: Path) -> None:
    method = Odd(keeps=True)
    _, serial = run(Serial(), method, tmp_path / "serial", rounds=2)
    outcomes, desk = run(engine(cluster), method, tmp_path / "ray", rounds=2)
    assert all(outcome.failure is None for outcome in outcomes.values())
    assert contents(desk, 2) == contents(serial, 2)


def test_nodes_work_at_the_same_time_and_on_one_thread(cluster: Any, tmp_path: Path) -> None:
    outcomes, desk = run(engine(cluster), Odd(), tmp_path)
    assert len(outcomes) == 4
    told = [desk.report(1, party).load().report.card.scores["threads"] for party in range(4)]
    assert told == [1.0] * 4


@pytest.mark.parametrize(("deed", "said"), [("raise", "a slip"), ("refuse", "of no use")])
def test_a_party_that_fails_is_named_and_not_tried_again(
    deed: str, said: str, cluster: Any, tmp_path: Path
) -> None:
    outcomes, _ = run(engine(cluster), Odd(bad=1, deed=deed), tmp_path)
    failed = [o.failure for o in outcomes.values() if o.failure is not None]
    assert [failure.party for failure in failed] == [1]
    assert said in failed[0].reason


def test_a_worker_that_is_lost_again_and_again_is_given_up(cluster: Any, tmp_path: Path) -> None:
    outcomes, _ = run(engine(cluster, retries=1), Odd(bad=2, deed="kill"), tmp_path)
    failure = outcomes[2].failure
    assert failure is not None
    assert "lost 2 times" in failure.reason
    assert all(outcomes[party].failure is None for party in (0, 1, 3))


def test_a_worker_killed_in_its_work_is_replaced_and_gives_the_same_bits(
    cluster: Any, tmp_path: Path
) -> None:
    """Party 3 ends its own process the first time, as a machine that fails would."""
    method = Odd(keeps=True)
    _, serial = run(Serial(), method, tmp_path / "serial")
    mark = tmp_path / "mark"
    once = OnceKilled(keeps=True, bad=3, mark=str(mark))
    outcomes, desk = run(engine(cluster), once, tmp_path / "ray")
    assert mark.exists()
    assert all(outcome.failure is None for outcome in outcomes.values())
    assert contents(desk, 1) == contents(serial, 1)


def test_a_node_that_is_lost_in_a_round_costs_nothing_but_time(
    cluster: Any, tmp_path: Path
) -> None:
    """Its node is taken away while party 0 sleeps there; the other one does its work."""
    extra = cluster.add_node(num_cpus=4, resources={"c": 1})
    cluster.wait_for_nodes()
    mark = tmp_path / "mark"
    method = OnceAsleep(mark=str(mark))
    outcomes: list[Outcome] = []
    with engine(cluster).open(work(method)) as crew:
        running = crew.run(jobs(Desk(tmp_path), method))
        outcomes.append(next(running))
        end = time.monotonic() + 30
        while not mark.exists() and time.monotonic() < end:
            time.sleep(0.1)
        os.kill(int(mark.read_text()), signal.SIGKILL)
        cluster.remove_node(extra, allow_graceful=False)
        outcomes += list(running)
    assert sorted(outcome.party for outcome in outcomes) == [0, 1, 2, 3]
    assert all(outcome.failure is None for outcome in outcomes)


def test_a_party_that_takes_too_long_is_given_up(cluster: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    outcomes, _ = run(engine(cluster, timeout=2.0), Odd(bad=0, deed="sleep"), tmp_path)
    assert "longer than the limit of 2 seconds" in str(outcomes[0].failure)
    assert time.monotonic() - began < 60


def test_no_more_orders_are_under_way_than_workers_take_soon(cluster: Any, tmp_path: Path) -> None:
    with engine(cluster).open(work(Odd())) as crew:
        assert crew._room() == 4  # type: ignore[attr-defined]
    with engine(cluster, workers=1).open(work(Odd())) as crew:
        assert crew._room() == 1  # type: ignore[attr-defined]
        assert len(do(crew, Desk(tmp_path), Odd())) == 4


def test_a_cluster_without_room_is_not_waited_for_for_ever(cluster: Any, tmp_path: Path) -> None:
    with (
        engine(cluster, gpus=1.0, patience=2.0).open(work(Odd())) as crew,
        pytest.raises(ConfigError, match=r"each needs 1 CPU and 1 GPU.*2 CPU and 0 GPU"),
    ):
        do(crew, Desk(tmp_path), Odd())


def test_progress_is_told(cluster: Any, tmp_path: Path) -> None:
    """Party 2 works until somebody has heard how far it is."""
    heard: list[tuple[int, float, float | None]] = []
    method = Telling(bad=2, mark=str(tmp_path / "mark"))
    with engine(cluster).open(work(method)) as crew:
        outcomes = list(crew.run(jobs(Desk(tmp_path), method), method.hearing(heard)))
    assert [outcome.failure for outcome in outcomes] == [None] * 4
    assert (2, 0.5, 1.25) in heard
    assert {party for party, _, _ in heard} <= {0, 1, 2, 3}


@pytest.mark.parametrize(("method", "rounds"), [("fedov", 1), ("scaffold", 3)])
def test_a_run_ends_with_the_figures_and_weights_of_serial(
    method: str, rounds: int, cluster: Any, tmp_path: Path
) -> None:
    """One exchange, and rounds with memories of the parties."""
    budget = {"local": {"epochs": 2}} | ({"rounds": rounds} if rounds > 1 else {})
    common: dict[str, Any] = {"data": "digits", "parties": 5, "seed": 3, "set": budget}
    here = ostraka.run(method, engine="serial", out=tmp_path / "serial", **common)
    engine = {"name": "ray", "options": {"address": cluster.address}}
    there = ostraka.run(method, engine=engine, out=tmp_path / "ray", **common)
    assert there.summary.accuracy == here.summary.accuracy
    weights = [
        {path.name: tensors(path) for path in sorted(folder.rglob("*.safetensors"))}
        for folder in (tmp_path / "serial", tmp_path / "ray")
    ]
    assert weights[0]
    assert weights[0] == weights[1]


def tensors(path: Path) -> dict[str, bytes]:
    """The content of a file of tensors; its metadata tells times."""
    return {name: value.numpy().tobytes() for name, value in load_file(path).items()}


def test_an_address_where_nobody_is_is_said(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with (
        pytest.raises(ConfigError, match=r"127\.0\.0\.1:1.*engine\.address=local"),
        RayEngine(address="127.0.0.1:1").open(work(Odd())),
    ):
        pass
