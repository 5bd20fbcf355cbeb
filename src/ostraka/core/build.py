"""Networks for a task and an objective: new ones, copies of one that was built before, and one
that is lent for a moment.

A thousand parties train the same network, one after the other: what they load into it differs, and
to build it takes longer than a small party's training.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, final

import torch

from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Objective
from ostraka.core.seeds import seeded
from ostraka.core.task import Task

KINDS = 4
"""Kinds of networks that are remembered."""


def build_net(task: Task, objective: Objective, seed: int | None = None) -> Net:
    """A fresh network for `task` with the outputs and tensors that `objective` needs.

    Equal seeds give equal weights. Without a seed they are those of seed 0, and the network is a
    copy of one that was built before.
    """
    if seed is None:
        return deepcopy(_kind(task, objective).pattern)
    net = task.build_net(objective.unknown, seed)
    with seeded(seed, "objective"):
        objective.attach(net)
    return net


@contextmanager
def lent_net(task: Task, objective: Objective) -> Iterator[Net]:
    """A network as `build_net` gives it, but for the values of its tensors: load all of them.

    It goes to the next who asks at the end of the `with` block, so nothing of it may be kept. One
    with tensors that its state dict does not hold is never lent twice.
    """
    kind = _kind(task, objective)
    net = kind.spare.pop() if kind.spare else deepcopy(kind.pattern)
    yield net  # after an error it is not taken back
    if kind.resets:
        kind.spare.append(net)


@final
@dataclass(frozen=True, eq=False)
class _Kind:
    """A network that is copied and never used, what it was made of, and copies that lie idle."""

    pattern: Net
    recipe: Recipe
    objective: Objective
    rest: tuple[Any, ...]
    resets: bool
    """Whether a state dict sets all its tensors."""
    spare: list[Net] = field(default_factory=list)

    def serves(self, recipe: Recipe, objective: Objective, rest: tuple[Any, ...]) -> bool:
        """Whether it is what would be built: of the very same frozen values, or equal plain
        ones."""
        return self.recipe is recipe and self.objective is objective and self.rest == rest


_kinds: tuple[_Kind, ...] = ()
"""The latest ones first."""


def _kind(task: Task, objective: Objective) -> _Kind:
    global _kinds
    where = (torch.get_default_device(), torch.get_default_dtype())
    rest = (task.shape, len(task.classes), *where)
    for known in _kinds:
        if known.serves(task.net, objective, rest):
            return known
    net = build_net(task, objective, 0)
    tensors = {name for name, _ in (*net.named_parameters(), *net.named_buffers())}
    made = _Kind(net, task.net, objective, rest, tensors <= net.state_dict().keys())
    _kinds = (made, *_kinds[: KINDS - 1])
    return made
