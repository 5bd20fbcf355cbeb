"""Where objectives are checked: a small task, its samples, and what an objective does with them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net
from ostraka.core.net import Net, Params, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import Scores
from ostraka.core.samples import Samples
from ostraka.core.seeds import seeded, torch_rng
from ostraka.core.task import Task
from ostraka.testing.answers import SEED
from ostraka.testing.verdict import difference, hoped

BUDGET = Budget(epochs=2, batch=8, lr=0.05)


@dataclass(frozen=True)
class Bench:
    """A task and samples of its classes, well apart."""

    task: Task
    samples: Samples

    def batch(self, count: int, labels: Tensor | None = None) -> Batch:
        """The first samples, under other labels if they are given."""
        return Batch(
            self.samples.inputs(slice(0, count)),
            self.samples.labels[:count] if labels is None else labels,
            kind=self.task.kind,
            view=self.samples.view,
        )


def bench_of(task: Task | None = None) -> Bench:
    """Twenty samples of the task's classes, or of three."""
    task = task or Task(("ant", "bee", "cat"), (1, 16, 16), Recipe("mlp", {"hidden": [16, 8]}))
    rng, y = torch_rng(SEED, "bench"), torch.arange(20) % len(task.classes)
    centres = torch.randn(len(task.classes), *task.shape, generator=rng)
    x = centres[y] + 0.5 * torch.randn(20, *task.shape, generator=rng)
    return Bench(task, Samples(x, y, view=task.view))


def batches(bench: Bench) -> dict[str, Batch]:
    """Batches as they come up, by what is special about them."""
    return {
        "a mixed batch": bench.batch(12),
        "a batch of one class": bench.batch(8, torch.zeros(8, dtype=torch.int64)),
        "a single sample": bench.batch(1),
    }


def fresh_net(objective: Objective, bench: Bench) -> Net:
    """An untrained network for the objective."""
    with hoped(objective, "a network is built for it", "fix the error above"):
        return build_net(bench.task, objective, SEED).train()


def loss_of(objective: Objective, net: Net, batch: Batch, what: str) -> Tensor:
    """The loss as `fit` comes to it: torch's own generator is seeded, the batch prepared, the
    helper has made a step.
    """
    rng = torch_rng(SEED, "draw")
    with hoped(objective, what, "such batches are common; handle the case"), seeded(SEED, "global"):
        helper = objective.helper(net)
        batch = objective.prepare(batch, rng)
        batch = batch if helper is None else helper.step(net, batch, rng)
        return objective.loss(net, batch, rng)


def trained_net(objective: Objective, bench: Bench) -> Net:
    """A network after the short training."""
    net = build_net(bench.task, objective, SEED)
    with hoped(objective, "a network can be trained", "fix the error above"):
        fit(net, None, bench.samples, objective, BUDGET, SEED)
    return net


@torch.no_grad()
def ask(objective: Objective, net: Net, x: Tensor) -> Scores:
    """What the objective answers in evaluation mode."""
    with hoped(objective, "scores answers", "fix the error above"):
        return objective.scores(net.eval(), x)


def weights_of(net: Net) -> Params:
    """The classifier's own weights: a helper may train what the objective added."""
    return {
        n: p.detach().clone() for n, p in net.named_parameters() if not n.startswith("objective.")
    }


def batch_change(before: Batch, after: Batch) -> str | None:
    """What differs between two batches, if anything."""
    return difference(before.x, after.x, "x") or difference(before.y, after.y, "y")
