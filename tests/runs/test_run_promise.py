"""Who places the threshold of a run's answers, and what its summary promises."""

from pathlib import Path
from typing import Any

import pytest

from ostraka.errors import ConfigError, NeedError
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir
from ostraka.store import codec

SMALL: dict[str, Any] = {
    "data": "digits",
    "partition": "labels:2",
    "parties": 5,
    "known": 5,
    "engine": "serial",
}
SHORT = {"local": {"epochs": 3}}


def plan_of(method: str, **values: Any) -> Plan:
    settings = {**SHORT, **values.pop("set", {})}
    return make_plan(config.make({**SMALL, "method": method, "set": settings, **values}))


def answer(tmp: Path, method: str, **values: Any) -> dict[str, Any]:
    told: dict[str, Any] = execute(plan_of(method, **values), RunDir(tmp / "run")).to_json()[
        "answer"
    ]
    assert codec.load(tmp / "run" / "model.safetensors")["answer"] == told, "kept with the model"
    return told


def test_a_vote_rests_on_what_parties_told(tmp_path: Path) -> None:
    """Three epochs do not teach much: the line is there, and a warning in place of a promise."""
    found = answer(tmp_path, "fedov")
    assert found["basis"] == "told"
    assert found["threshold"] is not None
    assert found["rate"] == (None if found["why"] else 0.05)


def test_members_that_learnt_promise_what_was_asked_for(tmp_path: Path) -> None:
    found = answer(tmp_path, "fedov", unknown_rate=0.1, set={"local": {"epochs": 45}})
    assert (found["rate"], found["basis"], found["why"]) == (0.1, "told", "")


def test_validation_samples_place_it_if_there_are_any(tmp_path: Path) -> None:
    """All the server has held back: about 180 of 900, of which 5 % may be refused."""
    plan = plan_of("fedov", validation=0.2)
    found = execute(plan, RunDir(tmp_path / "run")).to_json()["answer"]
    assert (found["rate"], found["basis"]) == (0.05, "validation")
    named = answer(tmp_path / "named", "fedov", validation=0.2, rate_from="validation")
    assert (named["rate"], named["basis"]) == (0.05, "validation")
    kept = answer(tmp_path / "told", "fedov", validation=0.2, rate_from="told")
    assert kept["basis"] == "told"


def test_public_samples_place_it_if_asked_to(tmp_path: Path) -> None:
    assert answer(tmp_path, "fedov", public="half-test", rate_from="public")["basis"] == "public"
    assert answer(tmp_path / "not", "fedov", public="half-test")["basis"] == "told"


def test_a_single_network_needs_validation_samples(tmp_path: Path) -> None:
    """An averaged network is nobody's: nobody can tell how it answers held-out samples."""
    found = answer(tmp_path, "fedavg", set={"rounds": 2, "objective": "proser"})
    assert (found["rate"], found["threshold"]) == (None, None)
    assert "nothing of held-out samples" in found["why"]
    found = answer(
        tmp_path / "held", "fedavg", set={"rounds": 2, "objective": "proser"}, validation=0.2
    )
    assert (found["rate"], found["basis"]) == (0.05, "validation")


def test_models_alone_keep_a_promise_each(tmp_path: Path) -> None:
    """Two parties, so that each has enough held-out samples."""
    found = answer(tmp_path, "solo", set={"objective": "proser"}, partition="iid", parties=2)
    assert found == {"rate": 0.05, "basis": "told", "threshold": None, "why": ""}


def test_a_threshold_by_hand_and_the_methods_own(tmp_path: Path) -> None:
    found = answer(tmp_path, "fedov", threshold=0.0)
    assert (found["rate"], found["basis"], found["threshold"]) == (None, "hand", 0.0)
    own = answer(tmp_path / "own", "fedov", rate_from="own")
    assert (own["rate"], own["basis"], own["threshold"]) == (None, "none", None)


def test_who_never_answers_unknown_promises_nothing(tmp_path: Path) -> None:
    found = answer(tmp_path, "closed-voting")
    assert (found["rate"], found["why"]) == (None, "it never answers unknown")


@pytest.mark.parametrize(
    ("values", "what"),
    [({"rate_from": "validation"}, "--validation"), ({"rate_from": "public"}, "--public")],
)
def test_a_source_that_is_not_there_is_refused_before_training(
    values: dict[str, Any], what: str
) -> None:
    with pytest.raises(NeedError, match=what):
        plan_of("fedov", **values)


@pytest.mark.parametrize("rate", [0.0, 1.0, 5.0, -0.1])
def test_a_rate_is_a_share(rate: float) -> None:
    with pytest.raises(ConfigError, match=r"unknown_rate"):
        plan_of("fedov", unknown_rate=rate)
