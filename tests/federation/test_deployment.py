"""A real federation on this machine: a SuperLink and three SuperNodes, with TLS and node keys.

Run by `make test-engines`. Every wait has a limit; what is left of a failed test is ended.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import ostraka
from ostraka.federation.certificates import make_party_key
from ostraka.federation.party import free_port
from ostraka.federation.project import create
from ostraka.runs.record import load_state
from ostraka.store.tree import Named, tree_of

pytest.importorskip("flwr")
pytestmark = pytest.mark.engines

NAMES = ("north", "east", "south")
LIMIT = 240.0
"""Seconds that anything may take."""


class Processes:
    """What a test has started, each in a group of its own."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def ostraka(self, *words: str | Path, log: Path) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "ostraka", "federation", *map(str, words)]
        more = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        with log.open("ab") as out:
            started = subprocess.Popen(
                command, stdout=out, stderr=out, env={**os.environ, **more}, start_new_session=True
            )
        self.started.append(started)
        return started

    def kill(self, process: "subprocess.Popen[bytes]") -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            self.kill(process)


@pytest.fixture
def processes() -> Iterator[Processes]:
    held = Processes()
    yield held
    held.end()


def until(what: Callable[[], bool], words: str) -> None:
    end = time.monotonic() + LIMIT
    while not what():
        assert time.monotonic() < end, f"{words}: not within {LIMIT:g} seconds"
        time.sleep(0.3)


def weights(folder: Path) -> dict[str, bytes]:
    """Every tensor of a run's final state; names of parties beside them may differ."""
    tensors = Named()
    tree_of(load_state(folder)[1], "", tensors)
    assert tensors.by_name
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.by_name.items()}


def text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def test_one_exchange_is_that_of_one_process_and_strangers_stay_out(
    tmp_path: Path, processes: Processes
) -> None:
    run = {"method": "fedov", "data": "digits", "partition": "labels:4",
           "set": {"local": {"epochs": 1}}}  # fmt: skip
    made = create(tmp_path / "fed", run, NAMES, port=free_port(), share=True)
    here = ostraka.run(**run, parties=3, engine="serial", out=tmp_path / "here")  # type: ignore[arg-type]
    server = processes.ostraka("server", made.root, "--bind", "127.0.0.1", log=tmp_path / "server")
    for name in NAMES[:2]:
        processes.ostraka("party", made.root / "parties" / name, log=tmp_path / name)
    until(lambda: "south to join" in text(tmp_path / "server"), "the server waits for the third")
    stranger = tmp_path / "stranger"
    shutil.copytree(made.root / "parties/south", stranger)
    for name in ("key", "key.pub"):
        (stranger / name).unlink()
    make_party_key(stranger / "key", stranger / "key.pub")
    refused = processes.ostraka("party", stranger, "--wait", "8", log=tmp_path / "stranger.log")
    assert refused.wait(timeout=LIMIT) == 2
    assert "the server does not know this party's key" in text(tmp_path / "stranger.log")
    assert server.poll() is None
    processes.ostraka("party", made.root / "parties/south", log=tmp_path / "south")
    assert server.wait(timeout=LIMIT) == 0, text(tmp_path / "server") + text(made.said)
    assert weights(made.run) == weights(here.folder)
    there = ostraka.load_run(made.run)
    assert there.summary.accuracy == here.summary.accuracy


def test_a_party_and_the_server_are_killed_and_the_numbers_stay_the_same(
    tmp_path: Path, processes: Processes
) -> None:
    """SCAFFOLD: every party's control variate must survive its restart, and fit the server that
    goes back to its last finished round."""
    run = {"method": "scaffold", "data": "digits", "partition": "labels:4", "net": "mlp",
           "set": {"local": {"epochs": 1}, "rounds": 4}}  # fmt: skip
    made = create(tmp_path / "fed", run, NAMES, port=free_port(), share=True)
    here = ostraka.run(**run, parties=3, engine="serial", out=tmp_path / "here")  # type: ignore[arg-type]

    def rounds() -> int:
        return text(made.run / "metrics.jsonl").count("\n")

    def start(name: str) -> "subprocess.Popen[bytes]":
        return processes.ostraka("party", made.root / "parties" / name, log=tmp_path / name)

    def serve() -> "subprocess.Popen[bytes]":
        return processes.ostraka(
            "server", made.root, "--bind", "127.0.0.1", log=tmp_path / "server"
        )

    server, parties = serve(), {name: start(name) for name in NAMES}
    until(lambda: rounds() >= 1, "the first round")
    processes.kill(parties["east"])
    start("east")
    until(lambda: rounds() >= 2, "the second round, with a party that was started again")
    superlink = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
    os.killpg(superlink, signal.SIGKILL)
    assert server.wait(timeout=LIMIT) == 3
    assert "go on with: ostraka federation server" in text(tmp_path / "server")
    again = serve()
    assert again.wait(timeout=LIMIT) == 0, text(tmp_path / "server") + text(made.said)
    assert rounds() == 4
    assert weights(made.run) == weights(here.folder)
