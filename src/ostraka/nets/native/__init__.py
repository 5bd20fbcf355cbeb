"""Small networks on CPU in few native calls.

See `kernel.cpp` for how, `blocks.py` for what to call.
"""

from ostraka.nets.native.blocks import native, through, torch_block, usable
from ostraka.nets.native.library import available, describe, disabled
from ostraka.nets.native.op import Climb, climb_loss, climbed, run
from ostraka.nets.native.plan import Activation, Block, Pool, worth_it

__all__ = [
    "Activation",
    "Block",
    "Climb",
    "Pool",
    "available",
    "climb_loss",
    "climbed",
    "describe",
    "disabled",
    "native",
    "run",
    "through",
    "torch_block",
    "usable",
    "worth_it",
]
