"""PROSER, adversarial enhancement and FedOV's whole loss,
against the formula written out with plain autograd.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ostraka.core.fit import Budget, fit
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch
from ostraka.core.predictor import open_scores
from ostraka.core.samples import Samples
from ostraka.core.settings import build, values_of
from ostraka.errors import ConfigError
from ostraka.objectives.adversarial import enhance
from ostraka.objectives.open_voting import DESTROYED, OpenVoting
from ostraka.objectives.proser import Proser, mix
from ostraka.registry import OBJECTIVES

CLASSES = 4
SHAPE = (2, 16, 16)


class SmallNet(Net):
    """Smooth, so that the sign of a gradient does not hang on rounding;
    batch norm or dropout on demand.
    """

    def __init__(self, norm=False, dropout=False):
        super().__init__(CLASSES, unknown=True)
        self.conv = nn.Conv2d(SHAPE[0], 5, 5, stride=2)
        self.norm = nn.BatchNorm2d(5) if norm else nn.Identity()
        self.dropout = nn.Dropout(0.5) if dropout else nn.Identity()
        self.fc1, self.fc2 = nn.Linear(5 * 36, 12), nn.Linear(12, self.outputs)
        self.unused = nn.Linear(2, 2)
        self.sizes = []

    def early(self, x):
        self.sizes.append((len(x), self.training))
        return self.dropout(self.fc1(self.norm(self.conv(x)).tanh().flatten(1))).tanh()

    def embed_late(self, hidden):
        return hidden

    def head(self, embedding):
        return self.fc2(embedding)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def small(seed=0, **options):
    torch.manual_seed(seed)
    return SmallNet(**options).double()


def batch_of(objective, labels=(0, 1, 2, 3, 0, 1, 1, 2), seed=1):
    x = torch.randn(len(labels), *SHAPE, generator=rng(seed)).double()
    return objective.prepare(Batch(x, torch.tensor(labels)), rng(2))


def plain_loss(net, batch, objective, generator):
    """The specification, term by term, every pass by itself."""
    y, unknown = batch.y, torch.full_like(batch.y, CLASSES)
    hidden = net.early(batch.x)
    logits = net.late(hidden)
    loss = F.cross_entropy(logits, y)
    loss = loss + objective.w_second * F.cross_entropy(
        logits - 1e4 * F.one_hot(y, CLASSES + 1), unknown
    )
    if objective.w_mix:
        order, share = (
            torch.randperm(len(y), generator=generator),
            torch.rand((), generator=generator).item(),
        )
        differs = y != y[order]
        if differs.any():
            mixed = net.late(share * hidden + (1 - share) * hidden[order])
            loss = loss + objective.w_mix * F.cross_entropy(mixed[differs], unknown[differs])
    if objective.outliers == "none":
        return loss
    destroyed = batch.extra[DESTROYED]
    loss = loss + objective.w_destroyed * F.cross_entropy(net(destroyed), unknown)
    return loss + objective.w_adversarial * F.cross_entropy(
        net(plain_enhance(net, destroyed, objective)), unknown
    )


def plain_enhance(net, destroyed, objective):
    x = destroyed.clone()
    for _ in range(objective.steps):
        x.requires_grad_()
        unknown = torch.full((len(x),), CLASSES)
        (gradient,) = torch.autograd.grad(F.cross_entropy(net(x), unknown), x)
        x = (x + objective.size * gradient.sign()).detach()
        if objective.clamp:
            x = x.clamp(*objective.clamp)
    return x


def gradients(loss, net):
    net.zero_grad()
    loss.backward()
    return {name: p.grad for name, p in net.named_parameters()}


VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "paper weights": {"w_second": 0.01, "w_mix": 1.0},
    "uneven weights": {"w_destroyed": 0.3, "w_adversarial": 1.7, "w_mix": 0.5},
    "proser": {"outliers": "none"},
    "proser + dd": {"w_adversarial": 0.0},
    "proser + aoe": {"w_destroyed": 0.0},
    "dd only": {"w_second": 0.0, "w_mix": 0.0, "w_adversarial": 0.0},
    "one step": {"steps": 1},
    "clamped": {"clamp": (0.0, 1.0), "size": 0.05},
    "cutpaste": {"outliers": "cutpaste"},
    "one operation": {"outliers": "rotate"},
    "wide": {"outliers": "wide"},
    "by hand": {"outliers": "fedov:0.4+stretch:0.3+patchswap:0.3"},
}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize(
    "labels", [(0, 1, 2, 3, 0, 1, 1, 2), (2, 2, 2, 2, 2), (1,)], ids=["many", "one class", "one"]
)
def test_loss_and_gradients_equal_the_formula(settings, labels):
    objective, net = OpenVoting(**settings), small()
    batch = batch_of(objective, labels)
    expected = plain_loss(net, batch, objective, rng(3))
    expected_gradients = gradients(expected, net)
    loss = objective.loss(net, batch, rng(3))
    torch.testing.assert_close(loss, expected, atol=1e-9, rtol=0)
    for name, gradient in gradients(loss, net).items():
        torch.testing.assert_close(
            gradient, expected_gradients[name], atol=1e-9, rtol=0, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)], ids=str)
def test_the_simple_cnn_agrees_with_the_formula_in_float32(shape):
    """One step: after it a sign may flip where a gradient is 0 up to rounding,
    and float32 cannot be compared.
    """
    objective = OpenVoting(steps=1, size=0.01)
    net = Recipe("simple-cnn").build_net(shape, CLASSES, unknown=True, seed=0)
    x = torch.rand(32, *shape, generator=rng())
    batch = objective.prepare(Batch(x, torch.arange(32) % CLASSES), rng(2))
    expected = plain_loss(net, batch, objective, rng(3))
    expected_gradients = gradients(expected, net)
    loss = objective.loss(net, batch, rng(3))
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=0)
    for name, gradient in gradients(loss, net).items():
        torch.testing.assert_close(
            gradient,
            expected_gradients[name],
            atol=1e-5,
            rtol=1e-4,
            msg=lambda m, n=name: f"{n}: {m}",
        )


def test_a_scaled_loss_has_scaled_gradients():
    """The gradients known beforehand must follow whatever is done with the loss
    (averaging methods add and scale).
    """
    objective, net = OpenVoting(), small()
    batch = batch_of(objective)
    once = gradients(objective.loss(net, batch, rng(3)), net)
    twice = gradients(2 * objective.loss(net, batch, rng(3)) + 1, net)
    for name, gradient in once.items():
        if gradient is not None:
            torch.testing.assert_close(twice[name], 2 * gradient)


def test_asking_for_the_loss_leaves_no_trace():
    objective, net = OpenVoting(), small()
    net.conv.bias.requires_grad_(False)
    net.fc1.eval()
    batch = batch_of(objective)
    before = {k: v.clone() for k, v in batch.extra.items()}
    objective.loss(net, batch, rng())
    assert all(p.grad is None for p in net.parameters())
    assert not net.conv.bias.requires_grad
    assert net.conv.weight.requires_grad
    assert net.training
    assert not net.fc1.training
    assert torch.equal(batch.extra[DESTROYED], before[DESTROYED])


def test_the_loss_can_be_watched_without_gradients():
    objective, net = OpenVoting(), small()
    batch = batch_of(objective)
    with torch.no_grad():
        watched = objective.loss(net, batch, rng(3))
    assert not watched.requires_grad
    torch.testing.assert_close(watched, objective.loss(net, batch, rng(3)).detach())


def test_passes_are_shared_without_batch_norm():
    """Destruction with the first attack step, four more steps, clean and enhanced:
    seven passes, not eight.
    """
    objective, net = OpenVoting(), small()
    objective.loss(net, batch_of(objective), rng())
    assert [size for size, _ in net.sizes] == [8] * 7


@pytest.mark.parametrize("options", [{"norm": True}, {"dropout": True}], ids=str)
def test_with_batch_norm_or_dropout_everything_is_one_batch_and_the_attack_is_in_eval_mode(options):
    objective, net = OpenVoting(), small(**options)
    loss = objective.loss(net, batch_of(objective), rng())
    assert net.sizes == [(8, False)] * 5 + [(24, True)]
    assert net.training
    gradient = gradients(loss, net)["conv.weight"]
    assert gradient is not None
    assert gradient.isfinite().all()


def test_the_attack_leaves_running_statistics_alone():
    net = small(norm=True)
    before = net.norm.running_mean.clone()
    enhance(net, torch.randn(8, *SHAPE).double())
    assert torch.equal(net.norm.running_mean, before)


def test_absent_terms_cost_nothing():
    net = small()
    for settings, passes in [
        ({"outliers": "none"}, 1),
        ({"w_adversarial": 0.0}, 2),
        ({"w_destroyed": 0.0}, 7),
        ({"w_destroyed": 0.0, "w_adversarial": 0.0}, 1),
    ]:
        objective = OpenVoting(**settings)
        batch = batch_of(objective)
        net.sizes.clear()
        objective.loss(net, batch, rng())
        assert len(net.sizes) == passes
        assert (DESTROYED in batch.extra) == (passes > 1)


def test_enhanced_outliers_look_more_known():
    net = small(seed=4)
    x = torch.randn(64, *SHAPE, generator=rng()).double()
    enhanced = enhance(net, x)
    unknown, unknown_after = (net(z).softmax(dim=1)[:, -1] for z in (x, enhanced))
    assert (unknown_after < unknown).all()
    assert (enhanced - x).abs().max() <= 5 * 0.002 + 1e-9


def test_enhancement_keeps_to_the_range_and_to_its_copy():
    net, x = small(), torch.rand(8, *SHAPE, generator=rng()).double()
    before = x.clone()
    enhanced = enhance(net, x, steps=5, size=0.5, clamp=(0.0, 1.0))
    assert torch.equal(x, before)
    assert enhanced.min() >= 0
    assert enhanced.max() <= 1
    assert not enhanced.requires_grad


@pytest.mark.parametrize("native", ["0", "1"])
def test_the_same_batch_and_seed_give_the_same_numbers(native, monkeypatch):
    monkeypatch.setenv("OSTRAKA_NATIVE", native)
    objective = OpenVoting()
    x, y = torch.rand(70, 1, 28, 28, generator=rng()), torch.arange(70) % CLASSES
    nets = [
        Recipe("simple-cnn").build_net((1, 28, 28), CLASSES, unknown=True, seed=0) for _ in range(2)
    ]
    fitted = [fit(net, None, Samples(x, y), objective, Budget(epochs=2), seed=5) for net in nets]
    assert fitted[0].losses == fitted[1].losses
    assert all(torch.equal(a, b) for a, b in zip(*(f.params.values() for f in fitted), strict=True))


class _Counts(torch.autograd.Function):
    """A layer with a hand-written backward, which computes what `needs_input_grad` asks for."""

    weight_gradients = 0

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            _Counts.weight_gradients += 1
        return grad @ weight.t(), x.t() @ grad if ctx.needs_input_grad[1] else None


class HandWritten(SmallNet):
    def head(self, embedding):
        return _Counts.apply(embedding, self.fc2.weight.t())


def test_the_attack_computes_no_parameter_gradients():
    torch.manual_seed(0)
    net = HandWritten().double()
    _Counts.weight_gradients = 0
    enhance(net, torch.randn(4, *SHAPE).double())
    assert _Counts.weight_gradients == 0
    objective = OpenVoting()
    objective.loss(net, batch_of(objective), rng()).backward()
    # the shared pass, and the late layers of everything else at once
    assert _Counts.weight_gradients == 2


def test_proser_is_fedov_without_outliers():
    net, batch = small(), batch_of(Proser())
    loss = Proser(w_mix=0.3).loss(net, batch, rng(3))
    same = OpenVoting(w_mix=0.3, outliers="none").loss(net, batch, rng(3))
    assert torch.equal(loss, same)
    assert Proser().prepare(batch, rng()) is batch


def test_mixing_pairs_only_different_classes():
    hidden, y = torch.eye(6), torch.tensor([0, 0, 0, 1, 1, 2])
    for seed in range(20):
        mixed = mix(hidden, y, rng(seed))
        assert mixed is not None
        order = torch.randperm(6, generator=rng(seed))
        assert len(mixed) == (y != y[order]).sum()
        for row in mixed:
            sources = row.nonzero().squeeze(1)
            assert len(sources) == 2
            assert y[sources[0]] != y[sources[1]]
            assert row.sum().item() == pytest.approx(1)
    assert mix(hidden, torch.zeros(6, dtype=torch.long), rng()) is None


@pytest.mark.parametrize("name", ["fedov", "proser"])
def test_registered_and_rebuilt_from_plain_values(name):
    cls = OBJECTIVES.get(name)
    assert cls.unknown
    assert build(cls, values_of(cls())) == cls()
    if name == "fedov":
        assert build(cls, {"clamp": [0, 1]}).clamp == (0.0, 1.0)
        assert build(cls, {"clamp": "none"}).clamp is None


def test_wrong_settings_are_refused():
    for settings, words in [
        ({"outliers": "rotat"}, "Did you mean 'rotate'"),
        ({"outliers": "fedov:0.4+none:0.6"}, "unknown destruction 'none'"),
        ({"w_mix": -1.0}, "'w_mix' is -1.0"),
        ({"steps": 0}, "'steps' is 0; it must be at least 1"),
        ({"clamp": (1.0, 0.0)}, "smaller first"),
    ]:
        with pytest.raises(ConfigError, match=words):
            OpenVoting(**settings)
    with pytest.raises(ConfigError, match="w_second"):
        Proser(w_second=float("inf"))


def test_training_makes_a_far_away_input_more_unknown_than_a_training_sample():
    """Four classes of bars at fixed places.

    A shape never seen (a diagonal) must score more unknown than they do.
    """
    bars = torch.zeros(CLASSES, 1, 16, 16)
    for label in range(CLASSES):
        bars[label, 0, 2 + 3 * label : 5 + 3 * label, 2:14] = 1
    y = torch.arange(256) % CLASSES
    x = bars[y] + 0.1 * torch.randn(256, 1, 16, 16, generator=rng())
    net = Recipe("simple-cnn").build_net((1, 16, 16), CLASSES, unknown=True, seed=0)
    budget = Budget(epochs=60, optimiser="adam", lr=2e-3)
    fit(net, None, Samples(x, y), OpenVoting(), budget, seed=0)
    with torch.no_grad():
        known = open_scores(net(x))
        far = open_scores(
            net(
                torch.eye(16).expand(8, 1, 16, 16)
                + 0.1 * torch.randn(8, 1, 16, 16, generator=rng(1))
            )
        )
    assert (known.closed == y).double().mean() > 0.95
    assert far.unknown.min() > known.unknown.quantile(0.9)
    assert known.unknown.median() < 0 < far.unknown.median()
