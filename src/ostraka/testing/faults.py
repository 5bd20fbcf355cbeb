"""Faults on purpose: a kill inside training, and a count of what was not saved."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, final
from unittest.mock import patch

from torch.optim.optimizer import register_optimizer_step_post_hook

from ostraka.core.objective import Objective
from ostraka.core.progress import Progress
from ostraka.core.update import Update
from ostraka.store import codec


class Killed(BaseException):
    """Stands for SIGKILL: nothing in a method may catch it."""


@final
class Killer(Progress):
    """Keeps what is saved, as bytes; kills at save number `limit`,
    and counts optimiser steps that were not saved.
    """

    every_seconds = 0.0

    def __init__(self, saved: dict[str, bytes], limit: int) -> None:
        self.saved, self.limit = saved, limit
        self.saves = self.steps = self.unsaved = 0

    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved."""
        return codec.decode(self.saved[name]) if name in self.saved else None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep it, and kill if it is time."""
        self.saved[name] = codec.encode(dict(values))
        self.saves, self.unsaved = self.saves + 1, 0
        if self.saves >= self.limit:
            raise Killed

    def tell(self, done: float, loss: float | None) -> None:
        """Nobody watches."""

    def step(self, *_: Any) -> None:
        """An optimiser made a step."""
        self.steps, self.unsaved = self.steps + 1, self.unsaved + 1


@contextmanager
def hooked(step: Callable[..., None]) -> Iterator[None]:
    """Call `step` after every step of any optimiser, torch's or `fit`'s."""
    usual = Update.step

    def counted(update: Update, lr: float) -> None:
        usual(update, lr)
        step()

    handle = register_optimizer_step_post_hook(step)
    try:
        with patch.object(Update, "step", counted):
            yield
    finally:
        handle.remove()


@contextmanager
def one_batch_at_a_time() -> Iterator[None]:
    """Every objective prepares one batch at a time, so that training can be saved after each."""
    with ExitStack() as stack:
        for cls in _family(Objective):
            if isinstance(vars(cls).get("chunk"), int):
                stack.enter_context(patch.object(cls, "chunk", 1))
        yield


def _family(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _family(child)
