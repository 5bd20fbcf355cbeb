"""The final figures: every party is in them, and the confusion matrix is stored once."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ostraka.core.predictor import Promise
from ostraka.errors import Interrupted
from ostraka.evaluation.evaluate import Evaluation, OpenFigures
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.promise import NEVER
from ostraka.runs.record import RunDir
from ostraka.runs.results import MetricsRow, Summary
from ostraka.runs.summary import Totals, brief, hardly_trained, notes_of, summarise
from ostraka.runs.watch import Watch

SMALL = {
    "data": "digits",
    "train_per_class": 6,
    "partition": "iid",
    "parties": 3,
    "engine": "serial",
}


def figures(accuracy: float) -> dict[str, Any]:
    """What an evaluation stores of one model."""
    rest = {
        "balanced_accuracy": 1.0,
        "f1": 2.0,
        "per_class": {},
        "open": None,
        "per_part": {},
        "per_domain": {},
    }
    return {"accuracy": accuracy, **rest}


def test_two_parties_with_one_name_keep_their_figures_apart() -> None:
    plan: Any = SimpleNamespace(
        name="solo",
        config=config.make({"method": "solo"}),
        method=SimpleNamespace(rounds=1, fraction=1.0, exchanges=1, regime="alone"),
        partition=SimpleNamespace(parties=range(3), names=("clinic", "clinic", "ward")),
        notes=(),
        start=None,
        classes_held=(),
        trainings=(),
        steps=(),
    )
    parts = {str(party): figures(accuracy) for party, accuracy in enumerate((10.0, 20.0, 30.0))}
    row = {
        "round": 1,
        "test": {**figures(20.0), "per_part": parts},
        "validation": None,
        "per_party": {"0": 1.0, "1": 2.0, "2": None},
        "confusion": [[1]],
    }
    found = summarise(plan, [MetricsRow.from_json(row)], Totals(), Path("x"))
    assert found.per_part == {"0: clinic": 10.0, "1: clinic": 20.0, "2: ward": 30.0}
    assert found.per_party == {"0: clinic": 1.0, "1: clinic": 2.0, "2: ward": None}


@pytest.mark.parametrize(("more", "size", "samples"), [({}, 10, 355), ({"known": 6}, 7, 355)])
def test_the_confusion_matrix_is_in_the_last_line_and_in_the_summary(
    tmp_path: Path, more: dict[str, Any], size: int, samples: int
) -> None:
    """A row and a column more where the test has unknown classes. Every test sample is counted."""
    made = {"method": "fedavg", **SMALL, "set": {"rounds": 2, "local": {"epochs": 1}}, **more}
    summary = execute(make_plan(config.make(made)), RunDir(tmp_path / "run"))
    rows = RunDir(tmp_path / "run").read_metrics()
    assert [row.confusion is not None for row in rows] == [False, True]
    assert [len(line) for line in summary.confusion] == [size] * size
    assert sum(map(sum, summary.confusion)) == samples
    assert (summary.balanced_accuracy, summary.f1) == (
        rows[-1].test.balanced_accuracy,
        rows[-1].test.f1,
    )
    assert {"balanced_accuracy", "f1"} <= brief(summary).keys()
    assert "confusion" not in brief(summary)


def test_names_of_parties_stand_beside_their_figures(tmp_path: Path) -> None:
    summary = execute(
        make_plan(config.make({"method": "solo", **SMALL, "set": {"local": {"epochs": 1}}})),
        RunDir(tmp_path / "run"),
    )
    assert list(summary.per_part) == list(summary.per_party) == ["party-0", "party-1", "party-2"]
    assert sum(map(sum, summary.confusion)) == 3 * 355  # every model has answered every sample


OPENED = {
    "auroc": 90.0, "fpr95": 10.0, "oscr": 80.0, "open_accuracy": 70.0, "known_refused": 5.0,
    "unknown_refused": 60.0, "balanced_accuracy": 75.0,
}  # fmt: skip


def summary_of(opened: dict[str, Any] | None, **more: Any) -> Summary:
    """The summary of one round whose test had these open-set figures."""
    plan: Any = SimpleNamespace(
        name="fedov",
        config=config.make({"method": "fedov"}),
        method=SimpleNamespace(rounds=1, fraction=1.0, exchanges=1, regime="alone"),
        partition=SimpleNamespace(parties=range(1), names=("clinic",)),
        notes=(),
        start=None,
        classes_held=(),
        trainings=(),
        steps=(),
    )
    row = {
        "round": 1,
        "test": {**figures(50.0), "open": opened, **more},
        "validation": None,
        "per_party": {},
    }
    rows = [MetricsRow.from_json({**row, "confusion": []})]
    return summarise(plan, rows, Totals(), Path("x"))


def test_open_answers_stand_beside_the_accuracy_and_leave_the_closed_figures_alone() -> None:
    """Both answers have a balanced accuracy: 1 of the closed,
    75 of the open one, also in every domain.
    """
    part = {
        **figures(40.0),
        "samples": 3,
        "unknown_samples": 1,
        "open": {**OPENED, "balanced_accuracy": 65.0},
    }
    found = summary_of(OPENED, per_domain={"photo": part})
    assert found.to_json()["open"] == OPENED
    told = brief(found)
    wanted = {
        "auroc": 90.0,
        "known_refused": 5.0,
        "unknown_refused": 60.0,
        "open_balanced_accuracy": 75.0,
    }
    assert {name: told[name] for name in wanted} == wanted
    assert told["balanced_accuracy"] == 1.0
    assert told["per_domain"]["photo"]["balanced_accuracy"] == 1.0
    assert told["per_domain"]["photo"]["open_balanced_accuracy"] == 65.0
    assert told["per_domain"]["photo"]["unknown_refused"] == 60.0


def test_a_run_in_which_all_classes_are_known_tells_how_many_samples_it_refused(
    tmp_path: Path,
) -> None:
    made = {"method": "fedov", **SMALL, "set": {"local": {"epochs": 1}}}
    summary = execute(make_plan(config.make(made)), RunDir(tmp_path / "run"))
    assert 0 <= summary.open.known_refused <= 100
    assert summary.open.unknown_refused is summary.open.auroc is None
    told = brief(summary)
    assert told["known_refused"] == summary.open.known_refused
    assert not told.keys() & {"auroc", "unknown_refused", "open_balanced_accuracy"}


def test_json_has_the_note_that_the_terminal_has(tmp_path: Path) -> None:
    """A threshold below all scores: every sample is rejected, and nobody said how often."""
    made = {"method": "fedov", **SMALL, "threshold": -1e6, "set": {"local": {"epochs": 1}}}
    summary = execute(make_plan(config.make(made)), RunDir(tmp_path / "run"))
    assert summary.open.known_refused == 100
    expected = "nothing is promised of how often a known sample is called unknown: the threshold "
    assert brief(summary)["notes"][-1] == notes_of(summary)[-1] == expected + "was given by hand"
    assert notes_of(replace(summary, notes=("first",)))[0] == "first"


@pytest.mark.parametrize(
    "change",
    [
        {"answer": None},
        {"answer": Promise(rate=0.05)},
        {"answer": NEVER},
        {"open": OpenFigures(known_refused=0.0)},
    ],
)
def test_where_nothing_is_to_be_said_there_is_no_note(change: dict[str, Any]) -> None:
    opened = OpenFigures(auroc=60.0, known_refused=100.0, unknown_refused=100.0)
    told = replace(summary_of(OPENED), open=opened, answer=Promise(why="too few samples"))
    assert notes_of(told) == [
        "nothing is promised of how often a known sample is called unknown: too few samples"
    ]
    assert notes_of(replace(told, **change)) == []


def test_every_line_of_a_run_has_the_open_answers_of_its_round(tmp_path: Path) -> None:
    """Averaged closed-set networks never answer unknown."""
    made = {"method": "fedavg", **SMALL, "known": 6, "set": {"rounds": 2, "local": {"epochs": 1}}}
    execute(make_plan(config.make(made)), RunDir(tmp_path / "run"))
    rows = RunDir(tmp_path / "run").read_metrics()
    assert [(row.test.open.known_refused, row.test.open.unknown_refused) for row in rows] == [
        (0, 0)
    ] * 2
    assert rows[0].test.open.balanced_accuracy == pytest.approx(rows[0].test.accuracy / 2)


def training(
    method: str = "fedavg", counts: Sequence[Sequence[int]] = ((30,) * 10,), **given: Any
) -> Any:
    """What `hardly_trained` asks of a plan."""
    made = config.build_method(config.make({"method": method, "set": given}))
    tensors = [torch.tensor(one) for one in counts]
    return SimpleNamespace(
        method=made,
        classes_held=[int((one > 0).sum()) for one in tensors],
        trainings=[1] * len(counts),
        steps=[made.steps(one) for one in tensors],
    )


def evaluation(balanced: float | None, **given: Any) -> Evaluation:
    """100 of 1000 samples are of unknown classes, of which guessing knows nothing."""
    classes = {str(k): 1.0 for k in range(10)} | {"without samples": None}
    return Evaluation(
        1000, 100, balanced, balanced, 1.0, **{"per_class": classes, "open": OpenFigures(), **given}
    )


@pytest.mark.parametrize(
    ("balanced", "losses", "said"),
    [
        (10.0, [2.4, 2.3], "hardly moved (2.4 after round 1, 2.3 at the end; guessing: 2.3)"),
        (10.0, [2.3, 2.18], "at chance"),  # below 0.95 ln 10 = 2.19
        (10.0, [30.0, 2.3], "hardly moved (30 after"),
        (10.0, [0.01, 0.01], "own models have learned (loss 0.01)"),
        (10.0, [9.9], "hardly moved"),  # one round
        (50.0, [2.4, 2.4], "hardly moved"),
        (11.9, [2.0, 1.0], "at chance"),  # two standard errors of 900 answers: 2.0
        (12.1, [2.0, 1.0], ""),
        (None, [2.0, 1.0], ""),
        (10.0, [], "at chance"),
    ],
)
def test_a_result_at_chance_or_a_loss_that_has_not_moved_is_said(
    balanced: float | None, losses: list[float], said: str
) -> None:
    signs = "; ".join(hardly_trained(training(), evaluation(balanced), losses))
    assert bool(signs) == bool(said)
    assert said in signs
    assert ("--lr" in signs) == ("moved" in said)
    assert ("such as fedov" in signs) == bool(said and "moved" not in said)


def test_a_party_alone_is_not_blamed_for_knowing_few_classes() -> None:
    assert not list(hardly_trained(training("solo"), evaluation(10.0), [0.1]))
    assert list(hardly_trained(training("solo"), evaluation(10.0), [2.3]))


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({}, 0),  # 20 rounds of 100 steps
        ({"rounds": 1, "local": {"epochs": 9}}, 90),  # 300 samples in batches of 32: 10 an epoch
        ({"rounds": 3, "local": {"epochs": 9}}, 270),
        ({"rounds": 3, "local": {"epochs": 10}}, 0),  # 30 for each of ten classes
        ({"rounds": 6, "fraction": 0.5, "local": {"epochs": 9}}, 270),
        ({"rounds": 1, "local": {"least_steps": 300}}, 0),
    ],
)
def test_few_steps_are_said_with_their_number(given: dict[str, Any], steps: int) -> None:
    signs = list(hardly_trained(training(**given), evaluation(50.0), [1.0]))
    assert len(signs) == bool(steps)
    assert all(f"a typical one {steps} for 10 classes" in sign for sign in signs)
    assert all("--rounds" in sign for sign in signs)


def test_few_steps_of_most_parties_are_said_and_never_of_private_training() -> None:
    """A party of one class needs a hundred in all; a third of the parties is not most."""
    small = (3,) + (0,) * 9
    own = {"local": {"steps": 99}}
    assert list(hardly_trained(training("fedov", [small], **own), evaluation(50.0), [1.0]))
    enough = {"local": {"steps": 100}}
    assert not list(hardly_trained(training("fedov", [small], **enough), evaluation(50.0), [1.0]))
    mixed = [small, small, (3,) * 10]
    assert not list(hardly_trained(training("fedov", mixed, **enough), evaluation(50.0), [1.0]))
    private = {**own, "dp": {"epsilon": 8.0}}
    assert not list(hardly_trained(training("fedov", [small], **private), evaluation(50.0), [1.0]))


def test_a_class_that_is_never_answered_is_named() -> None:
    classes = {"cat": 0.0, "dog": 0.0, "cow": 80.0, "none": None}
    matrix = ((0, 9, 1), (0, 0, 9), (0, 2, 8))
    figures = evaluation(46.7, per_class=classes, confusion=matrix)
    [sign] = hardly_trained(training(), figures, [1.0])  # nine test samples of a dog are too few
    assert "no test sample of cat is answered correctly; train longer (--rounds" in sign


def test_a_learning_rate_that_is_too_high_does_not_pass_in_silence(tmp_path: Path) -> None:
    """Without a NaN, and whether the run was interrupted or not."""
    values = {**SMALL, "method": "fedavg", "set": {"rounds": 2, "local": {"lr": 30.0}}}
    plan = make_plan(config.make({**values, "train_per_class": 20}))
    whole = execute(plan, RunDir(tmp_path / "a"))
    assert sum("hardly moved" in sign for sign in whole.hardly_trained) == 1

    values["set"] = {**values["set"], "rounds": 1}
    short = execute(
        make_plan(config.make({**values, "train_per_class": 20})), RunDir(tmp_path / "c")
    )
    told = [
        re.findall(r"([\d.]+) after round 1, ([\d.]+) at", " ".join(run.hardly_trained))
        for run in (short, whole)
    ]
    [(first, last)], [(before, after)] = told
    assert first == last == before != after

    class Stops(Watch):
        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            if index == 2:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        execute(plan, RunDir(tmp_path / "b"), Stops())
    resumed = execute(plan, RunDir(tmp_path / "b"), resume=True)
    assert resumed.hardly_trained == whole.hardly_trained
