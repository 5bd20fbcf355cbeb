"""Off a terminal: plain lines on standard error, as many as asked for."""

import re
from pathlib import Path

import pytest

from ostraka.display.progress import Course, Grid, Lines
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka

TWO = (*TINY, *ONE_EPOCH, "--rounds", "2")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed; a test moves them."""
    now = [0.0]
    monkeypatch.setattr("ostraka.display.progress.time.monotonic", lambda: now[0])
    return now


def test_a_run_names_itself_and_its_folder(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedavg", *TWO, "--out", "mine")
    assert done.err.splitlines()[0] == "fedavg on digits: iid, 3 parties, 2 rounds, seed 0, in mine"
    assert done.err.replace("\n", "").isprintable()


def test_quiet_leaves_the_result_alone(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedavg", *TWO, "--quiet", "--out", "mine")
    assert done.err == ""
    assert "Results: mine" in done.out


def test_verbose_tells_every_party_with_loss_and_seconds(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedavg", *TWO, "--verbose", "--out", "mine")
    lines = [line for line in done.err.splitlines() if " done: " in line]
    assert len(lines) == 6
    pattern = r"\d\d:\d\d:\d\d round [12], party-[0-2] done: loss \d+\.\d{3}, \d+\.\d s"
    assert all(re.fullmatch(pattern, line) for line in lines), lines
    assert sum(": accuracy " in line for line in done.err.splitlines()) == 2


def test_a_party_that_fails_is_told_at_once_with_its_reason(ostraka: Ostraka, fragile: str) -> None:
    done = ostraka("run", fragile, *TINY, *ONE_EPOCH, "--on-failure", "drop", "--out", "mine")
    assert (
        "party-1 failed in round 1: RuntimeError: the disk of this party is full"
        in done.err.splitlines()
    )


def test_cells_of_a_grid_end_with_their_number_and_the_time_left(
    ostraka: Ostraka, fragile: str
) -> None:
    words = ("compare", "solo", fragile, "fedavg", *TINY, *ONE_EPOCH, "--out", "grid")
    first = ostraka(*words).err.splitlines()
    assert "[1/3] solo on digits: iid, seed 0" in first
    ends = [line for line in first if re.search(r"accuracy .* after|: failed:", line)]
    assert [line[:5] for line in ends] == ["[1/3]", "[2/3]", "[3/3]"]
    assert re.search(r"accuracy \d+\.\d\d % after .*; about .* left for the grid", ends[0])
    assert (
        "fragile on digits: iid, seed 0: failed: 1 of 3 parties failed: party-1: RuntimeError"
        in ends[1]
    )
    assert "left" not in ends[2], "nothing is left after the last"
    again = ostraka(
        "compare", "solo", "fedavg", *TINY, *ONE_EPOCH, "--out", "grid"
    ).err.splitlines()
    assert [re.sub(r"\d+\.\d+ %", "N %", line) for line in again] == [
        "[1/2] solo on digits: iid, seed 0: accuracy N % (finished before)",
        "[2/2] fedavg on digits: iid, seed 0: accuracy N % (finished before)",
    ]


def test_lines_come_every_few_per_cent_or_after_a_minute(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    course, lines = Course(began=0.0), Lines(stamps=False)
    lines.begin("a run", course)
    course.begin(index=1, rounds=1, parties=4, ready=0)

    def at(seconds: float, done: float) -> str:
        clock[0] = seconds
        course.work(0, done, 0.5)
        lines.move(course, "")
        return capsys.readouterr().err

    assert at(0.0, 0.0) == "a run\n"
    assert at(1.0, 0.9) == "", "a second after the last line is too soon, whatever was done"
    assert at(10.0, 0.16) == "", "4 % of the whole are too few"
    # 6 % in 20 s: the other 94 % take 313 s
    assert (
        at(20.0, 0.24)
        == "6 %: round 1 of 1, 0 of 4 parties, loss 0.500, 20.0 s, about 5 min 13 s left\n"
    )
    assert at(79.0, 0.25) == ""
    assert at(80.0, 0.25).startswith("6 %: round 1 of 1"), "a minute without a line"


def test_the_time_left_starts_with_the_first_sign_of_work(clock: list[float]) -> None:
    """Half of the round was ready; workers took 10 s to start.

    Then a quarter of the whole took 5 s.
    """
    course = Course()
    course.begin(index=1, rounds=1, parties=4, ready=2)
    clock[0] = 10.0
    course.work(0, 0.0, None)
    assert course.left() == ""
    clock[0] = 15.0
    course.work(0, 1.0, None)
    assert course.share == 0.75
    assert course.left() == "about 5.0 s left"
    assert course.ended() == 3


def test_the_time_left_of_a_grid_counts_trained_cells_only(clock: list[float]) -> None:
    """Ten cells, four were finished before and two trained in 20 s:
    10 s for each of the other four.
    """
    grid = Grid(began=0.0)
    clock[0] = 20.0
    grid.trained = 2
    assert grid.left(ended=6, total=10) == "about 40.0 s left for the grid"
    assert grid.left(ended=10, total=10) == ""
    assert Grid().left(ended=4, total=10) == "", "nobody knows before one is trained"


def test_a_line_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Lines(stamps=False).say("party\x1b[31m\r\n1 failed")
    assert capsys.readouterr().err == "party [31m  1 failed\n"


def test_a_terminal_gets_bars(ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    done = ostraka("compare", "solo", "fedavg", *TINY, *ONE_EPOCH, "--out", "grid")
    for word in ("cells", "rounds", "parties", "2/2", "\x1b["):
        assert word in done.err
    assert "[2/2] fedavg on digits: iid, seed 0: accuracy" in done.err
    assert Path("grid/results.md").exists()


def test_a_dumb_terminal_gets_lines(ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    done = ostraka("run", "fedavg", *TWO, "--out", "mine")
    assert "\x1b" not in done.err
    assert done.err.startswith("fedavg on digits")
