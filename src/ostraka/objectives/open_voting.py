"""FedOV's local objective: PROSER, data destruction and adversarial outlier enhancement (ICLR 2023,
algorithm 1)."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor

from ostraka.core.kind import Kind
from ostraka.core.known import known_gradient
from ostraka.core.net import Net
from ostraka.core.objective import Batch
from ostraka.core.settings import setting
from ostraka.errors import ConfigError
from ostraka.nets.generator import draw_images
from ostraka.nets.layered import NativeStep, native_step
from ostraka.nets.native import Climb
from ostraka.objectives.adversarial import enhance
from ostraka.objectives.destruction import check_mix, destroy, shares_of
from ostraka.objectives.drawing import Drawing
from ostraka.objectives.proser import learn_open, mix, proser_loss, unknown_loss
from ostraka.registry import OBJECTIVES

GENERATOR = "generator"
"""Outliers of a generator in place of destroyed samples; with a file: generator:FILE."""
DESTROYED = "destroyed"
"""The destroyed images x' in a prepared batch."""


@final
@OBJECTIVES.add("fedov")
@dataclass(frozen=True)
class OpenVoting(Drawing):
    """PROSER + w_destroyed CE(f(x'), unknown) + w_adversarial CE(f(x''), unknown).

    x' = destroyed x, x'' = x' after adversarial enhancement. A weight of 0 leaves its term out and
    does not compute it:

    * PROSER: `outliers="none"` (enhancement has nothing to start from, so it is out as well)
    * PROSER + DD: `w_adversarial=0`
    * PROSER + AOE: `w_destroyed=0`. As in the paper (appendix B.2, Table 9), enhancement still
      starts from destroyed images and only their own loss is left out.
    * destruction only (Table 14): `w_second=0, w_mix=0, w_adversarial=0`
    """

    unknown: ClassVar[bool] = True
    chunk: ClassVar[int] = 1024

    w_second: float = setting(
        1.0, "PROSER: weight of unknown as the second choice after the true class", span="[0, inf)"
    )
    w_mix: float = setting(
        0.01, "PROSER: weight of mixed hidden values being unknown", span="[0, inf)"
    )
    outliers: str = setting(
        "destruction",
        "auto (wide, wide-tables or wide-audio, as the data is), destruction (the paper's), "
        "mixture, tables, audio, one operation, "
        "a mix such as fedov:0.4+stretch:0.6, generator (samples of the generator in this "
        "package) or generator:FILE, or none",
    )
    w_destroyed: float = setting(1.0, "weight of destroyed samples being unknown", span="[0, inf)")
    w_adversarial: float = setting(
        1.0, "weight of adversarially enhanced destroyed samples being unknown", span="[0, inf)"
    )
    steps: int = setting(
        5, "adversarial steps; to leave them out, set w_adversarial to 0", span="[1, inf)"
    )
    size: float = setting(
        0.002,
        "length of an adversarial step in every pixel or feature, as networks see it: of "
        "standardised data, in deviations",
        span="(0, inf)",
    )
    clamp: tuple[float, float] | None = setting(
        None,
        "range of values, as networks see them, that enhanced samples are kept in; none: free",
        span="(-inf, inf)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outliers != "none" and self.outliers.partition(":")[0] != GENERATOR:
            shares_of(self.outliers)
        if self.clamp is not None and not (len(self.clamp) == 2 and self.clamp[0] < self.clamp[1]):
            raise ConfigError(
                f"clamp is {self.clamp}; it takes two numbers, the smaller first, or none"
            )

    @property
    def _destroys(self) -> bool:
        return self.outliers != "none" and bool(self.w_destroyed or self.w_adversarial)

    @property
    def draws_from(self) -> str:
        """The generator whose samples are the outliers."""
        name, _, file = self.outliers.partition(":")
        return (file or "auto") if name == GENERATOR and self._destroys else ""

    def check_samples(self, kind: Kind, shape: tuple[int, ...]) -> None:
        """Every operation of the mix must suit the samples."""
        super().check_samples(kind, shape)
        if self._destroys and not self.draws_from:
            check_mix(self.outliers, kind, shape)

    def check_private(self) -> None:
        """It can: outliers are made from one sample, and a sample alone is mixed with no other.

        A generator of one's own may have learnt from the very samples.
        """
        if self.draws_from not in ("", "ready", "auto"):
            raise ConfigError(
                f"outliers is {self.outliers!r}, and differential privacy cannot speak for what "
                "that generator was trained on; use generator (the one in this package) or "
                "destroyed samples (auto)"
            )

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Adds the destroyed samples, where some term uses them."""
        if not self._destroys:
            return batch
        if self.draws_from:
            shape = batch.x.shape[1:]
            made = draw_images(self.generator_here(), len(batch), shape, rng).to(batch.x.device)
            destroyed = replace(batch.view, scale=1.0).apply(made)
        else:
            destroyed = destroy(batch.x, rng, self.outliers, batch.kind)
        return batch.adding(**{DESTROYED: destroyed})

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The loss of one batch. Networks with batch norm or dropout get known samples and outliers
        as one batch."""
        step = native_step(net, batch.x, *batch.extra.values())
        if step is not None:
            return self._native_loss(step, batch, rng)
        known = len(batch)
        outliers, weights, shared = self._outliers(net, batch)
        hidden = early(net, [batch.x, *outliers])
        mixed = mix(hidden[:known], batch.y, rng) if self.w_mix else None
        logits = net.late(hidden if mixed is None else torch.cat([hidden, mixed]))
        parts = logits.split(
            [known] * (1 + len(outliers)) + [len(logits) - known * (1 + len(outliers))]
        )
        loss = proser_loss(parts[0], batch.y, parts[-1], self.w_second, self.w_mix)
        for weight, part in zip(weights, parts[1:-1], strict=True):
            loss = loss + weight * unknown_loss(part)
        return loss if shared is None else loss + self.w_destroyed * shared

    def _native_loss(self, step: NativeStep, batch: Batch, rng: torch.Generator) -> Tensor:
        """The same by few native calls."""
        learn_open(step, batch, rng, self.w_second, self.w_mix)
        if self._destroys:
            climb = Climb(self.steps if self.w_adversarial else 0, self.size, self.clamp)
            step.climb(batch.extra[DESTROYED], climb, self.w_destroyed, self.w_adversarial)
        return step.total()

    def _outliers(self, net: Net, batch: Batch) -> tuple[list[Tensor], list[float], Tensor | None]:
        """Outliers that still have to pass the network, their weights, and a destruction loss that
        is done already."""
        if not self._destroys:
            return [], [], None
        destroyed = batch.extra[DESTROYED]
        if not self.w_adversarial:
            return [destroyed], [self.w_destroyed], None
        if self.w_destroyed and not net.mixes_batch():
            shared, gradient = shared_pass(net, destroyed)
            enhanced = enhance(net, destroyed, self.steps, self.size, self.clamp, gradient)
            return [enhanced], [self.w_adversarial], shared
        enhanced = enhance(net, destroyed, self.steps, self.size, self.clamp)
        if self.w_destroyed:
            return [destroyed, enhanced], [self.w_destroyed, self.w_adversarial], None
        return [enhanced], [self.w_adversarial], None


def early(net: Net, parts: list[Tensor]) -> Tensor:
    """Hidden values of several groups of samples, one below the other."""
    if net.mixes_batch():
        return net.early(torch.cat(parts))
    # The same numbers, and the images, which may lie differently in memory, need not be copied
    # together.
    return torch.cat([net.early(part) for part in parts])


def shared_pass(net: Net, destroyed: Tensor) -> tuple[Tensor, Tensor]:
    """CE(f(x'), unknown) and its gradient in x', from one forward and one backward pass.

    The same backward pass gives the parameters' gradients. Keeping the graph for the later
    `loss.backward()` would run that pass twice; adding to `.grad` here would surprise whoever asks
    for the loss only. So the gradients are kept, and the returned loss hands them out when it is
    differentiated: exact, whatever it is multiplied with, at the price of one addition per
    parameter. (Only for networks in which a sample's answer does not depend on its batch or mode.)
    """
    trained = [p for p in net.parameters() if p.requires_grad]
    x = destroyed.detach().requires_grad_()
    with torch.enable_grad():
        loss = unknown_loss(net(x))
        in_x, *gradients = torch.autograd.grad(loss, [x, *trained], allow_unused=True)
    return known_gradient(loss.detach(), trained, gradients), in_x
