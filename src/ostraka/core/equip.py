"""Methods and objectives with what they are sent beside the data: a generator."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ostraka.core import settings
from ostraka.core.generator import TrainedGenerator
from ostraka.core.objective import Objective
from ostraka.errors import ConfigError

T = TypeVar("T")


def generator_of(method: Any) -> str:
    """The generator that the objectives of a method draw from; empty: none."""
    wanted = sorted(
        {
            value.draws_from
            for _, _, value in settings.walk(method)
            if isinstance(value, Objective) and value.draws_from
        }
    )
    if len(wanted) > 1:
        raise ConfigError(
            f"the objectives of one method draw from {' and '.join(wanted)}; give one generator"
        )
    return wanted[0] if wanted else ""


def equipped(value: T, generator: TrainedGenerator) -> T:
    """The same frozen value, its objectives with the generator that they draw from."""
    if isinstance(value, Objective):
        return cast(T, value.drawing_from(generator)) if value.draws_from else value
    if not is_dataclass(value):
        return value
    changed = {
        spec.name: new
        for spec in fields(value)
        if spec.init and (new := equipped(old := getattr(value, spec.name), generator)) is not old
    }
    return replace(value, **changed) if changed else value  # type: ignore[type-var]
