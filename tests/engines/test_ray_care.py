"""What the Ray engine takes care of: memory, interruptions, nodes of other kinds, what is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ostraka
from ostraka.engines import ray as ray_module
from ostraka.engines.ray import RayEngine
from ostraka.engines.ray_tasks import own_root
from ostraka.errors import ConfigError, Interrupted
from ostraka.store.desk import Desk
from tests.engines.test_engines import alive, run
from tests.engines.test_ray import engine, tensors
from tests.engines.toy_work import Odd, OnceAsleep, Telling, Where, do, jobs, many, work

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]


def until(what: Callable[[], bool], words: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"{words}: not within {seconds:g} seconds"
        time.sleep(0.1)


def test_data_is_placed_once_on_a_node_and_handed_once_to_a_process(
    cluster: Any, tmp_path: Path
) -> None:
    import ray

    desk = Desk(tmp_path)
    with engine(cluster).open(work(Where())) as crew:
        for index in (1, 2, 3):
            assert not [o.failure for o in do(crew, desk, Where(), index) if o.failure]
        reference = crew.work  # type: ignore[attr-defined]
        places = ray.experimental.get_object_locations([reference])[reference]["node_ids"]
    told = [desk.report(i, p).load().report.card.scores for i in (1, 2, 3) for p in range(4)]
    assert [scores["shared"] for scores in told] == [1.0] * 12, "nobody has a copy of his own"
    assert [scores["handed"] for scores in told] == [1.0] * 12
    assert len({scores["process"] for scores in told}) < 12
    assert len(places) == len(set(places)) <= 3, "the head's and one on each node that worked"


@pytest.mark.parametrize(("workers", "most"), [(None, 4), (1, 1)])
def test_few_orders_are_under_way_however_many_parties_there_are(
    workers: int | None, most: int, cluster: Any, tmp_path: Path
) -> None:
    """Two cores, and two orders for each of them; or as many as the user says."""
    method, sent, ended, under_way = Odd(), 0, 0, list[int]()
    with engine(cluster, workers=workers).open(many(method, 14)) as crew:
        usual = crew._send  # type: ignore[attr-defined]

        def send(*given: Any) -> Any:
            nonlocal sent
            sent += 1
            under_way.append(sent - ended)
            return usual(*given)

        crew._send = send  # type: ignore[attr-defined]
        for outcome in crew.run(jobs(Desk(tmp_path), method, which=range(14))):
            assert outcome.failure is None
            ended += 1
    assert (sent, ended) == (14, 14)
    # one whose outcome is about to be handed on is not under way any more
    assert most <= max(under_way) <= most + 1


def test_the_largest_parties_come_first(cluster: Any, tmp_path: Path) -> None:
    """Sizes 6, 9, 7, 8 with one worker: parties 1, 3, 2, 0."""
    with engine(cluster, workers=1).open(work(Odd())) as crew:
        assert [o.party for o in crew.run(jobs(Desk(tmp_path), Odd()))] == [1, 3, 2, 0]


def test_a_node_with_other_versions_ends_the_run_and_is_named(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no failure of a party: with --on-failure drop, that would be left out in silence."""
    monkeypatch.setattr(ray_module, "versions_here", lambda: {"torch": "0.1"})
    with (
        engine(cluster).open(work(Odd())) as crew,
        pytest.raises(ConfigError, match=r"the node \S+ \(\d+\.\d+\.\d+\.\d+\).*'torch': '0\.1'"),
    ):
        do(crew, Desk(tmp_path), Odd())


@pytest.fixture
def own_ray(cluster: Any) -> Iterator[Any]:
    """A script that has joined the cluster by itself."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def test_an_interrupted_round_leaves_nothing_at_work(
    cluster: Any, own_ray: Any, tmp_path: Path
) -> None:
    """The cluster is the caller's and stays; what was under way is ended."""
    method = OnceAsleep(mark=str(tmp_path / "mark"))
    with engine(cluster).open(work(method)) as crew:
        running = crew.run(jobs(Desk(tmp_path), method))  # held, as by a traceback
        next(running)
        until((tmp_path / "mark").exists, "a party sleeps")
    asleep = int((tmp_path / "mark").read_text())
    until(lambda: not alive(asleep), "its process is ended")
    assert own_ray.is_initialized()


def test_a_round_that_is_thrown_away_later_begins_no_cluster(cluster: Any, tmp_path: Path) -> None:
    """As when Ctrl-C comes while an answer is stored: Python closes the round when it likes."""
    import ray

    method = OnceAsleep(mark=str(tmp_path / "mark"))
    with engine(cluster).open(work(method)) as crew:
        running = crew.run(jobs(Desk(tmp_path), method))
        next(running)
    running.close()  # type: ignore[attr-defined]
    assert not ray.is_initialized()


def test_progress_is_heard_after_the_board_was_lost(cluster: Any, tmp_path: Path) -> None:
    """One at a time, the largest first: party 0 comes last, and tells a new board."""
    import ray

    heard: list[tuple[int, float, float | None]] = []
    method = Telling(bad=0, mark=str(tmp_path / "mark"))
    with engine(cluster, workers=1).open(work(method)) as crew:
        ray.kill(crew.board)  # type: ignore[attr-defined]
        outcomes = list(crew.run(jobs(Desk(tmp_path), method), method.hearing(heard)))
    assert [outcome.failure for outcome in outcomes] == [None] * 4
    assert (0, 0.5, 1.25) in heard


def test_a_party_whose_board_was_lost_is_still_given_up(cluster: Any, tmp_path: Path) -> None:
    import ray

    method = Odd(bad=1, deed="sleep")
    with engine(cluster, workers=1, timeout=2.0, patience=30.0).open(work(method)) as crew:
        ray.kill(crew.board)  # type: ignore[attr-defined]
        outcomes = {o.party: o for o in crew.run(jobs(Desk(tmp_path), method))}
    assert "longer than the limit of 2 seconds" in str(outcomes[1].failure)
    assert all(outcomes[party].failure is None for party in (0, 2, 3))


def test_sigterm_does_what_it_did_before(cluster: Any) -> None:
    def mine(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with engine(cluster).open(work(Odd())):
            assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_node_keeps_what_is_half_finished_and_nothing_else(cluster: Any, tmp_path: Path) -> None:
    """The nodes are not the server's, so they keep it in a folder of their own."""
    owner = f"test-{os.getpid()}-{time.time_ns()}"
    kept = own_root() / owner
    desk, method = Desk(tmp_path, owner), Odd(bad=1, deed="raise")
    with engine(cluster).open(work(method)) as crew:
        assert [o.party for o in do(crew, desk, method) if o.failure] == [1]
        assert [path.name[:13] for path in kept.iterdir()] == ["r00001-p00001"]
        assert not desk.progress(1, 1).path.exists()
    run(engine(cluster), Odd(), tmp_path / "other")
    with engine(cluster).open(work(Odd())) as crew:
        assert not [o for o in do(crew, desk, Odd()) if o.failure]
    assert list(kept.iterdir()) == []
    kept.rmdir()


def test_ctrl_c_leaves_a_run_that_goes_on_to_the_weights_of_serial(tmp_path: Path) -> None:
    """A terminal sends it to all processes of the command, Ray's too."""
    pytest.importorskip("ray")
    words = ["scaffold", "--data", "digits", "--parties", "5", "--seed", "3", "--rounds", "60",
             "--epochs", "1", "--out", "run"]  # fmt: skip
    command = [sys.executable, "-m", "ostraka", "run", *words, "--engine", "ray", "--workers", "2"]
    paths = os.pathsep.join(sys.path)
    log, metrics = tmp_path / "log", tmp_path / "run/metrics.jsonl"

    def start() -> "subprocess.Popen[bytes]":
        with log.open("wb") as out:
            return subprocess.Popen(
                command, cwd=tmp_path, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, "PYTHONPATH": paths},
            )  # fmt: skip

    def lines() -> int:
        return metrics.read_text().count("\n") if metrics.exists() else 0

    running = start()
    try:
        until(lambda: running.poll() is not None or lines() > 2, "rounds", 120)
        assert running.poll() is None, log.read_text()
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(timeout=60) == Interrupted.exit_code, log.read_text()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    assert "Go on with: " in log.read_text()
    assert "Traceback" not in log.read_text()
    assert lines() < 60, "it was not over yet"
    command.append("--resume")
    again = start()
    assert again.wait(timeout=240) == 0, log.read_text()
    budget = {"local": {"epochs": 1}, "rounds": 60}
    here = ostraka.run(
        "scaffold", data="digits", parties=5, seed=3, set=budget, engine="serial",
        out=tmp_path / "serial",
    )  # fmt: skip
    assert tensors(tmp_path / "run/model.safetensors") == tensors(here.folder / "model.safetensors")


def test_from_outside_of_a_cluster_no_node_is_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over ray:// none may write where the run's folder is here."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # a client does not hand it on
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from ostraka.federation.check import reach_problem
    from ostraka.federation.party import free_port

    port = free_port()
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "ray_client_server_port": port}
    )
    try:
        nodes.wait_for_nodes()
        until(lambda: not reach_problem("127.0.0.1", port), "its door for clients is open")
        desk, method = Desk(tmp_path, f"test-{time.time_ns()}"), Odd(bad=1, deed="sleep")
        with RayEngine(address=f"ray://127.0.0.1:{port}", timeout=3.0).open(work(method)) as crew:
            outcomes = {o.party: o.failure for o in do(crew, desk, method)}
        assert [party for party, failure in outcomes.items() if failure] == [1]
        assert not (tmp_path / "progress").exists()
        assert list((own_root() / desk.owner).iterdir())
    finally:
        nodes.shutdown()
