"""How a party makes its member: train on most of its samples, ask the rest,
and tell what it agrees to tell.
"""

from dataclasses import dataclass, replace
from typing import Literal

from ostraka.core.card import Card, banded
from ostraka.core.fit import Budget, Fitted, fit
from ostraka.core.learner import build_net
from ostraka.core.member import Member, Model
from ostraka.core.net import Net, Params
from ostraka.core.objective import Objective
from ostraka.core.party import Party
from ostraka.core.private import Private
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive
from ostraka.voting.accountant import noise_for, noisy_counts
from ostraka.voting.calibration import held_scores, measure, tell_of
from ostraka.voting.keeping import Keeper

Tell = Literal["size", "bands", "counts", "statistics"]
"""What a party tells beside its weights: its size; class counts (or bands that they lie in), doubt
and answers to held-out samples as well; embedding statistics as well.
"""

Keep = Literal["last", "best"]
"""The model after the last step, or that of the epoch with the best accuracy on held-out samples;
where a party has too few samples to hold any out, the last.
"""


@dataclass(frozen=True)
class Terms:
    """How members are trained, and what is told of them."""

    local: Budget
    tell: Tell = "counts"
    hold_out: float = 0.1
    """Share of each class that is kept from training, to tell how the member answers it."""
    scored: bool = False
    """Whether a member that cannot answer unknown, or tells its size only,
    keeps samples from training too, to tell a score.
    """
    keep: Keep = "last"
    """Which model of its training a party hands over."""
    dp: Private = Private()
    """What is promised of any one sample. With a promise nothing is told that it does not cover:
    the size, and class counts with noise if they are paid for.
    """


def train_member(
    model: Model, terms: Terms, party: Party, seed: int, start: Params | None = None
) -> Member:
    """The member that `party` makes of `model`, from random first weights or from `start`."""
    net = build_net(model.task, model.objective, derive(seed, "init"))
    if terms.dp.wanted:
        return _private_member(model, terms, party, seed, start, net)
    learnt, held = _split(model, terms, party.samples, seed)
    if terms.keep == "best" and len(held):
        fitted = _best(net, start, learnt, held, model.objective, terms.local, seed, party.progress)
    else:
        fitted = fit(net, start, learnt, model.objective, terms.local, seed, party.progress)
    card = _card(model, terms.tell, party, net, fitted.figures(), held)
    return Member(card, model, fitted.params)


def _best(
    net: Net,
    start: Params | None,
    learnt: Samples,
    held: Samples,
    objective: Objective,
    local: Budget,
    seed: int,
    progress: Progress | None,
) -> Fitted:
    """The most accurate model of the training on what was held out; `net` is it then."""
    keeper = Keeper(net, objective, held, progress)
    fitted = fit(net, start, learnt, objective, local, seed, keeper, after_epoch=keeper.look)
    if not keeper.best:
        return fitted
    # no step more, but what the objective measures after a training
    chosen = fit(net, keeper.best, learnt, objective, replace(local, steps=0), seed)
    return replace(fitted, params=chosen.params)


def _private_member(
    model: Model, terms: Terms, party: Party, seed: int, start: Params | None, net: Net
) -> Member:
    """The member of a party that promises: all samples are trained on, none is told of."""
    samples, dp, classes = party.samples, terms.dp, len(model.classes)
    noise = noise_for(dp, terms.local, len(samples), classes)
    fitted = fit(
        net, start, samples, model.objective, terms.local, seed, party.progress, noise=noise
    )
    counts = tuple(samples.counts(classes).tolist())
    told = noisy_counts(counts, dp.counts, seed) if dp.counts else None
    if told is not None and terms.tell == "bands":
        told = banded(told)
    card = Card(party.id, len(samples), told, dp.figures(), name=party.ref.name)
    return Member(card, model, fitted.params)


def _split(model: Model, terms: Terms, samples: Samples, seed: int) -> tuple[Samples, Samples]:
    """What the member learns from, and what is held out to tell how it answers:
    nothing, if nobody is told.
    """
    wanted = terms.scored or (model.objective.refuses and terms.tell != "size")
    return samples.split(terms.hold_out if wanted else 0.0, derive(seed, "hold-out"))


def _card(
    model: Model, tell: Tell, party: Party, net: Net, scores: dict[str, float], held: Samples
) -> Card:
    """What the party agrees to tell of its member, beside its loss and its scores."""
    samples = party.samples
    scores = {**scores, **held_scores(net, model.objective, held)}
    if tell == "size":
        return Card(party.id, len(samples), None, scores, name=party.ref.name)
    counts = tuple(samples.counts(len(model.classes)).tolist())
    counts = banded(counts) if tell == "bands" else counts
    numbers = measure(net, model.objective, samples, typicality=tell == "statistics")
    numbers |= tell_of(net, model.objective, held, numbers.get("typicality"))
    return Card(party.id, len(samples), counts, scores, numbers, party.ref.name)
