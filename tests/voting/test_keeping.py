"""The best model of a training, by held-out samples: which it is, and after an interruption."""

from dataclasses import replace

import pytest
import torch

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net
from ostraka.core.member import Member, Model
from ostraka.core.net import Net, Params, Recipe, params_of
from ostraka.core.party import Party, PartyRef
from ostraka.core.progress import Progress
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedov import FedOV
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.testing.stage import Killed, Killer
from ostraka.voting import keeping
from ostraka.voting.keeping import Keeper
from ostraka.voting.training import Terms, train_member

SEED = 5
MODEL = Model.of(Task(("a", "b"), (3,), Recipe("mlp", {"hidden": [4]})), CrossEntropy())
TERMS = Terms(
    Budget(epochs=8, batch=8, lr=1.5, momentum=0.9), hold_out=0.3, scored=True, keep="best"
)
"""With a rate so high that accuracy goes up and down."""


def samples() -> Samples:
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(60, 3, generator=rng)
    noise = 0.8 * torch.randn(60, generator=rng)
    return Samples(x, (x[:, 0] + noise > 0).long())


def trained(terms: Terms, progress: Progress | None = None) -> Member:
    party = Party(PartyRef(0, 60, "one"), samples())
    if progress is not None:
        party = replace(party, progress=progress)
    return train_member(MODEL, terms, party, SEED)


def every_epoch() -> tuple[list[float], list[Params]]:
    """The slow way: all models of the training, and the share of held-out samples that each
    answers rightly.
    """
    learnt, held = samples().split(0.3, derive(SEED, "hold-out"))
    net = build_net(MODEL.task, MODEL.objective, derive(SEED, "init"))
    scores: list[float] = []
    models: list[Params] = []

    def look(_: int) -> bool:
        copy = build_net(MODEL.task, MODEL.objective)
        copy.load_state_dict(net.state_dict())
        answers = copy.eval()(held.inputs()).argmax(dim=1)
        scores.append(float((answers == held.labels).float().mean()))
        models.append(params_of(net))
        return False

    fit(net, None, learnt, MODEL.objective, TERMS.local, SEED, after_epoch=look)
    return scores, models


def test_the_most_accurate_epoch_is_handed_over() -> None:
    scores, models = every_epoch()
    best = max(range(len(scores)), key=lambda i: (scores[i], i))
    assert scores[best] > scores[-1]  # or the last would do
    member = trained(TERMS)
    assert all(torch.equal(tensor, models[best][name]) for name, tensor in member.params.items())
    assert member.card.scores["validation"] == pytest.approx(scores[best])
    last = trained(replace(TERMS, keep="last"))
    assert all(torch.equal(tensor, models[-1][name]) for name, tensor in last.params.items())
    assert last.card.scores["validation"] == pytest.approx(scores[-1])
    assert last.card.scores["loss"] == member.card.scores["loss"]


@pytest.mark.parametrize("kill_at", [1, 4, 6, 9])
def test_an_interruption_changes_nothing(kill_at: int) -> None:
    straight, kept = trained(TERMS), dict[str, bytes]()
    with pytest.raises(Killed):
        trained(TERMS, Killer(kept, kill_at))
    resumed = trained(TERMS, Killer(kept, 10**6))
    assert all(torch.equal(resumed.params[name], t) for name, t in straight.params.items())
    assert resumed.card == straight.card


def test_of_equal_ones_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([0.5, 0.9, 0.9, 0.2])
    monkeypatch.setattr(keeping, "held_scores", lambda *_: {"validation": next(told)})
    net: Net = build_net(MODEL.task, MODEL.objective, 0)
    keeper = Keeper(net, MODEL.objective, samples(), None)
    for epoch in range(4):
        with torch.no_grad():
            net.get_parameter(next(iter(dict(net.named_parameters())))).fill_(float(epoch))
        net.eval()
        assert keeper.look(epoch) is False
        assert net.training
    assert keeper.score == 0.9
    assert float(next(iter(keeper.best.values())).flatten()[0]) == 2.0


def test_a_party_that_holds_nothing_out_hands_over_the_last() -> None:
    """One sample of each class: a tenth of it is none."""
    few = Terms(replace(TERMS.local, epochs=2), hold_out=0.1, scored=True, keep="best")
    two = samples().take(torch.tensor([0, 1]))
    party = Party(PartyRef(0, 2, "one"), two)
    best = train_member(MODEL, few, party, SEED)
    last = train_member(MODEL, replace(few, keep="last"), party, SEED)
    assert all(torch.equal(best.params[name], t) for name, t in last.params.items())


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (ClosedVoting, {}),
        (ClosedVoting, {"scored": True, "hold_out": 0.0}),
        (FedOV, {"hold_out": 0.0}),
    ],
)
def test_without_held_out_samples_it_is_refused(make: type, values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"keep is 'best'.*scored=true"):
        make(keep="best", **values)
    make(keep="best", scored=True)
