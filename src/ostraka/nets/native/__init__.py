"""A fast convolution block for small networks on CPU; see `kernel.cpp` for how, `blocks.py` for what to call."""

from ostraka.nets.native.blocks import block, torch_block, usable, worth_it
from ostraka.nets.native.library import available, describe, disabled
from ostraka.nets.native.op import conv_block

__all__ = [
    "available",
    "block",
    "conv_block",
    "describe",
    "disabled",
    "torch_block",
    "usable",
    "worth_it",
]
