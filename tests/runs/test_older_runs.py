"""Run folders that an older version left: shown, asked, built upon, and resumed to their end."""

import shutil
from pathlib import Path

import pytest
import torch

from ostraka.cli.main import main
from ostraka.evaluation.evaluate import evaluate
from ostraka.evaluation.sight import after_looking
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir, load_state

OLDER = Path(__file__).parent / "older"
"""Folders of 0.1.0: `fedov` and `fedavg` are finished, `stopped` is a run of scaffold that was
interrupted in round 2 of 3, when one of three parties had reported. Digits, a network of 4 hidden
units."""

FIGURES = {"fedov": 65.26315789473685, "fedavg": 22.535211267605636}
"""The accuracy (%) of the finished ones, as that version told it."""


@pytest.mark.parametrize("name", FIGURES)
def test_a_finished_run_is_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(OLDER / name)]) == 0
    shown = capsys.readouterr().out
    assert f"{FIGURES[name]:.2f}" in shown
    assert f"{name} on digits" in shown


@pytest.mark.parametrize("name", FIGURES)
def test_a_finished_run_answers_as_it_did(name: str) -> None:
    """One or two of 285 samples may fall to the other side on another processor."""
    config, state = load_state(OLDER / name)
    plan = make_plan(config)
    predictor = after_looking(plan.method.predictor(plan.task, state), plan.test.samples)
    found = evaluate(predictor, plan.test.samples, plan.task.classes).accuracy
    assert found == pytest.approx(FIGURES[name], abs=100 * 2.5 / 285)


def test_a_finished_run_needs_no_training_to_be_resumed(tmp_path: Path) -> None:
    shutil.copytree(OLDER / "fedavg", tmp_path / "run")
    assert main(["run", "--resume", "--out", str(tmp_path / "run"), "-q"]) == 0
    assert RunDir(tmp_path / "run").finished() == RunDir(OLDER / "fedavg").finished()


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    """From its checkpoint, its parties' memories and the one report: as if it had never stopped.

    Its first round is the older version's, so the last bits may be those of another processor.
    """
    home = RunDir(tmp_path / "stopped")
    shutil.copytree(OLDER / "stopped", home.root)
    kept = home.read_metrics()
    assert main(["run", "--resume", "--out", str(home.root), "-q"]) == 0
    rows = home.read_metrics()
    assert rows[:1] == kept
    assert [row.round for row in rows] == [1, 2, 3]

    straight = RunDir(tmp_path / "straight")
    assert main(["run", "--config", str(home.config), "--out", str(straight.root), "-q"]) == 0
    _, resumed = load_state(home.root)
    _, whole = load_state(straight.root)
    for name, tensor in whole.sent.params.items():
        torch.testing.assert_close(resumed.sent.params[name], tensor, rtol=1e-3, atol=1e-4)
