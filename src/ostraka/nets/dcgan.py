"""The networks of DCGAN (Radford, Metz & Chintala, ICLR 2016), made small: a generator and a
discriminator.

For images of any size the generator doubles the sides twice (by a transposed convolution and by
sub-pixels), the discriminator halves them twice (by convolutions with ReLU and pooling); for
samples without sides, and for the smallest images, both have two linear layers. Layer norm stands
where DCGAN has batch norm, so that a batch of one sample trains too. The generator's outputs span
the range of the values seen so far, whatever the normalisation of the data.
"""

from math import ceil, prod

import torch
from torch import Tensor, nn

from ostraka.nets.blocks import ConvBlock

NOISE = 64
"""Numbers that a generated sample is made from."""
HIDDEN = 64
"""Hidden values of both networks where samples have no sides to convolve over."""


class Generator(nn.Module):
    """Noise [B, NOISE] to samples of `shape`, within the range of the samples it was shown."""

    low: Tensor
    high: Tensor

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.shape, self.image = shape, has_sides(shape)
        if self.image:
            self.sides = tuple(ceil(side / 4) for side in shape[1:])
            self.first = nn.Linear(NOISE, 2 * width * prod(self.sides))
            self.layers = nn.Sequential(
                nn.GroupNorm(1, 2 * width),
                nn.ReLU(),
                nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
                nn.GroupNorm(1, width),
                nn.ReLU(),
                nn.Conv2d(
                    width, 4 * shape[0], 1
                ),  # a quarter of the cost of another transposed convolution
                nn.PixelShuffle(2),
            )
        else:
            self.first = nn.Linear(NOISE, HIDDEN)
            self.layers = nn.Sequential(
                nn.LayerNorm(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, prod(shape))
            )
        places = (shape[0],) + (1,) * (len(shape) - 1)
        self.register_buffer("low", torch.zeros(places))
        self.register_buffer("high", torch.zeros(places))

    def see(self, x: Tensor) -> None:
        """Widen the range of values (one for each channel or column) to that of `x`."""
        values = x.detach().transpose(0, 1).flatten(1)
        self.low.copy_(torch.minimum(self.low.flatten(), values.amin(dim=1)).view_as(self.low))
        self.high.copy_(torch.maximum(self.high.flatten(), values.amax(dim=1)).view_as(self.high))

    def forward(self, noise: Tensor) -> Tensor:
        """Generated samples."""
        hidden = self.first(noise)
        if self.image:
            height, width = self.shape[1:]
            made = self.layers(hidden.unflatten(1, (-1, *self.sides)))[:, :, :height, :width]
        else:
            made = self.layers(hidden).view(len(noise), *self.shape)
        return torch.lerp(self.low, self.high, made.sigmoid())


class Discriminator(nn.Module):
    """Samples to the log odds [B] that they are real."""

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        if has_sides(shape):
            sides = [side // 2 // 2 for side in shape[1:]]
            self.layers = nn.Sequential(
                ConvBlock(shape[0], width, 3, same=True),
                ConvBlock(width, 2 * width, 3, same=True),
                nn.Flatten(),
                nn.Linear(2 * width * prod(sides), 1),
            )
        else:
            self.layers = nn.Sequential(
                nn.Flatten(),
                nn.Linear(prod(shape), HIDDEN),
                nn.LeakyReLU(0.2),
                nn.Linear(HIDDEN, 1),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Log odds of being real."""
        odds: Tensor = self.layers(x)
        return odds.squeeze(1)


def has_sides(shape: tuple[int, ...]) -> bool:
    """Whether samples are channels x height x width, large enough to be halved twice."""
    return len(shape) == 3 and min(shape[1:]) >= 4
