"""Engines: the same numbers from each, and no harm from a party or a worker that fails."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

import ostraka
from ostraka.engines import pool
from ostraka.engines.base import Engine, Outcome, Work
from ostraka.engines.pool import Pool
from ostraka.engines.scratch import PREFIX, remove_left_behind
from ostraka.engines.serial import Serial
from ostraka.errors import ConfigError
from ostraka.registry import ENGINES
from ostraka.store import codec
from ostraka.store.desk import Desk
from tests.engines.toy_work import Odd, do, jobs, sleep_in_a_pool, work

HERE = Path(__file__).parent


def run(
    engine: Engine, method: Odd, root: Path, rounds: int = 1
) -> tuple[dict[int, Outcome], Desk]:
    desk = Desk(root)
    outcomes: dict[int, Outcome] = {}
    with engine.open(work(method)) as crew:
        for index in range(1, rounds + 1):
            outcomes.update((outcome.party, outcome) for outcome in do(crew, desk, method, index))
    return outcomes, desk


def contents(desk: Desk, rounds: int) -> dict[str, bytes]:
    """All reports and memories as bytes, without their costs."""
    found = {}
    for index in range(1, rounds + 1):
        for party in range(4):
            found[f"report {index} {party}"] = codec.encode(desk.report(index, party).load().report)
            found[f"memory {index} {party}"] = desk.memory(index, party).path.read_bytes()
    return found


def test_serial_and_pool_give_the_same_bits(tmp_path: Path) -> None:
    """Two rounds with memories; one, two and three workers."""
    method = Odd(keeps=True)
    _, serial = run(Serial(), method, tmp_path / "serial", rounds=2)
    expected = contents(serial, 2)
    assert serial.memory(2, 0).load()["times"] == 2
    for workers in (1, 3):
        outcomes, desk = run(Pool(workers=workers), method, tmp_path / f"pool{workers}", rounds=2)
        assert all(outcome.failure is None for outcome in outcomes.values())
        assert contents(desk, 2) == expected


def test_every_engine_works_on_one_thread(tmp_path: Path) -> None:
    for name, engine in (("serial", Serial()), ("pool", Pool(workers=2))):
        _, desk = run(engine, Odd(), tmp_path / name)
        assert desk.report(1, 0).load().report.card.scores["threads"] == 1.0


def test_a_report_holds_no_memory(tmp_path: Path) -> None:
    _, desk = run(Serial(), Odd(keeps=True), tmp_path, rounds=2)
    envelope = desk.report(2, 1).load()
    assert envelope.report.memory == {}
    assert envelope.bytes_up > 0
    assert envelope.cpu_seconds > 0


def test_a_memory_that_is_given_up_is_gone(tmp_path: Path) -> None:
    """Round 1 keeps something, round 2 nothing:
    round 3 must find an empty memory, not that of round 1.
    """
    desk = Desk(tmp_path)
    for index, method in enumerate((Odd(keeps=True), Odd(), Odd(keeps=True)), start=1):
        with Serial().open(work(method)) as crew:
            list(do(crew, desk, method, index, which=[0]))
    assert desk.memory(3, 0).load()["times"] == 1


@pytest.mark.parametrize("engine", [Serial(), Pool(workers=2)], ids=["serial", "pool"])
@pytest.mark.parametrize(
    ("deed", "reason"),
    [("raise", "ZeroDivisionError: a slip"), ("refuse", "these samples are of no use")],
)
def test_a_party_that_raises_is_named_and_the_others_finish(
    engine: Engine, deed: str, reason: str, tmp_path: Path
) -> None:
    outcomes, desk = run(engine, Odd(bad=2, deed=deed), tmp_path)
    failure = outcomes[2].failure
    assert failure is not None
    assert (failure.party, failure.reason) == (2, reason)
    assert ("Traceback" in failure.details) == (deed == "raise"), (
        "a traceback for a fault, none for a user's error"
    )
    assert [desk.report(1, i).exists() for i in range(4)] == [True, True, False, True]
    assert all(outcomes[i].failure is None for i in (0, 1, 3))


@pytest.mark.parametrize(
    ("deed", "reason"), [("exit", "ended with exit code 7"), ("kill", "ended by SIGKILL")]
)
def test_a_worker_that_dies_is_named_and_replaced(deed: str, reason: str, tmp_path: Path) -> None:
    """One worker only, and the bad party is the largest, so it comes first:
    the others need a new worker.
    """
    outcomes, desk = run(Pool(workers=1), Odd(bad=1, deed=deed), tmp_path)
    failure = outcomes[1].failure
    assert failure is not None
    assert reason in failure.reason
    assert [desk.report(1, i).exists() for i in range(4)] == [True, False, True, True]


def test_a_worker_that_dies_while_idle_is_replaced(tmp_path: Path) -> None:
    method, desk = Odd(), Desk(tmp_path)
    with Pool(workers=1).open(work(method)) as crew:
        assert all(o.failure is None for o in do(crew, desk, method, 1, which=[0]))
        idle = crew.workers[0].process  # type: ignore[attr-defined]
        os.kill(idle.pid, signal.SIGKILL)
        idle.join(timeout=10)
        outcomes = list(do(crew, desk, method, 2, which=[0, 1]))
    assert [o.failure for o in outcomes] == [None, None]


def test_a_party_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    began = time.monotonic()
    outcomes, desk = run(replace(Pool(workers=1), timeout=6.0), Odd(bad=1, deed="sleep"), tmp_path)
    failure = outcomes[1].failure
    assert failure is not None
    assert failure.reason == "it took longer than the limit of 6 seconds"
    assert [desk.report(1, i).exists() for i in range(4)] == [True, False, True, True]
    assert time.monotonic() - began < 60


def test_the_largest_parties_come_first(tmp_path: Path) -> None:
    """Sizes 6, 9, 7, 8 with one worker: parties 1, 3, 2, 0."""
    method = Odd()
    with Pool(workers=1).open(work(method)) as crew:
        assert [o.party for o in crew.run(jobs(Desk(tmp_path), method))] == [1, 3, 2, 0]


def test_progress_is_told_across_processes(tmp_path: Path) -> None:
    method, told = Odd(), list[tuple[int, float, float | None]]()
    with Pool(workers=1).open(work(method)) as crew:
        list(crew.run(jobs(Desk(tmp_path), method, which=[2]), lambda *news: told.append(news)))
    assert told
    assert {party for party, _, _ in told} == {2}
    assert all(0 < done <= 1 for _, done, _ in told)


def test_a_round_ends_with_its_last_party(tmp_path: Path) -> None:
    """Ten rounds of a few milliseconds each; a second was once lost at the end of every round."""
    method, desk = Odd(), Desk(tmp_path)
    with Pool(workers=2).open(work(method)) as crew:
        list(do(crew, desk, method, 1))
        began = time.monotonic()
        for index in range(2, 12):
            list(do(crew, desk, method, index))
        assert time.monotonic() - began < 8


def test_workers_end_with_the_block(tmp_path: Path) -> None:
    with Pool(workers=2).open(work(Odd())) as crew:
        processes = [worker.process for worker in crew.workers]  # type: ignore[attr-defined]
        assert all(process.is_alive() for process in processes)
    assert not any(process.is_alive() for process in processes)


def test_workers_leave_when_the_parent_is_killed(tmp_path: Path) -> None:
    """The parent gets SIGKILL and can tell nobody.

    Its workers, one of them at work, must be gone within seconds.
    """
    code = (
        f"from tests.engines.toy_work import {sleep_in_a_pool.__name__} as f; f({str(tmp_path)!r})"
    )
    paths = os.pathsep.join([str(HERE.parents[1]), str(Path(ostraka.__file__).parents[1])])
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths})
    try:
        deadline = time.monotonic() + 60
        asleep = Desk(tmp_path).progress(1, 0).inside("asleep")
        while not (tmp_path / "pids").exists() or not asleep.exists():
            assert parent.poll() is None, "the parent ended early"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 2
        assert all(alive(pid) for pid in pids)
    finally:
        parent.kill()
        parent.wait(timeout=10)
    deadline = time.monotonic() + 20
    temporary = Path(tempfile.gettempdir())
    while any(alive(pid) for pid in pids) or list(temporary.glob(f"{PREFIX}{parent.pid}-*")):
        assert time.monotonic() < deadline, "workers or their folder outlive their parent"
        time.sleep(0.1)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_pool_removes_what_killed_ones_left_behind(tmp_path: Path) -> None:
    """Folders named after a process that lives, or by nobody of ours, stay."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (
        f"{PREFIX}{gone.pid}-abc",
        f"{PREFIX}{os.getpid()}-abc",
        "pymp-abc",
        f"{PREFIX}x-abc",
    ):
        (tmp_path / name / "socket").mkdir(parents=True)
    remove_left_behind(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([f"{PREFIX}{os.getpid()}-abc", "pymp-abc", f"{PREFIX}x-abc"])


def test_ctrl_c_while_workers_start_ends_those_that_did(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[pool._Worker] = []
    usual = pool._Worker.__init__

    def start(self: pool._Worker, work: Work) -> None:
        if started:
            raise KeyboardInterrupt
        usual(self, work)
        started.append(self)

    monkeypatch.setattr(pool._Worker, "__init__", start)
    with pytest.raises(KeyboardInterrupt), Pool(workers=2).open(work(Odd())):
        pass
    assert not started[0].process.is_alive()


def test_processes_of_a_pool_never_hear_ctrl_c() -> None:
    """They share the terminal with the run.

    A Ctrl-C while they import must not print their tracebacks.
    """
    with pool._deaf_children():
        child = subprocess.run(
            [
                sys.executable,
                "-c",
                "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    assert child.stdout.strip() == "True"
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_a_script_without_the_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import ostraka\n"
        'ostraka.run("fedavg", data="digits", parties=2, partition="iid", out="run", '
        'engine="pool", set={"local": {"epochs": 1}})\n'
    )
    paths = str(Path(ostraka.__file__).parents[1])
    shown = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert shown.returncode != 0
    assert 'if __name__ == "__main__":' in shown.stderr.splitlines()[-1]
    assert shown.stderr.count("Traceback") == 1, "the script's own, and none of a worker"


def test_workers_must_be_positive_and_engines_are_listed() -> None:
    with pytest.raises(ConfigError, match="'workers' is 0; it must be at least 1"):
        Pool(workers=0)
    assert {"pool", "serial"} <= set(ENGINES.names())
    with pytest.raises(ConfigError, match="Did you mean 'serial'"):
        ENGINES.get("seriel")


def test_there_are_no_more_workers_than_parties() -> None:
    with Pool(workers=9).open(work(Odd())) as crew:
        assert len(crew.workers) == 4  # type: ignore[attr-defined]
