"""Members whose answers are written down: sample d of D is the d-th unit vector, and a voter's
logits for it, unknown last, are the d-th line of its table.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ostraka.core.card import Card
from ostraka.core.member import Making, Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.samples import View
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.open_voting import OpenVoting
from ostraka.store.member import save_member

Table = Sequence[Sequence[float]]
ANNA: Table = [(3, 0, 0), (0, 3, 0), (-1, -1, 3), (-2, -1, 3), (0, 0, 4)]
BERTA: Table = [(-1, -1, 3), (3, -1, 0), (0, 4, 0), (-2, -1, 3), (0, 0, 5)]
CARL: Table = [(-1, 2, 0), (-2, -1, 3), (5, 0, 1), (-2, -2, 4), (0, 0, 3)]
"""On the samples 0 to 4: a cat, a dog, an eel and two that nobody knows."""
TRUTH = ("cat", "dog", "eel", "yak", "yak")


def voter(
    name: str,
    classes: Sequence[str],
    table: Table,
    counts: Sequence[int] | None = (100, 100),
    size: int | None = None,
) -> Member:
    """A member that answers as its table says."""
    logits = torch.tensor(table, dtype=torch.float32)
    samples, opened = len(table), logits.shape[1] == len(classes) + 1
    objective = OpenVoting(outliers="none") if opened else CrossEntropy()
    model = Model(tuple(classes), (samples,), Recipe("mlp", {"hidden": [samples]}), objective,
                  View(kind="table"))  # fmt: skip
    params = params_of(model.net.build_net(model.shape, len(classes), opened, 0))
    first, last = (name for name in params if params[name].dim() == 2)
    for key in params:
        params[key] = torch.zeros_like(params[key])
    params[first], params[last] = torch.eye(samples), logits.T.contiguous()
    told = None if counts is None else tuple(counts)
    card = Card(0, size or sum(counts or (100,)), told, {}, {"doubt": -2.0} if opened else {}, name)
    return Member(card, model, params, Making("by hand"))


def three() -> list[Member]:
    """Three members, each of whom knows two of three classes."""
    return [
        voter("anna", ("cat", "dog"), ANNA),
        voter("berta", ("dog", "eel"), BERTA),
        voter("carl", ("eel", "cat"), CARL),
    ]


def samples(count: int = 5) -> np.ndarray:
    """All samples, in order."""
    return np.eye(count, dtype=np.float32)


def save(folder: Path, *members: Member) -> list[str]:
    """The members as files called after them."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{member.card.name}.member" for member in members]
    for path, member in zip(paths, members, strict=True):
        save_member(path, member)
    return [str(path) for path in paths]


def shares(table: Table) -> np.ndarray:
    """Softmax of every line, in double precision."""
    raised = np.exp(np.asarray(table, dtype=np.float64))
    return raised / raised.sum(axis=1, keepdims=True)
