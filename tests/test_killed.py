"""Whatever is killed, the same command finishes, and leaves what it leaves when nobody kills it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def killed(case: str, root: Path, every: int) -> tuple[dict[str, str], list[Any], int]:
    """What remains of it, by name with its permissions; what differed after a kill; the steps."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.killing", case, str(root), str(every)],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines[0]["whole"], lines[1:-1], lines[-1]["steps"]


@pytest.mark.parametrize("case", ["train", "private"])
def test_the_training_of_a_member(case: str, tmp_path: Path) -> None:
    """Killed anywhere, also when its file is there and its half-finished training is not all gone;
    with differential privacy nothing tells the seed afterwards."""
    whole, other, steps = killed(case, tmp_path, 1)
    assert whole == {"a.member": "0o644"}
    assert other == []
    assert steps > 8, "it was killed before, between and behind its files"


@pytest.mark.parametrize(("case", "every"), [("scaffold", 13), ("fedova", 13), ("fedov", 9)])
def test_a_run(case: str, every: int, tmp_path: Path) -> None:
    """Also one whose parties remember, and one whose reports come late."""
    whole, other, steps = killed(case, tmp_path, every)
    assert other == []
    assert steps > 35
    public = {"config.toml", "environment.json", "lock", "metrics.jsonl", "partition.json",
              "run.json", "summary.json"}  # fmt: skip
    private = {"model.safetensors"}
    members = {"members/p00000.safetensors", "members/p00001.safetensors"}
    private |= members if case == "fedov" else set()
    expected = {f"run/{name}": "0o644" for name in public} | {"run": "0o755"}
    expected |= {f"run/{name}": "0o600" for name in private}
    assert whole == expected | ({"run/members": "0o700"} if case == "fedov" else {})


def test_a_grid_whose_runs_share_members(tmp_path: Path) -> None:
    whole, other, _ = killed("grid", tmp_path, 19)
    assert other == []
    shelf = {name: mode for name, mode in whole.items() if name.startswith("grid/shelf")}
    assert {mode for name, mode in shelf.items() if name.endswith(".safetensors")} == {"0o600"}
    assert {mode for name, mode in shelf.items() if "." not in name} == {"0o700"}
    assert not [name for name in shelf if "progress" in name]


def test_a_choice_of_members(tmp_path: Path) -> None:
    whole, other, _ = killed("select", tmp_path, 1)
    assert other == []
    assert {mode for name, mode in whole.items() if "." in name} == {"0o644"}
