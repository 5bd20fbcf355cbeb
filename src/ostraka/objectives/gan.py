"""Generated unknowns: a small generator and discriminator that train beside the classifier.

ARPL+CS and DIAS use them. The networks are those of DCGAN (Radford, Metz & Chintala, ICLR 2016),
made small. For images of any size the generator doubles the sides twice (by a transposed
convolution and by sub-pixels), the discriminator halves them twice (by convolutions with ReLU and
pooling); for samples without sides, and for the smallest images, both have two linear layers. Layer
norm stands where DCGAN has batch norm, so that a batch of one sample trains too. The generator's
outputs span the range of the values seen so far, whatever the normalisation of the data.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil, prod
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net, params_of
from ostraka.core.objective import Batch, Helper
from ostraka.errors import ConfigError
from ostraka.nets.blocks import ConvBlock
from ostraka.objectives.adversarial import bystander

FAKES = "fakes"
"""The generated samples in a batch that passed a helper, one for each sample."""
BETAS = (0.5, 0.999)
"""Adam's momenta, as in DCGAN."""
NOISE = 64
"""Numbers that a generated sample is made from."""
HIDDEN = 64
"""Hidden values of both networks where samples have no sides to convolve over."""


@final
class Trainee:
    """A module with an Adam of its own. Its parameters take gradients only while `awake`."""

    def __init__(
        self, module: nn.Module, lr: float, betas: tuple[float, float] = (0.9, 0.999)
    ) -> None:
        self.module = module.requires_grad_(False)
        self.parameters = list(module.parameters())
        fused = all(p.device.type in ("cpu", "cuda") for p in self.parameters)
        self.optimiser = torch.optim.Adam(self.parameters, lr=lr, betas=betas, fused=fused)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Its parameters take gradients."""
        self.module.requires_grad_(True)
        try:
            yield
        finally:
            self.module.requires_grad_(False)

    def descend(self, loss: Tensor) -> None:
        """One step down the loss; no gradient stays behind, here or on any other network."""
        for parameter, gradient in zip(
            self.parameters,
            torch.autograd.grad(loss, self.parameters, allow_unused=True),
            strict=True,
        ):
            parameter.grad = gradient
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Any]:
        """Tensors and optimiser, as plain values."""
        state = self.optimiser.state_dict()["state"]
        return {
            "module": params_of(self.module),
            "optimiser": {str(k): dict(v) for k, v in state.items()},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.module.load_state_dict(state["module"])
        moments = {int(k): dict(v) for k, v in state["optimiser"].items()}
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": moments})


@final
class Gan(Helper):
    """Generator and discriminator in turn; `wish(net, fakes)` is what the generator minimises
    beside fooling it.

    The wish is asked of the classifier in evaluation mode, with its weights held.
    """

    def __init__(self, parts: nn.Module, lr: float, wish: Callable[[Net, Tensor], Tensor]) -> None:
        generator = parts.get_submodule("generator")
        assert isinstance(generator, Generator)
        self.maker, self.wish = generator, wish
        self.generator = Trainee(generator, lr, BETAS)
        self.discriminator = Trainee(parts.get_submodule("discriminator"), lr, BETAS)

    def step(self, net: Net, batch: Batch, rng: torch.Generator) -> Batch:
        """One step of the discriminator, one of the generator. The batch gets the fakes that both
        learnt from.

        Fakes of the generator after its step would cost a sixth more and differ from these by that
        one step.
        """
        self.maker.see(batch.x)
        noise = torch.randn(len(batch), NOISE, generator=rng).to(batch.x)
        judge = self.discriminator.module
        with bystander(net), self.generator.awake():
            fakes = self.maker(noise)
            with self.discriminator.awake():
                real, fake = judge(torch.cat([batch.x, fakes.detach()])).chunk(2)
                self.discriminator.descend(_not_real(-real) + _not_real(fake))
            self.generator.descend(_not_real(-judge(fakes)) + self.wish(net, fakes))
        return batch.adding(**{FAKES: fakes.detach()})

    def state(self) -> dict[str, Any]:
        """Both networks and their optimisers."""
        return {"generator": self.generator.state(), "discriminator": self.discriminator.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.generator.load(state["generator"])
        self.discriminator.load(state["discriminator"])


def _not_real(odds: Tensor) -> Tensor:
    """Cross-entropy of the answer *not real*; of *real*, for the log odds turned round."""
    return F.softplus(odds).mean()


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
                # a quarter of the cost of another transposed convolution
                nn.Conv2d(width, 4 * shape[0], 1),
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


def gan_parts(net: Net, width: int) -> nn.ModuleDict:
    """A fresh generator and discriminator for the samples of `net`, on its device and without
    gradients."""
    shape = sample_shape(net)
    parts = {"generator": Generator(shape, width), "discriminator": Discriminator(shape, width)}
    return nn.ModuleDict(parts).to(next(net.parameters())).requires_grad_(False)


def sample_shape(net: Net) -> tuple[int, ...]:
    """The shape of one sample, which only a network built by a recipe knows."""
    if not net.shape:
        raise ConfigError(
            f"{type(net).__name__} does not know the shape of its samples; build it with "
            "Recipe.build_net, or set net.shape"
        )
    return net.shape


@contextmanager
def auxiliary_norm(net: Net) -> Iterator[None]:
    """Batch norm that treats what passes as a batch of its own and leaves the running statistics
    alone.

    The authors of ARPL and DIAS give generated samples a second set of batch norms; here only the
    statistics are separate, and scale and shift are common.
    """
    norms = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    usual = [
        (m.momentum, None if m.num_batches_tracked is None else m.num_batches_tracked.clone())
        for m in norms
    ]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, (momentum, tracked) in zip(norms, usual, strict=True):
            norm.momentum = momentum
            if norm.num_batches_tracked is not None and tracked is not None:
                norm.num_batches_tracked.copy_(tracked)
