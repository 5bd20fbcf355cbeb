"""The server's DCGAN: sizes, values, what is drawn from it and what is refused."""

from dataclasses import replace

import pytest
import torch

from ostraka.core.generator import TrainedGenerator
from ostraka.core.net import params_of
from ostraka.core.samples import View
from ostraka.core.seeds import torch_rng
from ostraka.errors import DataError
from ostraka.nets.generator import (
    DCDiscriminator,
    DCGenerator,
    build_generator,
    draw_images,
    draw_stored,
    fits,
)

SHAPES = [(3, 32, 32), (1, 28, 28), (1, 16, 16), (1, 8, 8), (3, 64, 64), (1, 9, 16), (1, 27, 33)]


def generator(shape: tuple[int, ...] = (1, 8, 8), low: float = 0.0) -> TrainedGenerator:
    torch.manual_seed(1)
    net = DCGenerator(shape, latent=3, width=1)
    net.train()(torch.randn(64, 3))  # batch norm has seen something
    return TrainedGenerator(shape, 3, 1, low, 1.0, params_of(net))


@pytest.mark.parametrize("shape", SHAPES)
def test_images_of_every_size_are_made_and_judged(shape: tuple[int, ...]) -> None:
    made = DCGenerator(shape, latent=5, width=2)(torch.randn(4, 5))
    assert made.shape == (4, *shape)
    assert made.abs().max() <= 1
    assert DCDiscriminator(shape, width=3)(made).shape == (4,)


def test_the_generator_of_fedos_is_about_as_large_as_lenet() -> None:
    """25*128*9 + 128*64*9 + 64*32*9 + 32*16*9 + 16*3*16 weights of five layers, 2 * (128 + 64 + 32
    + 16) of batch norm, 3 of the last layer's bias.
    """
    sizes = (25 * 128 * 9, 128 * 64 * 9, 64 * 32 * 9, 32 * 16 * 9, 16 * 3 * 16, 2 * 240, 3)
    net = DCGenerator((3, 32, 32), latent=25, width=16)
    assert sum(p.numel() for p in net.parameters()) == sum(sizes) == 126_819


@pytest.mark.parametrize("shape", [(7,), (1, 7, 8), (2, 8, 8), (1, 8)])
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="a generator makes images of 1 or 3 channels"):
        DCGenerator(shape, 3, 1)


def test_drawing_is_in_evaluation_mode() -> None:
    """An image depends on its own noise alone, and the batch norm's statistics stay."""
    own = generator()
    before = {name: tensor.clone() for name, tensor in own.params.items()}
    both = draw_images(own, 2, (1, 8, 8), torch_rng(0))
    with torch.no_grad():
        noise = torch.randn(2, 3, generator=torch_rng(0))
        alone = torch.cat([build_generator(own)(z) for z in noise.split(1)])
    assert torch.allclose(both, (alone + 1) / 2, atol=1e-6)
    assert all(torch.equal(own.params[name], before[name]) for name in before)


def test_many_are_drawn_in_parts_and_none_is_none() -> None:
    assert draw_images(generator(), 1201, (1, 8, 8), torch_rng(0)).shape == (1201, 1, 8, 8)
    assert draw_images(generator(), 0, (3, 9, 9), torch_rng(0)).shape == (0, 3, 9, 9)


def test_other_sizes_and_channels_are_fitted() -> None:
    grey = draw_images(generator(), 3, (3, 20, 12), torch_rng(0))
    assert grey.shape == (3, 3, 20, 12)
    assert torch.equal(grey[:, 0], grey[:, 2])
    colour = generator((3, 8, 8))
    mean = draw_images(colour, 3, (3, 8, 8), torch_rng(0)).mean(dim=1, keepdim=True)
    assert torch.allclose(draw_images(colour, 3, (1, 8, 8), torch_rng(0)), mean, atol=1e-6)


def test_values_are_those_of_the_data() -> None:
    """The digits of scikit-learn have 17 levels, stored as bytes: 0.5 is 8 there, 127.5 in a
    picture, and the range -3 to 1 of other numbers is kept.
    """
    own = generator()
    unit = draw_images(own, 50, (1, 8, 8), torch_rng(0))
    assert 0 <= unit.min() < unit.max() <= 1
    for scale, top in ((1 / 255, 255), (1 / 16, 16)):
        stored = draw_stored(own, 50, (1, 8, 8), View(scale=scale), torch.uint8, torch_rng(0))
        assert stored.dtype == torch.uint8
        assert torch.equal(stored, (unit * top).round().to(torch.uint8))
    wide = draw_stored(generator(low=-3.0), 50, (1, 8, 8), View(), torch.float32, torch_rng(0))
    assert torch.allclose(wide, unit * 4 - 3, atol=1e-5)


def test_tensors_that_are_not_the_networks_are_told() -> None:
    own = generator()
    assert fits(own) == ""
    name = "layers.0.weight"
    less = {key: value for key, value in own.params.items() if key != name}
    assert fits(replace(own, params=less)) == f"it lacks {name}"
    assert "unknown tensor other" in fits(
        replace(own, params={**own.params, "other": torch.ones(1)})
    )
    for wrong in (own.params[name].double(), own.params[name][:, :4]):
        assert name in fits(replace(own, params={**own.params, name: wrong}))
    assert "below 0" in fits(
        replace(own, params={**own.params, "layers.1.running_var": -torch.ones(8)})
    )
