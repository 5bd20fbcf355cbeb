"""Jobs are timed as the tables say, in processes of their own."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from benchmarks.speed import destruction, worker
from benchmarks.speed.run import Runners, measure
from benchmarks.speed.steps import SHAPES, effort
from benchmarks.speed.table import OURS, Job, Lap


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that pass: a job adds to them; CPU time is half of wall time."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: now[0] / 2)
    return now


def test_a_job_without_laps_is_timed_as_a_whole(clock: list[float]) -> None:
    def run(lap: Lap) -> None:
        clock[0] += 6

    assert worker.measured(Job(run, work=3), alone=True) == (1.0, 2.0)


def test_of_a_job_with_laps_the_mean_between_them_counts(clock: list[float]) -> None:
    """10 s before the first lap and after the last do not count; two rounds of 2 and 4 s do."""

    def run(lap: Lap) -> None:
        for seconds in (10, 2, 4):
            clock[0] += seconds
            lap()
        clock[0] += 10

    assert worker.measured(Job(run), alone=True) == (1.5, 3.0)


def test_children_count_where_a_job_has_some() -> None:
    """A child that computes for 0.3 s; this process only waits for it."""
    spin = "import time\nwhile time.process_time() < 0.3: pass"

    def run(lap: Lap) -> None:
        subprocess.run([sys.executable, "-c", spin], check=True)

    assert worker.measured(Job(run), alone=False)[0] >= 0.28
    assert worker.measured(Job(run), alone=True)[0] < 0.2


def test_the_operations_of_a_step() -> None:
    """Forward at 3x32x32: convolutions 2*75*6*28*28 = 705,600 and 2*150*16*10*10 = 480,000, linear
    layers 2*(400*120 + 120*84 + 84*11) = 118,008: F = 1,303,608 in all, with 10 outputs 168 less.

    Cross-entropy: 3 F less the first layer's gradient in the images. FedOV's paper: that twice
    (images and enhanced ones), 3 F (destroyed), and four more steps of 2 F.
    """
    forward = 1_303_608
    assert effort("cross-entropy", SHAPES["3x32x32"]) == pytest.approx(
        (3 * (forward - 168) - 705_600) / 1e6
    )
    assert effort("paper", SHAPES["3x32x32"]) == pytest.approx((17 * forward - 2 * 705_600) / 1e6)
    assert effort("fast", SHAPES["3x32x32"]) == pytest.approx((11 * forward - 2 * 705_600) / 1e6)


def test_variants_take_turns_in_processes_of_their_own() -> None:
    few = replace(destruction.TABLE, cells={"fedov 1x28x28": "one"})
    found = measure(few, few.variants, rounds=2, runners=Runners(), small=True)
    turns = found["cells"]["fedov 1x28x28"]
    assert list(turns) == [destruction.ONE_BY_ONE, OURS]
    assert all(len(turn["cpu"]) == len(turn["wall"]) == 2 for turn in turns.values())
    assert all(turn["memory"] > 50 and min(turn["cpu"]) > 0 for turn in turns.values())
    assert found["matmul"] > 0


def test_a_variant_that_fails_says_why() -> None:
    broken = replace(destruction.TABLE, cells={"nothing 1x28x28": "not a mix"}, variants=(OURS,))
    with pytest.raises(SystemExit, match="nothing"):
        measure(broken, broken.variants, rounds=1, runners=Runners(), small=True)
