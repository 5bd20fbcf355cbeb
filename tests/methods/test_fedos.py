"""FedOS: the contract with fresh samples, its limits, its memory, and what the generator costs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.equip import equipped, generator_of
from ostraka.core.fit import Budget, RoundBudget
from ostraka.core.method import Round
from ostraka.core.net import Recipe
from ostraka.core.task import Task
from ostraka.errors import ConfigError, DataError, NeedError
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedos import FedOS
from ostraka.methods.fedov import FedOV
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.fedos import UnknownClass
from ostraka.objectives.open_voting import OpenVoting
from ostraka.runs import config
from ostraka.runs.generator import load_generator
from ostraka.runs.loop import execute, generator_size
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.store.codec import size_of
from ostraka.store.generator import save_generator
from ostraka.testing import check_method
from ostraka.testing.stage import make_stage, outfitted, untrained_generator
from tests.methods.toy_line import final_state, plan_of

BRIEF = RoundBudget(epochs=2, batch=16)
SMALL: dict[str, Any] = {"rounds": 2, "local": {"epochs": 1, "batch": 16}}


def test_contract_with_fresh_samples_and_batch_norm() -> None:
    task = Task(("a", "b", "c"), (1, 28, 28), Recipe("lenet5", {"norm": "batch"}))
    objective = UnknownClass(draw="epoch", terms="weighted-mean")
    check_method(FedOS(objective=objective, local=RoundBudget(epochs=2, batch=16)), task)


def test_a_vote_with_generated_outliers_keeps_the_contract() -> None:
    objective = OpenVoting(outliers="generator", steps=1)
    check_method(FedOV(objective=objective, local=Budget(epochs=1, batch=16)))


def test_without_generated_samples_it_is_fedavg_with_an_unused_output(tmp_path: Path) -> None:
    """F_U = 0: cross-entropy over K + 1 outputs, as FedAvg with the same objective."""
    none = {"name": "fedos", "f_unknown": 0.0}
    own = final_state(plan_of("fedos", set={**SMALL, "objective": none}), tmp_path / "a")
    other = final_state(plan_of("fedavg", set={**SMALL, "objective": none}), tmp_path / "b")
    assert all(torch.equal(own[name], other[name]) for name in own)
    some = final_state(plan_of("fedos", set=SMALL), tmp_path / "c")
    assert any(not torch.equal(own[name], some[name]) for name in own)


def test_a_party_keeps_the_seed_of_its_samples_and_weighs_its_own_alone() -> None:
    method = outfitted(FedOS(local=BRIEF))
    stage = make_stage(method, None)
    state, party = method.init(stage.task, 0), stage.parties[0]
    first = method.local_update(Round(stage.task, 1, state, 11), party, {})
    assert first.memory == {"drawn": 11}
    assert first.weight == len(party.samples) == first.card.size
    later = method.local_update(Round(stage.task, 2, state, 12), party, first.memory)
    assert later.memory == {"drawn": 11}
    anew = replace(method, objective=replace(method.objective, draw="epoch"))
    anew = equipped(anew, untrained_generator())
    assert anew.local_update(Round(stage.task, 1, state, 11), party, {}).memory == {}


def test_the_kept_seed_decides_what_is_learnt() -> None:
    method = outfitted(FedOS(local=BRIEF))
    stage = make_stage(method, None)
    state, party = method.init(stage.task, 0), stage.parties[0]
    models = [
        method.local_update(Round(stage.task, 2, state, 12), party, memory).payload
        for memory in ({}, {"drawn": 12}, {"drawn": 11})
    ]
    name = next(iter(state))
    assert torch.equal(models[0][name], models[1][name])
    assert not torch.equal(models[0][name], models[2][name])


def test_the_generator_is_sent_once_to_each_party_that_takes_part(tmp_path: Path) -> None:
    """Half of four parties in a round: its bytes come with the first round of each."""
    sets = {"rounds": 4, "fraction": 0.5, "local": {"epochs": 1}}
    plan = plan_of("fedos", partition="iid", parties=4, set=sets)
    assert generator_size(plan) == size_of(load_generator().params)
    without = {**sets, "objective": {"name": "fedos", "f_unknown": 0.0}}
    bare = plan_of("fedos", partition="iid", parties=4, set=without)
    assert generator_size(bare) == 0
    homes = RunDir(tmp_path / "a"), RunDir(tmp_path / "b")
    execute(plan, homes[0])
    execute(bare, homes[1])
    rows = [home.read_metrics() for home in homes]
    met, count = set[int](), list[int]()
    for index in range(1, 5):
        met |= {ref.id for ref in plan.method.draw(plan.parties.roster(), index, 0)}
        count.append(len(met))
    assert count[0] == 2 < count[-1]
    extra = [ours.bytes_down - theirs.bytes_down for ours, theirs in zip(*rows, strict=True)]  # type: ignore[operator]
    assert extra == [n * generator_size(plan) for n in count]


def test_a_changed_generator_is_noticed_on_resume(tmp_path: Path) -> None:
    path = tmp_path / "g.safetensors"
    save_generator(path, replace(untrained_generator(), low=0.0))
    values = {"objective": {"generator": str(path)}, **SMALL}
    home = RunDir(tmp_path / "run")
    plan = plan_of("fedos", set=values)
    home.begin(plan.config, plan.marks, resume=False)
    home.begin(plan.config, plan_of("fedos", set=values).marks, resume=True)
    other = {name: tensor + 1 for name, tensor in untrained_generator().params.items()}
    save_generator(path, replace(untrained_generator(), params=other))
    changed = plan_of("fedos", set=values)
    assert changed.fingerprint != plan.fingerprint
    with pytest.raises(DataError, match="the generator is not the one"):
        home.begin(changed.config, changed.marks, resume=True)


def test_what_does_not_fit_is_said_before_anything_trains() -> None:
    with pytest.raises(ConfigError, match="fedos adds generated samples"):
        FedOS(objective=CrossEntropy())
    assert generator_of(FedAvg()) == ""
    assert generator_of(FedOS()) == "auto"
    with pytest.raises(NeedError, match="generated, and of no known class"):
        plan_of("fedavg", public="generator", rate_from="public")


def test_public_samples_of_a_generator() -> None:
    """Stored as the data's own; the test set stays whole; a changed file would be noticed."""
    plan = plan_of("fedavg", data="digits", public="generator")
    public = plan.task.commons.public
    assert public is not None
    assert public.y is None
    assert (len(public), public.shape, public.x.dtype) == (5000, (1, 8, 8), torch.uint8)
    assert int(public.x.max()) <= 16
    assert len(plan.test) == 355
    assert plan.marks["generator"].strip() == load_generator().sha256
    assert list(plan.prints) == ["digits"]


def test_another_augmentation_or_none() -> None:
    """The data's own is left alone unless the run says otherwise."""
    views = [
        make_plan(config.make({"data": "digits", **given})).parties.samples.view.augment
        for given in ({}, {"augment": "pad-crop-flip"}, {"augment": "none"})
    ]
    assert views == ["none", "pad-crop-flip", "none"]
    with pytest.raises(ConfigError, match="pad-crop"):
        make_plan(config.make({"data": "digits", "augment": "pad-crop"}))
