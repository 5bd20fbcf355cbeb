"""Objectives: what local training minimises, and how its network then answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ostraka.core.generator import TrainedGenerator
from ostraka.core.kind import Kind
from ostraka.core.net import Net, Params
from ostraka.core.predictor import Scores, closed_scores, open_scores
from ostraka.core.samples import Samples, View
from ostraka.core.settings import Settings
from ostraka.errors import ConfigError


@dataclass(frozen=True)
class Batch:
    """Inputs, labels, and what `prepare` made of them; every tensor has one row per sample.

    `kind` says what the samples are.
    """

    x: Tensor
    y: Tensor
    extra: Mapping[str, Tensor] = field(default_factory=dict)
    kind: Kind = "image"
    view: View = View()
    """How stored values became `x`, for what is to be seen in the same way."""

    def __len__(self) -> int:
        return len(self.x)

    def cut(self, start: int, stop: int) -> "Batch":
        """Rows `start` to `stop`."""
        cut = {name: rows[start:stop] for name, rows in self.extra.items()}
        return replace(self, x=self.x[start:stop], y=self.y[start:stop], extra=cut)

    def adding(self, **extra: Tensor) -> "Batch":
        """The same batch with more in `extra`."""
        return replace(self, extra={**self.extra, **extra})


class Helper(ABC):
    """Networks that an objective trains beside the main one while `fit` runs: a generator, a
    copycat.

    They have optimisers of their own. `step` comes before the loss of every batch; `state` is saved
    with half-finished training. What is to travel and average with the main network is part of
    `net.objective`, with `requires_grad` off outside `step`, so that neither the main optimiser nor
    a method takes it for a weight of the classifier.
    """

    @abstractmethod
    def step(self, net: Net, batch: Batch, rng: torch.Generator) -> Batch:
        """Train the helpers once; the batch with what they made of it in `extra`. No trace may stay
        on `net`."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on and that is not among the network's tensors."""

    @abstractmethod
    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


@dataclass(frozen=True)
class Objective(Settings, ABC):
    """Frozen settings of a training loss. Any objective works under any averaging method and as a
    voting member.

    An objective that owns tensors (extra outputs, class points, statistics) adds them to the
    network as the submodule `net.objective`; they are then part of its Params and travel and
    average with it.
    """

    unknown: ClassVar[bool] = False
    """Whether the network needs an unknown output."""
    binary: ClassVar[bool] = False
    """Whether each known score is the log odds of its class alone: above 0 it says yes."""
    chunk: ClassVar[int] = 64
    """Samples that are gathered, augmented and prepared at once: many where `prepare` gains from
    it, else few enough to stay in the cache. Half-finished training is saved between chunks."""

    @property
    def refuses(self) -> bool:
        """Whether its answers can be *unknown*. Others rank samples by how unknown they are and
        never say so."""
        return self.unknown

    def check_samples(self, kind: Kind, shape: tuple[int, ...]) -> None:
        """Raise a DataError if samples of this kind and shape cannot be trained on with these
        settings.

        Asked before anything trains.
        """

    def check_private(self) -> None:
        """Raise a ConfigError if a training with this objective cannot be differentially private.

        One that can keeps to `prepare` and `loss`, which are then asked with one sample at a time:
        what it adds to the samples, trains beside the network or measures after training would
        get past the noise. So an objective must say that it can.
        """
        raise ConfigError(
            f"the objective {type(self).__name__} cannot train with differential privacy: it is "
            "not known to learn from one sample at a time; use cross-entropy, proser or fedov"
        )

    @property
    def draws_from(self) -> str:
        """The generator that it learns from: "ready" or a file; empty: none, as with most."""
        return ""

    def drawing_from(self, generator: TrainedGenerator) -> "Objective":
        """This objective with the generator that it `draws_from`."""
        return self

    def attach(self, net: Net) -> None:
        """Add this objective's own tensors to the network; most have none."""

    @property
    def renews(self) -> bool:
        """Whether `material` is asked for anew in every epoch; most have the same in all."""
        return False

    def material(self, net: Net, samples: Samples, seed: int, epoch: int) -> Samples:
        """What `net` is trained on in `epoch` (from 0): the party's samples, and what is added to
        them; always as many. Most objectives add nothing.
        """
        return samples

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """The random part that treats every sample by itself (destruction). Called on many batches
        at once."""
        return batch

    def helper(self, net: Net) -> Helper | None:
        """What is trained beside the network, made anew for every training; most objectives need
        nothing."""
        return None

    @abstractmethod
    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The loss of one batch."""

    def statistics(self, net: Net, samples: Samples) -> Params:
        """Tensors to be measured after training (class means, tail fits), under their names in the
        network."""
        return {}

    def scores(self, net: Net, x: Tensor) -> Scores:
        """How the trained network answers."""
        logits = net(x)
        return open_scores(logits) if net.unknown else closed_scores(logits)

    def logits(self, net: Net, x: Tensor) -> Tensor:
        """The answers as logits, for distillation: [B, K], or [B, K + 1] if they can be
        *unknown*."""
        scores = self.scores(net, x)
        return scores.known if scores.threshold == float("inf") else scores.logits()
