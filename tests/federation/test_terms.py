"""A party does what it has agreed to: a server that asks for anything else is refused, in words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.core.net import Recipe
from ostraka.core.samples import Samples
from ostraka.engines.base import Work
from ostraka.engines.brief import Brief, brief_of, read_brief
from ostraka.engines.letters import Letter
from ostraka.engines.node import Own, answer
from ostraka.errors import ConfigError
from ostraka.federation.party import own_of
from ostraka.federation.project import PartyFolder, create
from ostraka.federation.terms import check_agreed
from ostraka.runs.config import make, write_toml
from ostraka.runs.plan import make_plan
from ostraka.store import codec

RUN: dict[str, Any] = {
    "method": "scaffold", "data": "digits", "partition": "iid",
    "set": {"rounds": 3, "local": {"epochs": 2}},
    "net": {"name": "mlp", "options": {"hidden": [8]}},
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "run.toml").write_text(write_toml(RUN))
    return tmp_path / "run.toml"


def brief(**changes: Any) -> Brief:
    """What a server sends whose run is this one."""
    plan = make_plan(make({**RUN, "parties": 2, "engine": "serial", **changes}))
    return read_brief(brief_of(Work(plan.method, plan.task, plan.parties)))


def test_what_was_agreed_is_done(file: Path) -> None:
    for index in range(4):
        check_agreed(file, brief(), index)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "fedavg"}, "method = 'fedavg' (agreed: 'scaffold')"),
        ({"set": {**RUN["set"], "local": {"epochs": 500}}}, "local.epochs = 500 (agreed: 2)"),
        ({"set": {**RUN["set"], "rounds": 900}}, "rounds = 900 (agreed: 3)"),
        ({"net": {"name": "mlp", "options": {"hidden": [9000, 9000]}}}, "net.hidden = "),
        (
            {"net": {"name": "simple-cnn", "options": {"padding": "same"}}},
            "net = 'simple-cnn' (agreed: 'mlp')",
        ),
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any], words: str, file: Path) -> None:
    with pytest.raises(ConfigError, match="has not agreed to") as error:
        check_agreed(file, brief(**changes), 1)
    assert words in str(error.value)
    assert "put the server's run.toml into the party's folder" in str(error.value)


@pytest.mark.parametrize("index", [4, 10**9, -1])
def test_a_round_that_was_not_agreed_is_refused(index: int, file: Path) -> None:
    with pytest.raises(ConfigError, match=rf"round {index} \(agreed: 3 rounds\)"):
        check_agreed(file, brief(), index)


def test_a_net_for_one_party_is_refused(file: Path) -> None:
    given = brief()
    nets = {0: Recipe("mlp", {"hidden": [9999]})}
    with pytest.raises(ConfigError, match="nets of single parties"):
        check_agreed(file, replace(given, task=replace(given.task, nets=nets)), 1)


def test_what_has_no_room_here_is_refused(file: Path) -> None:
    """By the number of classes and the shape of a sample, which the server says."""
    given = brief()
    classes = tuple(map(str, range(1000)))
    huge = replace(given.task, classes=classes, shape=(1, 10**5, 10**6))
    with pytest.raises(ConfigError, match=r"too large|needs at least"):
        check_agreed(file, replace(given, task=huge), 1)


def test_what_the_server_does_by_itself_is_its_own(tmp_path: Path) -> None:
    run = {**RUN, "method": "closed-voting", "set": {"ballot": "sum"}}
    (tmp_path / "run.toml").write_text(write_toml(run))
    other = brief(method="closed-voting", set={"ballot": "plurality"})
    check_agreed(tmp_path / "run.toml", other, 1)


def test_more_differences_than_are_read_are_counted(file: Path) -> None:
    with pytest.raises(ConfigError, match=r" and \d+ more\. To agree"):
        check_agreed(file, brief(method="fedov", set={}), 1)


def test_a_party_of_a_federation_looks_before_it_does_anything(tmp_path: Path) -> None:
    """Neither its data are read nor anything trained, and the server hears why."""
    made = create(tmp_path / "fed", RUN, ["north", "east"], share=True)
    party = own_of(PartyFolder.load(made.root / "parties/north"))

    def never(given: Brief) -> Samples:
        raise AssertionError("its data were looked at")

    wary = replace(party, samples=never)
    plan = make_plan(make({**RUN, "parties": 2, "engine": "serial"}))
    method = replace(plan.method, rounds=900)
    asked = brief_of(Work(method, plan.task, plan.parties))
    message = codec.encode(plan.method.init(plan.task, 0))
    facts = {"party": 0, "round": 1, "seed": "5", "run": "ab12"}
    for about in ("party", "order"):
        letter = Letter(7, about, facts, {"brief": asked, "message": message})  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"rounds = 900 \(agreed: 3\)"):
            answer(letter, wary, None)
    honest = brief_of(Work(plan.method, plan.task, plan.parties))
    told, _ = answer(Letter(7, "party", {}, {"brief": honest}), party, None)
    assert told.facts["party"] == 0


def test_a_node_of_a_simulation_is_asked_by_nobody() -> None:
    plan = make_plan(make({**RUN, "parties": 2, "engine": "serial"}))
    asked = brief_of(Work(plan.method, plan.task, plan.parties))
    mine = Own(1, "east", lambda given: plan.parties[1].samples)
    assert answer(Letter(7, "party", {}, {"brief": asked}), mine, None)[0].facts["party"] == 1


def test_privacy_that_the_server_could_undo_is_not_promised(tmp_path: Path) -> None:
    """The noise comes from the seed, and the server sends it."""
    run = {"method": "closed-voting", "data": "digits", "set": {"dp": {"epsilon": 8.0}}}
    with pytest.raises(ConfigError, match=r"the server knows every seed.*ostraka train --dp"):
        create(tmp_path / "fed", run, ["north"])
    assert not (tmp_path / "fed").exists()
