"""Layers as the kernel takes them, and the sizes of a whole pass, checked once.

The kernel sees only addresses and would misread what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal, NamedTuple

from torch import Tensor

from ostraka.nets.native.library import MOST_LAYERS, Layer, Network

KERNELS = (3, 5)
"""Square kernel sizes that were compiled."""

Activation = Literal["none", "relu", "tanh"]
Pool = Literal["none", "max", "mean"]
ACTIVATIONS: tuple[Activation, ...] = ("none", "relu", "tanh")
POOLS: tuple[Pool, ...] = ("none", "max", "mean")
"""In the order of the numbers by which the C++ side knows them."""


class Block(NamedTuple):
    """One layer: convolution (stride 1, weight [C', C, k, k]) or fully connected (weight [N', N]),
    bias, activation, and after a convolution 2x2 pooling.
    """

    weight: Tensor
    bias: Tensor | None
    padding: int = 0
    activation: Activation = "relu"
    pool: Pool = "none"

    def key(self) -> Key:
        """All but the numbers in its tensors."""
        bias = None if self.bias is None else self.bias.shape
        return Key(self.weight.shape, bias, self.padding, self.activation, self.pool)


class Key(NamedTuple):
    """What a plan needs to know of a block."""

    weight: tuple[int, ...]
    bias: tuple[int, ...] | None
    padding: int
    activation: Activation
    pool: Pool


@dataclass(frozen=True)
class Plan:
    """The passes of one batch through some layers."""

    network: Network
    result: tuple[int, ...]
    """The shape of what the last layer gives, the batch first."""
    worth_it: bool
    """Whether the native kernel is the better choice for every layer."""
    kept: int
    """Bytes that a forward pass keeps for the backward pass."""
    scratch: int
    """Bytes of working memory."""


@lru_cache(maxsize=1024)
def make_plan(library: Any, x: Sequence[int], keys: Sequence[Key]) -> Plan:
    """The plan for samples of the shape `x` (the batch first); an error where something does not
    fit.
    """
    if not 1 <= len(keys) <= MOST_LAYERS:
        raise ValueError(f"{len(keys)} layers; the native kernel takes 1 to {MOST_LAYERS}")
    network, shape = Network(batch=x[0], count=len(keys)), tuple(x)
    worth = True
    for i, key in enumerate(keys):
        network.layers[i], shape, good = _layer(shape, key)
        worth = worth and good
    sizes = library.ostraka_kept(network), library.ostraka_scratch(network)
    return Plan(network, shape, worth, *sizes)


def _layer(x: tuple[int, ...], key: Key) -> tuple[Layer, tuple[int, ...], bool]:
    """One layer, the shape it gives, and whether it is worth it."""
    convolves = len(key.weight) == 4
    result = _convolved(x, key) if convolves else _connected(x, key)
    outputs = key.weight[0]
    if key.bias is not None and tuple(key.bias) != (outputs,):
        raise ValueError(f"bias {tuple(key.bias)} does not fit weight {tuple(key.weight)}")
    numbers = ACTIVATIONS.index(key.activation), POOLS.index(key.pool)
    if not convolves or (result[2:] == (1, 1) and not key.padding and key.pool == "none"):
        # a kernel as large as its image is a fully connected layer, and faster as one
        inputs = prod(key.weight[1:])
        layer = Layer(inputs, outputs, 1, 1, 0, 0, *numbers)
        return layer, result, linear_worth_it(inputs, outputs)
    layer = Layer(key.weight[1], outputs, x[2], x[3], key.weight[2], key.padding, *numbers)
    return layer, result, worth_it(key.weight, x[2:])


def _connected(x: tuple[int, ...], key: Key) -> tuple[int, ...]:
    if len(key.weight) != 2 or prod(x[1:]) != key.weight[1]:
        raise ValueError(f"input {x} does not fit weight {tuple(key.weight)}: need [B, N], [N', N]")
    if key.padding or key.pool != "none":
        raise ValueError("a fully connected layer has neither padding nor pooling")
    return x[0], key.weight[0]


def _convolved(x: tuple[int, ...], key: Key) -> tuple[int, ...]:
    weight, padding, pooled = key.weight, key.padding, key.pool != "none"
    if len(x) != 4 or x[1] != weight[1]:
        raise ValueError(
            f"input {tuple(x)} does not fit weight {tuple(weight)}: "
            "need [B, C, H, W], [C', C, k, k]"
        )
    kernel = weight[2]
    if kernel not in KERNELS or weight[3] != kernel:
        raise ValueError(
            f"kernel {tuple(weight[2:])} is not supported natively; allowed: square {KERNELS}"
        )
    if not 0 <= padding < kernel:
        raise ValueError(
            f"padding {padding} is not supported with kernel {kernel}; allowed: 0 to {kernel - 1}"
        )
    rows, cols = (side + 2 * padding - kernel + 1 for side in x[2:])
    if min(x[2:]) < 1 or min(rows, cols) < (2 if pooled else 1):
        raise ValueError(
            f"image {tuple(x[2:])} is too small for kernel {kernel}, "
            f"padding {padding}, pool={key.pool}"
        )
    half = 2 if pooled else 1
    return x[0], weight[0], rows // half, cols // half


def worth_it(weight_shape: Sequence[int], image_shape: Sequence[int]) -> bool:
    """Whether the native kernel is the better choice for this convolution: unless both sides are
    wide.

    Torch's time for forward + both gradients over native's, for the better of NCHW and
    channels_last, pooled layers, one busy AVX-512 machine, so good to about a fifth (batch 64;
    48 -> 48 and 56x56 with 32): 1 -> 32 channels 9, 3 -> 64 3.6, 10 -> 20 2.3, 20 -> 50 1.6, 24 ->
    48 1.3, 32 -> 64 1.1; but 48 -> 48 0.8, 64 -> 64 0.9, and 1.0 on images of 56x56. Without
    pooling torch in channels_last is ahead from 16 channels on (16 -> 32 0.8, 32 -> 32 0.8, 64 ->
    64 0.7), in NCHW about equal; native is still chosen up to 32 because a change of memory layout
    between blocks would cost what it saves. `benchmarks/kernel_bench.py` measures again.
    """
    return min(weight_shape[:2]) <= 32 or min(image_shape) >= 56


def linear_worth_it(inputs: int, outputs: int) -> bool:
    """Whether a fully connected layer's weights stay in the cache while samples pass."""
    return inputs * outputs <= 1 << 18
