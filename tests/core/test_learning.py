"""Private steps: gradients cut by hand, who joins a step, noise, and what is refused."""

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net
from ostraka.core.learning import Masked
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.private import Noise, Private, sampling
from ostraka.core.samples import Samples, View
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.destruction import OPERATIONS, destroy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.objectives.proser import Proser
from ostraka.store import codec
from tests.core.test_fit import PLAIN, TWO, Killed, Killer, random_samples
from tests.core.toy_nets import Layered, Line, Noisy, Squares, UnitGradient

QUIET = Noise(clip=1e9, multiplier=0.0)
TABLE = View(kind="table")


@dataclass(frozen=True)
class Alone(Squares):
    def check_private(self) -> None:
        """It can."""


@dataclass(frozen=True)
class Flat(Alone):
    """Its gradient is 0: all that is left is noise."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return 0.0 * super().loss(net, batch, rng)


@dataclass(frozen=True)
class Counting(UnitGradient):
    """Notes how many samples it is asked with, and whose outliers it gets."""

    prepared: list[int] = field(default_factory=list)

    def check_private(self) -> None:
        """It can."""

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        self.prepared.append(len(batch))
        return batch


def masked(net: Net, objective: Objective, samples: Samples, noise: Noise, batch: int) -> Masked:
    trained = [p for p in net.parameters() if p.requires_grad]
    return Masked(net, objective, trained, len(samples), batch, noise, seed=3)


def noisy_gradient(
    net: Net,
    objective: Objective,
    samples: Samples,
    noise: Noise,
    batch: int = 10**6,
    step: int = 0,
) -> Tensor:
    """The gradient of one step that all samples join, as one vector, times the batch: the sum."""
    learning = masked(net, objective, samples, noise, batch)
    given = Batch(samples.inputs(), samples.labels, kind=samples.view.kind, view=samples.view)
    learning.gradient(given, torch.Generator().manual_seed(1), step)
    return torch.cat([p.grad.flatten().clone() for p in learning.trained]) * learning.width


def test_gradients_are_cut_one_by_one_by_hand() -> None:
    """At w = 0 the gradients of (1, 2) and (2, 4) are x (w x - y) = -2 and -8; cut to 3: -2 and -3.

    Both join (batch 2 of 2), so w = 0.1 * 5 / 2 = 0.25. Their mean, cut, would be -3 or -2.5 ...
    """
    fitted = fit(
        Line(), None, TWO, Alone(), replace(PLAIN, epochs=1, batch=2), 0, noise=Noise(3.0, 0.0)
    )
    assert float(fitted.params["weight"]) == pytest.approx(0.25)
    assert fitted.losses == pytest.approx((5.0,))


def test_without_cut_and_noise_it_is_the_usual_gradient() -> None:
    samples, net = random_samples(12), Layered(nn.Identity())
    found = noisy_gradient(net, CrossEntropy(), samples, QUIET)
    net.zero_grad()
    CrossEntropy().loss(net, Batch(samples.inputs(), samples.labels), torch.Generator()).backward()
    usual = torch.cat([p.grad.flatten() for p in net.parameters()])
    assert torch.allclose(found / 12, usual, atol=1e-6)


def test_the_cut_sum_is_that_of_opacus() -> None:
    """Opacus' own optimiser, without noise, is an independent reference."""
    opacus = pytest.importorskip("opacus")
    samples = random_samples(9)
    plain = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    net = Layered(nn.Identity())
    plain[0].load_state_dict(net.first.state_dict())
    plain[2].load_state_dict(net.last.state_dict())
    wrapped = opacus.GradSampleModule(plain)
    optimiser = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1.0),
        noise_multiplier=0.0, max_grad_norm=0.3, expected_batch_size=9,
    )  # fmt: skip
    inputs = samples.inputs().requires_grad_()  # else its hooks warn
    nn.functional.cross_entropy(wrapped(inputs), samples.labels).backward()
    optimiser.pre_step()
    theirs = torch.cat([p.grad.flatten() for p in plain.parameters()])
    ours = noisy_gradient(net, CrossEntropy(), samples, Noise(0.3, 0.0)) / 9
    assert torch.allclose(ours, theirs, atol=1e-6)


def open_task() -> tuple[Task, Samples]:
    rng = torch.Generator().manual_seed(2)
    x = torch.randint(0, 256, (6, 1, 8, 8), dtype=torch.uint8, generator=rng)
    samples = Samples(x, torch.tensor([0, 1, 2, 0, 1, 2]), view=View(scale=1 / 255))
    return Task(("a", "b", "c"), (1, 8, 8), Recipe("mlp", {"hidden": [6]})), samples


@pytest.mark.parametrize("adversarial", [0.0, 1.0])
def test_a_sample_and_its_outliers_are_cut_as_one(adversarial: float) -> None:
    """One sample: the uncut gradient is that of all terms together, and cut it keeps its direction
    and has the length 0.1, not 0.1 for the sample and for each of its outliers."""
    task, samples = open_task()
    objective = OpenVoting(w_adversarial=adversarial, outliers="crop")
    net, one = build_net(task, objective, 1), samples.take(slice(0, 1))
    whole = noisy_gradient(net, objective, one, QUIET)
    cut = noisy_gradient(net, objective, one, Noise(0.1, 0.0))
    assert float(whole.norm()) > 0.2, "there is something to cut"
    assert float(cut.norm()) == pytest.approx(0.1, rel=1e-4)
    assert torch.allclose(cut / 0.1, whole / whole.norm(), atol=1e-4)
    known = noisy_gradient(net, replace(objective, w_destroyed=0, w_adversarial=0), one, QUIET)
    assert float((whole - known).norm()) > 0.05, "and the outliers are part of it"


@pytest.mark.parametrize("objective", [Proser(w_mix=50.0), CrossEntropy()])
def test_leaving_out_any_sample_moves_the_sum_by_no_more_than_the_cut(objective: Objective) -> None:
    """The sensitivity that the accountant rests on; mixing by pairs would break it, as a sample's
    partners would then change too."""
    task, samples = open_task()
    net, noise = build_net(task, objective, 1), Noise(0.05, 0.0)
    everyone = noisy_gradient(net, objective, samples, noise)
    for left_out in range(len(samples)):
        rest = torch.tensor([i for i in range(len(samples)) if i != left_out])
        moved = everyone - noisy_gradient(net, objective, samples.take(rest), noise)
        assert 0 < float(moved.norm()) <= 0.05 * (1 + 1e-4)


def test_objectives_are_asked_with_one_sample_at_a_time() -> None:
    objective = Counting()
    fit(Line(), None, random_samples(40, 1), objective, replace(PLAIN, batch=10), 0, noise=QUIET)
    assert set(objective.sizes) == set(objective.prepared) == {1}
    assert len(objective.sizes) > 40


def test_rows_of_a_table_do_not_lend_each_other_values() -> None:
    """Shuffled columns come from other rows; a row alone has only its own values."""
    seen: list[Tensor] = []

    @dataclass(frozen=True)
    class Looking(Alone):
        def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
            made = OpenVoting(outliers="shuffle").prepare(batch, rng)
            seen.append(torch.cat([batch.x, made.extra["destroyed"]]))
            return batch

    x = torch.arange(40.0).reshape(10, 4)
    samples = Samples(x, torch.zeros(10, dtype=torch.long), view=TABLE)
    fit(Line(4), None, samples, Looking(), replace(PLAIN, batch=10, lr=1e-9), 0, noise=QUIET)
    assert len(seen) == 20
    assert all(set(outlier.tolist()) <= set(own.tolist()) for own, outlier in seen)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_makes_an_outlier_of_a_sample_alone(name: str) -> None:
    """What takes values from others does with its own; the outlier is another, of numbers."""
    rng = torch.Generator().manual_seed(0)
    shapes = {"image": (1, 1, 12, 12), "sound": (1, 1, 12, 12), "table": (1, 12)}
    for kind in OPERATIONS[name].kinds:
        x = torch.rand(shapes[kind], generator=rng)
        made = torch.cat([destroy(x, rng, name, kind) for _ in range(5)])
        assert torch.isfinite(made).all()
        assert (made != x).any(), f"{name} leaves a {kind} as it is"


def test_the_noise_has_the_deviation_multiplier_times_clip() -> None:
    net = Line(inputs=20_000)
    samples = Samples(torch.ones(4, 20_000), torch.zeros(4, dtype=torch.long))
    first, second = (
        noisy_gradient(net, Flat(), samples, Noise(0.5, 3.0), batch=2, step=s) for s in (0, 1)
    )
    for drawn in (first, second):
        assert float(drawn.mean()) == pytest.approx(0, abs=4 * 1.5 / sqrt(20_000))
        assert float(drawn.std()) == pytest.approx(1.5, rel=0.02)
    both = torch.stack([first, second])
    assert abs(float(torch.corrcoef(both)[0, 1])) < 0.03, "each step draws its own"
    assert torch.equal(first, noisy_gradient(net, Flat(), samples, Noise(0.5, 3.0), batch=2))


def test_each_sample_joins_each_step_by_itself() -> None:
    """50 samples in batches of 10 on average: 5 steps an epoch, chance 1/5.

    Over 400 epochs a sample joins 400 of 2,000 steps (deviation 18) and two samples meet in 80
    (deviation 9); in an epoch some join no step and some several, as no permutation has it.
    """
    learning = masked(Line(), Alone(), random_samples(50, 1), QUIET, batch=10)
    joined = torch.zeros(2000, 50)
    for epoch in range(400):
        order, bounds = learning.epoch(epoch, torch.Generator())
        assert len(bounds) == learning.batches == 5
        assert len(order) == bounds[-1][1]
        for step, (start, stop) in enumerate(bounds):
            joined[epoch * 5 + step, order[start:stop]] += 1
    assert joined.max() == 1
    assert float(joined.sum(0).mean()) == pytest.approx(400, abs=12)
    assert (joined.sum(0) - 400).abs().max() < 5 * 18
    meet = joined.T @ joined
    assert float((meet.sum() - meet.trace()) / (50 * 49)) == pytest.approx(80, abs=5)
    assert {0.0, 1.0, 2.0} <= set(joined[:5].sum(0).tolist())


def test_a_step_that_nobody_joins_is_noise_alone() -> None:
    samples = random_samples(3, 1)
    budget = replace(PLAIN, batch=1, epochs=30, lr=1.0)
    fitted = fit(Line(), None, samples, Flat(), budget, 5, noise=Noise(1.0, 1.0))
    assert fitted.steps == 90
    assert float(fitted.params["weight"].abs()) > 0


def test_a_gradient_that_is_no_number_counts_nothing() -> None:
    """The other sample's -2 is all: w = 0.1 * 2 / 2."""
    samples = Samples(torch.tensor([[1.0], [float("inf")]]), torch.tensor([2, 4]))
    found = noisy_gradient(Line(), Alone(), samples, Noise(3.0, 0.0))
    assert found.tolist() == [-2.0]


def test_steps_and_chances_come_from_public_numbers() -> None:
    """At most 500 steps for each class of the task, not for each that the party holds."""
    budget = Budget(epochs=3, batch=32)
    assert sampling(budget, 100, classes=10) == (0.32, 12)
    assert sampling(replace(budget, batch=200), 100, classes=10) == (1.0, 3)
    assert sampling(replace(budget, class_steps=1), 100, classes=10) == (0.32, 10)
    assert sampling(replace(budget, most_steps=7), 100, classes=10) == (0.32, 7)
    assert sampling(replace(budget, least_batches=5), 100, classes=10) == (0.2, 15)
    one_class = Samples(torch.randn(100, 3), torch.zeros(100, dtype=torch.long))
    net = Layered(nn.Identity(), classes=10)
    limited = replace(budget, class_steps=1)
    assert fit(net, None, one_class, CrossEntropy(), limited, 0, noise=QUIET).steps == 10


@pytest.mark.parametrize("kill_at", [1, 2, 4])
def test_interrupted_private_training_goes_on_to_the_same_bits(kill_at: int) -> None:
    @dataclass(frozen=True)
    class Private(Noisy):
        def check_private(self) -> None:
            """It can."""

    def train(progress: Any = None) -> bytes:
        net, budget = Layered(nn.Identity()), replace(PLAIN, batch=4, epochs=3, momentum=0.9)
        noise = Noise(1.0, 0.5)
        fitted = fit(net, None, random_samples(18), Private(), budget, 4, progress, noise=noise)
        return codec.encode({**fitted.params, "losses": torch.tensor(fitted.losses)})

    kept: dict[str, bytes] = {}
    with pytest.raises(Killed):
        train(Killer(kept, kill_at))
    assert train(Killer(kept, 10**6)) == train()


def test_what_cannot_be_private_is_refused() -> None:
    samples = random_samples(8)
    with pytest.raises(ConfigError, match=r"batch norm cannot train.*net\.norm=group"):
        fit(Layered(nn.BatchNorm1d(8)), None, samples, CrossEntropy(), PLAIN, 0, noise=QUIET)
    with pytest.raises(ConfigError, match="Squares cannot train with differential privacy"):
        fit(Line(), None, TWO, Squares(), PLAIN, 0, noise=QUIET)
    with pytest.raises(ConfigError, match="cannot end early"):
        fit(Line(), None, TWO, Alone(), PLAIN, 0, after_epoch=lambda _: True, noise=QUIET)
    with pytest.raises(ConfigError, match="what that generator was trained on"):
        OpenVoting(outliers="generator:own.safetensors").check_private()
    OpenVoting(outliers="generator").check_private()


def test_a_promise_says_what_it_claims() -> None:
    assert Private().figures() == {}
    assert Private(8, 1e-6, counts=0.5).figures() == {"epsilon": 8.5, "delta": 1e-6}
    with pytest.raises(ConfigError, match=r"give dp\.epsilon as well"):
        Private(counts=1.0)
    with pytest.raises(ConfigError, match="'epsilon' is -1"):
        Private(-1)
