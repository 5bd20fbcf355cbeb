"""Imported once by the process that workers are forked from,
so that they need not load these again.

Torch loads its compiler front end on the first optimiser that is made,
which costs a second or two of every process.
"""

import torch

import ostraka.methods
import ostraka.nets
import ostraka.objectives  # noqa: F401
from ostraka.engines.scratch import remove_at_exit

remove_at_exit()
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
