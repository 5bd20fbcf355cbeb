"""A fast convolution block for small networks on CPU.

See `kernel.cpp` for how, `blocks.py` for what to call.
"""

from ostraka.nets.native.blocks import gradient_through, through, torch_block, usable, worth_it
from ostraka.nets.native.library import available, describe, disabled
from ostraka.nets.native.op import Conv, conv_blocks, conv_input_gradient

__all__ = [
    "Conv",
    "available",
    "conv_blocks",
    "conv_input_gradient",
    "describe",
    "disabled",
    "gradient_through",
    "through",
    "torch_block",
    "usable",
    "worth_it",
]
