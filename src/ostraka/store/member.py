"""Member files: one trained model that stands on its own, with its card and all that is needed to ask it.

One safetensors file: the weights under the network's own names (any safetensors reader can list them), and, as JSON in
its metadata, the card, the classes, the shape of a sample, the network's recipe, the objective, and how stored values
become inputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ostraka.core.method import Card
from ostraka.core.net import Params, Recipe
from ostraka.core.samples import View, stored_view
from ostraka.core.settings import values_of
from ostraka.core.task import Task
from ostraka.core.wire import wire
from ostraka.errors import StoreError
from ostraka.store import codec

FORMAT = 1


@wire("member-file/1", "MemberFile")
@dataclass(frozen=True)
class MemberFile:
    """A member as it is handed over. `objective` and `view` are plain settings, `net` a name with options."""

    card: Card
    params: Params
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    net: Mapping[str, Any]
    objective: Mapping[str, Any]
    view: Mapping[str, Any]
    format: int = FORMAT

    def task(self) -> Task:
        """The task that the member was trained for."""
        return Task(
            tuple(self.classes), tuple(self.shape), Recipe(self.net["name"], self.net["options"])
        )

    def input_view(self) -> View:
        """How stored values become this member's inputs."""
        return stored_view(self.view, self.shape)


def make_member(
    card: Card, params: Params, task: Task, objective: Mapping[str, Any], view: View
) -> MemberFile:
    """A member that stands on its own."""
    net = {"name": task.net.name, "options": dict(task.net.options)}
    return MemberFile(card, params, task.classes, task.shape, net, dict(objective), values_of(view))


def save_member(path: Path, member: MemberFile) -> None:
    """Write a member, atomically."""
    codec.save(path, member)


def load_member(path: Path) -> MemberFile:
    """Read a member; anything else is refused."""
    value = codec.load(path)
    if not isinstance(value, MemberFile):
        raise StoreError(
            f"{path} holds a {type(value).__name__}, not a member; members are written to a run's members/"
        )
    if value.format > FORMAT:
        raise StoreError(
            f"{path} is a member of format {value.format}; this version reads up to {FORMAT}: update ostraka"
        )
    return value
