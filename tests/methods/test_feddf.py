"""FedDF: averaged logits by hand, early stopping, and its limit cases."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ostraka.core.fit import Student
from ostraka.core.learner import build_net
from ostraka.core.method import Round
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError, NeedError
from ostraka.methods.feddf import FedDF, mean_logits, outputs
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.store import codec
from tests.methods.toy_line import TASK, final_state, plan_of, report, weight

TRAINING: dict[str, Any] = {"local": {"epochs": 2, "batch": 16}}
PUBLIC = {"public": "half-test"}


def test_mean_logits_by_hand() -> None:
    """Weights 1 and 5 on x = 2: logits 2 and 10, mean 6."""
    samples = Samples(torch.tensor([[2.0]]))
    mean = mean_logits(
        TASK.build_net(unknown=False), CrossEntropy(), [weight(1.0), weight(5.0)], 2, samples
    )
    assert mean.tolist() == [[6.0]]


def test_without_a_student_it_is_fedavg(tmp_path: Path) -> None:
    feddf = final_state(
        plan_of("feddf", set={**TRAINING, "rounds": 2, "distil": {"epochs": 0}}), tmp_path / "a"
    )
    fedavg = final_state(plan_of("fedavg", set={**TRAINING, "rounds": 2}), tmp_path / "b")
    assert codec.encode(feddf.params) == codec.encode(fedavg)
    assert feddf.round == 2


@pytest.mark.parametrize("objective", ["cross-entropy", "rpl"])
def test_the_student_answers_more_like_the_parties_together_than_the_mean_does(
    objective: str,
) -> None:
    """RPL's answers do not come from the last layer: the student must learn the answers,
    not that layer's outputs.
    """
    settings = {"objective": objective, "local": {"epochs": 20, "lr": 0.05}}
    plan = plan_of("feddf", **PUBLIC, partition="labels:2", parties=10, set=settings)
    method, public = plan.method, plan.task.commons.public
    assert public is not None
    state = method.init(plan.task, 0)
    message = method.message(state, plan.parties[0].ref)
    reports = [method.local_update(Round(plan.task, 1, message, p.id), p, {}) for p in plan.parties]
    net = build_net(plan.task, method.objective)
    together = mean_logits(
        net, method.objective, [r.payload for r in reports], len(reports), public
    ).softmax(dim=1)

    def gap(params: Any) -> float:
        net.load_state_dict(params)
        answers = outputs(net, method.objective, public).log_softmax(dim=1)
        return F.kl_div(answers, together, reduction="batchmean").item()

    mean = method.mean(reports)
    fused = method.aggregate(plan.task, state, reports)
    assert gap(fused.params) < 0.5 * gap(mean)
    assert (fused.seed, fused.round) == (state.seed, 1)


def test_of_one_party_nothing_is_left_to_learn(tmp_path: Path) -> None:
    """Student and teacher are the same model: the divergence is 0 from
    the start, and the start is kept.
    """
    feddf = final_state(
        plan_of("feddf", parties=1, **PUBLIC, set={**TRAINING, "distil": {"epochs": 3}}),
        tmp_path / "a",
    )
    fedavg = final_state(plan_of("fedavg", parties=1, **PUBLIC, set=TRAINING), tmp_path / "b")
    assert all(torch.allclose(feddf.params[name], fedavg[name], atol=1e-4) for name in fedavg)


def test_a_student_that_no_longer_gains_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learning rate of almost 0 gains nothing that counts: the judge stops after `patience`
    epochs of a thousand.
    """
    plan = plan_of(
        "feddf", **PUBLIC, set={**TRAINING, "patience": 3, "distil": {"epochs": 1000, "lr": 1.0}}
    )
    asked: list[float] = []
    monkeypatch.setattr(
        "ostraka.methods.feddf._Judge._divergence",
        lambda self: asked.append(1.0) or float(min(len(asked), 4)),
    )
    reports = [report(i, plan.method.init(plan.task, i).params) for i in range(2)]
    start = plan.method.mean(reports)
    fused = plan.method.aggregate(plan.task, plan.method.init(plan.task, 0), reports)
    assert len(asked) == 1 + 3  # before training, and after each of three epochs that were worse
    assert codec.encode(fused.params) == codec.encode(start)


def test_rounds_differ_in_their_chance() -> None:
    """The same reports in two rounds: another order of the public samples, so another student."""
    plan = plan_of("feddf", **PUBLIC, set={**TRAINING, "distil": {"epochs": 1}})
    first = plan.method.init(plan.task, 0)
    reports = [report(i, plan.method.init(plan.task, i).params) for i in range(2)]
    one, again = (plan.method.aggregate(plan.task, state, reports) for state in (first, first))
    other = plan.method.aggregate(plan.task, replace(first, round=1), reports)
    assert codec.encode(one) == codec.encode(again)
    assert codec.encode(one.params) != codec.encode(other.params)


def test_what_it_needs_and_refuses() -> None:
    with pytest.raises(NeedError, match="public"):
        plan_of("feddf")
    with pytest.raises(ConfigError, match="patience"):
        FedDF(patience=0)
    with pytest.raises(ConfigError, match="held"):
        FedDF(held=1.0)
    assert not FedDF(distil=Student(epochs=0)).needs.public
