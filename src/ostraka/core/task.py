"""The task that a federation solves, and what all sides may see of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor

from ostraka.core.generator import TrainedGenerator
from ostraka.core.kind import Kind
from ostraka.core.net import Net, Params, Recipe
from ostraka.core.party import PartyRef
from ostraka.core.samples import Samples, View


@dataclass(frozen=True)
class Commons:
    """What all sides may see: delivered once before the first round,
    and counted once in the bytes sent down.
    """

    public: Samples | None = None
    """Unlabelled samples for distillation and probes; never evaluation samples."""
    shared: Samples | None = None
    """Labelled samples that every party may train on (the data-sharing baseline)."""
    nets: Mapping[str, Params] = field(default_factory=dict)
    """Ready networks, such as "start" from another run."""
    prior: Tensor | None = None
    """Target label shares [K]."""
    generator: TrainedGenerator | None = None
    """What parties make samples of no class with; sent to each when it first takes part."""

    def to(self, device: str) -> "Commons":
        """The same commons, its samples on `device`:
        whatever learns from them follows them there.
        """
        public, shared = (
            samples if samples is None else samples.to(device)
            for samples in (self.public, self.shared)
        )
        return replace(self, public=public, shared=shared)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that is delivered, by name; samples as the rows they hold."""
        named: dict[str, Tensor] = {}
        for name, samples in (("public", self.public), ("shared", self.shared)):
            if samples is not None:
                named[f"{name}.x"] = samples.stored()
        if self.shared is not None:
            named["shared.y"] = self.shared.labels
        named.update(
            {f"{net}.{key}": t for net, params in self.nets.items() for key, t in params.items()}
        )
        if self.generator is not None:
            named.update({f"generator.{key}": t for key, t in self.generator.params.items()})
        return named | ({"prior": self.prior} if self.prior is not None else {})


@dataclass(frozen=True)
class Task:
    """Known classes, the shape of one sample and how networks see it, the recipe, the commons."""

    classes: tuple[str, ...]
    shape: tuple[int, ...]
    net: Recipe
    commons: Commons = Commons()
    view: View = View()
    """How stored values become inputs of this task's networks (in training, a party's samples may
    be augmented as well)."""

    nets: Mapping[int, Recipe] = field(default_factory=dict)
    """Networks of their own, by the number of the party; all others have `net`."""

    @property
    def kind(self) -> Kind:
        """What one sample is: image, table or sound."""
        return self.view.kind

    def build_net(self, unknown: bool, seed: int = 0) -> Net:
        """A freshly initialised network for this task."""
        return self.net.build_net(self.shape, len(self.classes), unknown, seed)

    def to(self, device: str) -> "Task":
        """The same task with the samples of its commons on `device`."""
        return replace(self, commons=self.commons.to(device))

    def for_party(self, party: PartyRef) -> "Task":
        """The task as one party has it: with its own network, where it has one."""
        own = self.nets.get(party.id)
        return self if own is None else replace(self, net=own)

    def without_commons(self) -> "Task":
        """The same task with nothing shared."""
        return replace(self, commons=Commons())
