"""A trained generator of samples: what it makes, where it is from, and its tensors.

`nets.generator` builds its network, `store.generator` writes and reads its file. Whatever draws
from one gets it with the commons, as the parties do: they are sent it once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from ostraka.core.net import Params


@final
@dataclass(frozen=True, eq=False)
class TrainedGenerator:
    """A generator of images of `shape`, which it makes of `latent` random numbers."""

    shape: tuple[int, ...]
    latent: int
    width: int
    """Channels before its last layer; the layers in front have up to eight times as many."""
    low: float
    high: float
    """The least and the greatest value that it makes, as a view scales them: 0 and 1 for bytes."""
    params: Params
    about: Mapping[str, Any] = field(default_factory=dict)
    """Where it is from: the data and its fingerprint, epochs, seed, version."""
    sha256: str = ""
    """The hash of its tensors."""
