"""Flower's own simulation on this machine: memories in its contexts, the weights of one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ostraka.engines.shares import load_parties, save_parties
from tests.engines.toy_work import parties

LIMIT = 240.0
"""Seconds that a run may take."""


def test_shares_are_read_as_they_were_saved(tmp_path: Path) -> None:
    save_parties(tmp_path, parties())
    held = load_parties(str(tmp_path))
    assert [party.ref for party in held] == [party.ref for party in parties()]
    for mine, its in zip(parties(), held, strict=True):
        assert its.samples.x.tolist() == mine.samples.x.tolist()
        assert its.samples.labels.tolist() == mine.samples.labels.tolist()
        assert its.samples.view == mine.samples.view


@pytest.mark.engines
def test_a_run_over_flowers_simulation_is_that_of_one_process(tmp_path: Path) -> None:
    """SCAFFOLD, whose parties keep something between rounds."""
    pytest.importorskip("flwr")
    pytest.importorskip("ray")
    from tests.federation.test_deployment import weights

    words = ["scaffold", "--data", "digits", "--partition", "labels:4", "--parties", "3", "--net",
             "mlp", "--epochs", "1", "--rounds", "3"]  # fmt: skip
    for engine in ("serial", "flower"):
        done = subprocess.run(
            [sys.executable, "-m", "ostraka", "run", *words, "--engine", engine, "--out", engine],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, timeout=LIMIT,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert weights(tmp_path / "flower") == weights(tmp_path / "serial")
