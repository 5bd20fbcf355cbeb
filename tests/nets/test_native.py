"""Native layers against torch in double precision, for every build this processor can run.

Most tests use small whole numbers: then every product and sum is exact in float32, so
results must be *equal*, ties in the pooling windows and zeros at the ReLU occur in plenty,
and no tolerance can hide an error.
"""

from __future__ import annotations

import itertools
import shutil
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ostraka.errors import ConfigError
from ostraka.nets import native
from ostraka.nets.native import library

LEVELS = library.built()
needs_native = pytest.mark.skipif(not LEVELS, reason=f"the native kernel is {library.describe()}")


@pytest.fixture(params=LEVELS or ["none"])
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with library.choose(request.param):
        yield request.param


def run(x: Tensor, blocks: Sequence[native.Block]) -> Tensor:
    """All layers in one native call, whatever would be faster."""
    return native.Call.of(x.shape, blocks).run(x)


def block_of(
    weight: Tensor, bias: Tensor | None, padding: int = 0, relu: bool = True, pool: bool = True
) -> native.Block:
    return native.Block(
        weight, bias, padding, "relu" if relu else "none", "max" if pool else "none"
    )


def conv_block(x: Tensor, weight: Tensor, bias: Tensor | None, **flags: Any) -> Tensor:
    return run(x, [block_of(weight, bias, **flags)])


def torch_block(x: Tensor, weight: Tensor, bias: Tensor | None, **flags: Any) -> Tensor:
    return native.torch_block(x, block_of(weight, bias, **flags))


def block(x: Tensor, weight: Tensor, bias: Tensor | None, **flags: Any) -> Tensor:
    return native.through(x, [block_of(weight, bias, **flags)])


def whole(*shape: int, seed: int, span: int = 3) -> Tensor:
    """Whole numbers -span..span."""
    return torch.randint(
        -span, span + 1, shape, generator=torch.Generator().manual_seed(seed)
    ).float()


def gradients(
    run: Any, inputs: list[Tensor], grad: Tensor | None, **flags: Any
) -> tuple[Tensor, ...]:
    """The output and the gradients of all inputs."""
    leaves = [
        t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in inputs
    ]
    y = run(*leaves, **flags)
    grad = torch.ones_like(y) if grad is None else grad.to(y.dtype)
    return (y.detach(), *torch.autograd.grad(y, leaves, grad))


def check_exact(
    batch: int, inputs: int, outputs: int, kernel: int, size: tuple[int, int], **flags: Any
) -> None:
    tensors = [
        whole(batch, inputs, *size, seed=1),
        whole(outputs, inputs, kernel, kernel, seed=2),
        whole(outputs, seed=3),
    ]
    with torch.no_grad():
        grad = whole(*torch_block(*tensors, **flags).shape, seed=4)
    expected = gradients(torch_block, [t.double() for t in tensors], grad, **flags)
    for name, ours, theirs in zip(
        "yxwb", gradients(conv_block, tensors, grad, **flags), expected, strict=True
    ):
        assert torch.equal(ours.double(), theirs), f"{name} differs: {(ours - theirs).abs().max()}"


def test_built_wherever_a_compiler_exists() -> None:
    """Otherwise a suite could pass quietly on the slow path."""
    compiler = (sysconfig.get_config_var("CXX") or "c++").split()[0]
    if shutil.which(compiler) or shutil.which("g++") or shutil.which("clang++"):
        assert LEVELS, (
            f"{library.describe()}, yet there is a compiler: "
            "run `python setup.py build_ext --inplace`"
        )


@needs_native
@pytest.mark.parametrize("batch", [1, 15, 16, 17, 64])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 6), (3, 6), (6, 16), (5, 7), (16, 1), (7, 3)])
def test_equals_torch(level: str, batch: int, inputs: int, outputs: int) -> None:
    for kernel, same, relu, pool in itertools.product(
        (3, 5), (False, True), (False, True), (False, True)
    ):
        padding = kernel // 2 if same else 0
        check_exact(batch, inputs, outputs, kernel, (11, 8), padding=padding, relu=relu, pool=pool)


@needs_native
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_equals_torch_for_any_shape(level: str, data: st.DataObject) -> None:
    draw = data.draw
    kernel = draw(st.sampled_from((3, 5)))
    side = st.integers(kernel + 1, 23)
    check_exact(
        draw(st.integers(1, 35)),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 19)),
        kernel,
        (draw(side), draw(side)),
        padding=draw(st.integers(0, kernel - 1)),
        relu=draw(st.booleans()),
        pool=draw(st.booleans()),
    )


@needs_native
@pytest.mark.parametrize(
    ("kernel", "padding", "side"), [(3, 0, 3), (5, 0, 5), (3, 1, 1), (5, 2, 1), (5, 4, 1)]
)
def test_smallest_images(level: str, kernel: int, padding: int, side: int) -> None:
    check_exact(3, 2, 2, kernel, (side, side), padding=padding, relu=True, pool=False)
    check_exact(3, 2, 2, kernel, (side + 1, side + 2), padding=padding, relu=True, pool=True)


@needs_native
@pytest.mark.parametrize("pool", [False, True])
def test_close_to_double_precision(level: str, pool: bool) -> None:
    """Ordinary real numbers; a margin keeps rounding from choosing another pixel of a window."""
    generator = torch.Generator().manual_seed(0)
    x, w, b, grad = (
        torch.randn(size, generator=generator)
        for size in [
            (33, 3, 32, 32),
            (6, 3, 5, 5),
            (6,),
            (33, 6, 14, 14) if pool else (33, 6, 28, 28),
        ]
    )
    flags: dict[str, Any] = {"padding": 0, "relu": False, "pool": pool}
    if pool:
        z = F.conv2d(x.double(), w.double(), b.double())
        windows = z.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4).topk(2).values
        grad = grad * (windows[..., 0] - windows[..., 1] > 1e-4)
    expected = gradients(torch_block, [x.double(), w.double(), b.double()], grad, **flags)
    for ours, theirs in zip(gradients(conv_block, [x, w, b], grad, **flags), expected, strict=True):
        assert torch.allclose(
            ours.double(), theirs, rtol=1e-5, atol=float(theirs.abs().max()) * 1e-5
        )


@needs_native
def test_any_strides(level: str) -> None:
    wide = whole(17, 9, 26, 12, seed=5)
    views = [
        wide[:, ::2, ::2],
        wide[:, 2:7, 3:16].contiguous(),
        wide[:, 2:7, 3:16].contiguous().permute(0, 1, 3, 2),
        wide[:, 2:7, 3:16].contiguous(memory_format=torch.channels_last),
        wide[:, 2:7, 3:16].permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
        wide[:1, 2:7, 3:16].expand(17, -1, -1, -1),
        wide[:, 2:7, 3:16].flip(3),
    ]
    w, b = whole(9, 5, 3, 3, seed=6).permute(0, 1, 3, 2), whole(18, seed=7)[::2]
    for x in views:
        y = conv_block(x, w, b, padding=1, relu=True, pool=True)
        assert torch.equal(y, torch_block(x, w, b, padding=1, relu=True, pool=True))


@needs_native
@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_pass_through_as_in_torch(level: str, bad: float, pool: bool) -> None:
    x, w, b = whole(17, 2, 9, 9, seed=12), whole(3, 2, 3, 3, seed=13), whole(3, seed=14)
    for relu, at in itertools.product((False, True), ((0, 0, 0, 0), (16, 1, 4, 5), (3, 1, 8, 8))):
        x_bad = x.clone()
        x_bad[at] = bad
        flags: dict[str, Any] = {"padding": 0, "relu": relu, "pool": pool}
        ours = gradients(conv_block, [x_bad, w, b], None, **flags)
        theirs = gradients(torch_block, [x_bad, w, b], None, **flags)
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one.isnan(), other.isnan())
            assert torch.equal(one.nan_to_num(), other.nan_to_num())


@needs_native
def test_nan_in_the_gradient_spreads_as_in_torch(level: str) -> None:
    tensors = [whole(3, 2, 9, 9, seed=12), whole(3, 2, 3, 3, seed=13), whole(3, seed=14)]
    grad = torch.ones(3, 3, 7, 7)
    grad[1, 2, 3, 3] = float("nan")
    ours = gradients(conv_block, tensors, grad, padding=0, relu=False, pool=False)
    theirs = gradients(torch_block, tensors, grad, padding=0, relu=False, pool=False)
    for one, other in zip(ours[2:], theirs[2:], strict=True):
        assert torch.equal(one.isnan(), other.isnan())
    assert ours[1][1].isnan().sum() == theirs[1][1].isnan().sum() == 2 * 9
    assert not ours[1][0].isnan().any()


@needs_native
def test_ties_take_the_first_pixel_and_zero_blocks_the_gradient(level: str) -> None:
    x = torch.ones(1, 1, 4, 4, requires_grad=True)
    w = torch.zeros(1, 1, 3, 3)
    w[0, 0, 1, 1] = 1.0
    conv_block(x, w, torch.zeros(1), padding=0, relu=True, pool=True).sum().backward()
    assert x.grad is not None
    assert x.grad.nonzero().tolist() == [[0, 0, 1, 1]]
    x.grad = None
    conv_block(x, w, torch.full((1,), -1.0), padding=0, relu=True, pool=True).sum().backward()
    assert x.grad is not None
    assert not x.grad.any()


class Spy:
    """Stands for the library and notes which gradients were asked for: x, or the number of a
    tensor.
    """

    def __init__(self, real: Any) -> None:
        self.ostraka_forward, self.ostraka_scratch = real.ostraka_forward, real.ostraka_scratch
        self.ostraka_kept, self.real, self.asked = real.ostraka_kept, real, list[str]()

    def ostraka_backward(self, *arguments: Any) -> None:
        numbers = [str(i) for i, address in enumerate(arguments[4]) if address is not None]
        self.asked.append("".join(["x"] * (arguments[5] is not None) + numbers))
        self.real.ostraka_backward(*arguments)


@needs_native
def test_only_requested_gradients_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(library.current())
    monkeypatch.setattr("ostraka.nets.native.op.current", lambda: spy)
    x, w, b = (
        t.requires_grad_()
        for t in (whole(3, 2, 6, 6, seed=1), whole(2, 2, 3, 3, seed=2), whole(2, seed=3))
    )

    def loss(image: Tensor = x) -> Tensor:
        return conv_block(image, w, b, padding=0, relu=True, pool=True).sum()

    torch.autograd.grad(loss(), x)
    torch.autograd.grad(loss(), [w, b])
    torch.autograd.grad(loss(x * 2), w)
    loss(x.detach()).backward()
    loss().backward()
    w.requires_grad_(False), b.requires_grad_(False)
    loss().backward()
    assert spy.asked == ["x", "01", "0", "01", "x01", "x"]


SEVERAL = (
    {"padding": 0, "relu": True, "pool": True},
    {"padding": 1, "relu": True, "pool": False},
    {"padding": 0, "relu": False, "pool": True},
)


def three_blocks(run: Any, x: Tensor, tensors: list[Tensor | None]) -> Tensor:
    """Three blocks; `run` takes them all at once."""
    pairs = zip(tensors[::2], tensors[1::2], SEVERAL, strict=True)
    return run(x, [block_of(w, b, **flags) for w, b, flags in pairs])  # type: ignore[arg-type]


def one_after_the_other(x: Tensor, blocks: Sequence[native.Block]) -> Tensor:
    for each in blocks:
        x = native.torch_block(x, each)
    return x


@needs_native
@pytest.mark.parametrize("asked", ["x", "0", "4", "x5", "02", "x01245"])
def test_several_blocks_in_one_go(level: str, asked: str) -> None:
    """Weights 0, 2, 4 and biases 1, 5 (the second block has none),
    and any of their gradients alone.
    """
    shapes = [(4, 2, 5, 5), (4,), (3, 4, 3, 3), None, (5, 3, 3, 3), (5,)]
    given = [None if s is None else whole(*s, seed=i, span=1) for i, s in enumerate(shapes)]
    x = whole(17, 2, 16, 16, seed=9, span=1)

    def found(run: Any, kind: torch.dtype) -> list[Tensor]:
        leaves = [None if t is None else t.to(kind, copy=True).requires_grad_() for t in given]
        image = x.to(kind, copy=True).requires_grad_()
        y = three_blocks(run, image, leaves)
        wanted = [image if a == "x" else leaves[int(a)] for a in asked]
        return [y, *torch.autograd.grad(y, wanted, whole(*y.shape, seed=7, span=1).to(kind))]  # type: ignore[arg-type]

    for ours, theirs in zip(
        found(run, torch.float32),
        found(one_after_the_other, torch.float64),
        strict=True,
    ):
        assert torch.equal(ours.double(), theirs)


@needs_native
def test_frozen_first_blocks_are_not_gone_back_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """With only the last block's weight to learn, that weight alone is asked for."""
    spy = Spy(library.current())
    monkeypatch.setattr("ostraka.nets.native.op.current", lambda: spy)
    tensors = [
        whole(4, 2, 5, 5, seed=0),
        None,
        whole(3, 4, 3, 3, seed=1),
        None,
        whole(5, 3, 3, 3, seed=2),
        None,
    ]
    assert tensors[4] is not None
    tensors[4].requires_grad_()
    three_blocks(run, whole(2, 2, 16, 16, seed=3), tensors).sum().backward()
    assert spy.asked == ["4"]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = (
            nn.Conv2d(1, 6, 5),
            nn.Conv2d(6, 8, 3, padding=1),
            nn.Linear(72, 4),
        )

    def forward(self, x: Tensor) -> Tensor:
        first = block_of(self.first.weight, self.first.bias)
        second = block_of(self.second.weight, self.second.bias, padding=1)
        return native.through(
            x, [first, second, native.Block(self.head.weight, self.head.bias, 0, "none")]
        )


def train() -> list[Tensor]:
    torch.manual_seed(0)
    net, x = Small(), torch.randn(50, 20, 1, 16, 16)
    labels = torch.randint(0, 4, (50, 20))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    for images, classes in zip(x, labels, strict=True):
        optimiser.zero_grad()
        F.cross_entropy(net(images), classes).backward()
        optimiser.step()
    return [p.detach() for p in net.parameters()]


@needs_native
def test_training_gives_the_same_weights_as_torch(level: str) -> None:
    ours = train()
    with native.disabled():
        theirs = train()
    assert any(not torch.equal(one, other) for one, other in zip(ours, theirs, strict=True)), (
        "same path ran twice"
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


@needs_native
def test_same_bits_on_repeat_and_from_two_threads() -> None:
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(s, generator=generator) for s in [(37, 3, 20, 20), (6, 3, 5, 5), (6,)]]
    flags: dict[str, Any] = {"padding": 0, "relu": True, "pool": True}
    expected = gradients(conv_block, tensors, None, **flags)
    results: list[tuple[Tensor, ...]] = []

    def work() -> None:
        results.extend(gradients(conv_block, tensors, None, **flags) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 40
    assert all(
        torch.equal(a, b) for result in results for a, b in zip(result, expected, strict=True)
    )


@needs_native
def test_batch_size_does_not_change_an_image() -> None:
    """Each image has its own lane, so its result does not depend on who shares the batch."""
    x, w, b = torch.randn(33, 3, 12, 12), torch.randn(6, 3, 5, 5), torch.randn(6)
    flags: dict[str, Any] = {"padding": 2, "relu": True, "pool": True}
    together = conv_block(x, w, b, **flags)
    for i in (0, 16, 32):
        assert torch.equal(together[i : i + 1], conv_block(x[i : i + 1], w, b, **flags))


def test_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 3, 3)
    monkeypatch.setenv(library.SWITCH, "0")
    assert not native.available()
    assert native.describe() == "switched off by OSTRAKA_NATIVE=0"
    monkeypatch.delenv(library.SWITCH)
    with native.disabled():
        assert not native.available()
        assert not native.usable(x, [block_of(w, None)])
        with pytest.raises(RuntimeError, match="switched off"):
            conv_block(x, w, None, padding=0, relu=True, pool=True)
    assert native.available() == bool(LEVELS)
    assert native.usable(x, [block_of(w, None)]) == bool(LEVELS)
    with (
        library.choose("v9"),
        pytest.raises(ConfigError, match=r"OSTRAKA_NATIVE=v9 .* allowed: 0, 1"),
    ):
        native.available()


def test_a_level_above_the_processor_is_never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        def ostraka_cpu_level(self) -> int:
            return 3

    opened: list[str] = []
    monkeypatch.setattr(library, "_find", lambda level: Path(level))

    def open_level(level: str) -> Old:
        opened.append(level)
        return Old()

    monkeypatch.setattr(library, "_open", open_level)
    assert library.built() == ("v3", "base")
    assert library._resolve.__wrapped__("")[1] == "native x86-64-v3 (AVX2)"
    assert set(opened) == {"base", "v3"}
    with pytest.raises(
        ConfigError, match="OSTRAKA_NATIVE=v4 is not possible here; allowed: 0, 1, base, v3"
    ):
        library._resolve.__wrapped__("v4")


def test_worth_it_chooses_the_measured_winner() -> None:
    assert native.worth_it((6, 3, 5, 5), (32, 32))
    assert native.worth_it((16, 6, 5, 5), (14, 14))
    assert native.worth_it((64, 32, 5, 5), (14, 14))
    assert not native.worth_it((64, 64, 3, 3), (16, 16))


@needs_native
def test_second_derivatives_are_refused_aloud() -> None:
    x = whole(2, 1, 8, 8, seed=1).requires_grad_()
    y = conv_block(x * x, whole(1, 1, 3, 3, seed=2), None, padding=0, relu=True, pool=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


@needs_native
def test_a_graph_outlives_the_switch() -> None:
    x = whole(2, 1, 8, 8, seed=1).requires_grad_()
    y = conv_block(x, whole(1, 1, 3, 3, seed=2), None, padding=0, relu=True, pool=True)
    with native.disabled():
        y.sum().backward()
    assert x.grad is not None


@needs_native
def test_usable_refuses_what_the_kernel_cannot_take() -> None:
    x, w = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 3, 3)
    assert native.usable(x, [block_of(nn.Parameter(w), None)])
    refused = [
        (x.double(), w.double()),
        (x, w.half()),
        (x.to("meta"), w.to("meta")),
        (x, torch.zeros(1, 1, 7, 7)),
        (x, torch.zeros(1, 1, 3, 5)),
        (x[0], w),
    ]
    assert not any(native.usable(image, [block_of(weight, None)]) for image, weight in refused)
    seen: list[bool] = []

    def look(image: Tensor) -> Tensor:
        seen.append(native.usable(image[None], [block_of(w, None)]))
        return image

    torch.vmap(look)(x)
    with torch.autocast("cpu"):
        seen.append(native.usable(x, [block_of(w, None)]))
    with torch._subclasses.FakeTensorMode() as mode:
        seen.append(native.usable(mode.from_tensor(x), [block_of(mode.from_tensor(w), None)]))
    assert seen == [False, False, False]


def test_block_runs_everywhere() -> None:
    flags: dict[str, Any] = {"padding": 1, "relu": True, "pool": True}
    for device, dtype in (("cpu", torch.float64), ("meta", torch.float32), ("cpu", torch.float32)):
        x, w = (
            torch.zeros(2, 3, 8, 8, device=device, dtype=dtype),
            torch.zeros(4, 3, 3, 3, device=device, dtype=dtype),
        )
        assert block(x, w, None, **flags).shape == (2, 4, 4, 4)


@needs_native
@pytest.mark.parametrize(
    ("x", "w", "b", "padding", "message"),
    [
        ((2, 3, 8, 8), (4, 2, 3, 3), (4,), 0, "does not fit"),
        ((2, 3, 8, 8), (4, 3, 7, 7), (4,), 0, "not supported"),
        ((2, 3, 8, 8), (4, 3, 3, 3), (3,), 0, "bias"),
        ((2, 3, 8, 8), (4, 3, 3, 3), (4,), 3, "padding"),
        ((2, 3, 3, 8), (4, 3, 3, 3), (4,), 0, "too small"),
    ],
)
def test_mistakes_are_named(
    x: tuple[int, ...], w: tuple[int, ...], b: tuple[int, ...], padding: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        conv_block(
            torch.zeros(x), torch.zeros(w), torch.zeros(b), padding=padding, relu=True, pool=True
        )


@needs_native
def test_an_empty_batch_gives_empty_results_and_zero_gradients() -> None:
    tensors = [torch.zeros(0, 3, 8, 8), torch.ones(4, 3, 3, 3), torch.ones(4)]
    y, x, w, b = gradients(conv_block, tensors, None, padding=0, relu=True, pool=True)
    assert y.shape == (0, 4, 3, 3)
    assert x.shape == (0, 3, 8, 8)
    assert not w.any()
    assert not b.any()


def test_linear_layers_alone_are_torchs_without_further_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To ask whether the kernel can take them costs a small network a few percent of its step."""
    asked: list[int] = []
    monkeypatch.setattr("ostraka.nets.native.blocks.usable", lambda x, blocks: asked.append(1))
    layers = [native.Block(torch.rand(3, 4), None), native.Block(torch.rand(2, 3), None)]
    assert native.native(torch.rand(5, 4), layers) is None
    y = native.through(torch.rand(5, 2, 2), layers)
    assert y.shape == (5, 2)
    assert asked == []
    native.native(torch.rand(1, 1, 8, 8), [native.Block(torch.rand(2, 1, 3, 3), None)])
    assert asked == [1]
