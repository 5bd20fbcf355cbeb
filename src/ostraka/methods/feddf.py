"""FedDF (Lin et al., "Ensemble Distillation for Robust Model Fusion in
Federated Learning", NeurIPS 2020).

Algorithm 1: parties train as in FedAvg; the server's student starts at their mean and learns,
on unlabelled public samples, to answer as the softmax of the mean of all parties' logits does
(KL divergence, Adam 1e-3 with cosine annealing). Deviations: the paper stops when the
accuracy on labelled validation samples stalls; ours needs no labels: a share of the public
samples is held out, training ends once the divergence there has not fallen for `patience`
epochs, and the best epoch counts (the start, if none is better). Lengths are in epochs, not
steps. All parties have the same kind of network.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.contract import (
    METHODS,
    Needs,
    Net,
    Objective,
    Params,
    Report,
    Samples,
    Task,
    build_net,
    derive,
    fit,
    params_of,
    setting,
    torch_rng,
    wire,
)
from ostraka.core.fit import Student
from ostraka.core.learner import CHUNK
from ostraka.methods.averaging import AveragingMethod
from ostraka.objectives.distil import Distillation, numbered

STUDENT = Student(epochs=100, optimiser="adam", lr=1e-3, weight_decay=0.0, schedule="cosine")


@wire("feddf.fused/1")
@dataclass(frozen=True)
class Fused:
    """The server's model, and the seed of what is random in it."""

    params: Params
    seed: int
    round: int = 0


@final
@METHODS.add("feddf")
@dataclass(frozen=True)
class FedDF(AveragingMethod[Fused]):
    """FedAvg whose mean then learns on public samples to answer as the parties' models together."""

    distil: Student = setting(
        STUDENT, "training of the server's student; 0 epochs: FedAvg", server=True
    )
    held: float = setting(
        0.1, "share of the public samples that decides when to stop", span="(0, 1)", server=True
    )
    patience: int = setting(
        10, "epochs without a better result before the student stops", span="[1, inf)", server=True
    )

    @property
    def needs(self) -> Needs:
        """Public samples, if there is a student."""
        return Needs(public=self.distil.wanted)

    def init(self, task: Task, seed: int) -> Fused:
        """A random model, or the commons' "start"."""
        return Fused(self.first_model(task, seed), seed)

    def model(self, state: Fused) -> Params:
        """The student."""
        return state.params

    def aggregate(self, task: Task, state: Fused, reports: Sequence[Report[Params]]) -> Fused:
        """The weighted mean, distilled."""
        mean, index, public = self.mean(reports), state.round + 1, task.commons.public
        if not self.distil.wanted or public is None:
            return Fused(mean, state.seed, index)
        net = build_net(task, self.objective)
        models = (r.payload for r in reports)
        targets = mean_logits(net, self.objective, models, len(reports), public).softmax(dim=1)
        seed = derive(state.seed, "feddf", index)
        return Fused(self._student(net, mean, public, targets, seed), state.seed, index)

    def _student(
        self, net: Net, start: Params, public: Samples, targets: Tensor, seed: int
    ) -> Params:
        """Distillation from `start` until the held-out samples say that it is enough."""
        goal, samples = Distillation(targets, answers=self.objective), numbered(public)
        order = torch.randperm(len(samples), generator=torch_rng(seed, "held"))
        cut = max(1, round(self.held * len(samples)))
        held, rest = samples.take(order[:cut]), samples.take(order[cut:])
        if len(rest) == 0:
            held = rest = samples
        net.load_state_dict(start)
        judge = _Judge(net, goal, held, self.patience)
        fit(net, None, rest, goal, self.distil, seed, after_epoch=judge.enough)
        return judge.best


def mean_logits(
    net: Net, objective: Objective, models: Iterable[Params], count: int, samples: Samples
) -> Tensor:
    """The mean of all models' logits on the samples, one model in memory at a time."""
    total: Tensor | None = None
    for params in models:
        net.load_state_dict(params)
        logits = outputs(net, objective, samples) / count
        total = logits if total is None else total + logits
    assert total is not None
    return total


@torch.no_grad()
def outputs(net: Net, objective: Objective, samples: Samples) -> Tensor:
    """The logits by which the network answers for all samples, in evaluation mode."""
    training = net.training
    net.eval().to(samples.x.device)
    parts = [objective.logits(net, part.inputs()) for part in samples.chunks(CHUNK)]
    net.train(training)
    return torch.cat(parts)


@final
class _Judge:
    """Looks at the network after every epoch, keeps its best tensors,
    and ends a training that no longer gains.
    """

    def __init__(self, net: Net, goal: Distillation, held: Samples, patience: int) -> None:
        self.net, self.goal, self.held, self.patience = net, goal, held, patience
        self.best, self.lowest, self.since = params_of(net), self._divergence(), 0

    def enough(self, epochs: int) -> bool:
        """Whether the last epochs brought nothing."""
        now = self._divergence()
        if now < self.lowest:
            self.best, self.lowest, self.since = params_of(self.net), now, 0
        else:
            self.since += 1
        return self.since >= self.patience

    def _divergence(self) -> float:
        answers = outputs(self.net, self.goal.answers, self.held).log_softmax(dim=1)
        return float(F.kl_div(answers, self.goal.targets[self.held.labels], reduction="batchmean"))
