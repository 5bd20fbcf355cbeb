"""A server that answers single queries: the ballot looks at the last few hundred of them."""

from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from ostraka.errors import ConfigError
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Votes
from ostraka.voting.ensemble import Ensemble

SIZE = 300
"""Queries that are remembered: with 300, one liar of ten is found out
nearly as well as with all samples.
"""
EVERY = 25
"""Queries after which the members are assessed anew."""


@final
class Window:
    """The members' votes on the last queries, and the assessment by them that the next query is
    answered with: kept with an answer, it lets anybody repeat it.
    """

    def __init__(self, ensemble: Ensemble, size: int = SIZE, every: int = EVERY) -> None:
        """Remember `size` queries and look at them after each `every`."""
        if size < 1 or every < 1:
            raise ConfigError(
                f"a window needs a size and a step of at least 1; {size} and {every} were given"
            )
        self.seen: Assessment | None = ensemble.seen
        self._ensemble, self._size, self._every = ensemble, size, every
        self._kept: list[Votes] = []
        self._new = 0

    @torch.no_grad()
    def remember(self, x: Tensor) -> None:
        """Keep the votes on stored values that were asked."""
        kept = [*self._kept, self._ensemble.votes(x)]
        usual = [part.typicality for part in kept if part.typicality is not None]
        logits = torch.cat([part.logits for part in kept], dim=1)[:, -self._size :]
        places = torch.cat(usual, dim=1)[:, -self._size :] if usual else None
        self._kept, self._new = (
            [replace(kept[0], logits=logits, typicality=places)],
            self._new + len(x),
        )
        if self._new >= self._every:
            self._new = 0
            self.seen = self._ensemble.ballot.assess(self._kept[0])
