"""Whole networks in native calls against plain torch: random descriptions of layers, the losses of
a step, and the attack.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ostraka.core.net import Recipe
from ostraka.core.objective import Batch
from ostraka.nets import native
from ostraka.nets.layered import Layered, NativeStep, Pairs, native_step
from ostraka.nets.native import library
from ostraka.nets.native.plan import ACTIVATIONS, POOLS
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import DESTROYED, OpenVoting
from ostraka.objectives.proser import Proser

LEVELS = library.built()
pytestmark = pytest.mark.skipif(not LEVELS, reason=f"the native kernel is {library.describe()}")


@pytest.fixture(params=LEVELS or ["none"])
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with library.choose(request.param):
        yield request.param


@st.composite
def networks(draw: Any) -> tuple[tuple[int, ...], list[native.Block]]:
    """The shape of a batch and layers that fit: convolutions while there is room, then linear."""
    rng = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    shape = [draw(st.integers(1, 4)), draw(st.integers(4, 15)), draw(st.integers(4, 15))]
    batch, blocks = draw(st.integers(1, 35)), list[native.Block]()
    whole = (batch, *shape)

    def tensors(*sizes: int) -> tuple[Tensor, Tensor | None]:
        scale = prod(sizes[1:]) ** -0.5
        bias = torch.randn(sizes[0], generator=rng) if draw(st.booleans()) else None
        return torch.randn(sizes, generator=rng) * scale, bias

    for _ in range(draw(st.integers(0, 3))):
        kernel, pool = draw(st.sampled_from((3, 5))), draw(st.sampled_from(POOLS))
        padding, outputs = draw(st.integers(0, kernel - 1)), draw(st.integers(1, 13))
        sides = [side + 2 * padding - kernel + 1 for side in shape[1:]]
        if min(sides) < (1 if pool == "none" else 2):
            break
        weight, bias = tensors(outputs, shape[0], kernel, kernel)
        blocks.append(native.Block(weight, bias, padding, draw(st.sampled_from(ACTIVATIONS)), pool))
        shape = [outputs, *(side if pool == "none" else side // 2 for side in sides)]
    width = prod(shape)
    for _ in range(draw(st.integers(0 if blocks else 1, 3))):
        outputs = draw(st.integers(1, 40))
        weight, bias = tensors(outputs, width)
        blocks.append(native.Block(weight, bias, 0, draw(st.sampled_from(ACTIVATIONS))))
        width = outputs
    return whole, blocks


def in_torch(x: Tensor, blocks: list[native.Block]) -> Tensor:
    for block in blocks:
        x = native.torch_block(x, block)
    return x


def with_gradients(run: Any, x: Tensor, blocks: list[native.Block], kind: torch.dtype) -> list:
    leaves = [
        b._replace(
            weight=b.weight.to(kind, copy=True).requires_grad_(),
            bias=None if b.bias is None else b.bias.to(kind, copy=True).requires_grad_(),
        )
        for b in blocks
    ]
    x = x.to(kind, copy=True).requires_grad_()
    y = run(x, leaves)
    grad = torch.randn(y.shape, generator=torch.Generator().manual_seed(5)).to(kind)
    wanted = [x, *(t for b in leaves for t in (b.weight, b.bias) if t is not None)]
    return [y.detach(), *torch.autograd.grad(y, wanted, grad)]


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(network=networks(), seed=st.integers(0, 1000))
def test_any_description_gives_torchs_values_and_gradients(
    level: str, network: tuple[tuple[int, ...], list[native.Block]], seed: int
) -> None:
    """Values of a normal distribution; two of a window or a value and 0 hardly ever come so close
    that rounding decides (in float64 none of them is below 1e-5 in these draws: if one is, the
    gradient there is not compared). The slope of tanh, 1 - y², has the rounding error of 1 however
    small it is, so errors are measured by the gradients that there would be without tanh.
    """
    shape, blocks = network
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    ours = with_gradients(lambda x, b: native.Call.of(x.shape, b).run(x), x, blocks, torch.float32)
    theirs = with_gradients(in_torch, x, blocks, torch.float64)
    torch.testing.assert_close(ours[0].double(), theirs[0], rtol=1e-4, atol=1e-5)
    if decided(x.double(), blocks):
        free = [b._replace(activation=b.activation.replace("tanh", "none")) for b in blocks]
        steep = with_gradients(in_torch, x, free, torch.float64)
        for one, other, most in zip(ours[1:], theirs[1:], steep[1:], strict=True):
            scale = max(float(other.abs().max()), float(most.abs().max()))
            torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-5 * scale + 1e-9)


def decided(x: Tensor, blocks: list[native.Block]) -> bool:
    """Whether no ReLU and no pooling window hangs on rounding."""
    for block in blocks:
        exact = block._replace(
            weight=block.weight.double(), bias=None if block.bias is None else block.bias.double()
        )
        plain = native.torch_block(x, exact._replace(activation="none", pool="none"))
        if block.activation == "relu" and float(plain.abs().min()) < 1e-5:
            return False
        if block.pool == "max":
            best = plain.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4).topk(2).values
            if float((best[..., 0] - best[..., 1]).min()) < 1e-5:
                return False
        x = native.torch_block(x, exact)
    return True


def test_tanh_is_exact_from_tiny_to_huge_values(level: str) -> None:
    """Within three units of the last place of tanh in float64, and a NaN stays one."""
    x = torch.cat([torch.logspace(-30, 2, 400), torch.linspace(0, 12, 400)])
    x = torch.cat([x, -x, torch.tensor([0.0, float("inf"), float("-inf")])])[:, None]
    block = native.Block(torch.ones(1, 1), None, 0, "tanh")
    ours = native.Call.of(x.shape, [block]).run(x)
    theirs = x.double().tanh()
    assert float(((ours.double() - theirs).abs() / theirs.abs().clamp(min=1e-40)).max()) < 4e-7
    bad = torch.full((1, 1), float("nan"))
    assert native.Call.of(bad.shape, [block]).run(bad).isnan().all()


def smooth(outputs: int = 4) -> list[native.Block]:
    """Layers without kinks, so that no sign hangs on rounding."""
    rng = torch.Generator().manual_seed(3)
    sizes = ((5, 2, 3, 3), (7, 5 * 5 * 5), (outputs, 7))
    weights = [torch.randn(s, generator=rng) * prod(s[1:]) ** -0.5 for s in sizes]
    biases = [torch.randn(s[0], generator=rng).requires_grad_() for s in sizes]
    for weight in weights:
        weight.requires_grad_()
    return [
        native.Block(weights[0], biases[0], 1, "tanh", "mean"),
        native.Block(weights[1], biases[1], 0, "tanh"),
        native.Block(weights[2], biases[2], 0, "none"),
    ]


def plain_climb(x: Tensor, blocks: list[native.Block], climb: native.Climb) -> Tensor:
    exact = [b._replace(weight=b.weight.double(), bias=b.bias.double()) for b in blocks]
    x = x.double()
    for _ in range(climb.steps):
        x = x.detach().requires_grad_()
        loss = F.cross_entropy(in_torch(x, exact), torch.full((len(x),), 3), reduction="sum")
        x = x + climb.size * torch.autograd.grad(loss, x)[0].sign()
        if climb.clamp is not None:
            x = x.clamp(*climb.clamp)
    return x.detach()


@pytest.mark.parametrize("clamp", [None, (-0.5, 0.75)])
@pytest.mark.parametrize("batch", [1, 16, 19])
def test_the_attack_takes_the_signs_of_the_gradient(
    level: str, batch: int, clamp: tuple[float, float] | None
) -> None:
    blocks, climb = smooth(), native.Climb(3, 0.1, clamp)
    x = torch.randn(batch, 2, 10, 10, generator=torch.Generator().manual_seed(batch))
    found = native.Call.of(x.shape, blocks).climbed(x, climb)
    expected = plain_climb(x, blocks, climb)
    same = (found.double() - expected).abs() < 1e-5
    assert same.double().mean() > 0.999
    first = native.Call.of((batch, 7), blocks[2:]).climbed(x.flatten(1)[:, :7], climb)
    flat = plain_climb(x.flatten(1)[:, :7], blocks[2:], climb)
    assert torch.allclose(first.double(), flat, atol=1e-5)
    assert torch.equal(native.Call.of(x.shape, blocks).climbed(x, climb._replace(steps=0)), x)


@pytest.mark.parametrize(("w_start", "w_end"), [(0.7, 1.3), (0.0, 2.0), (0.5, 0.0)])
def test_the_losses_around_the_attack_and_their_gradients(
    level: str, w_start: float, w_end: float
) -> None:
    blocks, climb = smooth(), native.Climb(2, 0.05)
    x = torch.randn(19, 2, 10, 10, generator=torch.Generator().manual_seed(0))
    call = native.Call.of(x.shape, blocks)
    grads = native.Gradients(call.tensors)
    loss = call.climb(x, climb, w_start, w_end, grads)
    unknown, moved = torch.full((19,), 3), call.climbed(x, climb)
    expected = w_start * F.cross_entropy(in_torch(x, blocks), unknown)
    expected = expected + w_end * F.cross_entropy(in_torch(moved, blocks), unknown)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    tensors = [t for b in blocks for t in (b.weight, b.bias)]
    for one, other in zip(grads.pieces(), torch.autograd.grad(expected, tensors), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_gradients_add_up_and_those_not_wanted_are_left_out(level: str) -> None:
    blocks = smooth()
    blocks[1].weight.requires_grad_(False)
    x, labels = torch.randn(5, 2, 10, 10), torch.tensor([0, 1, 2, 3, 0])
    call, lesson = native.Call.of(x.shape, blocks), native.Lesson(5, 0.2, 0.0, 0.0)
    grads = native.Gradients(call.tensors)
    once = call.learn(x, labels, lesson, grads, None)
    first = grads.flat.clone()
    assert call.learn(x, labels, lesson, grads, None) == once
    torch.testing.assert_close(grads.flat, 2 * first)
    assert len(grads.pieces()) == 5


def test_a_label_that_does_not_exist_is_no_silent_loss() -> None:
    blocks, x = smooth(), torch.zeros(2, 2, 10, 10)
    call = native.Call.of(x.shape, blocks)
    loss = call.learn(
        x,
        torch.tensor([0, 4]),
        native.Lesson(2, 0.5, 0.0, 0.0),
        native.Gradients(call.tensors),
        None,
    )
    assert loss != loss


def simple(shape: tuple[int, ...] = (1, 16, 16), name: str = "simple-cnn") -> Layered:
    net = Recipe(name).build_net(shape, 4, True, 0)
    assert isinstance(net, Layered)
    return net


def loss_and_gradients(net: Layered, objective: Any, batch: Batch) -> tuple[float, list[Tensor]]:
    net.zero_grad()
    loss = objective.loss(net, batch, torch.Generator().manual_seed(1))
    (2 * loss).backward()
    return float(loss.detach()), [p.grad for p in net.parameters()]  # type: ignore[misc]


@pytest.mark.parametrize(
    "objective",
    [
        CrossEntropy(),
        Proser(),
        Proser(w_mix=0.0),
        Proser(w_second=0.0, w_mix=1.5),
        OpenVoting(steps=1),
        OpenVoting(steps=1, w_destroyed=0.0),
        OpenVoting(w_adversarial=0.0, w_destroyed=0.4),
        OpenVoting(outliers="none"),
    ],
    ids=str,
)
@pytest.mark.parametrize("labels", [(0, 1, 2, 3, 0, 1, 1, 2) * 3, (2, 2, 2)], ids=["many", "one"])
def test_a_native_step_is_the_torch_step(objective: Any, labels: tuple[int, ...]) -> None:
    """One attack step at most: after more, a sign may flip where a gradient is 0 up to rounding."""
    net, rng = simple(), torch.Generator().manual_seed(4)
    x = torch.rand(len(labels), 1, 16, 16, generator=rng)
    extra = {DESTROYED: torch.rand(x.shape, generator=rng)} if hasattr(objective, "steps") else {}
    batch = Batch(x, torch.tensor(labels), extra)
    loss, gradients = loss_and_gradients(net, objective, batch)
    with native.disabled():
        assert native_step(net, x) is None
        expected, theirs = loss_and_gradients(net, objective, batch)
    assert loss == pytest.approx(expected, rel=1e-5)
    for one, other in zip(gradients, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=1e-4 * float(other.abs().max()))


def test_steps_are_native_where_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would compare torch with itself."""
    seen: list[str] = []
    for name in ("learn", "learn_mixed", "climb"):
        real = getattr(NativeStep, name)
        monkeypatch.setattr(
            NativeStep, name, lambda *a, real=real, name=name: (seen.append(name), real(*a))[1]
        )
    x, y = torch.rand(4, 1, 28, 28), torch.tensor([0, 1, 2, 3])
    for name in ("simple-cnn", "lenet5"):
        net = simple((1, 28, 28), name)
        objective, batch = OpenVoting(), Batch(x, y, {DESTROYED: x})
        objective.loss(net, batch, torch.Generator().manual_seed(0))
        CrossEntropy().loss(net, batch, torch.Generator())
    assert seen == ["learn_mixed", "climb", "learn"] * 2
    assert native_step(simple((1, 28, 28), "mlp"), x) is None
    assert native_step(Recipe("digits").build_net((1, 28, 28), 4, True, 0), x) is None


def test_mixed_rows_share_their_gradient_with_both_partners() -> None:
    """0.3 of one and 0.7 of the other, and a large weight: torch's gradients come out."""
    net = simple()
    x, y = torch.rand(3, 1, 16, 16), torch.tensor([0, 1, 2])
    pairs = Pairs(torch.tensor([0, 2]), torch.tensor([1, 0]), 0.3)
    step = native_step(net, x)
    assert step is not None
    step.learn_mixed(x, y, pairs, 0.0, 5.0)
    hidden = net.early(x)
    mixed = 0.3 * hidden[pairs.rows] + 0.7 * hidden[pairs.partners]
    loss = F.cross_entropy(net(x), y) + 5 * F.cross_entropy(net.late(mixed), torch.tensor([4, 4]))
    assert step.loss == pytest.approx(float(loss.detach()), rel=1e-5)
    expected = torch.autograd.grad(loss, list(net.parameters()))
    for one, other in zip(
        torch.autograd.grad(step.total(), list(net.parameters())), expected, strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["simple-cnn", "lenet5", "mlp"])
def test_the_same_bits_on_every_run(name: str) -> None:
    net = simple((1, 28, 28), name)
    x = torch.rand(37, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    batch = Batch(x, torch.arange(37) % 4, {DESTROYED: x.flip(0)})
    first = loss_and_gradients(net, OpenVoting(), batch)
    torch.rand(2_000_000)  # other memory
    again = loss_and_gradients(net, OpenVoting(), batch)
    assert first[0] == again[0]
    assert all(torch.equal(a, b) for a, b in zip(first[1], again[1], strict=True))
