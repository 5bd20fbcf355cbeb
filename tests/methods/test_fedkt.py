"""FedKT: votes by hand, tiny parties, and who votes with whom."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.fit import Budget, Fitted
from ostraka.core.method import Round
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError, NeedError, OstrakaError
from ostraka.methods import fedkt
from ostraka.methods.fedkt import FedKT, agreed, tally, teacher_count
from ostraka.runs.plan import Plan
from tests.methods.toy_line import final_state, plan_of, report

QUICK: dict[str, Any] = {"local": {"epochs": 1}, "student": {"epochs": 1}}


def small(**values: Any) -> Plan:
    return plan_of("fedkt", public="half-test", set={**QUICK, **values})


def test_votes_by_hand() -> None:
    """Three voters on two samples: (0, 0, 2) and (1, 2, 2).

    Only what all say counts when they must agree.
    """
    answers = [torch.tensor([0, 1]), torch.tensor([0, 2]), torch.tensor([2, 2])]
    assert tally(answers, 3).tolist() == [[2, 0, 1], [0, 1, 2]]
    assert agreed(answers[1:], 3).tolist() == [[0, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize(("samples", "count"), [(1, 1), (3, 1), (4, 2), (9, 4), (10, 5), (1000, 5)])
def test_a_small_party_has_fewer_teachers(samples: int, count: int) -> None:
    """Each gets at least two samples; a party of one sample has one teacher all the same."""
    assert teacher_count(samples, 5) == count


def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Samples, Budget]]:
    """What is trained, in order: name, samples, budget."""
    seen: list[tuple[str, Samples, Budget]] = []
    real = fedkt.fit

    def noted(
        net: Any,
        start: Any,
        samples: Any,
        goal: Any,
        budget: Any,
        seed: int,
        progress: Any,
        name: str,
    ) -> Fitted:
        seen.append((name, samples, budget))
        return real(net, start, samples, goal, budget, seed, progress, name)

    monkeypatch.setattr(fedkt, "fit", noted)
    return seen


def test_every_division_has_teachers_on_disjoint_parts_and_one_student(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, seen = small(), trainings(monkeypatch)
    party = plan.parties[0]
    sent = plan.method.local_update(Round(plan.task, 1, None, 1), party, {})
    assert len(sent.payload) == 2
    assert len({name for name, *_ in seen}) == len(seen) == 2 * (5 + 1)
    own = set(party.samples.rows.tolist())  # type: ignore[union-attr]
    parts = [
        [s.rows.tolist() for name, s, _ in seen if name.startswith(f"teacher {d}.")] for d in (0, 1)
    ]
    for division in parts:
        assert len(division) == 5
        assert sorted(row for part in division for row in part) == sorted(own)
    assert parts[0] != parts[1]
    students = [s for name, s, _ in seen if name.startswith("student")]
    assert [len(s) for s in students] == [500, 500]


def test_a_party_of_one_sample_takes_part(tmp_path: Path) -> None:
    plan = small()
    party = plan.parties[0]
    tiny = replace(party, samples=party.samples.take(torch.tensor([0])))
    state = plan.method.init(plan.task, 0)
    sent = plan.method.local_update(Round(plan.task, 1, None, 1), tiny, {})
    scores = plan.method.predictor(
        plan.task, plan.method.aggregate(plan.task, state, [sent])
    ).scores(plan.test.samples.stored())
    assert scores.known.isfinite().all()


LABELS = {"always 0": 0, "always 1": 1, "always 2": 2}


def final_labels(
    monkeypatch: pytest.MonkeyPatch, groups: list[list[str]], consistent: bool
) -> list[int] | None:
    """The labels of the final student's samples,
    when each party's students give the named answers.
    """
    plan = small(consistent=consistent)
    seen = trainings(monkeypatch)
    count = len(plan.task.commons.public)  # type: ignore[arg-type]
    monkeypatch.setattr(
        fedkt,
        "_answers",
        lambda task, objective, params, samples: torch.full((count,), LABELS[params]),
    )
    reports = [report(i, group) for i, group in enumerate(groups)]
    plan.method.aggregate(plan.task, plan.method.init(plan.task, 0), reports)
    return seen[-1][1].labels.unique().tolist()


def test_a_party_at_odds_with_itself_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Students say (1, 2), (1, 2) and (0, 0): plain votes are 2 : 2 : 2 and the first
    class, 0, wins either way; with one more party of (1, 2) class 1 wins the plain vote,
    and still loses the consistent one.
    """
    groups = [["always 1", "always 2"]] * 3 + [["always 0", "always 0"]]
    assert final_labels(monkeypatch, groups, consistent=True) == [0]
    assert final_labels(monkeypatch, groups, consistent=False) == [1]


def test_if_nobody_agrees_everyone_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [["always 2", "always 1"], ["always 0", "always 2"]]
    assert final_labels(monkeypatch, groups, consistent=True) == [2]


def test_samples_without_a_vote_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two students agree on the first half of the public samples only:
    the final student sees that half.
    """
    plan, seen = small(), trainings(monkeypatch)
    answers = {"a": torch.zeros(500, dtype=torch.long), "b": (torch.arange(500) >= 250).long()}
    monkeypatch.setattr(fedkt, "_answers", lambda task, objective, params, samples: answers[params])
    plan.method.aggregate(plan.task, plan.method.init(plan.task, 0), [report(0, ["a", "b"])])
    assert len(seen[-1][1]) == 250


def test_it_learns(tmp_path: Path) -> None:
    """Three parties with all classes, 100 of each class: far above chance (10 %)."""
    training = {
        "local": {"epochs": 30, "batch": 16},
        "student": {"epochs": 30, "batch": 16},
        "teachers": 2,
    }
    plan = plan_of("fedkt", public="half-test", train_per_class=100, partition="iid", set=training)
    state = final_state(plan, tmp_path / "run")
    closed = plan.method.predictor(plan.task, state).scores(plan.test.samples.stored()).closed
    accuracy = (closed == plan.test.samples.labels).float().mean().item()
    assert accuracy > 0.6


def test_public_samples_are_needed() -> None:
    with pytest.raises(NeedError, match="public"):
        plan_of("fedkt")


def test_students_serve_every_count_of_votes_and_only_these_public_samples() -> None:
    """Nothing is sent: which samples the teachers voted on must be in the key, or students of
    others would be taken.
    """
    plan = small()
    public = plan.task.commons.public
    assert public is not None
    other = replace(
        plan.task, commons=replace(plan.task.commons, public=public.take(torch.arange(9)))
    )
    key = plan.method.work_key(plan.task)
    assert replace(plan.method, consistent=False).work_key(plan.task) == key
    assert replace(plan.method, teachers=3).work_key(plan.task) != key
    assert plan.method.work_key(other) != key
    assert plan.method.message(plan.method.init(plan.task, 0), plan.parties[0].ref) is None


def test_settings_are_checked_and_the_servers_are_marked() -> None:
    for wrong in ({"partitions": 0}, {"teachers": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            FedKT(**wrong)  # type: ignore[arg-type]
    with pytest.raises(OstrakaError, match="no student arrived"):
        FedKT().aggregate(small().task, FedKT().init(small().task, 0), [])
