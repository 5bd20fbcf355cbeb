"""A server that answers single queries: the ballot looks at the last few hundred of them."""

from dataclasses import replace
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.predictor import Predictor, Scores
from ostraka.errors import ConfigError
from ostraka.voting.ballots import Votes
from ostraka.voting.ensemble import Ensemble

SIZE = 300
"""Queries that are remembered: with 300, one liar of ten is found out
nearly as well as with all samples.
"""
EVERY = 25
"""Queries after which the members are assessed anew."""


@final
class Window(Predictor):
    """An ensemble that remembers its last queries and assesses its members by them.

    The first get no assessment. Its answers depend on what was asked before, so evaluation does not
    use it. `seen` is the assessment in use: kept with an answer, it lets anybody repeat it.
    """

    def __init__(self, ensemble: Ensemble, size: int = SIZE, every: int = EVERY) -> None:
        """Remember `size` queries and look at them after each `every`."""
        if size < 1 or every < 1:
            raise ConfigError(
                f"a window needs a size and a step of at least 1; {size} and {every} were given"
            )
        self._ensemble, self._size, self._every = ensemble, size, every
        self._kept: Votes | None = None
        self._new = 0

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """The answer by the present assessment; the votes are remembered afterwards."""
        votes = self._ensemble.votes(x)
        answer = self._ensemble.ballot.count(votes)
        self._remember(votes)
        return answer

    @property
    def seen(self) -> Any:
        """The assessment by which the next query is answered."""
        return self._ensemble.seen

    def trust(self) -> dict[str, Any]:
        """Whom not to trust, by the last queries."""
        return self._ensemble.trust()

    def _remember(self, votes: Votes) -> None:
        kept = votes if self._kept is None else _joined(self._kept, votes)
        self._kept = _last(kept, self._size)
        self._new += votes.logits.shape[1]
        if self._new >= self._every:
            self._new = 0
            self._ensemble = replace(
                self._ensemble, assessment=self._ensemble.ballot.assess(self._kept)
            )


def _joined(old: Votes, new: Votes) -> Votes:
    usual = [part.typicality for part in (old, new) if part.typicality is not None]
    logits = torch.cat([old.logits, new.logits], dim=1)
    return replace(new, logits=logits, typicality=torch.cat(usual, dim=1) if usual else None)


def _last(votes: Votes, size: int) -> Votes:
    usual = None if votes.typicality is None else votes.typicality[:, -size:]
    return replace(votes, logits=votes.logits[:, -size:], typicality=usual)
