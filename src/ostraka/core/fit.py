"""Local training: one loop for every method. What differs between methods is the objective."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil, cos, pi
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from ostraka.core.learning import Bounds, Learning, Masked, Penalty, Usual, groups
from ostraka.core.net import Net, Params, load_params, move, params_of
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.private import Noise, sampling
from ostraka.core.progress import NoProgress, Progress
from ostraka.core.samples import Samples
from ostraka.core.seeds import random_states, seeded, set_random_states, torch_rng
from ostraka.core.settings import Settings, setting
from ostraka.core.update import Update
from ostraka.errors import ConfigError, DataError, OstrakaError


@dataclass(frozen=True)
class Budget(Settings):
    """How long and how a party trains."""

    epochs: int = setting(10, "passes over the party's data", span="[1, inf)")
    steps: int | None = setting(
        None, "optimiser steps instead of epochs; 0: no training at all", span="[0, inf)"
    )
    most_steps: int = setting(
        0,
        "end after so many optimiser steps, if the epochs have more; 0: no such end",
        span="[0, inf)",
    )
    class_steps: int = setting(
        0,
        "end after so many steps for each class the party holds, "
        "if the epochs have more; 0: no end",
        span="[0, inf)",
    )
    least_steps: int = setting(
        0,
        "minimum number of optimiser steps: further epochs follow until they are made; "
        "0 where local.epochs is set",
        span="[0, inf)",
    )
    least_class_steps: int = setting(
        0,
        "minimum number of steps for each class the party holds; 0 where local.epochs is set",
        span="[0, inf)",
    )
    batch: int = setting(
        64, "samples per step; the last, smaller batch of an epoch is kept", span="[1, inf)"
    )
    least_batches: int = setting(
        1,
        "minimum number of batches in an epoch: batches of a party with few samples are smaller; "
        "1 where local.batch is set",
        span="[1, inf)",
    )
    optimiser: Literal["sgd", "adam"] = setting("sgd", "sgd or adam")
    lr: float = setting(0.01, "learning rate", span="(0, inf)")
    momentum: float = setting(0.9, "momentum of sgd", span="[0, 1)")
    weight_decay: float = setting(1e-5, "L2 weight decay", span="[0, inf)")
    schedule: Literal["constant", "cosine"] = setting("constant", "learning rate over time")

    @classmethod
    def implied(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """What follows from the values that are given: a number of epochs, steps or samples that
        somebody asked for is not raised or lowered by a default."""
        length = {"least_steps": 0, "least_class_steps": 0}
        return {
            **(length if {"epochs", "steps"} & values.keys() else {}),
            **({"least_batches": 1} if "batch" in values else {}),
        }

    def changed(self, **values: Any) -> Self:
        """This training with these values, and what follows from them."""
        return replace(self, **{**self.implied(values), **values})

    def in_round(self, index: int, rounds: int) -> "Budget":
        """This training as it is in round `index` of so many: the same in all of them."""
        return self

    def total(self, batches: int, classes: int) -> int:
        """Optimiser steps in all, where an epoch has so many batches and
        the samples are of so many classes; a limit counts more than a minimum.
        """
        ends = [self.most_steps]
        if self.steps is not None:
            return min([self.steps, *filter(None, ends)])
        floors = (self.least_steps, self.least_class_steps * classes)
        ends.append(self.class_steps * classes)
        return min([max(self.epochs * batches, *floors), *filter(None, ends)])

    def width(self, samples: int) -> int:
        """Samples of a batch, where there are so many in all."""
        return max(1, min(self.batch, ceil(samples / self.least_batches)))

    def steps_on(self, samples: int, classes: int) -> int:
        """Optimiser steps in all, on so many samples of so many classes."""
        return self.total(ceil(samples / self.width(samples)), classes) if samples else 0

    def update(self, parameters: list[nn.Parameter]) -> Update:
        """The optimiser of `parameters`."""
        return Update(parameters, self.optimiser, self.momentum, self.weight_decay)

    def rate(self, done: float) -> float:
        """The learning rate when the share `done` of all steps is behind."""
        return self.lr if self.schedule == "constant" else self.lr * 0.5 * (1 + cos(pi * done))


@dataclass(frozen=True)
class RoundBudget(Budget):
    """How long and how a party trains in each of several rounds."""

    late_rate: float = setting(
        1.0,
        "share of the learning rate that is left in the second half of all rounds",
        span="(0, inf)",
    )

    def in_round(self, index: int, rounds: int) -> "RoundBudget":
        """This training in round `index` of so many; the middle one is of the first half."""
        if index <= (rounds + 1) // 2:
            return self
        return replace(self, lr=self.lr * self.late_rate, late_rate=1.0)


@dataclass(frozen=True)
class Student(Budget):
    """The training of a student, which may be left out."""

    epochs: int = setting(0, "passes over the public samples; 0: no student", span="[0, inf)")

    @property
    def wanted(self) -> bool:
        """Whether there is anything to train."""
        return (self.epochs if self.steps is None else self.steps) > 0


class Diverged(OstrakaError):
    """Training ran away: the loss is no longer a number."""

    exit_code = 3


@dataclass(frozen=True)
class Fitted:
    """What training gave: the tensors, the number of optimiser steps
    and the mean loss of every epoch.
    """

    params: Params
    steps: int
    losses: tuple[float, ...]

    def figures(self) -> dict[str, float]:
        """The last loss under "loss", for a card; nothing if there was no step to make."""
        return {"loss": self.losses[-1]} if self.losses else {}


AfterEpoch = Callable[[int], bool]
"""Called with the number of epochs behind; true: they are enough."""


def fit(
    net: Net,
    start: Params | None,
    samples: Samples,
    objective: Objective,
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    name: str = "fit",
    after_epoch: AfterEpoch | None = None,
    noise: Noise | None = None,
    penalty: Penalty | None = None,
) -> Fitted:
    """Train `net` from `start` (None: as it is) on `samples`.

    With a `progress`, half-finished training is saved about once a minute under `name` and taken up
    again, and the result is the same to the last bit as if it had never been interrupted.
    `after_epoch` may look at `net` after every epoch, and end the training there; what it keeps of
    the epochs before an interruption is for itself to save. With `noise` the training is
    differentially private (`core.learning.Masked`). `penalty(net)` is added to every batch's loss.
    """
    if len(samples) == 0:
        raise DataError("a party with no samples cannot train; divide the data among fewer parties")
    if noise is not None and after_epoch is not None:
        raise ConfigError(
            "a private training cannot end early: when it would tells of the samples; give it its "
            "number of epochs or steps"
        )
    if noise is not None and penalty is not None:
        raise ConfigError("a private training takes no penalty; leave one of them out")
    if start is not None:
        load_params(net, start)
    move(net, samples.x.device)
    training = _Training(
        net, samples, objective, budget, seed, progress or NoProgress(), name, after_epoch, noise,
        penalty,
    )  # fmt: skip
    with (
        seeded(seed, "fit", "global", device=samples.x.device),
        _rare_garbage_collection(),
        _no_denormals(),
        _lonely(len(samples)),
    ):
        training.run()
    net.eval()
    with torch.no_grad():
        measured = objective.statistics(net, samples)
        if measured:
            net.load_state_dict(measured, strict=False)
    return Fitted(params_of(net), training.steps, tuple(training.losses))


@contextmanager
def _lonely(samples: int) -> Iterator[None]:
    """Say in our words that batch norm has nothing to take a mean of."""
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise DataError(
            f"batch norm cannot train on a party of size {samples}: it needs at least "
            "two values for each channel; give the party more samples, or use a net or a "
            "norm without it (net.norm=group)"
        ) from None


@contextmanager
def _no_denormals() -> Iterator[None]:
    """Numbers below 1e-38 count as 0.

    Weight decay brings some weights there in long trainings, and a processor needs many times as
    long for such numbers: over 200 epochs FedOV's steps took 2.8 times as long.
    """
    before = bool(torch.tensor(1e-38) * 1e-2 == 0)  # torch has no question for it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Training makes next to no cycles; looking for them as often as usual
    costs 4 % of a small network's steps.
    """
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class _Training:
    """Everything that changes while training, in one place,
    so that it can be saved and taken up again.
    """

    def __init__(
        self,
        net: Net,
        samples: Samples,
        objective: Objective,
        budget: Budget,
        seed: int,
        progress: Progress,
        name: str,
        after_epoch: AfterEpoch | None,
        noise: Noise | None,
        penalty: Penalty | None,
    ) -> None:
        self.net, self.own, self.objective, self.budget = net, samples, objective, budget
        self.seed, self.epoch = seed, 0
        self.samples = samples = objective.material(net, samples, seed, 0)
        self.progress, self.name, self.after_epoch = progress, name, after_epoch
        self.enough = False
        trained = _joined([p for p in net.parameters() if p.requires_grad])
        self.update = budget.update(trained)
        count, batch = len(samples), budget.width(len(samples))
        self.learning: Learning
        if noise is None:
            self.learning = Usual(net, objective, trained, count, batch, penalty)
            self.total = budget.total(self.learning.batches, len(self.own.labels.unique()))
        else:
            self.learning = Masked(net, objective, trained, count, batch, noise, seed)
            self.total = sampling(budget, count, net.classes)[1]
        self.order_rng = torch_rng(seed, "fit", "order")
        self.draw_rng = torch_rng(seed, "fit", "draw")
        self.helper: Helper | None = None
        self.device, self.labels = samples.x.device, samples.labels
        self.steps = 0
        self.losses: list[float] = []
        self.epoch_loss = 0.0
        self.started = self.saved_at = time.monotonic()

    def run(self) -> None:
        """All remaining steps."""
        self.helper = self.objective.helper(self.net)
        self._restore()
        self.net.train()
        while self.steps < self.total and not self.enough:
            self._epoch()
        if time.monotonic() - self.started > self.progress.every_seconds / 6:
            # a party with several trainings need not repeat the finished ones
            self._save(self.order_rng.get_state())

    def _renew(self) -> None:
        """What this epoch is trained on, where every epoch has its own."""
        epoch = self.steps // self.learning.batches
        if self.objective.renews and epoch != self.epoch:
            self.samples = self.objective.material(self.net, self.own, self.seed, epoch)
            self.epoch, self.labels = epoch, self.samples.labels

    def _epoch(self) -> None:
        self._renew()
        at_start = self.order_rng.get_state()
        number, behind = divmod(self.steps, self.learning.batches)
        order, bounds = self.learning.epoch(number, self.order_rng)
        for group in groups(bounds, behind, self.learning.width, self.objective.chunk):
            self._chunk(order, group)
            if self.steps >= self.total:
                break
            inside = self.steps % self.learning.batches != 0
            if inside and time.monotonic() - self.saved_at > self.progress.every_seconds:
                self._save(at_start)
        seen = bounds[(self.steps - 1) % self.learning.batches][1]
        self.losses.append(self.epoch_loss / max(1, seen))
        self.epoch_loss = 0.0
        self.progress.tell(self.steps / self.total, self.losses[-1])
        if self.after_epoch is not None:
            self.enough = self.after_epoch(len(self.losses))
        if time.monotonic() - self.saved_at > self.progress.every_seconds:
            self._save(self.order_rng.get_state())

    def _chunk(self, order: Tensor, group: Bounds) -> None:
        first, last = group[0][0], group[-1][1]
        index = order[first:last]
        x = self.samples.inputs(index, rng=self.draw_rng)
        view = self.samples.view
        chunk = Batch(x, self.labels[index], kind=view.kind, view=view)
        chunk = self.learning.prepare(chunk, self.draw_rng)
        total = torch.zeros((), device=self.device)
        for start, stop in group:
            if self.steps >= self.total:
                break
            total += self._step(chunk.cut(start - first, stop - first)) * (stop - start)
        loss = float(total)
        if loss != loss or loss in (float("inf"), float("-inf")):
            raise Diverged(
                f"the loss became {loss} in epoch {len(self.losses) + 1} (step {self.steps}, lr "
                f"{self.budget.lr}); lower the learning rate or check the data"
            )
        self.epoch_loss += loss

    def _step(self, batch: Batch) -> Tensor:
        if self.helper is not None:
            batch = self.helper.step(self.net, batch, self.draw_rng)
        loss = self.learning.gradient(batch, self.draw_rng, self.steps)
        self.update.step(self.budget.rate(self.steps / self.total))
        self.steps += 1
        return loss

    def _save(self, order_state: Tensor) -> None:
        self.progress.save(
            self.name,
            {
                "net": params_of(self.net),
                "optimiser": self.update.state(),
                "order_rng": order_state.clone(),
                "draw_rng": self.draw_rng.get_state(),
                "generators": random_states(self.device),
                "steps": self.steps,
                "enough": self.enough,
                "losses": list(self.losses),
                "epoch_loss": self.epoch_loss,
                "helper": {} if self.helper is None else self.helper.state(),
            },
        )
        self.saved_at = time.monotonic()

    def _restore(self) -> None:
        saved: Mapping[str, Any] | None = self.progress.load(self.name)
        if saved is None:
            return
        self.net.load_state_dict(saved["net"])
        self.update.load(saved["optimiser"])
        self.order_rng.set_state(saved["order_rng"])
        self.draw_rng.set_state(saved["draw_rng"])
        set_random_states(saved["generators"], self.device)
        self.enough = saved["enough"]
        self.steps, self.losses = saved["steps"], list(saved["losses"])
        self.epoch_loss = saved["epoch_loss"]
        if self.helper is not None:
            self.helper.load(saved["helper"])


def _joined(parameters: list[nn.Parameter]) -> list[nn.Parameter]:
    """One parameter whose memory all of these (and one gradient whose memory all of theirs) share.

    The optimiser then does in one step what it would do tensor by tensor: every element gets the
    same update, at a third of the cost for a network of ten small tensors. Parameters of different
    kinds are left as they are.
    """
    if len({(p.dtype, p.device) for p in parameters}) != 1:
        return parameters
    whole = nn.Parameter(torch.cat([p.detach().flatten() for p in parameters]))
    whole.grad = torch.zeros_like(whole)
    start = 0
    for p in parameters:
        stop = start + p.numel()
        p.data, p.grad = whole.data[start:stop].view_as(p), whole.grad[start:stop].view_as(p)
        start = stop
    return [whole]
