"""Augmentations: random changes of training samples, drawn anew whenever a sample is looked at."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from ostraka.core import line
from ostraka.core.kind import Kind
from ostraka.core.settings import Settings
from ostraka.errors import DataError, choices
from ostraka.registry import AUGMENTATIONS


@dataclass(frozen=True)
class Augmentation(Settings, ABC):
    """A random change of a whole batch of inputs [B, ...].

    All chance comes from the CPU generator, so the same seed gives the same samples on every
    device. The first line of the docstring is its summary in lists.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("image",)
    """The kinds of samples that it suits."""

    @abstractmethod
    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Changed copies of the samples."""


def augmentation(spec: str) -> Augmentation:
    """The augmentation that is written `name` or `name:option=value,...`."""
    name, _, options = spec.partition(":")
    return _built(AUGMENTATIONS.get(name), options, name)


def check_augment(spec: str, kind: Kind) -> None:
    """Refuse an augmentation that does not suit samples of this kind."""
    chosen = augmentation(spec)
    if kind not in chosen.kinds:
        suited = [name for name, cls in AUGMENTATIONS.working().items() if kind in cls.kinds]
        raise DataError(
            f"the augmentation {spec!r} is for samples of the kind {' or '.join(chosen.kinds)}; "
            f"these are of the kind {kind}. For them there are: {choices(suited)}"
        )


@lru_cache(maxsize=64)
def _built(cls: type[Augmentation], options: str, name: str) -> Augmentation:
    """Made once: it is asked for with every chunk of samples."""
    return line.read(cls, options, name)
