"""The pool where it is worth its start, else this process.

To start workers takes seconds, because each must load torch or be forked from a process that does.
Whether they win that back is estimated from what is known without running anything: parties,
their trainings and steps, and the size of the network. The numbers of a run do not depend on the
answer.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod
from typing import final

import torch
from torch import Tensor

from ostraka.core.fit import Budget
from ostraka.core.net import Net
from ostraka.core.settings import Settings, setting
from ostraka.engines.base import Crew, Engine, Work
from ostraka.engines.pool import Pool, workers_for
from ostraka.engines.serial import Serial
from ostraka.registry import ENGINES

POOL_SECONDS = 5.0
"""What it takes to start a pool."""
PARTY_SECONDS = 2e-3
"""Reading an order, building a network, sending and looking at an answer."""
STEP_SECONDS = 8e-4
"""What a step takes beside its arithmetic."""
PRODUCT_SECONDS = 6e-11
"""One product of a weight and a value, forward and backward, at about 100 GFLOP/s."""


@final
@ENGINES.add("auto")
@dataclass(frozen=True)
class Auto(Settings, Engine):
    """The pool if the planned work is worth its start, else this process (the default)."""

    workers: int | None = setting(
        None, "processes, if it is the pool; given, it is the pool", span="[1, inf)"
    )

    timeout: float = setting(
        86400.0, "seconds after which a party is given up, if it is the pool", span="(0, inf)"
    )

    def open(self, work: Work) -> AbstractContextManager[Crew]:
        """Open the engine that will be sooner done."""
        pool = Pool(self.workers, self.timeout)
        return (pool if pays(work, self.workers) else Serial()).open(work)


def pays(work: Work, workers: int | None = None) -> bool:
    """Whether a pool is expected to save more time than its start takes.

    Whoever names a number of workers wants them; a method that does not say how it trains is
    taken for long work.
    """
    if workers is not None:
        return True
    count = workers_for(work)
    if count == 1:
        return False
    seconds = expected_seconds(work)
    return seconds is None or seconds * (1 - 1 / count) > POOL_SECONDS


def expected_seconds(work: Work) -> float | None:
    """About how long one process would train; None: the method does not say by its `local`."""
    method, task, local = work.method, work.task, getattr(work.method, "local", None)
    if not isinstance(local, Budget):
        return None
    products = _products(task.build_net(unknown=False), task.shape)
    held = (
        torch.bincount(party.samples.labels, minlength=len(task.classes)) for party in work.parties
    )
    once = sum(
        PARTY_SECONDS + method.trainings(task, counts) * _training_seconds(counts, local, products)
        for counts in held
    )
    return once * method.fraction * method.exchanges


def _training_seconds(counts: Tensor, local: Budget, products: int) -> float:
    """Of one network, by a party with so many samples of each class."""
    size = int(counts.sum())
    steps = local.steps_on(size, int((counts > 0).sum()))
    return steps * (STEP_SECONDS + local.width(size) * products * PRODUCT_SECONDS)


def _products(net: Net, shape: Sequence[int]) -> int:
    """About how many products an answer takes: a weight of a convolution is used at every place,
    of which pooling leaves a quarter on average."""
    places = max(1, prod(shape[1:]) // 4)
    sizes = [(p.dim() > 2, p.numel()) for p in net.parameters()]
    return sum(count * (places if convolution else 1) for convolution, count in sizes)
