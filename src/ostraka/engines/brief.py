"""What a party on another machine must know of a run beside its orders: the method with its
settings, the task, and what all sides may see.

It is bytes of our codec, never pickled code: a method that is not installed at the party is
refused there by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, final

from ostraka.core.equip import equipped
from ostraka.core.generator import TrainedGenerator
from ostraka.core.method import Method
from ostraka.core.samples import Samples, View
from ostraka.core.settings import build, values_of
from ostraka.core.task import Commons, Task
from ostraka.engines.base import Work
from ostraka.registry import METHODS
from ostraka.store import codec
from ostraka.store.task import task_from, task_values

SEAL: codec.Seal = {"what": "brief"}


@final
@dataclass(frozen=True)
class Brief:
    """The work of a run as a party sees it, without anybody's data."""

    method: Method[Any, Any, Any]
    task: Task
    view: View
    """How samples are seen in training."""


def brief_of(work: Work) -> bytes:
    """What goes to a party with every letter."""
    task, commons = work.task, work.task.commons
    content = {
        "method": METHODS.name_of(type(work.method)),
        "settings": values_of(work.method),
        "task": task_values(task),
        "view": values_of(work.parties.samples.view),
        "public": _samples_values(commons.public),
        "shared": _samples_values(commons.shared),
        "nets": {name: dict(params) for name, params in commons.nets.items()},
        "prior": commons.prior,
        "generator": _generator_values(commons.generator),
    }
    return codec.encode(content, SEAL)


def read_brief(data: bytes) -> Brief:
    """The brief that `brief_of` gave; damaged bytes are refused."""
    held = codec.decode(data, "the brief of the run", SEAL)
    name = str(held["method"])
    method = build(METHODS.get(name), held["settings"], owner=f"the method {name}")
    generator = _generator(held["generator"])
    task = task_from(held["task"])
    commons = Commons(
        _samples(held["public"]),
        _samples(held["shared"]),
        held["nets"],
        held["prior"],
        generator,
    )
    return Brief(
        method if generator is None else equipped(method, generator),
        replace(task, commons=commons),
        build(View, held["view"]),
    )


def _samples_values(samples: Samples | None) -> dict[str, Any] | None:
    if samples is None:
        return None
    labels = None if samples.y is None else samples.labels
    return {"x": samples.stored(), "y": labels, "view": values_of(samples.view)}


def _samples(held: Mapping[str, Any] | None) -> Samples | None:
    if held is None:
        return None
    return Samples(held["x"], held["y"], view=build(View, held["view"]))


def _generator_values(generator: TrainedGenerator | None) -> dict[str, Any] | None:
    if generator is None:
        return None
    values = {spec.name: getattr(generator, spec.name) for spec in fields(generator)}
    return {**values, "params": dict(generator.params), "about": dict(generator.about)}


def _generator(held: Mapping[str, Any] | None) -> TrainedGenerator | None:
    return None if held is None else TrainedGenerator(**held)
