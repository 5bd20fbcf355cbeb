"""The contract of objectives, checked on a small perceptron,
under averaging and as voting members.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from math import isinf

import torch

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import NetPredictor, build_net, load_predictor
from ostraka.core.net import params_of
from ostraka.core.objective import Objective
from ostraka.core.seeds import torch_rng
from ostraka.core.task import Task
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedavg import FedAvg
from ostraka.testing import methods
from ostraka.testing.answers import (
    SEED,
    expect_picklable,
    expect_rows,
    expect_scores,
    expect_settings,
    near,
)
from ostraka.testing.bench import (
    Bench,
    ask,
    batch_change,
    batches,
    bench_of,
    fresh_net,
    loss_of,
    trained_net,
    weights_of,
)
from ostraka.testing.stage import known_randomness, outfitted
from ostraka.testing.verdict import AnyMethod, ContractBroken, difference, fail, hoped


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
    with hoped(objective, "it attaches its tensors to a network", "fix the error above"):
        bare = bench.task.build_net(objective.unknown, SEED)
        nets = []
        for randomness in (1, 2):
            with known_randomness(randomness):
                nets.append(build_net(bench.task, objective, SEED))
    own = [name for name in nets[0].state_dict() if name not in bare.state_dict()]
    strange = [name for name in own if not name.startswith("objective.")]
    if strange or nets[0].outputs != bare.outputs:
        done = f"it added {strange[0]}" if strange else f"the network has {nets[0].outputs} outputs"
        advice = (
            "set net.objective to a module with them; "
            "unknown = True gives the network its extra output"
        )
        fail(objective, "what it adds to a network lies under 'objective.'", done, advice)
    change = difference(params_of(nets[0]), params_of(nets[1]), "tensors")
    if change:
        advice = "use torch's own generator, which is seeded then, or none"
        fail(objective, "the same seed attaches the same tensors", change, advice)


def check_prepare(objective: Objective, bench: Bench) -> None:
    """`prepare` keeps the samples and their order.

    Every tensor that it adds has one row for each sample.
    """
    batch = bench.batch(12)
    before = deepcopy(batch)
    with hoped(objective, "prepare works", "fix the error above"):
        made = objective.prepare(batch, torch_rng(SEED, "draw"))
    tensors = {"x": made.x, "y": made.y, **made.extra}
    odd = [
        f"{name} has {len(tensor)}"
        for name, tensor in tensors.items()
        if len(tensor) != len(before)
    ]
    if odd:
        advice = (
            "a prepared batch is cut into several: put what is new into "
            "extra, one row for each sample"
        )
        fail(objective, f"prepare keeps {len(before)} rows", f"of its result {odd[0]}", advice)
    change = difference(before.y, made.y, "y") or batch_change(before, batch)
    if change:
        fail(
            objective,
            "prepare leaves the labels and the batch it was given",
            change,
            "work on a copy",
        )


def check_loss(objective: Objective, bench: Bench) -> None:
    """The loss is one finite number whose gradients are finite and reach the network."""
    for case, batch in batches(bench).items():
        what = f"the loss of {case} is one finite number"
        net = fresh_net(objective, bench)
        loss = loss_of(objective, net, batch, what)
        if loss.dim() or not loss.isfinite():
            done = (
                f"it is {float(loss.detach())}"
                if not loss.dim()
                else f"it has the shape {list(loss.shape)}"
            )
            fail(
                objective,
                what,
                done,
                "take a mean over the batch, and mind the logarithm of 0 and empty choices",
            )
        with hoped(objective, f"the loss of {case} can be differentiated", "fix the error above"):
            loss.backward()
        grads = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
        wrong = [name for name, grad in grads.items() if not grad.isfinite().all()]
        if wrong or not any(grad.any() for grad in grads.values()):
            done = f"that of {wrong[0]} is not finite" if wrong else "there is none"
            fail(
                objective,
                f"the loss of {case} has finite gradients in the network",
                done,
                "do not detach the logits",
            )


def check_randomness(objective: Objective, bench: Bench) -> None:
    """The same generators give the same loss, however numpy's and
    Python's own random generators stand.
    """
    losses = []
    for randomness in (1, 2):
        with known_randomness(randomness):
            losses.append(
                loss_of(
                    objective, fresh_net(objective, bench), bench.batch(12), "the loss works"
                ).detach()
            )
    change = difference(losses[0], losses[1], "loss")
    if change:
        fail(
            objective,
            "the same seed gives the same loss",
            change,
            "draw from the rng that prepare and loss get",
        )


def check_unchanged(objective: Objective, bench: Bench) -> None:
    """Loss and scores leave the batch and the network's weights as they were,
    and leave no gradient behind.
    """
    net, batch = fresh_net(objective, bench), bench.batch(12)
    weights, before = weights_of(net), deepcopy(batch)
    loss_of(objective, net, batch, "the loss works")
    change = batch_change(before, batch) or difference(weights, weights_of(net), "weights")
    if change:
        fail(
            objective,
            "the loss leaves batch and weights unchanged",
            change,
            "work on copies; fit makes the steps",
        )
    if any(p.grad is not None for p in net.parameters()):
        done = "a parameter has a gradient before the loss was differentiated"
        fail(
            objective,
            "the loss leaves no gradient behind",
            done,
            "use torch.autograd.grad, not backward",
        )
    everything = params_of(net.eval())
    ask(objective, net, batch.x)
    change = difference(everything, params_of(net), "network")
    if change:
        fail(
            objective,
            "scores leaves the network unchanged",
            change,
            "measure in statistics, not while answering",
        )


def check_scores(objective: Objective, bench: Bench) -> None:
    """A trained network answers with finite scores of the right shapes, each sample by itself."""
    net, x = trained_net(objective, bench), bench.samples.inputs()
    classes = len(bench.task.classes)
    expect_scores(
        objective, lambda: ask(objective, net, x), len(x), classes, "a trained network answers"
    )
    expect_rows(objective, NetPredictor(net, objective).answers, x)
    threshold = ask(objective, net, x[:1]).threshold
    if objective.refuses == isinf(threshold):
        done = f"it says {objective.refuses}, and the threshold of its answers is {threshold:g}"
        advice = (
            "override refuses if an objective without an unknown output answers unknown, "
            "or one with it never does"
        )
        fail(objective, "refuses says whether an answer can be unknown", done, advice)
    with (
        torch.no_grad(),
        hoped(objective, "logits gives the answers for distillation", "fix the error above"),
    ):
        logits = objective.logits(net, x)
    if logits.shape[1] not in (classes, classes + 1):
        done = f"it gives {list(logits.shape)}"
        fail(
            objective,
            f"logits gives [samples, {classes}] or one more for unknown",
            done,
            "leave logits to Objective",
        )


def check_statistics(objective: Objective, bench: Bench) -> None:
    """What is measured after training has a place in the network, is finite,
    and changes nothing else.
    """
    net = trained_net(objective, bench)
    before = params_of(net)
    with hoped(objective, "statistics works", "fix the error above"), torch.no_grad():
        measured = objective.statistics(net, bench.samples)
    for name, tensor in measured.items():
        place = before.get(name)
        if place is None or place.shape != tensor.shape:
            done = (
                f"{name} has {list(tensor.shape)}, its place "
                f"{'does not exist' if place is None else list(place.shape)}"
            )
            fail(
                objective,
                "what statistics measures has a place in the network",
                done,
                "make room for it in attach",
            )
        if tensor.is_floating_point() and not tensor.isfinite().all():
            fail(
                objective,
                "statistics are finite",
                f"{name} is not",
                "mind classes with few samples or none",
            )
    change = difference(before, params_of(net), "network")
    if change:
        fail(
            objective,
            "statistics changes nothing itself",
            change,
            "return the tensors; fit stores them",
        )


def check_stored(objective: Objective, bench: Bench) -> None:
    """Everything that the answers depend on travels with the network's tensors."""
    net, x = trained_net(objective, bench), bench.samples.inputs()
    with hoped(objective, "a trained network is loaded again", "fix the error above"):
        again = load_predictor(bench.task, objective, params_of(net)).answers(x)
    scores = ask(objective, net, x)
    if not (near(scores.known, again.known) and near(scores.unknown, again.unknown)):
        advice = "keep tensors as parameters or buffers of net.objective, and nothing on self"
        fail(
            objective,
            "a network that was stored and loaded answers the same",
            "it does not",
            advice,
        )


def check_learns(objective: Objective, bench: Bench) -> None:
    """Sixty steps on well separated classes make the network right on most of its own samples."""
    net = build_net(bench.task, objective, SEED)
    with hoped(objective, "a network can be trained", "fix the error above"):
        fit(
            net,
            None,
            bench.samples,
            objective,
            Budget(steps=60, batch=20, optimiser="adam", lr=0.01),
            SEED,
        )
    right = float(
        (ask(objective, net, bench.samples.inputs()).closed == bench.samples.labels).double().mean()
    )
    if right <= 2 / len(bench.task.classes) and right < 1:
        done = f"it is right on {right:.0%} of its own training samples"
        fail(
            objective,
            "training teaches the classes",
            done,
            "check the sign of the loss and the order of the scores",
        )


def check_in_methods(objective: Objective, bench: Bench) -> None:
    """It works under averaging and in a vote: storing, resuming, one class only,
    a last batch of one sample.
    """
    averaged, voting = FedAvg(rounds=2, objective=objective), ClosedVoting(objective=objective)
    short: tuple[AnyMethod, ...] = (
        replace(averaged, local=replace(averaged.local, epochs=2, batch=16)),
        replace(voting, local=replace(voting.local, epochs=2, batch=16)),
    )
    for own in short:
        for check in IN_METHODS:
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
