"""What Ostraka is compared with does the same work: the same networks, losses, rounds and votes."""

import pytest
import torch
from torch import Tensor

from benchmarks.speed import image_by_image, layers, plain, plain_fedov
from benchmarks.speed.table import LAST, OURS, PLAIN
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch
from ostraka.objectives.open_voting import DESTROYED, OpenVoting

SHAPES = [(1, 28, 28), (3, 32, 32)]


def pair(name: str, shape: tuple[int, ...], outputs: int) -> tuple[Net, torch.nn.Module]:
    """Our network and the plain one, with the same weights."""
    make = {"simple-cnn": plain.SimpleCNN, "lenet5": plain.LeNet5}[name]
    net = Recipe(name).build_net(shape, 10, outputs == 11, seed=1)
    other = make(shape, outputs)
    other.load_state_dict(net.state_dict())
    return net, other


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["simple-cnn", "lenet5"])
@pytest.mark.parametrize("last", [False, True])
def test_the_plain_networks_are_ours(name: str, shape: tuple[int, ...], last: bool) -> None:
    net, other = pair(name, shape, 10)
    x, _ = plain.images(shape, 5)
    with torch.no_grad():
        expected = net(x.float() / 255)
        torch.testing.assert_close(
            plain.laid(other, last)(plain.inputs(x, last)), expected, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("steps", [2, 5])
def test_the_plain_fedov_loss_is_ours(steps: int) -> None:
    """Of samples of one class, as then nothing is mixed at random."""
    net, other = pair("simple-cnn", (1, 28, 28), 11)
    assert isinstance(other, plain.SimpleCNN)
    x = plain.images((1, 28, 28), 6)[0].float() / 255
    y, destroyed = torch.full((6,), 4), image_by_image.destroy(x)
    objective = OpenVoting(steps=steps, size=0.01)
    ours = objective.loss(net, Batch(x, y, {DESTROYED: destroyed}), torch.Generator())
    enhanced = plain_fedov.enhance(other, destroyed, steps, 0.01)
    theirs = plain_fedov.terms(other, x, y, destroyed, enhanced)
    torch.testing.assert_close(theirs, ours, rtol=1e-3, atol=1e-4)


def test_a_plain_round_is_the_mean_of_steps_by_size() -> None:
    """One step of SGD each (3 and 1 samples): start - lr * (3/4 g1 + 1/4 g2 + decay * start)."""
    parties = [plain.images((1, 28, 28), 3, seed=1), plain.images((1, 28, 28), 1, seed=2)]
    net = plain.SimpleCNN((1, 28, 28))
    start = {name: value.clone() for name, value in net.named_parameters()}
    gradients: list[dict[str, Tensor]] = []
    for x, y in parties:
        loss = torch.nn.functional.cross_entropy(net(x.float() / 255), y)
        found = torch.autograd.grad(loss, list(net.parameters()))
        gradients.append(dict(zip(start, found, strict=True)))
    plain.fedavg_round(net, parties, batch=4, last=False)
    for name, value in net.named_parameters():
        mean = 0.75 * gradients[0][name] + 0.25 * gradients[1][name] + 1e-5 * start[name]
        torch.testing.assert_close(value.detach(), start[name] - 0.01 * mean)


@pytest.mark.parametrize("which", layers.PASSES)
def test_every_variant_of_a_layer_can_do_its_passes(which: str) -> None:
    for name in list(layers.LAYERS)[:2]:
        for variant in (PLAIN, LAST, OURS):
            layers.job(f"{name}: {which}", variant, small=True).run(lambda: None)


def test_a_layer_is_the_same_natively() -> None:
    layer = next(iter(layers.LAYERS.values()))
    x, weight, bias = torch.randn(64, 3, 32, 32), torch.randn(6, 3, 5, 5), torch.randn(6)
    torch.testing.assert_close(
        layer.native(x, weight, bias), layer.plain(x, weight, bias), rtol=1e-4, atol=1e-4
    )
