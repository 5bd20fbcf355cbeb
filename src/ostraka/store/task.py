"""A task as plain values, so that what was trained for it can be asked without its data."""

from collections.abc import Mapping
from typing import Any

from ostraka.core.net import Recipe
from ostraka.core.samples import View
from ostraka.core.settings import build, values_of
from ostraka.core.task import Task


def task_values(task: Task) -> dict[str, Any]:
    """Classes, shape, nets and view of a task; its commons are left out, no result needs them."""
    return {
        "classes": list(task.classes),
        "shape": list(task.shape),
        "net": _plain(task.net),
        "view": values_of(task.view),
        "nets": {str(party): _plain(net) for party, net in task.nets.items()},
    }


def task_from(values: Mapping[str, Any]) -> Task:
    """The task that `task_values` was given, without its commons."""
    return Task(
        classes=tuple(values["classes"]),
        shape=tuple(values["shape"]),
        net=_recipe(values["net"]),
        view=build(View, values["view"]),
        nets={int(party): _recipe(net) for party, net in values.get("nets", {}).items()},
    )


def _plain(net: Recipe) -> dict[str, Any]:
    return {"name": net.name, "options": dict(net.options)}


def _recipe(values: Mapping[str, Any]) -> Recipe:
    return Recipe(values["name"], values["options"])
