"""Networks: ordinary modules with K known outputs,
an optional unknown output, and a cut for mixing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ostraka.core import settings
from ostraka.core.seeds import seeded
from ostraka.errors import ConfigError
from ostraka.registry import NETS

Params = dict[str, Tensor]
"""A network's named tensors: parameters, buffers and, under `objective.`,
what its objective owns.
"""


INPUT, OUTPUT = "input", "output"
"""The two groups of units that have an order of their own:
what a sample is made of, and the classes.
"""


@dataclass(frozen=True)
class Layer:
    """One weight layer of a network, as methods see it that match the
    hidden units of several networks.

    Units that must keep the same order form a group with a name: a layer reads the units of the
    group `inputs` and writes those of the group `outputs`; layers joined by a skip connection write
    the same group. A row of the tensor `weight` belongs to an output unit; its columns fall into
    equal runs, one for each input unit, as they do in a convolution and in a linear layer behind
    `flatten(1)`. The tensors `vectors` (bias, batch norm and its running statistics) have one value
    for each output unit.
    """

    weight: str
    inputs: str
    outputs: str
    vectors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, inputs: str, outputs: str, bias: bool = True, norms: Sequence[str] = ()
    ) -> "Layer":
        """The layer of the submodule `name`; `norms` are batch norms of its output units."""
        normed = [
            f"{norm}.{part}"
            for norm in norms
            for part in ("weight", "bias", "running_mean", "running_var")
        ]
        return cls(
            f"{name}.weight", inputs, outputs, ((f"{name}.bias",) if bias else ()) + tuple(normed)
        )


def chain(
    *names: str, norms: Mapping[str, Sequence[str]] | None = None, bias: bool = True
) -> tuple[Layer, ...]:
    """Layers one behind the other, each group of units named after the layer that writes it.

    The last has a bias.
    """
    groups, last = (INPUT, *names[:-1], OUTPUT), names[-1]
    return tuple(
        Layer.of(name, groups[i], groups[i + 1], bias or name == last, (norms or {}).get(name, ()))
        for i, name in enumerate(names)
    )


class Net(nn.Module, ABC):
    """A classifier of `classes` known classes; with `unknown`, the last output means *unknown*.

    `late(early(x))` is the forward pass: mixing happens between the two. `embed`
    gives the input of the last layer.
    """

    shape: tuple[int, ...] = ()
    """The shape of one sample; set by the recipe that built the network."""

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

    def input_gradient(self, x: Tensor, error: Callable[[Tensor], Tensor]) -> Tensor:
        """The gradient in `x` of a loss whose gradient in the logits is
        `error(logits)`; parameters get none.
        """
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            logits = self(x)
        (gradient,) = torch.autograd.grad(logits, x, error(logits.detach()))
        return gradient

    def anatomy(self) -> tuple[Layer, ...]:
        """The weight layers from input to output, for methods that match hidden units.

        Not every net tells them.
        """
        raise ConfigError(
            f"the net {type(self).__name__} does not describe its layers (Net.anatomy), so its "
            "hidden units cannot be matched; choose another net, such as mlp, simple-cnn, digits "
            "or wideresnet, or a method that averages"
        )

    def mixes_batch(self) -> bool:
        """Whether the answer for one sample depends on the others of its batch, or on a random
        draw, while training.
        """
        layers = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
        return any(isinstance(module, layers) for module in self.modules())


@dataclass(frozen=True)
class Recipe:
    """Which network to build: its registered name and its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def build_net(self, shape: tuple[int, ...], classes: int, unknown: bool, seed: int) -> Net:
        """A freshly initialised network; equal seeds give equal weights."""
        make = NETS.get(self.name)
        checked: Any = settings.build(
            net_options(self.name), self.options, path="net.", owner=f"the net {self.name}"
        )
        options = {name: getattr(checked, name) for name in self.options}
        with seeded(seed, "net"):
            try:
                net: Net = make(shape=tuple(shape), classes=classes, unknown=unknown, **options)
            except TypeError as error:
                # torch adds where in its own code it noticed
                reason = str(error).partition("\n")[0]
                raise ConfigError(
                    f"the net {self.name!r} refused the options {options}: {reason}"
                ) from None
        net.shape = tuple(shape)
        return net


def net_options(name: str) -> type:
    """The options of the net `name` as a dataclass of settings."""
    return settings.options_of(NETS.get(name), given=("shape", "classes", "unknown"))


def params_of(net: nn.Module) -> Params:
    """A copy of the network's tensors, detached, on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in net.state_dict().items()}


def load_params(net: nn.Module, params: Params) -> None:
    """`net.load_state_dict(params)`, at a fifth of the cost where each tensor has its place and no
    module has a way of its own to load.
    """
    own = _places(net)
    fits = own is not None and own.keys() == params.keys()
    if own is None or not fits or any(own[n].shape != t.shape for n, t in params.items()):
        net.load_state_dict(params)  # which says what does not fit
        return
    with torch.no_grad():
        for name, tensor in params.items():
            own[name].copy_(tensor)


def _places(net: nn.Module) -> Params | None:
    """The tensors that a state dict is loaded into; None where a module does it in its own way."""
    found: Params = {}
    if type(net).load_state_dict is not nn.Module.load_state_dict:
        return None
    for path, module in net.named_modules():
        usual = type(module)._load_from_state_dict is nn.Module._load_from_state_dict
        if not usual or module._load_state_dict_pre_hooks or module._load_state_dict_post_hooks:
            return None
        for held in (module._parameters, module._buffers):
            for name, tensor in held.items():
                if tensor is not None:
                    found[f"{path}.{name}" if path else name] = tensor
    return found


def move(net: nn.Module, device: torch.device) -> None:
    """`net.to(device)`, without going through all of it where it is there already."""
    for module in net.modules():
        for held in (module._parameters, module._buffers):
            if any([tensor is not None and tensor.device != device for tensor in held.values()]):
                net.to(device)
                return
