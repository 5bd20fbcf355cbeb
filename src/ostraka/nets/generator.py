"""DCGAN for images (Radford, Metz & Chintala, ICLR 2016), as narrow as FedOS has it, and samples
drawn from a trained one.

The generator is transposed convolutions with batch norm, the discriminator convolutions of stride
2. Latent 25 and width 16 are FedOS's: 126,819 parameters for 32x32 colour images, about those of
LeNet-5. Images of other sizes have more or fewer layers: each nearly doubles the sides, beginning
with at most 4x4. What trains beside a classifier (ARPL+CS, DIAS) is `objectives.gan`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.generator import TrainedGenerator
from ostraka.core.samples import View
from ostraka.errors import DataError

START = 4
"""The generator's first layer makes images of at most this side."""
WIDEST = 8
"""The first layer's channels, in widths."""
LEAST = 8
"""The smallest side of an image that there is a generator for."""
PROBES = 4
"""Images that a generator makes to show that it makes any."""
CHUNK = 500
"""Samples that are drawn at once."""


@final
class DCGenerator(nn.Module):
    """Random numbers [B, latent] to images [B, *shape] with values from -1 to 1."""

    def __init__(self, shape: Sequence[int], latent: int, width: int) -> None:
        super().__init__()
        check_image(shape)
        sides = _sides(shape)
        wide = [max(1, WIDEST * width >> i) for i in range(len(sides) - 1)]
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent, wide[0], sides[0], bias=False)]
        for (channels, more), (small, large) in zip(
            pairwise(wide), pairwise(sides[:-1]), strict=True
        ):
            extra = _missing(small, large, 1)
            layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            layers.append(nn.ConvTranspose2d(channels, more, 3, 2, 1, extra, bias=False))
        layers += [nn.BatchNorm2d(wide[-1]), nn.ReLU(inplace=True)]
        extra = _missing(sides[-2], sides[-1], 2)
        layers.append(nn.ConvTranspose2d(wide[-1], shape[0], 4, 2, 2, extra))
        self.layers = nn.Sequential(*layers, nn.Tanh())
        self.apply(_first_weights)

    def forward(self, noise: Tensor) -> Tensor:
        """Generated images."""
        made: Tensor = self.layers(noise[:, :, None, None])
        return made


@final
class DCDiscriminator(nn.Module):
    """Images with values from -1 to 1 to the log odds [B] that they are real."""

    def __init__(self, shape: Sequence[int], width: int) -> None:
        super().__init__()
        check_image(shape)
        layers, channels = list[nn.Module](), shape[0]
        height, breadth, wide = shape[1], shape[2], width
        while min(height, breadth) > START:
            layers.append(nn.Conv2d(channels, wide, 4, 2, 1, bias=False))
            if channels != shape[0]:  # the first layer has no batch norm
                layers.append(nn.BatchNorm2d(wide))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            channels, wide, height, breadth = wide, 2 * wide, height // 2, breadth // 2
        layers += [nn.Flatten(), nn.Linear(channels * height * breadth, 1)]
        self.layers = nn.Sequential(*layers)
        self.apply(_first_weights)

    def forward(self, x: Tensor) -> Tensor:
        """Log odds of being real."""
        odds: Tensor = self.layers(x)
        return odds.squeeze(1)


def _sides(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Height and width of an image behind each layer of the generator, the smallest first."""
    _, height, width = shape
    sides = [(height, width), ((height + 2) // 2, (width + 2) // 2)]
    while min(sides[-1]) > START:
        sides.append(((sides[-1][0] + 1) // 2, (sides[-1][1] + 1) // 2))
    return sides[::-1]


def _missing(small: tuple[int, int], large: tuple[int, int], less: int) -> tuple[int, int]:
    """What a layer that doubles sides, but for `less`, has to add to reach the larger ones."""
    return large[0] - (2 * small[0] - less), large[1] - (2 * small[1] - less)


def _first_weights(module: nn.Module) -> None:
    """DCGAN's: near 0, batch norm near 1."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def check_image(shape: Sequence[int]) -> None:
    """Refuse samples that are no images, or too small ones."""
    if len(shape) != 3 or shape[0] not in (1, 3) or min(shape[1:]) < LEAST:
        raise DataError(
            f"a generator makes images of 1 or 3 channels and at least {LEAST}x{LEAST}; "
            f"these samples have shape {tuple(shape)}"
        )


def build_generator(generator: TrainedGenerator) -> DCGenerator:
    """Its network, in evaluation mode."""
    with torch.device("meta"):
        net = DCGenerator(generator.shape, generator.latent, generator.width)
    net.load_state_dict(generator.params, assign=True)
    return net.eval().requires_grad_(False)


def draw_images(
    generator: TrainedGenerator, count: int, shape: Sequence[int], rng: torch.Generator
) -> Tensor:
    """`count` images of `shape`, in the values that views scale to (bytes: 0 to 1).

    Images of another size are resized, grey ones get three equal channels and colours become
    their mean.
    """
    check_image(shape)
    net, made = build_generator(generator), list[Tensor]()
    with torch.no_grad():
        for start in range(0, count, CHUNK):
            noise = torch.randn(min(CHUNK, count - start), generator.latent, generator=rng)
            images = _fitted(net(noise), shape)
            made.append(images.add_(1).mul_((generator.high - generator.low) / 2))
    return torch.cat([*made, torch.empty(0, *shape)]).add_(generator.low)


def _fitted(images: Tensor, shape: Sequence[int]) -> Tensor:
    """Images as those of `shape` are, with values from -1 to 1."""
    channels, *sides = shape
    if images.shape[1] != channels:
        images = images.mean(dim=1, keepdim=True).repeat(1, channels, 1, 1)
    if list(images.shape[2:]) != list(sides):
        images = F.interpolate(images, tuple(sides), mode="bilinear", antialias=True)
    return images


def draw_stored(
    generator: TrainedGenerator,
    count: int,
    shape: Sequence[int],
    view: View,
    dtype: torch.dtype,
    rng: torch.Generator,
) -> Tensor:
    """`count` images as a data set with this view stores its own: whatever looks at them sees both
    alike, standardised or not.
    """
    values = draw_images(generator, count, shape, rng).div_(view.scale)
    if dtype == torch.uint8:
        return values.round_().clamp_(0, round(1 / view.scale)).to(torch.uint8)
    return values.to(dtype)


def fits(generator: TrainedGenerator) -> str:
    """What is wrong with a generator's tensors, in words; empty where they are its network's."""
    with torch.device("meta"):
        wanted = DCGenerator(generator.shape, generator.latent, generator.width).state_dict()
    odd = sorted(generator.params.keys() ^ wanted.keys())
    if odd:
        what = "lacks" if odd[0] in wanted else "has the unknown tensor"
        return f"it {what} {odd[0]}"
    for name, tensor in wanted.items():
        own = generator.params[name]
        if (own.shape, own.dtype) != (tensor.shape, tensor.dtype):
            return (
                f"{name} is {own.dtype} of shape {tuple(own.shape)}, and must be {tensor.dtype} of "
                f"shape {tuple(tensor.shape)}"
            )
        if name.endswith("running_var") and bool((own < 0).any()):
            return f"{name} has values below 0"
    rng = torch.Generator().manual_seed(0)
    if not bool(draw_images(generator, PROBES, generator.shape, rng).isfinite().all()):
        return "the values of its images are NaN or infinite"
    return ""
