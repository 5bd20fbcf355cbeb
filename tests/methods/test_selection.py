"""Selection in a run: trained members are shared, the chosen vote, and the summary says why."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ostraka.api import run
from ostraka.core.card import Card
from ostraka.core.fit import Budget
from ostraka.core.method import Report, Round
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.party import Party, PartyRef
from ostraka.core.samples import Samples
from ostraka.core.spent import account, spent_on
from ostraka.core.task import Task
from ostraka.errors import OstrakaError
from ostraka.methods.average import Average
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.fedov import FedOV
from ostraka.objectives.open_voting import OpenVoting
from ostraka.runs.api import load_run
from ostraka.runs.config import build_method, make
from ostraka.store import codec
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel
from ostraka.voting.selectors import MostData

TASK = Task(("ant", "bee"), (4,), Recipe("mlp", {"hidden": [5]}))
ROUND = Round(TASK, 1, {}, 11)
SAMPLES = Samples(
    torch.randn(60, 4, generator=torch.Generator().manual_seed(1)), torch.arange(60) % 2
)


def reports(count: int) -> list[Report[Params]]:
    """Members of parties with 10, 20, ... samples."""
    made = []
    for i in range(count):
        params = params_of(TASK.build_net(unknown=False, seed=i))
        card = Card(i, 10 * (i + 1), (5 * (i + 1), 5 * (i + 1)))
        made.append(Report(params, float(card.size), card))
    return made


def test_the_chosen_vote_and_the_others_are_kept() -> None:
    method = ClosedVoting(select=MostData(2))
    state = method.aggregate(TASK, Panel(), reports(4))
    assert len(method.members(TASK, state)) == 4
    predictor = method.predictor(TASK, state)
    assert isinstance(predictor, Ensemble)
    assert [card.party for card in predictor.cards] == [2, 3]
    told = method.selection(state)
    assert (told["selector"], told["chosen"]) == ("ds", ["party 2", "party 3"])
    back = codec.decode(codec.encode(state))
    assert back.choice == state.choice


def test_everybody_is_no_choice() -> None:
    method = ClosedVoting()
    state = method.aggregate(TASK, Panel(), reports(3))
    assert state.choice is None
    assert method.selection(state) == {}
    assert state.voters == state.members


def test_parties_work_does_not_depend_on_the_selector() -> None:
    keys = [ClosedVoting(select=s).work_key(TASK) for s in (MostData(1), MostData(2))]
    assert keys[0] == keys[1] == ClosedVoting().work_key(TASK)
    assert ClosedVoting(scored=True).work_key(TASK) != keys[0]


def update(method: ClosedVoting | FedOV) -> Report[Params]:
    return method.local_update(ROUND, Party(PartyRef(0, len(SAMPLES)), SAMPLES), {})


def test_a_closed_member_holds_out_only_where_scores_are_wanted() -> None:
    plain = ClosedVoting(local=Budget(epochs=1))
    assert set(update(plain).card.scores) == {"loss"}
    for method in (replace(plain, scored=True), replace(plain, scored=True, tell="size")):
        card = update(method).card
        assert set(card.scores) == {"loss", "validation", "confidence"}
        assert (card.counts is None) == (method.tell == "size")
    assert set(update(replace(plain, scored=True, hold_out=0.0)).card.scores) == {"loss"}


def test_open_members_tell_scores_of_what_they_hold_out_already() -> None:
    """The training does not change: with `scored` the weights are the same to the bit."""
    plain = FedOV(local=Budget(epochs=2), objective=OpenVoting(outliers="none"))
    first, second = update(plain), update(replace(plain, scored=True))
    assert first.card.scores == second.card.scores
    assert codec.encode(first.payload) == codec.encode(second.payload)
    assert 0.5 <= first.card.scores["confidence"] <= 1.0


def test_validation_is_the_share_of_right_closed_answers_on_held_out_samples() -> None:
    """Classes that lie far apart are told apart; with other labels they are not."""
    x = torch.cat([torch.full((40, 4), -3.0), torch.full((40, 4), 3.0)])
    y = torch.arange(80) // 40
    party = Party(PartyRef(0, 80), Samples(x, y))
    method = ClosedVoting(scored=True, local=Budget(epochs=30, lr=0.05))
    assert method.local_update(ROUND, party, {}).card.scores["validation"] == 1.0
    mixed = Party(PartyRef(0, 80), Samples(x, torch.arange(80) % 2))
    assert method.local_update(ROUND, mixed, {}).card.scores["validation"] <= 0.75


@pytest.mark.parametrize(("weights", "shares"), [("uniform", (0.5, 0.5)), ("size", (1 / 3, 2 / 3))])
def test_average_by_hand(weights: str, shares: tuple[float, float]) -> None:
    method = build_method(make({"method": "average", "set": {"weights": weights}}))
    assert isinstance(method, Average)
    state = method.aggregate(TASK, Panel(), reports(2))
    mean = method.single_model(state)
    assert mean is not None
    for name, tensor in mean.items():
        wanted = sum(s * seat.params[name] for s, seat in zip(shares, state.members, strict=True))
        torch.testing.assert_close(tensor, wanted)
    assert method.predictor(TASK, state).scores(torch.zeros(1, 4)).known.shape == (1, 2)


def test_average_needs_members_of_one_network() -> None:
    assert Average().single_model(Panel()) is None
    with pytest.raises(OstrakaError, match="before its exchange"):
        Average().predictor(TASK, Panel())
    other = Task(TASK.classes, TASK.shape, Recipe("mlp", {"hidden": [7]}))
    odd = replace(reports(1)[0], payload=params_of(other.build_net(unknown=False, seed=0)))
    with pytest.raises(OstrakaError, match="only equal networks"):
        Average().aggregate(TASK, Panel(), [*reports(1), odd])


def test_an_account_of_parts() -> None:
    with account() as spent:
        for _ in range(2):
            with spent_on("work"):
                sum(range(200_000))
    assert list(spent) == ["work"]
    assert spent["work"] > 0.001
    with spent_on("nobody asks"):
        pass
    assert list(spent) == ["work"]


def test_a_run_tells_what_was_chosen_and_answers_as_it_did(tmp_path: Path) -> None:
    few = {"name": "dedes", "size": 3, "every_class": False}
    short = {"local": {"epochs": 3}, "select": few}
    found = run("dedes", data="digits", partition="labels:3", parties=6, engine="serial",
                set=short, out=tmp_path / "run")  # fmt: skip
    told = found.summary.selection
    assert told["selector"] == "dedes"
    assert 1 <= len(told["chosen"]) <= 3
    assert len(told["groups"]) == len(told["parties"]) == len(told["why"]) == 6
    assert set(found.summary.spent) == {"selection", "inference"}
    assert len(found.members()) == 6
    back = load_run(tmp_path / "run")
    assert back.summary.selection == told
    predictor = back.predictor()
    assert isinstance(predictor, Ensemble)
    assert len(predictor.voters) == len(told["chosen"])
