"""The contract of networks, checked with three classes on random samples."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.alignment.match import hidden_groups, move
from ostraka.core.net import INPUT, OUTPUT, Layer, Net, Params, params_of
from ostraka.core.seeds import seeded, torch_rng
from ostraka.errors import ConfigError
from ostraka.store import codec
from ostraka.testing.expect import SEED, difference, expect, hoped, near
from ostraka.testing.stage import known_randomness, twice

CLASSES, SAMPLES = 3, 6
ODD_SHAPES: tuple[tuple[int, ...], ...] = (
    (1,),
    (7,),
    (2, 5),
    (1, 1, 1),
    (1, 2, 3),
    (3, 5, 9),
    (2, 16, 11),
    (1, 3, 3, 3),
)
"""Shapes of samples that somebody will try."""


@dataclass(frozen=True)
class Sketch:
    """A network to be: what makes it, the shape of a sample, and options."""

    make: Callable[..., Net]
    shape: tuple[int, ...] = (1, 28, 28)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in messages."""
        return getattr(self.make, "__name__", str(self.make))

    def build_net(
        self, unknown: bool = False, seed: int = 1, shape: tuple[int, ...] | None = None
    ) -> Net:
        """A network, as a recipe builds it."""
        shape = self.shape if shape is None else shape
        with seeded(seed, "net"):
            net = self.make(shape=shape, classes=CLASSES, unknown=unknown, **self.options)
        net.shape = shape
        return net

    def samples(self, count: int = SAMPLES) -> Tensor:
        """Random inputs."""
        return torch.randn(count, *self.shape, generator=torch_rng(SEED, "samples"))


def check_net(
    make: Callable[..., Net], shape: tuple[int, ...] = (1, 28, 28), **options: Any
) -> None:
    """Raise a ContractBroken if the network
    `make(shape=, classes=, unknown=, **options)` fails any of CHECKS.
    """
    sketch = Sketch(make, shape, options)
    for check in CHECKS:
        check(sketch)


def check_outputs(sketch: Sketch) -> None:
    """One output for each class, and one more for unknown; a batch may hold a single sample."""
    for unknown in (False, True):
        net, wanted = _net(sketch, unknown).eval(), CLASSES + unknown
        known = (net.classes, net.unknown, net.outputs) == (CLASSES, unknown, wanted)
        odd = not known and f"classes is {net.classes} and unknown {net.unknown}"
        advice = "call super().__init__(classes, unknown)"
        expect(sketch.name, "the network knows its classes", odd, advice)
        for count in (1, SAMPLES):
            logits = _forward(sketch, net, sketch.samples(count))
            odd = tuple(logits.shape) != (count, wanted) and f"it gives {list(logits.shape)}"
            what = f"unknown={unknown} gives [{count}, {wanted}]"
            expect(sketch.name, what, odd, "the last layer has self.outputs")
            odd = not logits.isfinite().all() and "some are infinite or NaN"
            expect(sketch.name, "logits are finite", odd, "check the initialisation")


def check_parts(sketch: Sketch) -> None:
    """`late(early(x))` and `head(embed(x))` are the forward pass.

    The embedding is one row for each sample.
    """
    net, x = _net(sketch).eval(), sketch.samples()
    logits = _forward(sketch, net, x)
    with hoped(sketch.name, "its parts can be called"), torch.no_grad():
        parts = {"late(early(x))": net.late(net.early(x)), "head(embed(x))": net.head(net.embed(x))}
        hidden, embedding = net.early(x), net.embed(x)
    for name, given in parts.items():
        other = not near(given, logits) and "it gives other logits"
        expect(sketch.name, f"{name} is the forward pass", other, "cut one network at two places")
    expect(
        sketch.name,
        "early keeps the samples and embed gives [samples, width]",
        (embedding.dim() != 2 or len(embedding) != len(x) or len(hidden) != len(x))
        and f"early gives {list(hidden.shape)} and embed "
        f"{list(embedding.shape)} for {len(x)} samples",
        "flatten in embed_late",
    )


def check_rows(sketch: Sketch) -> None:
    """A sample's logits depend on that sample alone.

    In training too, unless `mixes_batch` says otherwise.
    """
    order, x = torch.randperm(SAMPLES, generator=torch_rng(SEED, "order")), sketch.samples()
    for mode in ("evaluation", "training"):
        net = _net(sketch).train(mode == "training")
        if mode == "training" and net.mixes_batch():
            continue
        for rows, case in ((order, "in another order"), (order[:2], "without most of the others")):
            same = near(_forward(sketch, net, x)[rows], _forward(sketch, net, x[rows]))
            expect(
                sketch.name,
                f"a sample gets the same logits {case} in {mode}",
                not same and "they changed",
                "use no statistic of the batch and nothing random, "
                "or let mixes_batch say so for training",
            )


def check_seeds(sketch: Sketch) -> None:
    """Equal seeds give equal weights, however numpy's and Python's random generators stand.

    Other seeds give others.
    """
    first, second = twice(lambda: params_of(_net(sketch)))
    with known_randomness(1):
        other = params_of(_net(sketch, seed=2))
    advice = "initialise with torch's functions and without a generator or a seed of your own"
    change = difference(first, second, "weights")
    expect(sketch.name, "equal seeds give equal weights", change, advice)
    same = difference(first, other, "weights") is None and "they are the same"
    expect(sketch.name, "another seed gives other weights", same, advice)


def check_tensors(sketch: Sketch) -> None:
    """All that the network has learned is in its state_dict and can be stored."""
    net, fresh = _net(sketch), _net(sketch, seed=2)
    _train(sketch, net)
    what = "its tensors are stored and loaded into a new network"
    advice = "keep parameters and buffers on submodules, with the same names every time"
    with hoped(sketch.name, what, advice):
        fresh.load_state_dict(codec.decode(codec.encode(params_of(net))))
    x = sketch.samples()
    same = near(_forward(sketch, net.eval(), x), _forward(sketch, fresh.eval(), x))
    advice = "register every tensor that counts as a parameter or buffer"
    other = not same and "it does not"
    expect(sketch.name, f"{what}, which then answers the same", other, advice)


def check_gradients(sketch: Sketch) -> None:
    """Every parameter takes part in training, with a finite gradient."""
    net = _net(sketch)
    _train(sketch, net)
    grads = {name: p.grad for name, p in net.named_parameters() if p.requires_grad}
    for name, grad in grads.items():
        problem: str | bool = f"{name} has none"
        if grad is not None:
            problem = not grad.isfinite().all() and f"that of {name} is infinite or NaN"
        advice = "use every parameter in the forward pass, or remove it"
        expect(sketch.name, "every parameter gets a finite gradient", problem, advice)


def check_input_gradient(sketch: Sketch) -> None:
    """`input_gradient` is the gradient in the inputs, and no parameter gets one by it."""
    net, x = _net(sketch).eval(), sketch.samples()
    labels = torch.arange(len(x)) % CLASSES

    def error(logits: Tensor) -> Tensor:
        return logits.softmax(dim=1) - F.one_hot(labels, logits.shape[1])

    what = "input_gradient gives the gradient in the inputs"
    with hoped(sketch.name, what):
        given, wanted = net.input_gradient(x, error), Net.input_gradient(net, x, error)
    other = not near(given, wanted) and "it gives others"
    expect(sketch.name, what, other, "leave input_gradient to Net")
    what = "input_gradient leaves no gradient on parameters"
    left = any(parameter.grad is not None for parameter in net.parameters()) and "it does"
    expect(sketch.name, what, left, "use torch.autograd.grad")


def check_anatomy(sketch: Sketch) -> None:
    """If the network describes its layers, they are what it has:
    hidden units can be moved without a trace.
    """
    net = _net(sketch).eval()
    with hoped(sketch.name, "anatomy describes the layers or refuses with a ConfigError"):
        try:
            layers = net.anatomy()
        except ConfigError:
            return
    params = params_of(net)
    problem = _anatomy_problem(layers, params, net.outputs)
    advice = "name the weights and groups of the network as it is"
    expect(sketch.name, "anatomy describes the layers", problem, advice)
    rng = torch_rng(SEED, "units")
    sizes = {layer.outputs: len(params[layer.weight]) for layer in layers}
    maps = {group: torch.randperm(sizes[group], generator=rng) for group in hidden_groups(layers)}
    x = sketch.samples()
    before = _forward(sketch, net, x)
    with hoped(sketch.name, "its hidden units can be moved", "check the groups of its layers"):
        net.load_state_dict(move(layers, params, maps))
    expect(
        sketch.name,
        "hidden units in another order give the same logits",
        not near(before, _forward(sketch, net, x)) and "the logits changed",
        "list every layer that reads or writes a group, "
        "and in vectors every tensor with a value for each unit",
    )


def check_shapes(sketch: Sketch) -> None:
    """Samples of an odd shape are taken, or refused with a
    ConfigError when the network is built.
    """
    for shape in ODD_SHAPES:
        what = f"samples of the shape {shape} are taken, or refused with a ConfigError"
        with hoped(sketch.name, what, "check the shape in __init__ and say what the network takes"):
            try:
                net = sketch.build_net(shape=shape).eval()
            except ConfigError:
                continue
            with torch.no_grad():
                logits = net(torch.zeros(2, *shape))
        odd = tuple(logits.shape) != (2, CLASSES) and f"it gives {list(logits.shape)}"
        expect(sketch.name, what, odd, "check the shape in __init__")


CHECKS: tuple[Callable[[Sketch], None], ...] = (
    check_outputs,
    check_parts,
    check_rows,
    check_seeds,
    check_tensors,
    check_gradients,
    check_input_gradient,
    check_anatomy,
    check_shapes,
)
"""All checks, those with the plainest message first."""


def _net(sketch: Sketch, unknown: bool = False, seed: int = 1) -> Net:
    what = f"it is built for samples of the shape {sketch.shape}"
    with hoped(sketch.name, what, "give a shape that it takes"):
        net = sketch.build_net(unknown, seed)
    strange = not isinstance(net, Net) and f"it is a {type(net).__name__}"
    expect(sketch.name, "it is an ostraka.core.net.Net", strange, "inherit from Net")
    return net


def _forward(sketch: Sketch, net: Net, x: Tensor) -> Tensor:
    with hoped(sketch.name, "the forward pass works"), torch.no_grad():
        logits: Tensor = net(x)
    return logits


def _train(sketch: Sketch, net: Net) -> None:
    """One step by hand; buffers such as running statistics move too."""
    labels = torch.arange(SAMPLES) % CLASSES
    with hoped(sketch.name, "a training step works"):
        F.cross_entropy(net.train()(sketch.samples()), labels).backward()
        with torch.no_grad():
            for parameter in net.parameters():
                if parameter.grad is not None:
                    parameter.sub_(0.1 * parameter.grad)


def _anatomy_problem(layers: tuple[Layer, ...], params: Params, outputs: int) -> str | None:
    """The first thing that does not fit."""
    tensors = [name for layer in layers for name in (layer.weight, *layer.vectors)]
    missing = [name for name in tensors if name not in params]
    if missing:
        return f"there is no tensor {missing[0]}"
    forgotten = [name for name, value in params.items() if value.dim() and name not in tensors]
    if forgotten:
        return f"no layer claims the tensor {forgotten[0]}"
    inputs = [layer.inputs for layer in layers]
    if INPUT not in inputs or layers[-1].outputs != OUTPUT:
        return f"it does not begin with {INPUT!r} and end with {OUTPUT!r}"
    sizes: dict[str, int] = {}
    for layer in layers:
        units = sizes.setdefault(layer.outputs, len(params[layer.weight]))
        for name in (layer.weight, *layer.vectors):
            if len(params[name]) != units:
                group = f"the group {layer.outputs!r} has {units} units"
                return f"{name} has {len(params[name])} rows, {group}"
        columns, units = params[layer.weight].shape[1], sizes.get(layer.inputs, 0)
        if layer.inputs != INPUT and (not units or columns % units):
            group = f"the group {layer.inputs!r} has {units} units"
            return f"{layer.weight} has {columns} columns, {group}"
    if sizes[OUTPUT] != outputs:
        return f"the last layer has {sizes[OUTPUT]} outputs, the network {outputs}"
    return None
