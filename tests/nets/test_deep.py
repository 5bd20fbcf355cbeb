"""ResNet, DenseNet and DLA: weights by hand and as published, blocks by hand."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Params, Recipe
from ostraka.nets.densenet import Dense
from ostraka.nets.dla import FullTree, SimpleTree
from ostraka.nets.resnet import Residual, bent
from ostraka.nets.staged import norm_of


def conv(inputs: int, outputs: int, kernel: int) -> int:
    """Weights of a convolution without a bias, and of the norm behind it."""
    return inputs * outputs * kernel * kernel + 2 * outputs


def last(inputs: int) -> int:
    """Weights of the linear layer for ten classes."""
    return inputs * 10 + 10


def basic(inputs: int, width: int, shortcut: bool) -> int:
    own = conv(inputs, width, 3) + conv(width, width, 3)
    return own + (conv(inputs, width, 1) if shortcut else 0)


def resnet50() -> int:
    total, inputs = conv(3, 64, 3), 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        total += conv(inputs, 4 * width, 1)  # the stage's shortcut
        for _ in range(blocks):
            total += conv(inputs, width, 1) + conv(width, width, 3) + conv(width, 4 * width, 1)
            inputs = 4 * width
    return total + last(2048)


def resnet18() -> int:
    total = conv(3, 64, 3) + 2 * basic(64, 64, False)
    for width in (128, 256, 512):
        total += basic(width // 2, width, True) + basic(width, width, False)
    return total + last(512)


def resnet(blocks: int) -> int:
    total = conv(3, 16, 3) + blocks * basic(16, 16, False)
    for width in (32, 64):
        total += basic(width // 2, width, True) + (blocks - 1) * basic(width, width, False)
    return total + last(64)


def densenet(blocks: tuple[int, ...], growth: int) -> int:
    """A layer: norm of its inputs, 1x1 to 4 growth, norm of those, 3x3 to growth."""
    total, width = 3 * 2 * growth * 9, 2 * growth
    for number, layers in enumerate(blocks):
        for _ in range(layers):
            total += 2 * width + width * 4 * growth + 2 * 4 * growth + 4 * growth * growth * 9
            width += growth
        if number < len(blocks) - 1:
            total, width = total + 2 * width + width * (width // 2), width // 2
    return total + 2 * width + last(width)


STEM = conv(3, 16, 3) + conv(16, 16, 3) + conv(16, 32, 3)


def small_tree(inputs: int, width: int) -> int:
    """Two blocks and a root of both; where the width stays, there is no shortcut."""
    own = basic(inputs, width, inputs != width) + basic(width, width, False)
    return own + conv(2 * width, width, 1)


def dla() -> int:
    """Above one level: the input's own block, a smaller tree, two blocks and a root of four."""
    total = STEM + small_tree(32, 64) + small_tree(256, 512)
    for width in (128, 256):
        total += basic(width // 2, width, True) + small_tree(width // 2, width)
        total += 2 * basic(width, width, False) + conv(4 * width, width, 1)
    return total + last(512)


def simple_dla() -> int:
    total = STEM + small_tree(32, 64) + small_tree(256, 512)
    for width in (128, 256):
        total += small_tree(width // 2, width) + small_tree(width, width)
        total += conv(2 * width, width, 1)
    return total + last(512)


@pytest.mark.parametrize(
    ("name", "options", "by_hand", "published"),
    [
        # torchvision's 25,557,032: stem 7x7 to 3x3 (-7,680), 1000 classes to 10 (-2,028,510)
        ("resnet50", {}, resnet50, 25_557_032 - 7_680 - 2_028_510),
        # torchvision's 11,689,512: the same stem, and -507,870
        ("resnet18", {}, resnet18, 11_689_512 - 7_680 - 507_870),
        # the 0.27 million of the paper's 20 layers, and 2,752 of shortcuts with weights
        ("resnet", {"depth": 20}, lambda: resnet(3), 269_722 + 2_752),
        ("resnet", {}, lambda: resnet(1), None),
        # torchvision's 7,978,856: the stem, its norm (-128), and -1,014,750
        ("densenet121", {}, lambda: densenet((6, 12, 24, 16), 32), 6_956_298),
        # the 0.8 million of the paper's DenseNet-BC with 100 layers and growth 12
        ("densenet", {"depth": 100}, lambda: densenet((16,) * 3, 12), 769_162),
        ("densenet", {}, lambda: densenet((3,) * 3, 12), None),
        # those of the usual models for CIFAR-10 in PyTorch, DLA and SimpleDLA
        ("dla", {}, dla, 16_291_386),
        ("dla", {"trees": "simple"}, simple_dla, 15_142_970),
    ],
)
def test_the_weights_are_those_of_the_papers_layers(
    name: str, options: dict[str, object], by_hand: Callable[[], int], published: int | None
) -> None:
    with torch.device("meta"):
        net = Recipe(name, options).build_net((3, 32, 32), 10, False, 0)
    found = sum(parameter.numel() for parameter in net.parameters())
    assert found == by_hand()
    assert published in (None, found)
    with torch.device("meta"):
        grouped = Recipe(name, {**options, "norm": "group"}).build_net((3, 32, 32), 10, False, 0)
    assert sum(parameter.numel() for parameter in grouped.parameters()) == found
    assert not list(grouped.buffers())


@pytest.mark.parametrize(
    ("name", "options", "cut", "width"),
    [
        ("resnet50", {}, (512, 16, 16), 2048),
        ("resnet18", {}, (128, 16, 16), 512),
        ("resnet", {}, (32, 16, 16), 64),
        ("densenet121", {}, (256, 8, 8), 1024),
        ("densenet", {}, (33, 8, 8), 69),
        ("dla", {}, (128, 16, 16), 512),
        ("dla-small", {}, (24, 16, 16), 96),
    ],
)
def test_sizes_at_the_cut_and_before_the_last_layer(
    name: str, options: dict[str, object], cut: tuple[int, ...], width: int
) -> None:
    """densenet: 24 + 3 * 12 = 60, half 30; 30 + 36 = 66, half 33; 33 + 36 = 69."""
    with torch.device("meta"):
        net = Recipe(name, options).build_net((3, 32, 32), 10, False, 0).eval()
        x = torch.empty(2, 3, 32, 32)
        assert tuple(net.early(x).shape) == (2, *cut)
        assert tuple(net.embed(x).shape) == (2, width)


def normed(x: Tensor, params: Params, name: str) -> Tensor:
    """Convolution and batch norm with the running statistics, as formulas."""
    weight = params[f"{name}.conv.weight"]
    stride = params.get(f"{name}.stride", 1)
    y = F.conv2d(x, weight, stride=int(stride), padding=weight.shape[-1] // 2)
    mean, var, scale, shift = (
        params[f"{name}.norm.{part}"].view(1, -1, 1, 1)
        for part in ("running_mean", "running_var", "weight", "bias")
    )
    return (y - mean) / (var + 1e-5).sqrt() * scale + shift


@pytest.mark.parametrize("bottleneck", [False, True])
def test_a_residual_block_as_formulas(bottleneck: bool) -> None:
    """The stride is that of the first 3x3 convolution, and of the shortcut."""
    torch.manual_seed(0)
    block = Residual(bent(4, 3, 2, "batch", bottleneck), "batch").eval()
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.running_mean, module.weight, module.bias):
                assert tensor is not None
                nn.init.normal_(tensor)
            assert module.running_var is not None
            nn.init.uniform_(module.running_var, 0.5, 2)
    params = dict(block.state_dict())
    params |= {
        "shortcut.stride": torch.tensor(2),
        f"body.{int(bottleneck)}.stride": torch.tensor(2),
    }
    x = torch.randn(2, 4, 6, 6)
    y = x
    for i in range(2 + bottleneck):
        y = normed(y, params, f"body.{i}")
        y = y if i == 1 + bottleneck else y.relu()
    expected = (y + normed(x, params, "shortcut")).relu()
    assert expected.shape == (2, 12 if bottleneck else 3, 3, 3)
    torch.testing.assert_close(block(x), expected)


def test_a_block_of_the_same_width_keeps_its_input() -> None:
    block = Residual(bent(4, 4, 1, "batch", False), "batch").eval()
    assert block.shortcut is None
    for part in block.body:
        nn.init.zeros_(part.get_parameter("conv.weight"))
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(block(x), x.relu())


def test_a_dense_layer_keeps_what_came_before() -> None:
    """Norm with its first statistics changes nothing but by 1e-5: four channels more are
    conv3(relu(conv1(relu(x)))).
    """
    layer, x = Dense(3, 4, "batch").eval(), torch.randn(2, 3, 5, 5)
    given = layer(x)
    assert given.shape == (2, 7, 5, 5)
    assert torch.equal(given[:, :3], x)
    scale = (1 + 1e-5) ** -0.5
    inside = F.conv2d((x * scale).relu(), layer.inner.conv.weight)
    new = F.conv2d((inside * scale).relu(), layer.outer.conv.weight, padding=1)
    torch.testing.assert_close(given[:, 3:], new)


def test_a_full_tree_joins_its_input_and_every_part() -> None:
    tree, x = FullTree(2, 3, 4, 2, "batch").eval(), torch.randn(2, 3, 6, 6)
    assert tree.beside is not None
    inner = tree.trees[0](x)
    left = tree.left(inner)
    parts = [tree.beside(x), inner, left, tree.right(left)]
    assert all(part.shape == (2, 4, 3, 3) for part in parts)
    torch.testing.assert_close(tree(x), tree.root(torch.cat(parts, dim=1)))


def test_a_simple_tree_joins_two() -> None:
    tree, x = SimpleTree(2, 3, 4, 2, "batch").eval(), torch.randn(2, 3, 6, 6)
    assert isinstance(tree.left, SimpleTree)
    assert isinstance(tree.right, SimpleTree)
    left = tree.left(x)
    torch.testing.assert_close(tree(x), tree.root(torch.cat([left, tree.right(left)], dim=1)))


@pytest.mark.parametrize(
    ("channels", "groups"), [(2, 1), (6, 1), (12, 3), (16, 4), (64, 16), (69, 3), (512, 32)]
)
def test_groups_of_group_norm(channels: int, groups: int) -> None:
    """Equal groups of at least four channels, as many as there may be, at most 32; 69 = 3 * 23."""
    norm = norm_of("group", channels)
    assert isinstance(norm, nn.GroupNorm)
    assert norm.num_groups == groups
