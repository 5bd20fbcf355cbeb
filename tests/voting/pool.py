"""Pools of small members whose weights are made up, to choose among."""

from collections.abc import Sequence

import numpy as np
import torch

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.task import Task
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.selectors import Pool

CLASSES = ("ant", "bee")


def member(
    number: int,
    place: float = 0.0,
    size: int = 10,
    score: float | None = None,
    counts: tuple[int, ...] | None = None,
    hidden: int = 3,
) -> Member:
    """A member whose last layer's weights all lie at `place`."""
    task = Task(CLASSES, (4,), Recipe("mlp", {"hidden": [hidden]}))
    params = params_of(task.build_net(unknown=False, seed=number))
    last = [name for name in params if tuple(params[name].shape) in ((2, hidden), (2,))]
    for name in last:
        params[name] = torch.full_like(params[name], place)
    scores = {} if score is None else {"validation": score, "confidence": 1 - score}
    return Member(Card(number, size, counts, scores), Model.of(task, CrossEntropy()), params)


def answering(number: int, classes: Sequence[str], last: torch.Tensor) -> Member:
    """A member whose logits are `last` times a row of numbers from 0; with one output more than
    there are classes, that means unknown.
    """
    outputs, width = last.shape
    objective = OpenVoting() if outputs > len(classes) else CrossEntropy()
    task = Task(tuple(classes), (width,), Recipe("mlp", {"hidden": [width]}))
    params = params_of(task.build_net(unknown=objective.unknown, seed=0))
    values = (torch.eye(width), torch.zeros(width), last, torch.zeros(outputs))
    made = dict(zip(params, values, strict=True))
    return Member(Card(number, 10), Model.of(task, objective), made)


def pool(members: Sequence[Member], seed: int = 0) -> Pool:
    """A pool without public samples."""
    return Pool(members, CLASSES, seed)


def blobs(centres: Sequence[float], each: int, columns: int = 3) -> np.ndarray:
    """`each` rows around every centre, well apart if the centres are."""
    rng = np.random.default_rng(0)
    return np.concatenate([c + 0.01 * rng.standard_normal((each, columns)) for c in centres])
