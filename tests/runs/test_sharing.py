"""Which runs of a grid take each other's reports: those whose methods say so,
and nobody who inherits that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.method import Memory, Report, Round
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.engines.base import Outcome
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.panel import PanelMethod
from ostraka.registry import METHODS
from ostraka.runs import config
from ostraka.runs.loop import execute, shared_work
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch
from ostraka.voting.ballots import Sum
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel


@dataclass(frozen=True)
class OtherCards(ClosedVoting):  # type: ignore[misc]  # the class is final: Python lets somebody do it all the same
    """Another card, which the training does not show."""

    def local_update(self, rnd: Round[Any], party: Party, memory: Memory) -> Report[Any]:
        report = super().local_update(rnd, party, memory)
        return replace(report, card=replace(report.card, name="somebody else"))


@dataclass(frozen=True)
class OtherTraining(ClosedVoting):  # type: ignore[misc]
    """Parties that do something else."""

    def local_update(self, rnd: Round[Any], party: Party, memory: Memory) -> Report[Any]:
        return super().local_update(replace(rnd, seed=rnd.seed + 1), party, memory)


@dataclass(frozen=True)
class Silent(PanelMethod):
    """A panel that says nothing of its parties' work."""

    def predictor(self, task: Task, state: Panel) -> Predictor:
        return Ensemble.of(self.members(task, state), Sum())


@dataclass(frozen=True)
class OwnKey(OtherCards):
    """One that says what its parties do, for itself."""

    def work_key(self, task: Task) -> Any:
        return {"work": "other cards", "settings": self.party_settings()}


@dataclass(frozen=True)
class Greeted(OtherTraining):
    """Parties get a word of the server, which is no setting of theirs."""

    word: float = setting(0.0, "what is sent", server=True)

    def message(self, state: Panel, party: PartyRef) -> Any:
        return {"word": torch.tensor(self.word)}

    def local_update(self, rnd: Round[Any], party: Party, memory: Memory) -> Report[Any]:
        return super().local_update(replace(rnd, message={}), party, memory)

    def work_key(self, task: Task) -> Any:
        return {"work": "greeted", "settings": self.party_settings()}


CLASSES = {
    "greeted": Greeted,
    "other-cards": OtherCards,
    "other-training": OtherTraining,
    "silent": Silent,
    "own-key": OwnKey,
}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for name, cls in CLASSES.items():
        METHODS.add(name)(cls)
    yield
    for name in CLASSES:
        METHODS.remove(name)


def plan_of(method: str, **values: Any) -> Plan:
    small = {
        "data": "digits",
        "train_per_class": 6,
        "partition": "iid",
        "parties": 3,
        "engine": "serial",
    }
    return make_plan(
        config.make({**small, "method": method, "set": {"local": {"epochs": 1}}, **values})
    )


def trained(plan: Plan, out: Path) -> int:
    """How many parties had to train, the shelf being beside the run."""

    class Counter(Watch):
        count = 0

        def party_ends(self, outcome: Outcome) -> None:
            self.count += 1

    counter = Counter()
    summary = execute(plan, RunDir(out), counter, shelf=out.parent / "shelf")
    assert summary.reused == len(plan.parties) - counter.count
    return counter.count


@pytest.mark.parametrize("other", ["other-cards", "other-training", "silent"])
def test_a_subclass_shares_nothing_unless_it_says_so(other: str, tmp_path: Path) -> None:
    """Neither what its base has trained, nor what an equal run of itself has."""
    assert trained(plan_of("closed-voting"), tmp_path / "base") == 3
    assert trained(plan_of(other), tmp_path / "first") == 3
    assert trained(plan_of(other), tmp_path / "second") == 3
    assert shared_work(plan_of(other)) is None
    assert trained(plan_of("solo"), tmp_path / "solo") == 0


def test_a_key_of_its_own_is_shared_under_that_key(tmp_path: Path) -> None:
    assert trained(plan_of("closed-voting"), tmp_path / "base") == 3
    assert trained(plan_of("own-key"), tmp_path / "first") == 3
    assert (
        trained(
            plan_of("own-key", set={"local": {"epochs": 1}, "ballot": "plurality"}),
            tmp_path / "second",
        )
        == 0
    )
    assert trained(plan_of("own-key", set={"local": {"epochs": 2}}), tmp_path / "longer") == 3


def test_another_message_or_seed_is_other_work(tmp_path: Path) -> None:
    """Also where the division, which has its own part in the key, does not depend on the seed."""
    told = {"local": {"epochs": 1}, "word": 2.0}
    assert trained(plan_of("greeted"), tmp_path / "one") == 3
    assert trained(plan_of("greeted"), tmp_path / "same") == 0
    assert trained(plan_of("greeted", set=told), tmp_path / "two") == 3
    plan = plan_of("solo")
    assert shared_work(replace(plan, config=replace(plan.config, seed=1))) != shared_work(plan)


def test_a_method_of_several_rounds_or_without_members_shares_nothing(tmp_path: Path) -> None:
    for name in ("fedavg", "feddf", "scaffold"):
        assert shared_work(plan_of(name, public="half-test")) is None
    once = {"rounds": 1, "local": {"epochs": 1}}
    for number in range(2):
        assert trained(plan_of("fedavg", set=once), tmp_path / str(number)) == 3


def test_another_version_trains_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trained(plan_of("solo"), tmp_path / "one") == 3
    monkeypatch.setattr("ostraka.runs.loop.__version__", "99.0")
    assert trained(plan_of("solo"), tmp_path / "two") == 3


def test_students_of_other_public_samples_are_not_taken(tmp_path: Path) -> None:
    """fedkt sends nothing to its parties; the samples that its teachers vote on are in the key."""
    quick = {"local": {"epochs": 1}, "student": {"epochs": 1}, "teachers": 2}
    assert trained(plan_of("fedkt", public="half-test", set=quick), tmp_path / "half") == 3
    assert trained(plan_of("fedkt", public="digits", set=quick), tmp_path / "digits") == 3
    counted = {**quick, "consistent": False}
    assert trained(plan_of("fedkt", public="half-test", set=counted), tmp_path / "counted") == 0


def test_members_are_shared_with_and_without_public_samples(tmp_path: Path) -> None:
    """Their training does not look at these; only the server's student does."""
    assert trained(plan_of("fedov"), tmp_path / "plain") == 3
    quick = {"local": {"epochs": 1}, "distil": {"epochs": 1}}
    assert trained(plan_of("fedov", public="half-test", set=quick), tmp_path / "distilled") == 0
