"""Small networks on CPU in few native calls.

See `kernel.cpp` for how, `blocks.py` for what to call.
"""

from ostraka.nets.native.blocks import native, through, torch_block, usable
from ostraka.nets.native.library import Lesson, available, describe, disabled
from ostraka.nets.native.op import Call, Climb, Gradients
from ostraka.nets.native.plan import Activation, Block, Pool, worth_it

__all__ = [
    "Activation",
    "Block",
    "Call",
    "Climb",
    "Gradients",
    "Lesson",
    "Pool",
    "available",
    "describe",
    "disabled",
    "native",
    "through",
    "torch_block",
    "usable",
    "worth_it",
]
