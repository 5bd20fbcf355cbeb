"""Junk probes: samples made without data, of which no member should claim to know anything."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ostraka.core.seeds import torch_rng

EACH = 50
"""Probes of each kind; there are three."""


def junk_probes(shape: Sequence[int]) -> Tensor:
    """Uniform noise from 0 to 1, normal noise, and constants from 0 to 1 [3 * EACH,
    ...]; always the same ones.

    They fit inputs that were scaled to [0, 1] or to mean 0 and deviation 1,
    as all built-in sources are.
    """
    rng, size = torch_rng(0, "junk"), (EACH, *shape)
    constants = torch.linspace(0.0, 1.0, EACH).view(EACH, *[1] * len(shape)).expand(size)
    return torch.cat([torch.rand(size, generator=rng), torch.randn(size, generator=rng), constants])


def known_mass(logits: Tensor) -> tuple[float, ...]:
    """The mean probability of a known class [M] in votes [M, B, K + 1] on junk;
    1 for members without an unknown.
    """
    return tuple((1.0 - logits.softmax(dim=2)[..., -1]).mean(dim=1).tolist())
