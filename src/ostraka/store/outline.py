"""What a stranger's network would be, found without giving it memory or time.

It is built on torch's meta device, where tensors have a shape and nothing behind it, and building
stops at the first tensor beyond what the file brings: whoever wants a network of 10^9 weights has
to send them. Where few weights may still make much work, on large samples, one sample is passed
through it there, and its work is counted.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode

from ostraka.core.build import build_net
from ostraka.core.member import Model
from ostraka.core.net import Net
from ostraka.errors import ConfigError, OstrakaError

OPTION = 1_000_000
"""The largest number among the options of a network."""
OPTIONS = 4096
"""How many values they may have."""
SPARE_TENSORS, SPARE_VALUES = 16, 2**16
"""What a network may have beside the tensors of its file: constants that are not stored."""
OPERATIONS = 2**33
"""Multiplications and additions for one sample: those of ResNet-50 on a photograph."""
ACTIVATIONS = 2**26
"""Values that the layers give for one sample, all together."""


@final
@dataclass(frozen=True)
class Outline:
    """The tensors of a network."""

    tensors: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]
    variances: tuple[str, ...]
    """Those of them that are variances, of batch norm."""


def outline(model: Model, tensors: int, values: int) -> Outline:
    """The outline of a model's network, which may have so many tensors and values in all.

    Anything larger, and a network that takes too much work to ask, is a ConfigError.
    """
    name, options = model.net.name, model.net.options
    count = _check_options(options, f"the options of the net {name!r}")
    if count > OPTIONS:
        raise ConfigError(f"the net {name!r} has {count} options; at most {OPTIONS} are read")
    try:
        with torch.device("meta"), torch.no_grad():
            with _at_most(tensors + SPARE_TENSORS, values + SPARE_VALUES, name):
                net = build_net(model.task, model.objective, seed=0).eval()
            if not _harmless(net, prod(model.shape[1:])):
                _check_work(net, torch.empty(1, *model.shape), name)
    except OstrakaError:
        raise
    except Exception as error:  # whatever options make of it in torch or in a plug-in
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"the net {name!r} cannot be outlined with the options {dict(options)!r:.120} for "
            f"samples of shape {list(model.shape)}: {reason:.200}"
        ) from None
    return _outline_of(net)


def _harmless(net: Net, places: int) -> bool:
    """Whether nothing needs to be counted, as no weight of a convolution or of a linear layer is
    used more often than once at every place of a sample, and few layers come behind each."""
    weights = [weight for weight in net.parameters() if weight.dim() > 1]
    operations = 2 * places * sum(weight.numel() for weight in weights)
    activations = 4 * places * sum(weight.shape[0] for weight in weights)
    return operations <= OPERATIONS and activations <= ACTIVATIONS


def _check_work(net: Net, sample: Tensor, name: str) -> None:
    """Refuse a network that takes too much work to ask about one sample."""
    from torch.utils.flop_counter import FlopCounterMode  # takes a second, and is seldom needed

    with _Counted(name), FlopCounterMode(display=False) as work:
        net(sample)
    if work.get_total_flops() > OPERATIONS:
        raise ConfigError(
            f"the net {name!r} takes {work.get_total_flops():,} operations for one sample; at most "
            f"{OPERATIONS:,} are allowed"
        )


def _outline_of(net: Net) -> Outline:
    variances = [
        f"{name}.running_var"
        for name, module in net.named_modules()
        if isinstance(module, _NormBase)
    ]
    tensors = {name: (t.dtype, tuple(t.shape)) for name, t in net.state_dict().items()}
    stored = tuple(name for name in variances if name in tensors)
    return Outline(tensors, stored)


def _check_options(value: Any, where: str) -> int:
    """Refuse numbers that no option takes; the number of values, within each other."""
    if isinstance(value, Mapping):
        return sum(_check_options(item, where) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(_check_options(item, where) for item in value)
    if isinstance(value, int | float) and not abs(value) <= OPTION:
        raise ConfigError(f"{value:.6g} is among {where}; numbers up to {OPTION:,} are allowed")
    return 1


@contextmanager
def _at_most(tensors: int, values: int, name: str) -> Iterator[None]:
    """Stop whoever builds a network in this thread at the first tensor beyond the limits."""
    mine, count, total = threading.get_ident(), 0, 0

    def look(module: nn.Module, key: str, tensor: Tensor | None) -> None:
        nonlocal count, total
        if tensor is None or threading.get_ident() != mine:
            return
        count, total = count + 1, total + tensor.numel()
        if count > tensors or total > values:
            raise ConfigError(
                f"the net {name!r} would have more than the file brings: {count:,} tensors with "
                f"{total:,} values so far, and the file has {tensors - SPARE_TENSORS:,} with "
                f"{values - SPARE_VALUES:,}"
            )

    handles = (
        register_module_parameter_registration_hook(look),
        register_module_buffer_registration_hook(look),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@final
class _Counted(TorchDispatchMode):
    """Stop a computation when its results have too many values in all."""

    def __init__(self, name: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.name, self.total = name, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry the operation out, and count what it gives."""
        result = func(*args, **(kwargs or {}))
        given = result if isinstance(result, list | tuple) else (result,)
        for one, said in zip(given, func._schema.returns, strict=False):
            if isinstance(one, Tensor) and said.alias_info is None:  # no view of another
                self.total += one.numel()
        if self.total > ACTIVATIONS:
            raise ConfigError(
                f"the net {self.name!r} has layers with more than {ACTIVATIONS:,} values for one "
                "sample; a smaller one, or smaller samples, are allowed"
            )
        return result
