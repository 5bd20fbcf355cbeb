"""Generated unknowns: a small generator and discriminator that train beside the classifier.

ARPL+CS and DIAS use them; the networks are those of `nets.dcgan`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net, params_of
from ostraka.core.objective import Batch, Helper
from ostraka.errors import ConfigError
from ostraka.nets.dcgan import NOISE, Discriminator, Generator
from ostraka.objectives.adversarial import bystander

FAKES = "fakes"
"""The generated samples in a batch that passed a helper, one for each sample."""
BETAS = (0.5, 0.999)
"""Adam's momenta, as in DCGAN."""


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
        generator, discriminator = (
            parts.get_submodule("generator"),
            parts.get_submodule("discriminator"),
        )
        assert isinstance(generator, Generator)
        self.maker, self.wish = generator, wish
        self.generator, self.discriminator = (
            Trainee(generator, lr, BETAS),
            Trainee(discriminator, lr, BETAS),
        )

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
