"""Who is not to be trusted, and how it is told and drawn."""

import json
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.net import Recipe, params_of
from ostraka.core.task import Task
from ostraka.display.summary import _show_suspects
from ostraka.display.trust import draw_trust
from ostraka.errors import ConfigError
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.assessment import Assessment
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.guarded import Guarded
from ostraka.voting.probes import EACH, junk_probes, known_mass
from ostraka.voting.trust import flagged, low_agreement, trust
from ostraka.voting.window import Window

TASK = Task(("ant", "bee"), (4,), Recipe("mlp", {"hidden": [5]}))


def member(number: int) -> Member:
    card = Card(number, 40, (20, 20), calibration={"doubt": -2.0}, name=f"p{number}")
    model = Model.of(TASK, OpenVoting(outliers="none"))
    return Member(card, model, params_of(TASK.build_net(unknown=True, seed=number)))


AGREEMENT = torch.tensor([[0.9, 0.1], [0.8, 0.0], [0.1, 0.05], [0.7, 0.0]])
CARDS = [Card(i, 40, counts) for i, counts in enumerate([(20, 0), (20, 0), (20, 20), (20, 0)])]


def found(
    claimed: float = 1.0, junk: tuple[float, ...] = (0.0,) * 4, copies: bool = False
) -> dict[str, object]:
    alike = torch.eye(4)
    alike[0, 1] = alike[1, 0] = 0.9 if copies else 0.0
    claims = torch.ones(4, 2)
    claims[2, 0] = claimed
    one = torch.ones(4, 2)
    return trust(CARDS, Assessment(100, one, one, 0 * one, AGREEMENT, claims, alike), junk)


def test_low_agreement_is_told_where_others_agree() -> None:
    """Party 2 has .1 on class 0, where the others have .7 to .9.

    Of class 1 it is the only owner: nobody can say.
    """
    told = found()
    assert low_agreement(told) == [(2, 0)]
    assert told["suspects"] == {"party 2": ["agrees with nobody on class 0"]}
    assert told["agreement"][0] == [pytest.approx(0.9), None]  # type: ignore[index]
    json.dumps(told, allow_nan=False)


def test_two_owners_that_contradict_each_other_are_not_accused() -> None:
    """With party 2 alone against one other, both below the limit,
    the pairs are marked but nobody is named.
    """
    cards = [Card(0, 20, (20,)), Card(1, 20, (20,))]
    one = torch.ones(2, 1)
    told = trust(cards, Assessment(100, one, one, 0 * one, 0 * one, one, torch.eye(2)))
    assert low_agreement(told) == [(0, 0), (1, 0)]
    assert told["suspects"] == {}


def test_claims_junk_and_copies_are_told() -> None:
    told = found(claimed=6.0, junk=(0.0, 0.0, 0.0, 0.7), copies=True)["suspects"]
    assert told == {
        "party 0": ["answers as party 1"],
        "party 1": ["answers as party 0"],
        "party 2": [
            "agrees with nobody on class 0",
            "claims more than 5 times its share of class 0",
        ],
        "party 3": ["takes 70 % of junk for known classes"],
    }


def flags(
    agreement: list[list[float]], claimed: float = 1.0, junk: float = 0.0, copies: bool = False
) -> list[list[bool]]:
    """Where four owners of three classes are flagged; the figures are the last one's."""
    one, alike, claims = torch.ones(4, 3), torch.eye(4), torch.ones(4, 3)
    alike[0, 1] = alike[1, 0] = 0.9 if copies else 0.0
    claims[3, 0] = claimed
    seen = Assessment(100, one, one, 0 * one, torch.tensor(agreement), claims, alike)
    cards = [Card(i, 60, (20, 20, 20)) for i in range(4)]
    return flagged(cards, seen, (0.0, 0.0, 0.0, junk)).tolist()


def test_who_is_flagged_on_half_of_its_classes_is_flagged_on_all() -> None:
    sound, none = [[0.9] * 3] * 3, [[False] * 3] * 3
    assert flags([*sound, [0.9, 0.9, 0.9]]) == [*none, [False] * 3]
    assert flags([*sound, [0.1, 0.9, 0.9]]) == [*none, [True, False, False]]
    assert flags([*sound, [0.1, 0.1, 0.9]]) == [*none, [True] * 3]
    assert flags([*sound, [0.9] * 3], claimed=6.0) == [*none, [True] * 3]
    assert flags([*sound, [0.9] * 3], junk=0.6) == [*none, [True] * 3]
    assert flags([*sound, [0.1] * 3], copies=True) == [*none, [False] * 3]


def test_one_of_two_classes_is_half() -> None:
    one, cards = torch.ones(4, 2), [Card(i, 40, (20, 20)) for i in range(4)]
    agreement = torch.tensor([*[[0.9, 0.9]] * 3, [0.1, 0.9]])
    seen = Assessment(100, one, one, 0 * one, agreement, one, torch.eye(4))
    assert flagged(cards, seen).tolist() == [*[[False] * 2] * 3, [True] * 2]


def test_half_is_of_the_classes_on_which_others_can_judge_it() -> None:
    """Party 2 has .1 on class 0, and is the only owner of class 1."""
    one = torch.ones(4, 2)
    seen = Assessment(100, one, one, 0 * one, AGREEMENT, one, torch.eye(4))
    assert flagged(CARDS, seen).tolist() == [[False] * 2, [False] * 2, [True] * 2, [False] * 2]


def test_what_most_members_do_is_said_of_the_panel() -> None:
    told = found(junk=(0.9, 0.9, 0.9, 0.0))
    assert told["panel"] == ["take junk for known classes"]
    assert told["suspects"] == {"party 2": ["agrees with nobody on class 0"]}


def test_nothing_is_printed_of_a_sound_panel() -> None:
    out = StringIO()
    _show_suspects(Console(file=out, width=100), {"suspects": {}, "parties": ["a"], "panel": []})
    _show_suspects(Console(file=out, width=100), {})
    assert out.getvalue() == ""
    _show_suspects(Console(file=out, width=100), found())
    assert "1 of 4 members unusual" in out.getvalue()
    assert "party 2 agrees with nobody on class 0" in out.getvalue()


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    draw_trust(found(), ["ant", "bee"], tmp_path / "trust.svg", "title")
    assert "framed" in (tmp_path / "trust.svg").read_text()


def test_junk_is_always_the_same_and_of_three_kinds() -> None:
    probes = junk_probes((1, 4, 4))
    assert torch.equal(probes, junk_probes((1, 4, 4)))
    assert probes.shape == (3 * EACH, 1, 4, 4)
    assert probes[:EACH].min() >= 0
    assert probes[EACH : 2 * EACH].min() < -1
    assert (probes[2 * EACH :].flatten(1).std(dim=1) == 0).all()


def test_known_mass_by_hand() -> None:
    """Unknown .25 and .75 leave .5 known on average; a closed member knows everything."""
    logits = torch.tensor([[[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [1.0, 0.0]]]).log()
    assert known_mass(logits) == pytest.approx((0.5, 1.0))


def ensemble() -> Ensemble:
    return Ensemble.of([member(i) for i in range(3)], Guarded())


def test_an_ensemble_sees_and_its_answers_can_be_repeated() -> None:
    blind, x = ensemble(), torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    assert blind.trust() == {}
    assert blind.seen is None
    seeing = blind.seeing(x)
    assert seeing.seen is not None
    assert seeing.trust()["samples"] == 50
    assert not torch.equal(seeing.scores(x).known, blind.scores(x).known), "what was seen is used"
    again = blind.remembering(seeing.seen)
    assert torch.equal(again.scores(x[:3]).known, seeing.scores(x[:3]).known)


def test_a_window_looks_at_the_last_queries() -> None:
    """No assessment before the first 20 queries.

    Then of the last 30 at most, as if they had been shown at once.
    """
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(2))
    window = Window(ensemble(), size=30, every=20)
    window.remember(x[:1])
    assert window.seen is None
    for i in range(1, 60):
        window.remember(x[i : i + 1])
    wanted = ensemble().seeing(x[30:60]).seen
    assert wanted is not None
    assert window.seen is not None
    assert window.seen.size == 30
    torch.testing.assert_close(window.seen.weight, wanted.weight, rtol=1e-4, atol=1e-4)
    with pytest.raises(ConfigError, match="at least 1"):
        Window(ensemble(), size=0)


def test_junk_is_found_of_every_member() -> None:
    masses = ensemble().known_junk()
    assert len(masses) == 3
    assert all(0 <= mass <= 1 for mass in masses)
