"""A member: one trained model that stands on its own,
with its card and all that is needed to ask it.
"""

from dataclasses import dataclass

from ostraka.core.card import Card
from ostraka.core.learner import NetPredictor, load_predictor
from ostraka.core.net import Params, Recipe
from ostraka.core.objective import Objective
from ostraka.core.samples import View
from ostraka.core.task import Task


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
    def task(self) -> Task:
        """The task that it was trained for, with nothing in common."""
        return Task(self.classes, self.shape, self.net, view=self.view)


@dataclass(frozen=True)
class Member:
    """One model with its card.

    Its file is `store.member`; its class counts are in the order of the model's classes.
    """

    card: Card
    model: Model
    params: Params

    def predictor(self) -> NetPredictor:
        """How it answers alone."""
        model = self.model
        return load_predictor(model.task, model.objective, self.params, self.card.calibration)
