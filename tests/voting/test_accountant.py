"""How much noise a promise takes, by an independent reference; counts with noise."""

import sys
from dataclasses import replace
from math import comb, exp, log

import numpy as np
import pytest
import torch

from ostraka.core.fit import Budget
from ostraka.core.member import Model
from ostraka.core.net import Recipe
from ostraka.core.party import Party, PartyRef
from ostraka.core.private import Noise, Private, sampling
from ostraka.core.samples import Samples, View
from ostraka.core.task import Task
from ostraka.errors import ConfigError, NeedError
from ostraka.methods.average import Average
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedov import FedOV
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.objectives.rpl import RPL
from ostraka.runs.config import Config, build_method
from ostraka.store.member import decode_member, encode_member
from ostraka.testing import check_method
from ostraka.voting import accountant
from ostraka.voting.accountant import multiplier, noise_for, noisy_counts
from ostraka.voting.training import Terms, train_member

pytest.importorskip("opacus")
DP = Private(8.0, 1e-5)


def reference(sigma: float, rate: float, steps: int, delta: float) -> float:
    """Epsilon of the Poisson-subsampled Gaussian by its Renyi divergences of whole orders a
    (Mironov, Talwar & Zhang 2019, section 3.3): log sum_k C(a, k) (1-q)^(a-k) q^k
    exp(k (k-1) / (2 sigma^2)) / (a - 1), turned into epsilon by Balle et al. 2020, theorem 21."""
    best = float("inf")
    for order in range(2, 64):
        terms = [
            log(comb(order, k))
            + (order - k) * (log(1 - rate) if rate < 1 else (0.0 if k == order else -np.inf))
            + k * log(rate)
            + k * (k - 1) / (2 * sigma**2)
            for k in range(order + 1)
        ]
        divergence = steps * float(np.logaddexp.reduce(terms)) / (order - 1)
        told = divergence + log(1 - 1 / order) - log(delta * order) / (order - 1)
        best = min(best, told)
    return best


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps"), [(8, 0.1, 450), (1, 0.05, 200), (2, 1.0, 10), (0.5, 0.02, 100)]
)
def test_the_noise_keeps_the_promise_and_is_hardly_more_than_it_needs(
    epsilon: float, rate: float, steps: int
) -> None:
    sigma = multiplier(epsilon, 1e-5, rate, steps)
    assert 0.95 * epsilon < reference(sigma, rate, steps, 1e-5) <= epsilon * 1.001


def test_less_epsilon_more_steps_and_larger_batches_take_more_noise() -> None:
    usual = multiplier(4, 1e-5, 0.1, 100)
    assert multiplier(2, 1e-5, 0.1, 100) > usual
    assert multiplier(4, 1e-7, 0.1, 100) > usual
    assert multiplier(4, 1e-5, 0.1, 400) > usual
    assert multiplier(4, 1e-5, 0.4, 100) > usual


def test_the_accountant_is_asked_about_the_training_that_follows() -> None:
    """100 samples in batches of 20: chance 1/5, 5 steps an epoch."""
    noise = noise_for(Private(4, 1e-5, clip=0.7), Budget(epochs=3, batch=20), 100, 10)
    assert noise == Noise(0.7, multiplier(4, 1e-5, 0.2, 15))


@pytest.mark.parametrize(
    ("samples", "rate", "steps"), [(333, 1.0, 60), (2430, 1024 / 2430, 180), (60_000, 0.01707, 240)]
)
def test_the_usual_private_training_keeps_its_promise(
    samples: int, rate: float, steps: int
) -> None:
    """All samples in each of 60 steps where they are few; never more than 240 steps."""
    method = build_method(Config("fedov", set={"dp": {"epsilon": 8.0}}))
    found = sampling(method.local, samples, classes=10)
    assert found == (pytest.approx(rate, rel=1e-3), steps)
    noise = noise_for(method.dp, method.local, samples, 10)
    assert 7.5 < reference(noise.multiplier, rate, steps, 1e-5) <= 8.01


def test_impossible_promises_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"delta is 0\.01 with 100 samples.*far below 0\.01"):
        noise_for(Private(8, 0.01), Budget(), 100, 10)
    with pytest.raises(ConfigError, match=r"no noise is enough for epsilon 0\.001"):
        multiplier(0.001, 1e-5, 0.5, 10**6)


def test_without_opacus_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus.accountants.utils", None)
    accountant.multiplier.cache_clear()
    with pytest.raises(NeedError, match=r"pip install 'ostraka\[dp\]'"):
        multiplier(8, 1e-5, 0.1, 10)


def test_counts_get_geometric_noise_and_still_add_up() -> None:
    """Two-sided geometric noise with a = exp(-epsilon) has the variance 2 a / (1 - a)^2, and is 0
    with the chance (1 - a) / (1 + a)."""
    told = np.array(noisy_counts([1000] * 20_000, 0.5, seed=1)) - 1000
    a = exp(-0.5)
    assert told.sum() == 0
    assert told.var() == pytest.approx(2 * a / (1 - a) ** 2, rel=0.05)
    assert (told == 0).mean() == pytest.approx((1 - a) / (1 + a), abs=0.015)


@pytest.mark.parametrize("counts", [[3, 0, 0], [0, 0, 5, 1], [1], [0, 1]])
def test_few_counts_stay_counts(counts: list[int]) -> None:
    for seed in range(30):
        told = noisy_counts(counts, 0.3, seed)
        assert sum(told) == sum(counts)
        assert len(told) == len(counts)
        assert min(told) >= 0
    assert len({noisy_counts(counts, 0.3, seed) for seed in range(30)}) > 1 or len(counts) == 1


def blobs(count: int) -> Samples:
    """Two classes that lie apart."""
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(count) % 2
    x = torch.randn(count, 4, generator=rng) + 3.0 * (2 * y - 1)[:, None]
    return Samples(x, y, view=View(kind="table"))


MODEL = Model(("a", "b"), (4,), Recipe("mlp", {"hidden": [8]}), CrossEntropy(), View(kind="table"))


def member(dp: Private, samples: Samples, model: Model = MODEL, epochs: int = 2, seed: int = 1):
    terms = Terms(Budget(epochs=epochs, batch=40, lr=0.3), tell="statistics", scored=True, dp=dp)
    return train_member(model, terms, Party(PartyRef(3, len(samples), "st-anna"), samples), seed)


def test_a_private_member_tells_its_size_and_its_claim_alone() -> None:
    card = member(DP, blobs(200)).card
    assert (card.size, card.counts, card.name) == (200, None, "st-anna")
    assert card.scores == {"epsilon": 8.0, "delta": 1e-5}
    assert card.calibration == {}


def test_an_open_private_member_holds_nothing_out_and_tells_no_quantiles() -> None:
    """Outliers=auto on rows: made of one row alone."""
    model = Model(MODEL.classes, (4,), MODEL.net, OpenVoting(outliers="auto"), MODEL.view)
    card = member(DP, blobs(60), model, epochs=1).card
    assert (card.counts, card.calibration) == (None, {})


def test_counts_that_are_paid_for_are_told_with_noise_and_in_the_file() -> None:
    made = member(Private(8.0, 1e-5, counts=0.01), blobs(200))
    assert made.card.scores["epsilon"] == pytest.approx(8.01)
    assert made.card.counts is not None
    assert sum(made.card.counts) == 200
    assert made.card.counts != (100, 100)
    assert decode_member(encode_member(made)).card == made.card


def test_a_private_member_learns_and_noise_costs() -> None:
    """200 samples of two far classes: epsilon 8 is learnt from; epsilon 0.05 drowns it."""
    test = blobs(400).take(slice(200, 400))

    def right(epsilon: float) -> float:
        predictor = member(Private(epsilon), blobs(200), epochs=6).predictor()
        return float(
            (predictor.scores(test.stored()).known.argmax(1) == test.labels).float().mean()
        )

    assert right(8.0) > 0.95
    found = [member(Private(e), blobs(200)).params["first.weight"].norm() for e in (8.0, 0.05)]
    assert found[1] > 3 * found[0], "what is added for a strict promise is far larger"


def test_fedov_with_a_promise_learns_to_answer() -> None:
    """Outliers of the usual weight leave little of a cut gradient to the classes: members then
    reject many of their own samples."""
    method = build_method(Config("fedov", set={"dp": {"epsilon": 8.0}, "local": {"epochs": 30}}))
    objectives = method.objective, replace(method.objective, w_destroyed=1.0, w_second=1.0)
    test, found = blobs(300).take(slice(200, 300)), []
    for objective in objectives:
        model = Model(MODEL.classes, (4,), MODEL.net, objective, MODEL.view)
        terms = Terms(method.local, dp=method.dp)
        made = train_member(model, terms, Party(PartyRef(0, 100), blobs(100)), 1)
        found.append(made.predictor().scores(test.stored()).open)
    right = [float((open_answers == test.labels).float().mean()) for open_answers in found]
    assert right[0] > 0.95
    assert right[1] < 0.85, "closed answers are all right"


def test_methods_with_a_promise() -> None:
    with pytest.raises(ConfigError, match=r"with dp no class counts are told.*ballot=sum"):
        FedOV(dp=DP)
    FedOV(dp=Private(8, counts=0.5))
    with pytest.raises(ConfigError, match="RPL cannot train with differential privacy"):
        ClosedVoting(objective=RPL(), dp=DP)
    task = Task(("a", "b"), (1, 28, 28), Recipe("lenet5", {"norm": "batch"}))
    with pytest.raises(ConfigError, match="batch norm cannot train"):
        ClosedVoting(dp=DP).init(task, 0)
    assert ClosedVoting(dp=DP).init(task.__class__(("a", "b"), (4,), MODEL.net), 0).members == ()
    keys = [ClosedVoting(dp=dp).work_key(task) for dp in (DP, Private(), Private(4))]
    assert keys[0] != keys[1] != keys[2] != keys[0]


def test_the_contract_holds_with_a_promise() -> None:
    check_method(Average(dp=DP, local=Budget(epochs=1, batch=8)))
