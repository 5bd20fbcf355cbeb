"""What objectives that draw samples from a generator share."""

import copy
from dataclasses import dataclass, field
from typing import Self

from ostraka.core.generator import TrainedGenerator
from ostraka.core.kind import Kind
from ostraka.core.objective import Objective
from ostraka.errors import DataError, NeedError
from ostraka.nets.generator import check_image


@dataclass(frozen=True)
class Drawing(Objective):
    """An objective that may draw samples from a generator, which it is given before it trains."""

    source: TrainedGenerator | None = field(default=None, init=False, compare=False, repr=False)
    """The generator itself: no setting, so that configurations and member files do not hold it."""

    def drawing_from(self, generator: TrainedGenerator) -> Self:
        """This objective with its generator."""
        return self.holding("source", generator)

    def holding(self, name: str, value: object) -> Self:
        """A copy with a value that is no setting."""
        own = copy.copy(self)
        object.__setattr__(own, name, value)
        return own

    def generator_here(self) -> TrainedGenerator:
        """The generator; an objective that was not given its own says how to."""
        if self.source is None:
            raise NeedError(
                f"the objective {type(self).__name__} draws from the generator "
                f"{self.draws_from!r}, which it was not given; a run gives it, a training by hand "
                "takes objective.drawing_from(ostraka.load_generator(FILE))"
            )
        return self.source

    def check_samples(self, kind: Kind, shape: tuple[int, ...]) -> None:
        """Only images can be generated."""
        if self.draws_from:
            if kind != "image":
                raise DataError(
                    f"a generator makes images, and these samples are of the kind {kind}; use "
                    "another method or objective, or outliers=auto"
                )
            check_image(shape)
