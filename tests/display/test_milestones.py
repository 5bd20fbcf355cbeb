"""What runs had reached by a round, by hand, and beside published figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.display.rounds import Course, courses, milestones
from ostraka.display.tables import Mean, Number
from ostraka.errors import ConfigError
from ostraka.evaluation.evaluate import Evaluation
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.results import MetricsRow, Summary

TEST = (10.0, 30.0, 20.0, 40.0)
SEEN = (12.0, 25.0, 25.0, 22.0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A run of two rounds with validation samples."""
    out = tmp_path_factory.mktemp("run")
    small: dict[str, Any] = {
        "data": "digits",
        "train_per_class": 6,
        "parties": 2,
        "engine": "serial",
    }
    small["partition"] = "iid"
    sets = {"set": {"rounds": 2, "local": {"epochs": 1, "batch": 32, "lr": 0.01}}}
    execute(
        make_plan(config.make({"method": "fedavg", "validation": 0.2, **small, **sets})),
        RunDir(out / "r"),
    )
    [course] = courses([out / "r"])
    return course


def course(base: Course, seen: tuple[float, ...] | None = SEEN, **about: Any) -> Course:
    """The run with four rounds of the figures above."""
    evaluation: Evaluation = base.rows[0].test
    rows = [
        MetricsRow(i + 1, replace(evaluation, accuracy=TEST[i]), None if seen is None else seen[i])
        for i in range(4)
    ]
    summary: Summary = replace(base.summary, **about)
    return replace(base, rows=tuple(rows), summary=summary)


def cells(table: Any, line: int) -> list[float]:
    return [
        cell.mean if isinstance(cell, Mean) else cell.value
        for cell in table.rows[line]
        if isinstance(cell, Mean | Number)
    ]


def test_the_round_that_was_best_on_validation_samples(finished: Course) -> None:
    """Rounds 2 and 3 have the same: the first counts, so round 4 shows round 2's 30. Best and mean
    are of the validation samples: 25, and (12 + 25 + 25 + 22) / 4 = 21.
    """
    [table] = milestones([course(finished)], [1, 3, 4])
    assert cells(table, 0) == [10.0, 30.0, 30.0, 25.0, 21.0]


def test_without_validation_samples_the_round_itself(finished: Course) -> None:
    """Best and mean are of the test samples: 40, and (10 + 30 + 20 + 40) / 4 = 25."""
    [table] = milestones([course(finished, None)], [1, 3, 4])
    assert cells(table, 0) == [10.0, 20.0, 40.0, 40.0, 25.0]


def test_relative_to_a_number_and_to_a_pooled_run(finished: Course) -> None:
    _, table = milestones([course(finished)], [4], relative_to=60)
    assert cells(table, 0) == pytest.approx([50.0, 2500 / 60, 35.0])
    pooled = replace(course(finished, method="centralised"), pooled=True)
    _, table = milestones([course(finished), pooled], [4])
    assert cells(table, 0)[0] == 100.0
    elsewhere = replace(pooled, summary=replace(pooled.summary, data="mnist"))
    assert len(milestones([course(finished), elsewhere], [4])) == 1


@pytest.mark.parametrize(
    "other",
    [{"net": config.NetChoice("mlp", {"hidden": [4]})}, {"known": 6}, {"train_per_class": 7}],
)
def test_only_the_same_network_on_the_same_data_is_what_it_is_relative_to(
    finished: Course, other: dict[str, Any]
) -> None:
    """A pooled run of another network, or on other classes, is no reference beside the right one,
    nor alone.
    """
    pooled = replace(course(finished, method="centralised"), pooled=True)
    strange = replace(course(finished, (9.0, 1.0, 1.0, 1.0), method="centralised"), pooled=True)
    strange = replace(strange, config=replace(finished.config, **other))
    _, table = milestones([course(finished), pooled, strange], [4])
    assert table.notes == ("digits / iid: 30.00 % is 100",)
    assert len(milestones([course(finished), strange], [4])) == 1


def test_seeds_are_a_mean_and_settings_apart(finished: Course) -> None:
    other = course(finished, (9.0, 1.0, 1.0, 1.0), seed=1)
    [table] = milestones([course(finished), other], [4])
    assert cells(table, 0)[0] == 20.0
    changed = replace(finished.config, set={**finished.config.set, "fraction": 0.5})
    [table] = milestones([course(finished), replace(other, config=changed)], [4])
    assert [row[0] for row in table.rows] == ["fedavg (fraction=1.0)", "fedavg (fraction=0.5)"]
    with pytest.raises(ConfigError, match="given twice for a seed"):
        milestones([course(finished), course(finished)], [4])


def test_published_figures_stand_below_ours(finished: Course) -> None:
    place = {"data": "cifar10", "partition": "party-dirichlet:1"}
    chosen = replace(finished.config, net=config.NetChoice("lenet5"), **place)
    own = replace(course(finished, parties=20, **place), config=chosen)
    rows = [replace(own.rows[0], round=125), replace(own.rows[1], round=500)]
    _, table = milestones([replace(own, rows=tuple(rows))], [125, 500], relative_to=54.03)
    assert [row[0] for row in table.rows] == ["fedavg", "fedavg, published"]
    assert cells(table, 1) == [65.94, 88.34]
    assert table.notes[1:] == (
        "fedavg on cifar10 / party-dirichlet:1, ours for theirs: training samples per class: 6 for "
        "all; learning rate: 0.01 for 0.1; share of the parties in a round: 1.0 for 0.2; set: "
        "validation=0.2",
    )
    six = replace(own, rows=tuple(rows), config=replace(chosen, known=6))
    _, table = milestones([six], [125, 500], relative_to=54.03)
    assert [row[0] for row in table.rows] == ["fedavg"]


def test_a_real_run_and_what_is_none(finished: Course, tmp_path: Path) -> None:
    [table] = milestones([finished], [1, 2])
    assert cells(table, 0)[0] == pytest.approx(finished.rows[0].test.accuracy)
    with pytest.raises(ConfigError, match="there is no folder"):
        courses([tmp_path / "nothing"])
    late = course(finished)
    with pytest.raises(ConfigError, match="it has nothing to show of round 1"):
        milestones([replace(late, rows=late.rows[1:])], [1])
