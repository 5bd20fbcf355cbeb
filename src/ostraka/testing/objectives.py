"""The contract of objectives, checked on a small perceptron,
under averaging and as voting members.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import isinf

import torch
from torch import Tensor

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import NetPredictor, build_net, load_predictor
from ostraka.core.net import Net, Params, Recipe, params_of
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import Scores
from ostraka.core.samples import Samples
from ostraka.core.seeds import seeded, torch_rng
from ostraka.core.task import Task
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedavg import FedAvg
from ostraka.testing import methods
from ostraka.testing.expect import (
    SEED,
    AnyMethod,
    ContractBroken,
    difference,
    expect,
    expect_picklable,
    expect_rows,
    expect_scores,
    expect_settings,
    hoped,
    unlike,
)
from ostraka.testing.stage import outfitted, twice

BUDGET = Budget(epochs=2, batch=8, lr=0.05)


@dataclass(frozen=True)
class Bench:
    """A task and samples of its classes, well apart."""

    task: Task
    samples: Samples

    def batch(self, count: int, labels: Tensor | None = None) -> Batch:
        """The first samples, under other labels if they are given."""
        labels = self.samples.labels[:count] if labels is None else labels
        x, view = self.samples.inputs(slice(0, count)), self.samples.view
        return Batch(x, labels, kind=self.task.kind, view=view)


def bench_of(task: Task | None = None) -> Bench:
    """Twenty samples of the task's classes, or of three."""
    task = task or Task(("ant", "bee", "cat"), (1, 16, 16), Recipe("mlp", {"hidden": [16, 8]}))
    rng, y = torch_rng(SEED, "bench"), torch.arange(20) % len(task.classes)
    centres = torch.randn(len(task.classes), *task.shape, generator=rng)
    x = centres[y] + 0.5 * torch.randn(20, *task.shape, generator=rng)
    return Bench(task, Samples(x, y, view=task.view))


def check_objective(objective: Objective, task: Task | None = None) -> None:
    """Raise a ContractBroken if `objective`, which must be registered,
    fails any of CHECKS; takes some seconds.
    """
    bench, objective = bench_of(task), outfitted(objective)
    for check in CHECKS:
        check(objective, bench)


def check_settings(objective: Objective, bench: Bench) -> None:
    """The objective can be written as plain values, and sent to a worker process."""
    expect_settings(objective)
    expect_picklable(objective)


def check_attached(objective: Objective, bench: Bench) -> None:
    """Its own tensors lie under `net.objective`, the same for the same seed.

    The unknown output is as declared.
    """
    with hoped(objective, "it attaches its tensors to a network"):
        bare = bench.task.build_net(objective.unknown, SEED)
        net, again = twice(lambda: build_net(bench.task, objective, SEED))
    own = [name for name in net.state_dict() if name not in bare.state_dict()]
    strange = [f"it added {name}" for name in own if not name.startswith("objective.")]
    strange += [f"the network has {net.outputs} outputs"] if net.outputs != bare.outputs else []
    expect(
        objective,
        "what it adds to a network lies under 'objective.'",
        strange[0] if strange else None,
        "set net.objective to a module with them; "
        "unknown = True gives the network its extra output",
    )
    change = difference(params_of(net), params_of(again), "tensors")
    advice = "use torch's own generator, which is seeded then, or none"
    expect(objective, "the same seed attaches the same tensors", change, advice)


def check_prepare(objective: Objective, bench: Bench) -> None:
    """`prepare` keeps the samples and their order.

    Every tensor that it adds has one row for each sample.
    """
    batch = bench.batch(12)
    before = deepcopy(batch)
    with hoped(objective, "prepare works"):
        made = objective.prepare(batch, torch_rng(SEED, "draw"))
    for name, tensor in {"x": made.x, "y": made.y, **made.extra}.items():
        expect(
            objective,
            f"prepare keeps {len(before)} rows",
            len(tensor) != len(before) and f"of its result {name} has {len(tensor)}",
            "a prepared batch is cut into several: put what is new into "
            "extra, one row for each sample",
        )
    change = difference(before.y, made.y, "y") or _change(before, batch)
    what = "prepare leaves the labels and the batch it was given"
    expect(objective, what, change, "work on a copy")


def check_loss(objective: Objective, bench: Bench) -> None:
    """The loss is one finite number whose gradients are finite and reach the network."""
    batches = {
        "a mixed batch": bench.batch(12),
        "a batch of one class": bench.batch(8, torch.zeros(8, dtype=torch.int64)),
        "a single sample": bench.batch(1),
    }
    for case, batch in batches.items():
        what = f"the loss of {case} is one finite number"
        net = _fresh_net(objective, bench)
        loss = _loss(objective, net, batch, what)
        if loss.dim():
            odd: str | bool = f"it has the shape {list(loss.shape)}"
        else:
            odd = not loss.isfinite() and f"it is {float(loss.detach())}"
        advice = "take a mean over the batch, and mind the logarithm of 0 and empty choices"
        expect(objective, what, odd, advice)
        with hoped(objective, f"the loss of {case} can be differentiated"):
            loss.backward()
        grads = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
        wrong = [f"that of {n} is not finite" for n, g in grads.items() if not g.isfinite().all()]
        wrong += [] if any(grad.any() for grad in grads.values()) else ["there is none"]
        what = f"the loss of {case} has finite gradients in the network"
        expect(objective, what, wrong[0] if wrong else None, "do not detach the logits")


def check_randomness(objective: Objective, bench: Bench) -> None:
    """The same generators give the same loss, however numpy's and
    Python's own random generators stand.
    """

    def loss() -> Tensor:
        net = _fresh_net(objective, bench)
        return _loss(objective, net, bench.batch(12)).detach()

    change = difference(*twice(loss), "loss")
    advice = "draw from the rng that prepare and loss get"
    expect(objective, "the same seed gives the same loss", change, advice)


def check_unchanged(objective: Objective, bench: Bench) -> None:
    """Loss and scores leave the batch and the network's weights as they were,
    and leave no gradient behind.
    """
    net, batch = _fresh_net(objective, bench), bench.batch(12)
    weights, before = _weights(net), deepcopy(batch)
    _loss(objective, net, batch)
    change = _change(before, batch) or difference(weights, _weights(net), "weights")
    advice = "work on copies; fit makes the steps"
    expect(objective, "the loss leaves batch and weights unchanged", change, advice)
    expect(
        objective,
        "the loss leaves no gradient behind",
        any(p.grad is not None for p in net.parameters())
        and "a parameter has a gradient before the loss was differentiated",
        "use torch.autograd.grad, not backward",
    )
    everything = params_of(net.eval())
    _ask(objective, net, batch.x)
    change = difference(everything, params_of(net), "network")
    advice = "measure in statistics, not while answering"
    expect(objective, "scores leaves the network unchanged", change, advice)


def check_scores(objective: Objective, bench: Bench) -> None:
    """A trained network answers with finite scores of the right shapes, each sample by itself."""
    net, x = _trained_net(objective, bench), bench.samples.inputs()
    classes = len(bench.task.classes)
    ask = partial(_ask, objective, net)
    expect_scores(objective, partial(ask, x), len(x), classes, "a trained network answers")
    expect_rows(objective, NetPredictor(net, objective).answers, x)
    threshold = ask(x[:1]).threshold
    expect(
        objective,
        "refuses says whether an answer can be unknown",
        objective.refuses == isinf(threshold)
        and f"it says {objective.refuses}, and the threshold of its answers is {threshold:g}",
        "override refuses if an objective without an unknown output answers unknown, "
        "or one with it never does",
    )
    with torch.no_grad(), hoped(objective, "logits gives the answers for distillation"):
        logits = objective.logits(net, x)
    what = f"logits gives [samples, {classes}] or one more for unknown"
    odd = logits.shape[1] not in (classes, classes + 1) and f"it gives {list(logits.shape)}"
    expect(objective, what, odd, "leave logits to Objective")


def check_statistics(objective: Objective, bench: Bench) -> None:
    """What is measured after training has a place in the network, is finite,
    and changes nothing else.
    """
    net = _trained_net(objective, bench)
    before = params_of(net)
    with hoped(objective, "statistics works"), torch.no_grad():
        measured = objective.statistics(net, bench.samples)
    for name, tensor in measured.items():
        place = list(before[name].shape) if name in before else "does not exist"
        odd = place != list(tensor.shape) and f"{name} has {list(tensor.shape)}, its place {place}"
        what = "what statistics measures has a place in the network"
        expect(objective, what, odd, "make room for it in attach")
        odd = tensor.is_floating_point() and not tensor.isfinite().all() and f"{name} is not"
        expect(objective, "statistics are finite", odd, "mind classes with few samples or none")
    change = difference(before, params_of(net), "network")
    advice = "return the tensors; fit stores them"
    expect(objective, "statistics changes nothing itself", change, advice)


def check_stored(objective: Objective, bench: Bench) -> None:
    """Everything that the answers depend on travels with the network's tensors."""
    net, x = _trained_net(objective, bench), bench.samples.inputs()
    with hoped(objective, "a trained network is loaded again"):
        again = load_predictor(bench.task, objective, params_of(net)).answers(x)
    what = "a network that was stored and loaded answers the same"
    other = bool(unlike(_ask(objective, net, x), again)) and "it does not"
    advice = "keep tensors as parameters or buffers of net.objective, and nothing on self"
    expect(objective, what, other, advice)


def check_learns(objective: Objective, bench: Bench) -> None:
    """Sixty steps on well separated classes make the network right on most of its own samples."""
    net = _trained_net(objective, bench, Budget(steps=60, batch=20, optimiser="adam", lr=0.01))
    answers = _ask(objective, net, bench.samples.inputs()).closed
    right = float((answers == bench.samples.labels).double().mean())
    expect(
        objective,
        "training teaches the classes",
        (right <= 2 / len(bench.task.classes) and right < 1)
        and f"it is right on {right:.0%} of its own training samples",
        "check the sign of the loss and the order of the scores",
    )


def check_in_methods(objective: Objective, bench: Bench) -> None:
    """It works under averaging and in a vote: storing, resuming, one class only,
    a last batch of one sample.
    """
    averaged, voting = FedAvg(rounds=2, objective=objective), ClosedVoting(objective=objective)
    short: tuple[AnyMethod, ...] = (
        replace(averaged, local=averaged.local.changed(epochs=2, batch=16)),
        replace(voting, local=voting.local.changed(epochs=2, batch=16)),
    )
    for own, check in product(short, IN_METHODS):
        try:
            check(own, bench.task)
        except ContractBroken as error:
            raise ContractBroken(f"{type(objective).__name__} in {error}") from error


IN_METHODS = (
    methods.check_codec,
    methods.check_unchanged,
    methods.check_scores,
    methods.check_one_class,
    methods.check_one_sample_batch,
    methods.check_interrupted_fit,
    methods.check_same_seed,
)
"""Checks of methods that an objective can break."""

CHECKS: tuple[Callable[[Objective, Bench], None], ...] = (
    check_settings,
    check_attached,
    check_prepare,
    check_loss,
    check_randomness,
    check_unchanged,
    check_scores,
    check_statistics,
    check_stored,
    check_learns,
    check_in_methods,
)
"""All checks, those with the plainest message first."""


def _fresh_net(objective: Objective, bench: Bench) -> Net:
    """An untrained network for the objective."""
    with hoped(objective, "a network is built for it"):
        return build_net(bench.task, objective, SEED).train()


def _trained_net(objective: Objective, bench: Bench, budget: Budget = BUDGET) -> Net:
    """A network after a short training."""
    net = build_net(bench.task, objective, SEED)
    with hoped(objective, "a network can be trained"):
        fit(net, None, bench.samples, objective, budget, SEED)
    return net


def _loss(objective: Objective, net: Net, batch: Batch, what: str = "the loss works") -> Tensor:
    """The loss as `fit` comes to it: torch's own generator is seeded, the batch prepared, the
    helper has made a step.
    """
    rng = torch_rng(SEED, "draw")
    with hoped(objective, what, "such batches are common; handle the case"), seeded(SEED, "global"):
        helper = objective.helper(net)
        batch = objective.prepare(batch, rng)
        batch = batch if helper is None else helper.step(net, batch, rng)
        return objective.loss(net, batch, rng)


@torch.no_grad()
def _ask(objective: Objective, net: Net, x: Tensor) -> Scores:
    """What the objective answers in evaluation mode."""
    with hoped(objective, "scores answers"):
        return objective.scores(net.eval(), x)


def _weights(net: Net) -> Params:
    """The classifier's own weights: a helper may train what the objective added."""
    own = [pair for pair in net.named_parameters() if not pair[0].startswith("objective.")]
    return {name: parameter.detach().clone() for name, parameter in own}


def _change(before: Batch, after: Batch) -> str | None:
    """What differs between two batches, if anything."""
    return difference(before.x, after.x, "x") or difference(before.y, after.y, "y")
