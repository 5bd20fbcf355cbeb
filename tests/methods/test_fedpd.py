"""FedPD: stages, masks, one round by hand, limit cases, baselines under the same schedule."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.alignment.match import hidden_groups, matched_average, move
from ostraka.alignment.transport import Exact
from ostraka.core.card import Card
from ostraka.core.fit import RoundBudget, fit
from ostraka.core.learner import build_net
from ostraka.core.method import Report, Round
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.party import Party, PartyRef
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.task import Task
from ostraka.errors import ConfigError, OstrakaError
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.fedpd import Conquered, Disentangled, FedPD
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.proser import Proser
from ostraka.registry import PRESETS
from ostraka.runs.config import build_method, make
from ostraka.store import codec
from ostraka.testing import methods as contract
from tests.methods.toy_line import final_state, plan_of

TASK = Task(("ant", "bee", "cat"), (1, 8, 8), Recipe("digits", {"width": 0.05}))
QUICK = RoundBudget(epochs=1, batch=8, lr=0.05, weight_decay=5e-4)


def party_of(number: int, size: int = 24) -> Party:
    rng = torch_rng(number, "party")
    y = torch.arange(size) % 3
    x = torch.randn(size, 1, 8, 8, generator=rng) + y[:, None, None, None]
    return Party(PartyRef(number, size), Samples(x, y))


def report_of(method: FedPD, number: int, state: Conquered, index: int = 1) -> Report[Disentangled]:
    party = party_of(number)
    return method.local_update(
        Round(TASK, index, method.message(state, party.ref), seed=number), party, {}
    )


def full_masks(params: Params, code: int = 3) -> Params:
    return {x.weight: torch.full(params[x.weight].shape, code, dtype=torch.uint8) for x in layers()}


def layers() -> Any:
    return build_net(TASK, Proser()).anatomy()


def strangers(count: int) -> list[Params]:
    return [params_of(build_net(TASK, Proser(), seed)) for seed in range(count)]


def reports_of(
    models: list[Params], masks: list[Params], sizes: tuple[int, ...] = (5, 50, 500)
) -> Any:
    kept = zip(models, masks, sizes, strict=False)
    return [Report(Disentangled(m, c), float(n), Card(k, n)) for k, (m, c, n) in enumerate(kept)]


@pytest.mark.parametrize(
    "check",
    [
        contract.check_one_sample_batch,
        contract.check_one_class,
        contract.check_resume,
        contract.check_scores,
    ],
)
def test_the_contract_holds_with_batch_norm(check: Any) -> None:
    check(FedPD(local=QUICK), TASK)


@pytest.mark.parametrize(
    ("rounds", "epochs", "expected"),
    [
        (4, 1, ["closed 1", "closed 1", "open 1", "open 1"]),
        (3, 1, ["closed 1", "closed 1", "open 1"]),
        (3, 2, ["closed 2", "closed 1, open 1", "open 2"]),
        (1, 4, ["closed 2, open 2"]),
        (1, 1, ["closed 1"]),
    ],
)
def test_cross_entropy_for_the_first_half_of_all_epochs(
    rounds: int, epochs: int, expected: list[str]
) -> None:
    method = FedPD(rounds=rounds, local=replace(QUICK, epochs=epochs), open_lr=0.007)
    found = [list(method.phases(index)) for index in range(1, rounds + 1)]
    assert [
        ", ".join(f"{name} {budget.epochs}" for name, _, budget in phases) for phases in found
    ] == expected
    for name, objective, budget in (phase for phases in found for phase in phases):
        assert objective == (Proser(0.0, 0.0) if name == "closed" else Proser())
        assert budget.lr == (0.05 if name == "closed" else 0.007)
        assert (budget.momentum, budget.weight_decay, budget.batch) == (0.9, 5e-4, 8)


def test_steps_are_halved_like_epochs_and_joint_training_has_one_stage() -> None:
    [(_, _, one), (_, _, two)] = FedPD(rounds=1, local=replace(QUICK, steps=9)).phases(1)
    assert (one.steps, two.steps) == (5, 4)
    method = FedPD(local=QUICK, stages="joint", open_weight=0.5, rounds=4)
    assert list(method.phases(1)) == [("joint", Proser(0.5, 0.005), QUICK)]


def test_the_recipe_digits_is_the_papers() -> None:
    method = build_method(make({"method": "fedpd", "set": {"recipe": "digits", "rounds": 100}}))
    local = method.local
    assert (local.lr, method.open_lr, local.momentum, local.weight_decay) == (1e-2, 1e-4, 0.9, 5e-4)
    assert (local.batch, local.epochs, local.optimiser, method.ratio) == (32, 1, "sgd", 0.5)
    assert (method.stages, method.remainder, method.per) == ("two", "shared", "layer")
    cifar = build_method(make({"method": "fedpd", "set": {"recipe": "cifar", "rounds": 50}}))
    assert (cifar.local.optimiser, cifar.local.lr, cifar.local.batch, cifar.local.epochs) == (
        "sgd",
        0.1,
        128,
        5,
    )
    assert (cifar.open_lr, cifar.local.weight_decay) == (1e-3, 5e-4)
    printed = build_method(make({"method": "fedpd", "set": {"recipe": "cifar-adam", "rounds": 50}}))
    assert printed == replace(cifar, local=replace(cifar.local, optimiser="adam"))


def test_a_round_in_which_both_stages_meet_trains_both() -> None:
    """The same as the two trainings by hand, the second from the first's
    result and with draws of its own.
    """
    method = FedPD(rounds=1, local=replace(QUICK, epochs=2), open_lr=0.02, merge="average")
    state, samples = method.init(TASK, 0), party_of(1).samples
    got = report_of(method, 1, state).payload.params
    net = build_net(TASK, Proser())
    first = fit(net, state.params, samples, Proser(0.0, 0.0), QUICK, 1).params
    second = fit(net, first, samples, Proser(), replace(QUICK, lr=0.02), derive(1, "open")).params
    assert all(torch.equal(got[name], tensor) for name, tensor in second.items())


def test_the_first_stage_does_not_mix_and_the_second_raises_the_unknown_output() -> None:
    """Cross-entropy pushes the unknown output down on every sample.

    The open stage brings it back to second place.
    """
    method = FedPD(local=replace(QUICK, epochs=20), open_lr=0.05, merge="average", rounds=2)
    closed = report_of(method, 1, method.init(TASK, 0), 1).payload.params
    opened = report_of(method, 1, Conquered(closed), 2).payload.params
    x = party_of(1).samples.x
    gaps = [
        method.predictor(TASK, Conquered(p)).scores(x).logits().softmax(1)[:, -1].mean()
        for p in (closed, opened)
    ]
    assert gaps[0] < gaps[1]


def test_masks_are_one_byte_for_each_weight_and_half_of_each_layer() -> None:
    method = FedPD(local=QUICK)
    sent = report_of(method, 0, method.init(TASK, 0)).payload
    assert set(sent.masks) == {layer.weight for layer in layers()}
    for name, mask in sent.masks.items():
        assert mask.dtype == torch.uint8
        assert mask.shape == sent.params[name].shape
        for bit in (1, 2):
            share = float(mask.bitwise_and(bit).ne(0).float().mean())
            # the third convolution sees 2x2 places: 16 of its 25 taps meet
            # only padding and so are in no mask
            assert (
                0 < share < 0.37
                if name == "conv3.weight"
                else share == pytest.approx(0.5, abs=0.02)
            ), name
    counted = len(codec.encode(sent)) - len(codec.encode(Disentangled(sent.params)))
    assert counted >= sum(mask.numel() for mask in sent.masks.values())
    assert report_of(replace(method, merge="average"), 0, method.init(TASK, 0)).payload.masks == {}


def test_settings_of_the_masks_matter() -> None:
    method = FedPD(local=replace(QUICK, epochs=2), rounds=1)
    state = method.init(TASK, 0)
    usual = report_of(method, 0, state).payload
    for change in (
        {"importance": "gradient"},
        {"mask_from": "last-batch"},
        {"ratio": 0.1},
        {"per": "network"},
    ):
        other = report_of(replace(method, **change), 0, state).payload
        assert all(torch.equal(other.params[name], usual.params[name]) for name in usual.params)
        assert any(not torch.equal(other.masks[name], usual.masks[name]) for name in usual.masks), (
            change
        )
    few = report_of(replace(method, ratio=0.1), 0, state).payload.masks
    assert all(float(m.bitwise_and(1).ne(0).float().mean()) < 0.2 for m in few.values())


def test_identical_parties_give_that_party() -> None:
    method = FedPD()
    [model] = strangers(1)
    masks = {name: torch.randint_like(mask, 0, 4) for name, mask in full_masks(model).items()}
    found = method.aggregate(TASK, Conquered({}), reports_of([model] * 3, [masks] * 3)).params
    assert all(torch.equal(found[name], tensor) for name, tensor in model.items())


def test_one_map_with_full_masks_is_matched_averaging_whatever_the_sizes() -> None:
    models = strangers(3)
    reports = reports_of(models, [full_masks(m) for m in models])
    expected = matched_average(layers(), models, 0, Exact())
    for method in (FedPD(maps="one"), FedPD(), FedPD(merge="matched")):
        found = method.aggregate(TASK, Conquered({}), reports).params
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_without_conquering_it_is_fedavg_with_equal_weights() -> None:
    models = strangers(3)
    masks = [{n: torch.randint_like(c, 0, 4) for n, c in full_masks(m).items()} for m in models]
    reports = reports_of(models, masks)
    plain = [Report(r.payload.params, r.weight, r.card) for r in reports]
    expected = FedAvg(weights="uniform").aggregate(TASK, {}, plain)
    for method in (FedPD(conquer=False), FedPD(merge="average")):
        found = method.aggregate(TASK, Conquered({}), reports).params
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    dropped = FedPD(conquer=False, remainder="drop").aggregate(TASK, Conquered({}), reports).params
    assert not torch.allclose(dropped["fc1.weight"], expected["fc1.weight"])
    assert torch.equal(dropped["norm1.weight"], expected["norm1.weight"])


def test_a_permuted_copy_of_a_trained_model_comes_back_exactly() -> None:
    """Model and masks of one party in two orders: the result is the model. Left in their place
    (`remainder=average`), the weights in neither mask end at other units."""
    method = FedPD(rounds=1, local=replace(QUICK, epochs=5), open_lr=1e-4)
    state = method.init(TASK, 0)
    own = report_of(method, 0, state).payload
    rng, maps = torch_rng(0, "order"), {}
    for group in hidden_groups(layers()):
        size = next(len(own.params[x.weight]) for x in layers() if x.outputs == group)
        maps[group] = torch.randperm(size, generator=rng)
    copy = move(layers(), own.params, maps)
    codes = move(layers(), {**own.params, **own.masks}, maps)
    reports = reports_of([own.params, copy], [own.masks, {name: codes[name] for name in own.masks}])
    for how in (FedPD(), FedPD(maps="one"), FedPD(merge="matched")):
        found = how.aggregate(TASK, Conquered({}), reports).params
        assert all(torch.equal(found[name], tensor) for name, tensor in own.params.items()), how
    stays = FedPD(remainder="average").aggregate(TASK, Conquered({}), reports).params
    lost = (stays["fc1.weight"] - own.params["fc1.weight"]).norm()
    assert lost > 0.2 * own.params["fc1.weight"].norm()


def test_one_map_for_all_weights_is_matched_averaging_whatever_the_masks() -> None:
    """So is `fedpd-one-map`, now that nothing stays behind; from models of one order it is
    FedAvg."""
    models = strangers(3)
    masks = [{n: torch.randint_like(c, 0, 4) for n, c in full_masks(m).items()} for m in models]
    one = FedPD(maps="one").aggregate(TASK, Conquered({}), reports_of(models, masks)).params
    expected = matched_average(layers(), models, 0, Exact())
    assert all(torch.equal(one[name], tensor) for name, tensor in expected.items())
    stays = FedPD(maps="one", remainder="average")
    other = stays.aggregate(TASK, Conquered({}), reports_of(models, masks)).params
    assert not torch.allclose(other["fc1.weight"], expected["fc1.weight"])


def test_the_reference_is_the_named_party_or_the_first_that_reported() -> None:
    models = strangers(3)
    reports = reports_of(models, [full_masks(m) for m in models])
    named = FedPD(reference=2).aggregate(TASK, Conquered({}), reports).params
    expected = matched_average(layers(), models, 2, Exact())
    assert torch.equal(named["fc1.weight"], expected["fc1.weight"])
    absent = FedPD(reference=0).aggregate(TASK, Conquered({}), reports[1:]).params
    expected = matched_average(layers(), models[1:], 0, Exact())
    assert torch.equal(absent["fc1.weight"], expected["fc1.weight"])
    with pytest.raises(OstrakaError, match="no report"):
        FedPD().aggregate(TASK, Conquered({}), [])


def test_averaging_under_the_joint_schedule_is_fedavg_to_the_bit(tmp_path: Path) -> None:
    """The baseline differs from fedavg in its schedule alone."""
    local = {"epochs": 1, "batch": 8, "lr": 0.05, "weight_decay": 0.0005}
    ours = plan_of("fedavg-proser", set={"local": local, "stages": "joint", "rounds": 2})
    theirs = plan_of(
        "fedavg", set={"objective": "proser", "weights": "uniform", "local": local, "rounds": 2}
    )
    found, expected = final_state(ours, tmp_path / "a").params, final_state(theirs, tmp_path / "b")
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_the_record_of_the_last_masks_is_kept_and_not_sent() -> None:
    method = FedPD(local=QUICK)
    state = method.init(TASK, 0)
    after = method.aggregate(TASK, state, [report_of(method, k, state) for k in (0, 1)])
    assert after.masks is not None
    assert after.masks.parties == (0, 1)
    assert method.message(after, PartyRef(0, 1)) is after.params


def test_presets_are_the_papers_ablations() -> None:
    built = {
        name: build_method(make({"method": name}))
        for name in PRESETS.names()
        if PRESETS.get(name).method == "fedpd"
    }
    assert built["fedavg-proser"].merge == "average"
    assert built["fedpd-matched"].merge == "matched"
    assert (built["fedpd-no-divide"].divide, built["fedpd-no-divide"].conquer) == (False, True)
    assert (built["fedpd-no-conquer"].conquer, built["fedpd-no-conquer"].remainder) == (
        False,
        "drop",
    )
    assert built["fedpd-gradient"].importance == "gradient"
    assert built["fedpd-one-map"].maps == "one"
    assert built["fedpd-joint"].stages == "joint"
    assert built["fedpd-literal"].remainder == "drop"
    assert [built[f"fedpd-ratio-0.{t}"].ratio for t in (1, 2, 3, 4, 6, 7, 8, 9)] == [
        0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"objective": CrossEntropy()}, "only proser has"),
        ({"ratio": 0.0}, "'ratio' is 0.0; it must be above 0 and at most 1"),
        ({"ratio": 1.5}, "at most 1"),
        ({"open_lr": 0.0}, "'open_lr' is 0.0"),
        ({"local": replace(QUICK, late_rate=0.1)}, "late_rate is 0.1.*set open_lr"),
        ({"transport": "sinkhorn", "blur": 0.0}, "blur"),
    ],
)
def test_refusals_say_what_to_do(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        FedPD(**settings)


def test_it_learns_and_a_far_away_input_is_more_unknown() -> None:
    """Three rounds on three parties: known classes are told apart,
    and noise scores more unknown than samples.
    """
    method = FedPD(rounds=6, local=replace(QUICK, epochs=3), open_lr=0.02)
    state = method.init(TASK, 0)
    for index in range(1, 7):
        state = method.aggregate(
            TASK, state, [report_of(method, k, state, index) for k in range(3)]
        )
    test = party_of(9, 60).samples
    scores = method.predictor(TASK, state).scores(test.x)
    assert float((scores.closed == test.labels).float().mean()) > 0.9
    between = method.predictor(TASK, state).scores(
        test.x[:30] * 0 + 0.5 + 0.3 * torch.randn(30, 1, 8, 8)
    )
    assert float(between.unknown.mean()) > float(scores.unknown.mean())
