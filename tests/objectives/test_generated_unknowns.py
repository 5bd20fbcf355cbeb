"""Generator, discriminator and copycat: their steps by hand,
what they leave alone, and interruption.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.objectives.dias import DIAS, EASY, HARD, Simulator, undecided
from ostraka.objectives.gan import FAKES, NOISE, Gan, Generator, Trainee, auxiliary_norm, gan_parts
from ostraka.objectives.rpl import ARPL, ConfusingARPL, decided, points_of
from ostraka.store import codec

CLASSES = ("a", "b", "c")
ROWS = Task(CLASSES, (5,), Recipe("mlp", {"hidden": [8, 6]}))
IMAGES = Task(CLASSES, (2, 9, 7), Recipe("mlp", {"hidden": [8, 6]}))
NORMED = Task(CLASSES, (1, 28, 28), Recipe("lenet5", {"norm": "batch"}))
GENERATED = {"arpl+cs": ConfusingARPL(), "dias": DIAS()}
SHARED = {name: replace(objective, share=True) for name, objective in GENERATED.items()}


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch_for(task: Task, count: int = 6) -> Batch:
    return Batch(torch.rand(count, *task.shape, generator=rng(1)), torch.arange(count) % 3)


def tensors(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


@pytest.mark.parametrize(
    "shape", [(5,), (1, 28, 28), (3, 32, 32), (2, 9, 7), (1, 3, 3), (1, 4, 5)], ids=str
)
def test_any_shape_is_generated_and_judged(shape: tuple[int, ...]) -> None:
    net = Recipe("mlp").build_net(shape, 3, unknown=False, seed=0)
    parts = gan_parts(net, 4)
    helper = Gan(parts, 1e-3, lambda net, fakes: fakes.mean() * 0)
    x = 3 + torch.rand(2, *shape)
    fakes = helper.step(net, Batch(x, torch.zeros(2, dtype=torch.long)), rng()).extra[FAKES]
    assert fakes.shape == x.shape
    assert fakes.min() >= 0  # the range starts at 0 and is widened to what was seen
    assert fakes.max() <= x.max()


def test_the_range_is_per_channel_and_only_grows() -> None:
    maker = Generator((2, 4, 4), 4)
    x = torch.stack([torch.full((1, 4, 4), -2.0), torch.full((1, 4, 4), 7.0)], dim=1)
    maker.see(x)
    maker.see(x / 2)
    assert maker.low.flatten().tolist() == [-2, 0]
    assert maker.high.flatten().tolist() == [0, 7]


def test_the_gans_step_by_hand() -> None:
    """One step of Adam moves every weight by the learning rate against the sign of its gradient.

    Those gradients are of -log D(x) - log(1 - D(G(z))), then, with the new D,
    of -log D(G(z)) + the wish.
    """
    net, batch = build_net(IMAGES, DIAS(), 0), batch_for(IMAGES)
    parts = gan_parts(net, 4)
    maker, judge = parts["generator"], parts["discriminator"]
    before = tensors(parts)
    wish = lambda net, fakes: 0.7 * undecided(net(fakes))  # noqa: E731
    made = Gan(parts, 0.01, wish).step(net, batch, rng(3))
    after = tensors(parts)

    maker.see(batch.x)
    ranged = {
        name: value for name, value in tensors(parts).items() if name.endswith(("low", "high"))
    }
    parts.load_state_dict({**before, **ranged})
    parts.requires_grad_(True)
    noise = torch.randn(len(batch), NOISE, generator=rng(3))
    fakes = maker(noise)
    torch.testing.assert_close(made.extra[FAKES], fakes.detach())
    real_odds, fake_odds = judge(batch.x), judge(fakes.detach())
    loss = -real_odds.sigmoid().log().mean() - (1 - fake_odds.sigmoid()).log().mean()
    moved = _signs(loss, judge)
    for name, sign in moved.items():
        expected = before[f"discriminator.{name}"] - 0.01 * sign
        torch.testing.assert_close(after[f"discriminator.{name}"], expected, atol=2e-4, rtol=0)
    judge.load_state_dict(
        {name.split(".", 1)[1]: after[name] for name in after if name.startswith("discriminator")}
    )
    net.eval()
    loss = -judge(fakes).sigmoid().log().mean() + 0.7 * undecided(net(fakes))
    for name, sign in _signs(loss, maker).items():
        step = (before[f"generator.{name}"] - after[f"generator.{name}"]) / 0.01
        clear = step.abs() > 0.99  # tiny gradients are dwarfed by Adam's epsilon
        assert clear.double().mean() > 0.5, name
        assert torch.equal(step[clear].sign(), sign[clear]), name


def _signs(loss: torch.Tensor, module: nn.Module) -> dict[str, torch.Tensor]:
    names, parameters = zip(*module.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
    return dict(zip(names, (g.sign() for g in gradients), strict=True))


@pytest.mark.parametrize("objective", GENERATED.values(), ids=GENERATED)
@pytest.mark.parametrize("task", [ROWS, IMAGES, NORMED], ids=["rows", "images", "batch norm"])
def test_a_step_leaves_no_trace_on_the_network(objective: Objective, task: Task) -> None:
    net = build_net(task, objective, 0).train()
    before, helper = tensors(net), objective.helper(net)
    assert helper is not None
    batch = batch_for(task)
    seen = helper.step(net, batch, rng())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    assert all(module.training for module in net.modules())
    assert torch.equal(seen.x, batch.x)
    assert not any(value.requires_grad or len(value) != len(batch) for value in seen.extra.values())


@pytest.mark.parametrize("name", GENERATED)
def test_what_travels_is_trained_by_its_own_optimiser_only(name: str) -> None:
    """The main optimiser's weight decay would shrink what it owns.

    A learning rate of 0 does not exist, so tiny.
    """
    net = build_net(IMAGES, SHARED[name], 0)
    helpers = [n for n, p in net.named_parameters() if not p.requires_grad]
    assert any("generator" in n for n in helpers)
    assert len(helpers) < len(list(net.parameters()))
    before = tensors(net)
    frozen = replace(
        SHARED[name], gan_lr=1e-12, **({"copycat_lr": 1e-12} if name == "dias" else {})
    )
    batch = batch_for(IMAGES)
    fit(
        net,
        None,
        Samples(batch.x, batch.y),
        frozen,
        Budget(epochs=3, lr=0.1, weight_decay=0.5),
        seed=0,
    )
    for n in helpers:
        torch.testing.assert_close(net.state_dict()[n], before[n], atol=1e-6, rtol=0)
    assert not torch.equal(net.state_dict()["first.weight"], before["first.weight"])
    trained = fit(
        net, before, Samples(batch.x, batch.y), SHARED[name], Budget(epochs=3), seed=0
    ).params
    assert all(
        not torch.equal(trained[n], before[n])
        for n in helpers
        if n.endswith("weight") and "norm" not in n
    )
    private = build_net(IMAGES, GENERATED[name], 0).state_dict()
    assert not any("generator" in n or "copycat" in n for n in private)


def test_arpl_with_confusing_samples_by_hand() -> None:
    objective, net = ConfusingARPL(beta=0.3), build_net(ROWS, ConfusingARPL(), 0)
    batch = batch_for(ROWS)
    plain = ARPL().loss(net, batch, rng())
    assert torch.equal(objective.loss(net, batch, rng()), plain)  # no helper has seen this batch
    fakes = torch.rand(6, 5)
    embedding, points = net.embed(fakes), points_of(net).points[:, 0]
    squared = torch.stack([(embedding - p).square().mean(dim=1) for p in points], dim=1)
    loss = objective.loss(net, Batch(batch.x, batch.y, {FAKES: fakes}), rng())
    torch.testing.assert_close(loss, plain + 0.3 * decided(squared))


def test_dias_by_hand() -> None:
    """CE + beta CE_1(fakes) + w/2 (CE_1(head(easy)) + CE_s(late(hard), y)), each written out."""
    objective = DIAS(beta=0.3, w_copycat=0.8, smoothing=0.25)
    net, batch = build_net(ROWS, objective, 0), batch_for(ROWS)
    fakes, hard, easy = torch.rand(6, 5), torch.rand(6, 8), torch.rand(6, 6)
    target = 0.75 * F.one_hot(batch.y, 3) + 0.25 / 3
    expected = F.cross_entropy(net(batch.x), batch.y)
    assert torch.equal(objective.loss(net, batch, rng()), expected)
    expected = expected - 0.3 * net(fakes).log_softmax(dim=1).sum(dim=1).mean() / 3
    expected = expected - 0.4 * net.head(easy).log_softmax(dim=1).sum(dim=1).mean() / 3
    expected = expected - 0.4 * (target * net.late(hard).log_softmax(dim=1)).sum(dim=1).mean()
    loss = objective.loss(
        net, Batch(batch.x, batch.y, {FAKES: fakes, HARD: hard, EASY: easy}), rng()
    )
    torch.testing.assert_close(loss, expected)


def test_generators_want_opposite_things() -> None:
    """ARPL's generator is rewarded for confusing samples,
    DIAS's for samples that the classifier takes for known.
    """
    sure, unsure = torch.tensor([[9.0, 0, 0]]), torch.zeros(1, 3)
    assert decided(unsure) < decided(sure)
    helper = DIAS().helper(build_net(ROWS, DIAS(), 0))
    assert isinstance(helper, Simulator)
    wish = helper.gan.wish
    net = build_net(ROWS, DIAS(), 0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        at_rest = wish(net, torch.rand(4, 5)).item()
        net.get_submodule("last").bias.copy_(sure[0])
        assert wish(net, torch.rand(4, 5)).item() < at_rest


def test_the_copycat_starts_elsewhere_and_comes_nearer() -> None:
    objective = DIAS(copycat_lr=0.01)
    net, batch = build_net(ROWS, objective, 0), batch_for(ROWS, 30)
    # `fit` seeds torch's own generator, from which helpers take their first weights
    torch.manual_seed(0)
    helper = objective.helper(net)
    assert isinstance(helper, Simulator)
    generator = rng()
    gaps = []
    for _ in range(60):
        seen = helper.step(net, batch, generator)
        gaps.append(F.l1_loss(seen.extra[HARD], net.early(batch.x)).item())
    assert gaps[0] > 0.05
    assert gaps[-1] < 0.5 * gaps[0]
    torch.testing.assert_close(seen.extra[EASY], helper.twin.embed_late(seen.extra[HARD]))
    unpulled = DIAS(copycat_lr=0.01, w_pull=0.0).helper(net)
    assert unpulled is not None
    for _ in range(60):
        seen = unpulled.step(net, batch, generator)
    assert F.l1_loss(seen.extra[HARD], net.early(batch.x)).item() > 2 * gaps[-1]


def test_fakes_have_batch_norm_statistics_of_their_own() -> None:
    net = build_net(NORMED, DIAS(), 0).train()
    x = torch.rand(5, 1, 28, 28)
    net(x)
    before = tensors(net)
    with auxiliary_norm(net):
        aside = net(x + 3)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    torch.testing.assert_close(aside, net(x + 3))  # normalised by its own mean and spread
    assert not torch.equal(net.get_buffer("norm1.running_mean"), before["norm1.running_mean"])


def test_a_trainee_goes_on_from_its_state() -> None:
    def make() -> tuple[nn.Module, Trainee]:
        torch.manual_seed(0)
        module = nn.Linear(3, 2)
        return module, Trainee(module, 0.1)

    def step(module: nn.Module, trainee: Trainee) -> None:
        with trainee.awake():
            trainee.descend(module(torch.ones(1, 3)).square().sum())

    straight, first, second = make(), make(), make()
    for _ in range(4):
        step(*straight)
    for _ in range(2):
        step(*first)
    second[1].load(codec.decode(codec.encode(first[1].state())))
    for _ in range(2):
        step(*second)
    assert torch.equal(straight[0].weight, second[0].weight)  # type: ignore[arg-type]
    assert not any(p.requires_grad or p.grad is not None for p in second[0].parameters())


class Killed(Exception):
    """Stands for a kill."""


class Killer(Progress):
    """Keeps what was saved as bytes and kills at one of the saves."""

    every_seconds = 0.0

    def __init__(self, kept: dict[str, bytes], kill_at: int) -> None:
        self.kept, self.left = kept, kill_at

    def load(self, name: str) -> Mapping[str, Any] | None:
        return codec.decode(self.kept[name]) if name in self.kept else None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        self.kept[name] = codec.encode(dict(values))
        self.left -= 1
        if self.left == 0:
            raise Killed

    def tell(self, done: float, loss: float | None) -> None: ...


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_interrupted_training_goes_on_to_the_same_bits(name: str, shared: bool) -> None:
    objective = (SHARED if shared else GENERATED)[name]
    batch = batch_for(IMAGES, 14)
    budget = Budget(epochs=3, batch=4, optimiser="adam")

    def train(progress: Progress | None) -> bytes:
        net: Net = build_net(IMAGES, objective, 0)
        fitted = fit(
            net, None, Samples(batch.x, batch.y), objective, budget, seed=3, progress=progress
        )
        return codec.encode({"params": fitted.params, "losses": fitted.losses})

    straight = train(None)
    assert train(None) == straight
    kept: dict[str, bytes] = {}
    with pytest.raises(Killed):
        train(Killer(kept, 2))
    saved = codec.decode(kept["fit"])
    assert train(Killer(kept, 0)) == straight
    assert saved["steps"] == 8
    assert saved["helper"]
    kept["fit"] = codec.encode({**saved, "helper": _blank(saved["helper"])})
    assert train(Killer(kept, 0)) != straight  # the helpers' part matters


def _blank(state: Any) -> Any:
    if isinstance(state, Mapping):
        return {key: _blank(value) for key, value in state.items()}
    return torch.zeros_like(state)


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("labels", [[2], [1, 1, 1]], ids=["one sample", "one class"])
def test_parties_of_one_sample_or_one_class_train(name: str, labels: list[int]) -> None:
    net = build_net(IMAGES, GENERATED[name], 0)
    samples = Samples(torch.rand(len(labels), *IMAGES.shape), torch.tensor(labels))
    fitted = fit(net, None, samples, GENERATED[name], Budget(epochs=2), seed=0)
    assert all(tensor.isfinite().all() for tensor in fitted.params.values())


def test_its_helper_is_a_simulator() -> None:
    net = build_net(ROWS, DIAS(), 0)
    assert isinstance(DIAS().helper(net), Simulator)


def test_wrong_settings_are_refused() -> None:
    for settings, words in [
        ({"smoothing": 1.5}, "'smoothing' is 1.5; it must be at least 0 and at most 1"),
        ({"copycat_lr": 0.0}, "'copycat_lr' is 0"),
        ({"w_pull": -1.0}, "'w_pull' is -1"),
        ({"width": 0}, "'width' is 0"),
    ]:
        with pytest.raises(ConfigError, match=words):
            DIAS(**settings)  # type: ignore[arg-type]
