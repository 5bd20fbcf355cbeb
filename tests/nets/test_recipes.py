"""Network recipes: shapes, the unknown output, the cut for mixing, equal seeds, and refusals."""

import pytest
import torch
import torch.nn.functional as F

from ostraka.core.net import Net, Recipe
from ostraka.core.seeds import torch_rng
from ostraka.errors import ConfigError
from ostraka.nets import native
from ostraka.registry import NETS

CASES = [
    ("simple-cnn", {}, (1, 28, 28)),
    ("simple-cnn", {}, (3, 32, 32)),
    ("simple-cnn", {}, (1, 16, 16)),
    ("simple-cnn", {}, (1, 50, 16)),
    ("simple-cnn", {"padding": "same"}, (1, 8, 8)),
    ("lenet5", {}, (1, 28, 28)),
    ("lenet5", {"norm": "batch"}, (3, 32, 32)),
    ("lenet5", {"norm": "group"}, (3, 32, 32)),
    ("mlp", {"hidden": [9]}, (7,)),
    ("mlp", {}, (1, 8, 8)),
    ("vgg9", {}, (3, 32, 32)),
    ("vgg9", {}, (1, 28, 28)),
    ("vgg11", {}, (3, 32, 32)),
    ("fedova-cnn", {}, (1, 28, 28)),
    ("fedova-cnn", {"hidden": 0}, (3, 12, 9)),
    ("kws-cnn", {}, (1, 50, 16)),
    ("kws-cnn", {}, (2, 3, 9)),
    ("conv4", {}, (3, 32, 32)),
    ("conv4", {"width": 3}, (1, 28, 16)),
    ("digits", {"width": 0.25}, (3, 28, 28)),
    ("digits", {"width": 0.05}, (1, 8, 8)),
    ("digits", {"width": 0.05}, (1, 12, 33)),
    ("wideresnet", {}, (3, 32, 32)),
    ("wideresnet", {"depth": 10, "width": 2}, (1, 9, 8)),
    ("resnet50", {"width": 2}, (3, 32, 32)),
    ("resnet18", {"width": 4, "norm": "group"}, (1, 9, 8)),
    ("resnet", {}, (1, 28, 28)),
    ("densenet121", {"growth": 2}, (3, 16, 17)),
    ("densenet", {"depth": 10, "norm": "group"}, (1, 8, 8)),
    ("dla", {"width": 2, "norm": "group"}, (1, 9, 8)),
    ("dla-small", {"width": 2}, (3, 9, 8)),
]


def build(
    name: str, options: dict[str, object], shape: tuple[int, ...], unknown: bool, seed: int = 0
) -> Net:
    return Recipe(name, options).build_net(shape, 4, unknown, seed).eval()


@pytest.mark.parametrize(("name", "options", "shape"), CASES)
@pytest.mark.parametrize("unknown", [False, True])
def test_outputs_and_cut(
    name: str, options: dict[str, object], shape: tuple[int, ...], unknown: bool
) -> None:
    """4 classes give 4 outputs, or 5 with unknown; late after early,
    and head after embed, are the whole network.
    """
    net, x = build(name, options, shape, unknown), torch.rand(3, *shape)
    logits = net(x)
    assert logits.shape == (3, 4 + unknown)
    torch.testing.assert_close(net.late(net.early(x)), logits)
    torch.testing.assert_close(net.head(net.embed(x)), logits)


def test_every_net_is_covered() -> None:
    assert {name for name, _, _ in CASES} == set(NETS.names())


def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    one, two, other = (build("mlp", {}, (5,), True, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert any(not torch.equal(one[k], other[k]) for k in one)
    assert torch.equal(torch.rand(1), expected)


def test_digits_has_the_papers_widths() -> None:
    """Convolutions 64, 64, 128; 128 channels of 7x7 are 6272 values; linear 2048, 512;
    six classes and unknown.
    """
    shapes = {
        k: tuple(v.shape)
        for k, v in Recipe("digits").build_net((3, 28, 28), 6, True, 0).state_dict().items()
    }
    assert [shapes[f"conv{i}.weight"] for i in (1, 2, 3)] == [
        (64, 3, 5, 5),
        (64, 64, 5, 5),
        (128, 64, 5, 5),
    ]
    assert [shapes[f"fc{i}.weight"] for i in (1, 2, 3)] == [(2048, 6272), (512, 2048), (7, 512)]
    hidden = build("digits", {}, (3, 28, 28), True).early(torch.rand(2, 3, 28, 28))
    assert hidden.shape == (2, 64, 7, 7)


@pytest.mark.parametrize(
    ("name", "options", "shape", "weights"),
    [
        # 25 * 16 + 16, 25 * 16 * 32 + 32, 7 * 7 * 32 * 512 + 512, 512 * 10 + 10
        ("fedova-cnn", {}, (1, 28, 28), 416 + 12_832 + 803_328 + 5_130),
        # ... and without the hidden layer 7 * 7 * 32 * 10 + 10
        ("fedova-cnn", {"hidden": 0}, (1, 28, 28), 416 + 12_832 + 15_690),
        # 9 * 16 + 16, 9 * 16 * 32 + 32, 9 * 32 * 64 + 64, 50 * 2 * 64 * 256 + 256, 256 * 10 + 10
        ("kws-cnn", {}, (1, 50, 16), 160 + 4_640 + 18_496 + 1_638_656 + 2_570),
        # eight convolutions, 512 * 512 + 512 twice, 512 * 10 + 10
        (
            "vgg11",
            {},
            (3, 32, 32),
            1_792 + 73_856 + 295_168 + 590_080 + 1_180_160 + 3 * 2_359_808 + 2 * 262_656 + 5_130,
        ),
    ],
)
def test_fedovas_networks_have_the_weights_of_their_layers(
    name: str, options: dict[str, object], shape: tuple[int, ...], weights: int
) -> None:
    net = Recipe(name, options).build_net(shape, 10, False, 0)
    assert sum(p.numel() for p in net.parameters()) == weights


def test_kws_cnn_keeps_the_frames_and_halves_the_coefficients() -> None:
    """50 frames of 16 coefficients are 50 x 2 places of 64 channels at the cut; a value is the
    largest of two neighbours in a row after ReLU.
    """
    net = build("kws-cnn", {}, (1, 50, 16), False)
    x = inputs = torch.randn(2, 1, 50, 16)
    for i in range(3):
        y = net.get_submodule(f"convs.{i}")(x).relu()
        x = torch.maximum(y[..., 0::2], y[..., 1::2])
    assert x.shape == (2, 64, 50, 2)
    torch.testing.assert_close(net.early(inputs), x.flatten(1))


@pytest.mark.parametrize("norm", ["none", "batch", "group"])
def test_lenet5_by_its_weights(norm: str) -> None:
    """Convolutions of 6, 16 and 120 channels, each normalised before its tanh; the first two are
    halved by means. Batch norm after training scales each channel by itself; group norm has 2, 4
    and 30 groups.
    """
    net = build("lenet5", {"norm": norm}, (3, 32, 32), True).eval()
    held = {
        key: torch.rand(tensor.shape, generator=torch_rng(0, key)) / (25 if tensor.dim() > 1 else 1)
        for key, tensor in net.state_dict().items()
    }
    net.load_state_dict(held)
    x = inputs = torch.randn(4, 3, 32, 32)
    for i, groups in ((1, 2), (2, 4), (3, 30)):
        x = F.conv2d(x, held[f"conv{i}.weight"], held[f"conv{i}.bias"])
        own = [held.get(f"norm{i}.{name}") for name in ("weight", "bias")]
        if norm == "batch":
            mean, variance = held[f"norm{i}.running_mean"], held[f"norm{i}.running_var"]
            x = F.batch_norm(x, mean, variance, *own)
        if norm == "group":
            x = F.group_norm(x, groups, *own)
        x = x.tanh() if i == 3 else F.avg_pool2d(x.tanh(), 2)
    hidden = (x.flatten(1) @ held["fc1.weight"].T + held["fc1.bias"]).tanh()
    expected = hidden @ held["fc2.weight"].T + held["fc2.bias"]
    torch.testing.assert_close(net(inputs), expected, rtol=1e-4, atol=1e-4)
    layers = 456 + 2_416 + 48_120 + 10_164 + 85 * 5
    normed = 0 if norm == "none" else 2 * (6 + 16 + 120)
    assert sum(p.numel() for p in net.parameters()) == layers + normed


def test_conv4_has_the_stated_layers() -> None:
    """Channels 16, 32, 64, 64; 32x32 pixels halved four times are 2x2: 64 * 4 = 256 values."""
    shapes = {
        k: tuple(v.shape)
        for k, v in Recipe("conv4").build_net((3, 32, 32), 6, True, 0).state_dict().items()
    }
    convolutions = [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3)]
    assert [shapes[f"convs.{i}.weight"] for i in range(4)] == convolutions
    assert [shapes[f"fc{i}.weight"] for i in (1, 2, 3)] == [(128, 256), (84, 128), (7, 84)]


@pytest.mark.parametrize(
    ("depth", "width", "convolutions", "last"), [(16, 1, 15, 64), (28, 2, 28, 128)]
)
def test_wideresnet_has_the_papers_layers(
    depth: int, width: int, convolutions: int, last: int
) -> None:
    """A depth of 6n + 4 counts three convolutions for n = 0 and the last layer.

    Those of changed width come on top: two with the original width, three with a wider first stage.
    The first weights are 16 filters.
    """
    net = build("wideresnet", {"depth": depth, "width": width}, (3, 32, 32), False)
    shapes = [tuple(p.shape) for p in net.parameters() if p.dim() == 4]
    assert shapes[0] == (16, 3, 3, 3)
    assert len(shapes) == convolutions
    assert net.embed(torch.rand(2, 3, 32, 32)).shape == (2, last)
    assert net.early(torch.rand(2, 3, 32, 32)).shape == (2, last // 2, 16, 16)


@pytest.mark.parametrize("name", ["simple-cnn", "conv4", "vgg9"])
def test_native_and_torch_paths_agree(name: str) -> None:
    if not native.available():
        pytest.skip(native.describe())
    net, x = build(name, {}, (3, 32, 32), True), torch.rand(5, 3, 32, 32)
    fast = net(x)
    with native.disabled():
        slow = net(x)
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "options", "shape"), CASES)
@pytest.mark.parametrize("inner", [False, True])
def test_the_input_gradient_is_autograds(
    name: str, options: dict[str, object], shape: tuple[int, ...], inner: bool
) -> None:
    """Of the sum of (logits^2 / 2): its gradient in the logits is the logits.

    In both memory orders of images.
    """
    net = Recipe(name, options).build_net(shape, 5, unknown=True, seed=3).double().eval()
    x = torch.randn(
        7, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    ).requires_grad_()
    (expected,) = torch.autograd.grad(net(x).square().sum() / 2, x)
    net.float()
    images = x.detach().float()
    if inner:
        images = images.movedim(0, -1).contiguous().movedim(-1, 0)
    found = net.input_gradient(images, lambda logits: logits.clone())
    torch.testing.assert_close(
        found.double(), expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max())
    )
    assert not found.requires_grad
    assert all(p.grad is None for p in net.parameters())


def test_batch_norm_and_dropout_mix_a_batch() -> None:
    assert build("lenet5", {"norm": "batch"}, (1, 28, 28), False).mixes_batch()
    assert build("vgg9", {}, (1, 28, 28), False).mixes_batch()
    assert not build("simple-cnn", {}, (1, 28, 28), False).mixes_batch()
    assert not build("lenet5", {"norm": "group"}, (1, 28, 28), False).mixes_batch()


@pytest.mark.parametrize(
    ("name", "options", "shape", "words"),
    [
        ("simple-cnn", {}, (1, 8, 8), "net.padding=same"),
        ("simple-cnn", {}, (20,), "Try mlp"),
        ("simple-cnn", {"padding": "full"}, (1, 28, 28), "allowed: valid, same"),
        ("lenet5", {"norm": "layer"}, (1, 28, 28), "allowed: none, batch, group"),
        ("lenet5", {}, (1, 16, 16), "at least 28x28"),
        ("mlp", {"hidden": []}, (4,), "at least one"),
        ("mlp", {"depth": 3}, (4,), "unknown setting 'net.depth'. Settings of the net mlp: hidden"),
        ("vgg9", {}, (3, 4, 4), "at least 8x8"),
        ("conv4", {}, (3, 15, 32), "at least 16x16"),
        ("digits", {}, (3, 3, 28), "at least 4x4"),
        ("digits", {"width": 0}, (3, 28, 28), "above 0"),
        ("digits", {}, (20,), "Try mlp"),
        ("wideresnet", {"depth": 18}, (3, 32, 32), "6n"),
        ("wideresnet", {"width": 0}, (3, 32, 32), "'net.width' is 0; it must be at least 1"),
        ("wideresnet", {}, (3, 3, 3), "at least 4x4"),
        ("resnet50", {}, (3, 7, 8), "halves images 3 times: at least 8x8; these are 7x8"),
        ("resnet", {"depth": 9}, (3, 32, 32), "is 9; resnet takes .*, such as 8 or 14"),
        ("resnet", {"norm": "none"}, (3, 32, 32), "allowed: batch, group"),
        ("densenet", {"depth": 23}, (3, 32, 32), "is 23; densenet takes .*, such as 22 or 28"),
        ("densenet121", {"growth": 0}, (3, 32, 32), "'net.growth' is 0; it must be at least 1"),
        ("dla", {}, (20,), "Try mlp"),
    ],
)
def test_refusals_say_what_to_do(
    name: str, options: dict[str, object], shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        build(name, options, shape, False)


def test_unknown_net_suggests_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'simple-cnn'"):
        build("simple-cn", {}, (1, 28, 28), False)
