"""Samples that come one after the other: the ballot looks at the last few hundred of them."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ostraka.parties.answering import Answering
from ostraka.parties.answers import Answers, Explanation
from ostraka.voting.window import EVERY, SIZE, Window


@final
class Stream:
    """Answers as an ensemble does, and remembers what its members said of the last samples: by
    that, the ballot finds out whom to trust. So an answer depends on those before it; the threshold
    stays where it was.
    """

    def __init__(self, asked: Answering, size: int = SIZE, every: int = EVERY) -> None:
        """Remember `size` samples and look at them after each `every`."""
        line = asked.threshold
        self._size, self._every = size, every
        self._begin(asked if line is None else asked.placed(line))

    def _begin(self, asked: Answering) -> None:
        assert asked.vote is not None
        self._asked, self._vote = asked, asked.vote
        self._window = Window(self._vote, self._size, self._every)

    def answer(self, x: Any) -> Answers:
        """The answers to samples [B, ...], which are then remembered."""
        values = self._asked.stored(x)
        group, answers = self._now().asked(values)
        if group.names != self._asked.names:  # what is remembered is of one who votes no more
            self._asked.warn_of(group)
            self._begin(group)
        self._window.remember(values)
        return answers

    def predict(self, x: Any) -> NDArray[np.str_]:
        """Class names, or "unknown"."""
        return self.answer(x).labels

    def explain(self, x: Any) -> list[Explanation]:
        """The answers with what every member said, and its weight now."""
        return list(self.answer(x).explanations())

    def trust(self) -> dict[str, Any]:
        """What the ballot has found of its members by now."""
        return self._now().trust()

    def _now(self) -> Answering:
        return self._asked.asking(self._vote.remembering(self._window.seen))
