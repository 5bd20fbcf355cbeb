"""A task as plain values, so that what was trained for it can be asked without its data."""

from collections.abc import Mapping
from typing import Any

from ostraka.core.net import Recipe
from ostraka.core.samples import View
from ostraka.core.settings import build, values_of
from ostraka.core.task import Task


def task_values(task: Task) -> dict[str, Any]:
    """Classes, shape, net and view of a task; its commons are left out, no result needs them."""
    return {
        "classes": list(task.classes),
        "shape": list(task.shape),
        "net": {"name": task.net.name, "options": dict(task.net.options)},
        "view": values_of(task.view),
    }


def task_from(values: Mapping[str, Any]) -> Task:
    """The task that `task_values` was given, without its commons."""
    net = Recipe(values["net"]["name"], values["net"]["options"])
    view = build(View, values["view"])
    return Task(tuple(values["classes"]), tuple(values["shape"]), net, view=view)
