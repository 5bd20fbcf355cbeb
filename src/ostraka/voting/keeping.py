"""The best model of a training, by samples that were held out of it."""

from collections.abc import Mapping
from typing import Any, final

from ostraka.core.net import Net, Params, params_of
from ostraka.core.objective import Objective
from ostraka.core.progress import NoProgress, Progress
from ostraka.core.samples import Samples
from ostraka.voting.calibration import held_scores


@final
class Keeper(Progress):
    """Looks at a network after every epoch and keeps the most accurate one; of equal ones the last.

    Half-finished training is saved with the best model so far, so that an interruption changes
    nothing.
    """

    def __init__(
        self, net: Net, objective: Objective, held: Samples, progress: Progress | None
    ) -> None:
        self.net, self.objective, self.held = net, objective, held
        self.inner = progress or NoProgress()
        self.every_seconds, self.spent_before = self.inner.every_seconds, self.inner.spent_before
        self.score = -1.0
        self.best: Params = {}

    def look(self, epochs: int) -> bool:
        """Keep the network if none was better; the training goes on."""
        score = held_scores(self.net, self.objective, self.held)["validation"]
        self.net.train()
        if score >= self.score:
            self.score, self.best = score, params_of(self.net)
        return False

    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved, and the best model of that time."""
        saved = self.inner.load(name)
        if saved is not None:
            self.score, self.best = saved["score"], dict(saved["best"])
        return saved

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep the best model beside them."""
        self.inner.save(name, {**values, "score": self.score, "best": self.best})

    def tell(self, done: float, loss: float | None) -> None:
        """As usual."""
        self.inner.tell(done, loss)
