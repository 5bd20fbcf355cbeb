"""A sound toy selector, and one broken in each way that a check of
`ostraka.testing.selectors` looks for.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ostraka.core.settings import setting
from ostraka.voting.choice import Choice
from ostraka.voting.selectors import Pool, Selector


@dataclass(frozen=True)
class Sound(Selector):
    """The first ones."""

    size: int = setting(2, "members that vote", span="[1, inf)")

    def choose(self, pool: Pool) -> Choice:
        count = len(pool.members)
        return Choice(tuple(range(min(self.size, count))), ("by its place",) * count)


@dataclass(frozen=True)
class ForgetsSettings(Sound):
    def __reduce__(self) -> Any:
        return (ForgetsSettings, ())


@dataclass(frozen=True)
class ChoosesNobody(Sound):
    def choose(self, pool: Pool) -> Choice:
        return replace(super().choose(pool), chosen=())


@dataclass(frozen=True)
class ChoosesTwice(Sound):
    def choose(self, pool: Pool) -> Choice:
        return replace(super().choose(pool), chosen=(0, 0))


@dataclass(frozen=True)
class NoReasonForTheRest(Sound):
    def choose(self, pool: Pool) -> Choice:
        found = super().choose(pool)
        return replace(found, why=tuple("chosen" for _ in found.chosen))


@dataclass(frozen=True)
class GroupsOfTheChosen(Sound):
    def choose(self, pool: Pool) -> Choice:
        return replace(super().choose(pool), groups=(0, 1, 2, 3))


@dataclass(frozen=True)
class ScalesWeights(Sound):
    def choose(self, pool: Pool) -> Choice:
        for tensor in pool.members[0].params.values():
            tensor.mul_(2.0)
        return super().choose(pool)


@dataclass(frozen=True)
class GlobalRandomness(Sound):
    def choose(self, pool: Pool) -> Choice:
        drawn = int(torch.randint(len(pool.members), ()))
        return replace(super().choose(pool), chosen=(drawn,))


@dataclass(frozen=True)
class OneMore(Sound):
    def choose(self, pool: Pool) -> Choice:
        return replace(self, size=self.size + 1).again(pool)

    def again(self, pool: Pool) -> Choice:
        return Sound.choose(self, pool)


@dataclass(frozen=True)
class NumpysGroups(Sound):
    def choose(self, pool: Pool) -> Choice:
        return replace(super().choose(pool), groups=tuple(np.zeros(len(pool.members), int)))


@dataclass(frozen=True)
class TrustsCounts(Sound):
    def choose(self, pool: Pool) -> Choice:
        for card in pool.cards:
            assert card.counts is not None
        return super().choose(pool)
