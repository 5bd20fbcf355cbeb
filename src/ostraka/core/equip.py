"""What methods and objectives are sent beside the data: a generator, shared samples."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from ostraka.core import settings
from ostraka.core.generator import TrainedGenerator
from ostraka.core.objective import Objective
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError, DataError

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


def share_of(
    shared: Samples, share: float, size: float, words: str, rng: torch.Generator
) -> Tensor:
    """Random places in `shared`: as many as a share of `size` samples; `words` say whose size."""
    count = round(share * size)
    if count > len(shared):
        raise DataError(
            f"{words}, and a share of {share:g} of that is {count}; held back for all are "
            f"{len(shared)} samples. Hold back more (--shared), or set a smaller beta"
        )
    return torch.randperm(len(shared), generator=rng)[:count]
