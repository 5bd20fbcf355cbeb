"""Every registered method and preset keeps the contract.

A method broken in one way fails that check and no other.
"""

from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from ostraka.core import settings
from ostraka.core.fit import Budget
from ostraka.core.method import Method, Needs
from ostraka.core.net import Recipe
from ostraka.core.task import Task
from ostraka.registry import METHODS, PRESETS
from ostraka.testing import ContractBroken, check_strange_reports, methods
from tests.contract import broken_methods as toys

AnyMethod = Method[Any, Any, Any]


def brief(method: AnyMethod) -> AnyMethod:
    """The method with two epochs of local training: enough to be interrupted in, and quick."""
    budgets = {
        f.name: getattr(method, f.name)
        for f in fields(method)
        if isinstance(getattr(method, f.name), Budget)
    }
    return replace(method, **{name: budget.changed(epochs=2) for name, budget in budgets.items()})


@pytest.mark.parametrize("name", METHODS.names())
def test_every_method_keeps_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ONE_CLASS_EACH:
        monkeypatch.setattr(methods, "make_stage", one_class_each)
    methods.check_method(brief(METHODS.get(name)()))


@pytest.mark.parametrize("name", METHODS.names())
def test_every_method_refuses_strange_reports(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ONE_CLASS_EACH:
        monkeypatch.setattr(methods, "make_stage", one_class_each)
    check_strange_reports(methods.outfitted(brief(METHODS.get(name)())))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (toys.Sound(), "where the payload is None; it raised AttributeError"),
        (toys.Heavy(), "its weight is 1000; it must be at most"),
        (toys.TakesAnyPrecision(), r"has another precision; the state's value\.\S+ became .*64"),
    ],
)
def test_a_method_that_takes_strange_reports_is_found(method: AnyMethod, words: str) -> None:
    with pytest.raises(ContractBroken, match=words):
        check_strange_reports(method)


ONE_CLASS_EACH = {"fedaws"}
"""Methods that refuse a party of two classes, as the usual federation of the check has them."""
usual_stage = methods.make_stage


def one_class_each(*args: Any, **options: Any) -> Any:
    """The usual federation with every party's samples under one label: its own number."""
    stage = usual_stage(*args, **options)
    samples = stage.parties.samples
    owner = torch.bucketize(
        torch.arange(len(samples.x)), torch.tensor(stage.parties.ends), right=True
    )
    labels = torch.where(owner < len(stage.parties), owner % len(stage.task.classes), samples.y)
    return replace(stage, parties=replace(stage.parties, samples=replace(samples, y=labels)))


@pytest.mark.parametrize("name", PRESETS.names())
def test_every_preset_keeps_the_contract(name: str) -> None:
    preset = PRESETS.get(name)
    method = brief(settings.build(METHODS.get(preset.method), preset.settings))
    for check in methods.CHECKS:
        if check is not methods.check_pool:  # slow to start; the preset's method passes it above
            check(method, None)


def test_a_sound_toy_passes() -> None:
    methods.check_method(toys.Sound())


@pytest.mark.parametrize(
    "method", [toys.OneRound(), toys.TwoFitsTwoNames(), toys.SeededNoise(), toys.KeyOfSettings()]
)
def test_what_looks_odd_but_is_sound_passes(method: AnyMethod) -> None:
    # the pool is slow to start, and nothing here depends on the process
    for check in methods.CHECKS[:-1]:
        check(method, None)


BROKEN = {
    toys.ObjectiveWithoutRegistry(): (methods.check_settings, "registry"),
    toys.ForgetsSettings(scale=2.0): (methods.check_picklable, "scale=2.0"),
    toys.KeyOfTensors(): (methods.check_work_key, "a digest is of plain values"),
    toys.KeyOfTheMoment(): (methods.check_work_key, "an equal method has another key"),
    toys.KeyWithoutSettings(): (methods.check_work_key, "one more epoch does not change it"),
    toys.NamedTuplePayload(): (methods.check_codec, "payload"),
    toys.ChangesMessage(): (methods.check_unchanged, "copy of the message"),
    toys.ChangesMemory(): (methods.check_unchanged, "copy of the memory"),
    toys.ChangesData(): (methods.check_unchanged, "copy of the samples"),
    toys.InfiniteScores(): (methods.check_scores, "finite"),
    toys.ScoresByPlace(): (methods.check_scores, "in another order"),
    toys.ScoresByBatch(): (methods.check_scores, "without the second half"),
    toys.NeedsTwoClasses(): (methods.check_one_class, "one class only"),
    toys.NeedsFullBatches(): (methods.check_one_sample_batch, "holds one sample"),
    toys.NeedsEveryParty(): (methods.check_dropped_party, "drops out"),
    toys.NeedsMemory(): (methods.check_dropped_party, "empty memory"),
    toys.NoProgressGiven(): (methods.check_interrupted_fit, "progress=party.progress"),
    toys.OwnLoop(): (methods.check_interrupted_fit, "progress=party.progress"),
    toys.TwoFitsOneName(): (methods.check_interrupted_fit, "its own name"),
    toys.GlobalRandomness(): (methods.check_same_seed, "rnd.seed"),
    toys.CountsOnSelf(): (methods.check_resume, "nothing on self"),
    toys.KnowsItsProcess(): (methods.check_pool, "process"),
}

ALSO = {
    # infinite scores are looked for wherever a predictor is asked
    toys.InfiniteScores: {"check_one_class", "check_one_sample_batch", "check_dropped_party"},
}


@pytest.mark.parametrize("method", BROKEN, ids=lambda m: type(m).__name__)
def test_a_broken_toy_fails_its_check_and_no_other(method: AnyMethod) -> None:
    check, words = BROKEN[method]
    with pytest.raises(ContractBroken, match=words) as caught:
        check(method, None)
    assert str(caught.value).startswith(type(method).__name__)
    assert "What to do" in str(caught.value)
    for other in methods.CHECKS:
        slow_and_sure = other is methods.check_pool and check is not methods.check_pool
        if (
            other is not check
            and other.__name__ not in ALSO.get(type(method), set())
            and not slow_and_sure
        ):
            other(method, None)


def test_each_check_has_a_toy_that_fails_it() -> None:
    assert {check for check, _ in BROKEN.values()} == set(methods.CHECKS)


def test_check_method_runs_all_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, Any, Any]] = []
    recorders = [
        lambda method, task, i=i: seen.append((i, method, task)) for i in range(len(methods.CHECKS))
    ]
    monkeypatch.setattr(methods, "CHECKS", recorders)
    task = Task(("ant",), (2,), Recipe("mlp"))
    methods.check_method(toys.Sound(), task)
    assert seen == [(i, toys.Sound(), task) for i in range(len(recorders))]


def test_another_task_can_be_given() -> None:
    """A network with batch norm: the one-sample batch is then a real
    obstacle, which `fit` takes away.
    """
    task = Task(("ant", "bee"), (1, 28, 28), Recipe("lenet5", {"norm": "batch"}))
    method = toys.Sound(local=Budget(epochs=1, batch=16))
    for check in (
        methods.check_one_sample_batch,
        methods.check_interrupted_fit,
        methods.check_codec,
    ):
        check(method, task)


def test_needs_are_met() -> None:
    """Public and shared samples and a prior are made up."""
    task = methods.make_stage(_Needy(), None).task
    assert task.commons.public is not None
    assert task.commons.public.y is None
    assert task.commons.shared is not None
    assert task.commons.prior is not None
    assert float(task.commons.prior.sum()) == pytest.approx(1.0)


class _Needy(toys.Sound):
    needs = Needs(public=True, shared=True, prior=True)
