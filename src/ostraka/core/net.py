"""Networks: ordinary modules with K known outputs, an optional unknown output, and a cut for mixing."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from torch import Tensor, nn

from ostraka.core.seeds import seeded
from ostraka.errors import ConfigError, choices, did_you_mean
from ostraka.registry import NETS

Params = dict[str, Tensor]
"""A network's named tensors: parameters, buffers and, under `objective.`, what its objective owns."""


class Net(nn.Module, ABC):
    """A classifier of `classes` known classes; with `unknown`, the last output means *unknown*.

    `late(early(x))` is the forward pass: mixing happens between the two. `embed` gives the input of the last layer.
    """

    def __init__(self, classes: int, unknown: bool) -> None:
        super().__init__()
        self.classes = classes
        self.unknown = unknown

    @property
    def outputs(self) -> int:
        """Number of outputs, the unknown one included."""
        return self.classes + int(self.unknown)

    @abstractmethod
    def early(self, x: Tensor) -> Tensor:
        """Inputs to hidden values at the cut."""

    @abstractmethod
    def embed_late(self, hidden: Tensor) -> Tensor:
        """Hidden values at the cut to the embedding: what the last layer sees."""

    @abstractmethod
    def head(self, embedding: Tensor) -> Tensor:
        """The last layer: embedding to logits."""

    def late(self, hidden: Tensor) -> Tensor:
        """Hidden values at the cut to logits."""
        return self.head(self.embed_late(hidden))

    def embed(self, x: Tensor) -> Tensor:
        """Inputs to the embedding."""
        return self.embed_late(self.early(x))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs to logits."""
        return self.late(self.early(x))

    def mixes_batch(self) -> bool:
        """Whether the answer for one sample depends on the others of its batch, or on chance, while training."""
        layers = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
        return any(isinstance(module, layers) for module in self.modules())


@dataclass(frozen=True)
class Recipe:
    """Which network to build: its registered name and its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def build(self, shape: tuple[int, ...], classes: int, unknown: bool, seed: int) -> Net:
        """A freshly initialised network; equal seeds give equal weights."""
        make = NETS.get(self.name)
        known = set(signature(make).parameters) - {"shape", "classes", "unknown"}
        for option in self.options:
            if option not in known:
                raise ConfigError(
                    f"the net {self.name!r} does not take the options {sorted(self.options)}: {option!r} is unknown."
                    f"{did_you_mean(option, known)} Options: {choices(known)}"
                )
        with seeded(seed, "net"):
            try:
                net: Net = make(shape=tuple(shape), classes=classes, unknown=unknown, **self.options)
            except TypeError as error:
                raise ConfigError(f"the net {self.name!r} refused the options {dict(self.options)}: {error}") from None
        return net


def params_of(net: nn.Module) -> Params:
    """A copy of the network's tensors, detached, on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in net.state_dict().items()}
