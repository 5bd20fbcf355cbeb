"""Held-out samples: kept from training, told of, and nothing lost where nobody is told."""

from dataclasses import replace

import pytest
import torch

from ostraka.core.card import Card
from ostraka.core.fit import Budget
from ostraka.core.learner import load_predictor
from ostraka.core.member import Model
from ostraka.core.method import Report, Round
from ostraka.core.net import Params, Recipe
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import UNKNOWN
from ostraka.core.samples import Samples
from ostraka.core.task import Task
from ostraka.core.told import LEVELS, quantiles
from ostraka.errors import ReportRefused
from ostraka.methods import panel
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedov import FedOV
from ostraka.objectives.open_voting import OpenVoting
from ostraka.runs.config import build_method, make
from ostraka.voting import training
from ostraka.voting.ballots import Sum
from ostraka.voting.calibration import claims
from ostraka.voting.panel import Panel, Seat

TASK = Task(("ant", "bee", "cat"), (4,), Recipe("mlp", {"hidden": [5]}))
OPEN = FedOV(objective=OpenVoting(outliers="none"), local=Budget(epochs=2))
ROUND = Round(TASK, 1, {}, 11)
SAMPLES = Samples(
    torch.randn(150, 4, generator=torch.Generator().manual_seed(1)), torch.arange(150) % 2
)
"""75 ants and as many bees: a tenth of 75, rounded, is 8 (7.5 to the even neighbour)."""


def update(method: panel.PanelMethod) -> Report[Params]:
    return method.local_update(ROUND, Party(PartyRef(0, len(SAMPLES)), SAMPLES), {})


def split(seed: int) -> tuple[Samples, Samples]:
    model = Model.of(TASK, OPEN.objective)
    return training._split(model, training.Terms(OPEN.local), SAMPLES, seed)


def seen_in_training(method: panel.PanelMethod, monkeypatch: pytest.MonkeyPatch) -> Samples:
    seen = []
    usual = training.fit
    monkeypatch.setattr(
        training,
        "fit",
        lambda net, start, samples, *rest: (
            seen.append(samples) or usual(net, start, samples, *rest)
        ),
    )
    update(method)
    return seen[0]


def test_a_tenth_of_each_class_is_kept_from_training(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen_in_training(OPEN, monkeypatch).counts(3).tolist() == [67, 67, 0]


def test_the_card_counts_all_samples_and_tells_of_the_held_out_ones() -> None:
    report = update(OPEN)
    told = report.card.calibration
    assert (report.card.size, report.card.counts, report.weight) == (150, (75, 75, 0), 150.0)
    assert told["held"] == 16
    learnt, held = split(ROUND.seed)
    assert len(learnt) + len(held) == 150
    with torch.no_grad():
        scores = load_predictor(TASK, OPEN.objective, report.payload).scores(held.inputs())
    assert told["refusals"] == pytest.approx(quantiles(-scores.unknown), abs=1e-6)
    assert told["claims"] == pytest.approx(
        quantiles(claims(scores.logits(), held.labels)), abs=1e-6
    )
    assert "standing" not in told


def test_statistics_bring_quantiles_of_typicality() -> None:
    told = update(replace(OPEN, tell="statistics")).card.calibration
    assert len(told["standing"]) == len(LEVELS)


def test_claims_by_hand() -> None:
    """log(.7 / .3) for the first class of three, and log(.2 / .8)."""
    votes = torch.tensor([[0.7, 0.1, 0.2], [0.7, 0.2, 0.1]]).log()
    assert claims(votes, torch.tensor([0, 1])).tolist() == pytest.approx(
        [0.8473, -1.3863], abs=1e-4
    )


@pytest.mark.parametrize(
    "method", [replace(OPEN, tell="size", ballot=Sum()), ClosedVoting(local=Budget(epochs=2))]
)
def test_where_nobody_is_told_or_nobody_refuses_all_samples_are_learnt(
    method: panel.PanelMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(seen_in_training(method, monkeypatch)) == 150
    assert "held" not in update(method).card.calibration
    same = [update(replace(method, hold_out=share)).payload for share in (0.0, 0.5)]
    assert all(torch.equal(same[0][name], same[1][name]) for name in same[0])


def test_other_rounds_and_parties_hold_out_others() -> None:
    (_, one), (_, other) = split(1), split(2)
    assert one.rows is not None
    assert other.rows is not None
    assert one.rows.tolist() != other.rows.tolist()


def test_quantiles_that_are_none_are_refused_on_arrival() -> None:
    report = update(OPEN)
    card: Card = report.card
    bad = {**card.calibration, "claims": tuple(reversed(card.calibration["claims"]))}
    OPEN.inspect(TASK, report)
    with pytest.raises(ReportRefused, match="quantiles of claims that fall"):
        OPEN.inspect(TASK, replace(report, card=replace(card, calibration=bad)))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_member_alone_refuses_the_promised_share_of_what_it_held_out(rate: float) -> None:
    """16 samples: above the told quantile at 10 % lie one or two of them, at 50 % eight."""
    report = update(OPEN)
    _, held = split(ROUND.seed)
    alone = load_predictor(TASK, OPEN.objective, report.payload, report.card.calibration)
    placed, promise = alone.keeping(rate)
    assert (promise.rate, promise.basis) == (rate, "told")
    assert (
        int((placed.scores(held.inputs()).open == UNKNOWN).sum()) in {0.1: (1, 2), 0.5: (8,)}[rate]
    )


def test_a_member_that_never_refuses_promises_nothing() -> None:
    """Even if somebody else's numbers came with it."""
    method = ClosedVoting(local=Budget(epochs=1))
    told = update(OPEN).card.calibration
    kept, promise = load_predictor(TASK, method.objective, update(method).payload, told).keeping(
        0.1
    )
    assert promise.rate is None
    assert kept.scores(SAMPLES.inputs()).open.min() >= 0


def test_a_member_alone_needs_enough_held_out_samples() -> None:
    """16 samples cannot tell which is one in twenty."""
    report = update(OPEN)
    kept, promise = load_predictor(
        TASK, OPEN.objective, report.payload, report.card.calibration
    ).keeping(0.05)
    assert promise.rate is None
    assert promise.why == "its party held out 16 samples; 20 are needed for a rate of 0.05"
    assert kept.scores(SAMPLES.inputs()).threshold == 0.0


@pytest.mark.parametrize("ballot", ["guarded", "calibrated"])
def test_a_ballot_by_owners_says_so_if_nobody_tells_counts(ballot: str) -> None:
    method = build_method(make({"method": "fedov", "set": {"tell": "size", "ballot": ballot}}))
    panel = Panel((Seat(Card(0, 9), {}), Seat(Card(1, 9), {})))
    assert "counted by the plain sum" in method.closing_notes(TASK, panel)[0]
    told = Panel((Seat(Card(0, 9, (9, 0)), {}),))
    assert method.closing_notes(TASK, told) == ()
    other = build_method(make({"method": "fedov", "set": {"tell": "size", "ballot": "top-k"}}))
    assert other.closing_notes(TASK, panel) == ()
