"""Runs that are killed or stopped, and resumed: the same bits as a run that was left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ostraka
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch
from ostraka.store import codec, jsonfile

SCRIPT = Path(__file__).parent / "run_alone.py"
BASE = {
    "data": "fashion-4k",
    "parties": 3,
    "train_per_class": 40,
    "partition": "labels:5",
    "workers": 2,
}
NET = {"name": "mlp", "options": {"hidden": [32]}}
ONE_SHOT = {
    **BASE,
    "method": "closed-voting",
    "net": NET,
    "set": {"local": {"epochs": 80, "batch": 8}},
}
ROUNDS = {
    **BASE,
    "method": "fedavg",
    "net": NET,
    "set": {"rounds": 12, "local": {"epochs": 4, "batch": 8, "lr": 0.05}},
}


def start(out: Path, values: dict[str, Any]) -> subprocess.Popen[str]:
    paths = os.pathsep.join(
        [str(Path(ostraka.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(out), json.dumps(values)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(there: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 90
    while not there():
        assert process.poll() is None, (
            f"the run ended before it could be stopped: {process.communicate()[0]}"
        )
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL for the run's own process only: nobody tells its workers."""
    process.kill()
    process.communicate(timeout=30)


def progress_files(out: Path) -> list[Path]:
    return list((out / "work" / "progress").glob("r*/p*/fit.safetensors"))


def finish(out: Path, values: dict[str, Any], resume: bool) -> None:
    execute(make_plan(config.make({**values, "engine": "serial"})), RunDir(out), resume=resume)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Path]:
    """The folder of the same run, left alone; made once."""
    made: dict[str, Path] = {}

    def get(values: dict[str, Any]) -> Path:
        key = json.dumps(values)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("straight")
            finish(made[key], values, resume=False)
        return made[key]

    return get


def assert_same(a: Path, b: Path) -> None:
    """The same state and metrics to the bit, and the same summary but for time and place."""
    assert (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()
    assert (a / "metrics.jsonl").read_bytes() == (b / "metrics.jsonl").read_bytes()
    both = [jsonfile.read_json(home / "summary.json") for home in (a, b)]
    for summary in both:
        for key in ("seconds", "cpu_seconds", "spent", "out", "digest"):
            del summary[key]
    assert both[0] == both[1]


@pytest.mark.parametrize("engine", ["serial", "pool"])
def test_a_one_round_run_killed_inside_training(engine: str, tmp_path: Path, straight: Any) -> None:
    """Killed as soon as half-finished training lies on the disk;
    resumed with that, not from the start.
    """
    out = tmp_path / "run"
    process = start(out, {**ONE_SHOT, "engine": engine})
    wait_for(lambda: len(progress_files(out)) > 0, process)
    kill(process)
    assert not (out / "summary.json").exists()
    steps = {path: codec.load(path)["values"]["steps"] for path in progress_files(out)}
    total = 80 * 17  # parties have 133 or 134 samples: 17 batches of 8
    assert any(0 < count < total for count in steps.values()), steps
    finish(out, ONE_SHOT, resume=True)
    assert_same(out, straight(ONE_SHOT))


def test_a_run_of_many_rounds_killed_between_rounds(tmp_path: Path, straight: Any) -> None:
    out = tmp_path / "run"
    process = start(out, {**ROUNDS, "engine": "pool"})
    wait_for((out / "checkpoint.safetensors").exists, process)
    kill(process)
    done = codec.load(out / "checkpoint.safetensors")["round"]
    assert 1 <= done < 12
    begun: list[int] = []

    class Note(Watch):
        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            begun.append(index)

    plan = make_plan(config.make({**ROUNDS, "engine": "serial"}))
    execute(plan, RunDir(out), Note(), resume=True)
    assert begun == list(range(done + 1, 13)), "finished rounds are not made again"
    assert_same(out, straight(ROUNDS))


@pytest.mark.parametrize("engine", ["serial", "pool"])
def test_ctrl_c_leaves_a_run_that_can_be_resumed(
    engine: str, tmp_path: Path, straight: Any
) -> None:
    """As a terminal does it: SIGINT to the whole group, workers included."""
    out = tmp_path / "run"
    process = start(out, {**ONE_SHOT, "engine": engine})
    wait_for(lambda: len(progress_files(out)) > 0, process)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    assert said.startswith(
        "Interrupted: stopped; nothing that was finished is lost. Go on with: ostraka run --resume"
    )
    assert "Traceback" not in said
    finish(out, ONE_SHOT, resume=True)
    assert_same(out, straight(ONE_SHOT))
