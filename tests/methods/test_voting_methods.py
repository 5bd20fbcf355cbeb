"""Closed voting and solo: votes by hand, and their limit cases."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.learner import NetPredictor, load_predictor
from ostraka.core.net import Net
from ostraka.core.predictor import UNKNOWN, closed_scores
from ostraka.errors import OstrakaError
from ostraka.evaluation.evaluate import evaluate
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.store import codec
from ostraka.voting.ballots import Sum
from ostraka.voting.ensemble import Ensemble, Voter
from ostraka.voting.panel import Panel
from ostraka.voting.union import Standing


class Given(Net):
    """Its logits are part `place` of the input [B, members, outputs]."""

    def __init__(self, place: int, classes: int, unknown: bool) -> None:
        super().__init__(classes, unknown)
        self.place = place

    def early(self, x: Tensor) -> Tensor:
        return x[:, self.place]

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        return embedding


def vote(shares: list[list[list[float]]], classes: int, unknown: bool) -> Any:
    """The summed vote of members with these probabilities [sample][member][output]."""
    x = torch.tensor(shares).log()
    voters = [NetPredictor(Given(m, classes, unknown), CrossEntropy()) for m in range(x.shape[1])]
    names = tuple(map(str, range(classes)))
    standing = Standing.of(names, names)
    seats = [Voter(voter, Card(m, 1), standing) for m, voter in enumerate(voters)]
    return Ensemble(seats, names, Sum()).scores(x)


def test_a_closed_vote_by_hand() -> None:
    """Sums of probabilities: (0.6 + 0.1, 0.3 + 0.5, 0.1 + 0.4) = (0.7, 0.8, 0.5):
    class 1, though member 0 says 0.

    No member can answer unknown, so the vote never does;
    its unknown score is minus the winner's mean share.
    """
    scores = vote([[[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]]], classes=3, unknown=False)
    assert scores.known[0].tolist() == pytest.approx([0.7, 0.8, 0.5])
    assert scores.open.tolist() == scores.closed.tolist() == [1]
    assert scores.unknown.tolist() == pytest.approx([-0.4])


def test_an_open_vote_by_hand() -> None:
    """Outputs (a, b, unknown).

    Sample 0: one member is unsure (0.9), the other is not: (0.65, 0.15), doubt 0.3: a. Sample 1:
    all are unsure, the least unsure by 0.6: unknown.
    """
    scores = vote(
        [[[0.6, 0.1, 0.3], [0.05, 0.05, 0.9]], [[0.1, 0.3, 0.6], [0.1, 0.1, 0.8]]],
        classes=2,
        unknown=True,
    )
    assert scores.known[0].tolist() == pytest.approx([0.65, 0.15])
    assert scores.unknown.tolist() == pytest.approx([0.3, 0.6])
    assert scores.closed.tolist() == [0, 1]
    assert scores.open.tolist() == [0, UNKNOWN]


def plan_of(method: str, parties: int, **values: Any) -> Plan:
    base = {
        "train_per_class": 12,
        "partition": "labels:2",
        "engine": "serial",
        "net": {"name": "mlp"},
    }
    settings = {"local": {"epochs": 5}, **values.pop("set", {})}
    return make_plan(
        config.make({"method": method, "parties": parties, "set": settings, **base, **values})
    )


def test_a_vote_of_one_is_its_member(tmp_path: Path) -> None:
    """The ensemble's known scores are the member's probabilities;
    answers and accuracy are the same.
    """
    plan = plan_of("closed-voting", 1, partition="iid")
    summary = execute(plan, RunDir(tmp_path / "run"))
    panel = load_state(tmp_path / "run")[1]
    assert len(panel.members) == 1
    member = load_predictor(plan.task, CrossEntropy(), panel.members[0].params)
    x = plan.test.samples.stored(slice(0, 100))
    voted, alone = plan.method.predictor(plan.task, panel).scores(x), member.scores(x)
    assert torch.allclose(voted.known, alone.known.softmax(dim=1))
    assert torch.equal(voted.closed, alone.closed)
    assert torch.allclose(voted.unknown, closed_scores(alone.known).unknown)
    assert summary.accuracy == evaluate(member, plan.test.samples, plan.task.classes).accuracy


def test_members_are_the_same_for_voting_and_solo(tmp_path: Path) -> None:
    """What parties train does not depend on how it is used."""
    panels = []
    for method in ("closed-voting", "solo"):
        execute(plan_of(method, 5), RunDir(tmp_path / method))
        panels.append(load_state(tmp_path / method)[1])
    assert [codec.encode(m.params) for m in panels[0].members] == [
        codec.encode(m.params) for m in panels[1].members
    ]
    assert [m.card.party for m in panels[0].members] == [0, 1, 2, 3, 4]


def test_solo_is_the_mean_of_its_members(tmp_path: Path) -> None:
    """Every member's accuracy on the whole test set, measured by itself, and their mean."""
    plan = plan_of("solo", 5)
    summary = execute(plan, RunDir(tmp_path / "run"))
    panel = load_state(tmp_path / "run")[1]
    alone = [
        evaluate(
            load_predictor(plan.task, CrossEntropy(), m.params),
            plan.test.samples,
            plan.task.classes,
        ).accuracy
        for m in panel.members
    ]
    assert summary.accuracy == pytest.approx(fmean(alone))
    assert list(summary.per_part.values()) == alone
    assert (summary.bytes_up, summary.bytes_down) == (0, 0)


def test_own_and_shared_starts(tmp_path: Path) -> None:
    """Without a step, members are their first weights: all different,
    or all the same as FedAvg's first model.
    """
    for start, kinds in (("own", 3), ("shared", 1)):
        plan = plan_of(
            "closed-voting", 3, partition="iid", set={"start": start, "local": {"steps": 0}}
        )
        execute(plan, RunDir(tmp_path / start))
        members = load_state(tmp_path / start)[1].members
        assert len({codec.encode(m.params) for m in members}) == kinds


def test_cards_tell_size_and_counts(tmp_path: Path) -> None:
    plan = plan_of("closed-voting", 5)
    execute(plan, RunDir(tmp_path / "run"))
    for member, row in zip(load_state(tmp_path / "run")[1].members, plan.counts, strict=True):
        assert member.card.counts == tuple(row.tolist())
        assert member.card.size == sum(member.card.counts)


def test_a_vote_needs_members() -> None:
    task = plan_of("solo", 1, partition="iid").task
    with pytest.raises(OstrakaError, match="no member arrived"):
        ClosedVoting().aggregate(task, Panel(), [])
