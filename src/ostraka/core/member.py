"""A member: one trained model that stands on its own,
with its card and all that is needed to ask it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ostraka.core.card import Card
from ostraka.core.learner import NetPredictor, load_predictor
from ostraka.core.net import Params, Recipe
from ostraka.core.objective import Objective
from ostraka.core.samples import View
from ostraka.core.task import Task


def taking(view: View, shape: tuple[int, ...]) -> str:
    """What a network with this view is asked with, in words."""
    stored = "values as they are" if view.unit == 1 else f"values from 0 to {view.unit:.9g}"
    return f"{view.kind} {list(shape)}, {stored}"


@dataclass(frozen=True)
class Model:
    """What weights belong to: a network, what it was trained for, its classes,
    and how it sees a sample.
    """

    classes: tuple[str, ...]
    shape: tuple[int, ...]
    net: Recipe
    objective: Objective
    view: View = View()

    @classmethod
    def of(cls, task: Task, objective: Objective) -> "Model":
        """The model that a party of `task` trains for `objective`."""
        return cls(task.classes, task.shape, task.net, objective, task.view)

    @property
    def takes(self) -> str:
        """What it is asked with, in words: the kind and shape of samples, the unit of values."""
        return taking(self.view, self.shape)

    @property
    def task(self) -> Task:
        """The task that it was trained for, with nothing in common."""
        return Task(self.classes, self.shape, self.net, view=self.view)


@dataclass(frozen=True)
class Making:
    """How a member came about, and what else its party tells of it."""

    method: str = ""
    recipe: str = ""
    created: str = ""
    """When, in universal time: 2026-11-18T04:45:52Z."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else is told: kept and shown, never acted on."""
    banded: bool = False
    """Whether class counts are told as bands (`core.card.BANDS`) and not exactly; the card's are
    then the least that they can be."""
    task: str = ""
    """The digest of the task file that it was trained by."""

    @classmethod
    def now(cls, method: str, recipe: str = "") -> "Making":
        """Made at this moment."""
        return cls(method, recipe, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


@dataclass(frozen=True)
class Member:
    """One model with its card.

    Its file is `store.member`; its class counts are in the order of the model's classes.
    """

    card: Card
    model: Model
    params: Params
    made: Making = Making()

    def predictor(self) -> NetPredictor:
        """How it answers alone."""
        model = self.model
        return load_predictor(model.task, model.objective, self.params, self.card.calibration)
