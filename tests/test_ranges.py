"""Every numeric setting of everything that comes with the package says which numbers it takes."""

import types
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from ostraka.core import settings
from ostraka.core.fit import RoundBudget, Student
from ostraka.core.net import net_options
from ostraka.errors import ConfigError
from ostraka.registry import BALLOTS, ENGINES, METHODS, NETS, OBJECTIVES
from ostraka.runs.config import Config, NetChoice, build_method, make


def owners() -> Iterator[tuple[str, type]]:
    for cls in (RoundBudget, Student, Config, NetChoice):
        yield cls.__name__, cls
    for registry in (METHODS, OBJECTIVES, BALLOTS, ENGINES):
        for name in registry:
            yield f"{registry.kind} {name}", registry.get(name)
    for name in NETS:
        yield f"net {name}", net_options(name)


def holds_numbers(hint: Any) -> bool:
    if (
        get_origin(hint) in (Union, types.UnionType, tuple)
        or getattr(get_origin(hint), "__name__", "") == "Sequence"
    ):
        return any(holds_numbers(arg) for arg in get_args(hint))
    return hint in (int, float)


def numeric(cls: type) -> list["Field[Any]"]:
    hints = get_type_hints(cls)
    return [spec for spec in fields(cls) if spec.init and holds_numbers(hints[spec.name])]


@pytest.mark.parametrize(
    ("name", "cls"), list(owners()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_numeric_settings_declare_their_range(name: str, cls: type) -> None:
    assert [spec.name for spec in numeric(cls) if spec.metadata.get("span") is None] == []


def test_the_walk_sees_what_it_should() -> None:
    """Numbers, numbers or none, and lists of numbers are numeric; words,
    switches and groups are not.
    """
    assert [spec.name for spec in numeric(RoundBudget)] == [
        "epochs", "steps", "most_steps", "class_steps", "least_steps", "least_class_steps", "batch",
        "least_batches", "lr", "momentum", "weight_decay", "late_rate",
    ]  # fmt: skip
    assert [spec.name for spec in numeric(net_options("mlp"))] == ["hidden"]
    assert {"parties", "known_classes", "seed"} <= {spec.name for spec in numeric(Config)}
    assert sum(len(numeric(cls)) for _, cls in owners()) > 80


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_refuses_nan_and_names_the_setting(method: str) -> None:
    """Also those of the groups, objectives and ballots inside, by their dotted names."""
    usual = build_method(make({"method": method}))
    floats = [name for name, _, value in settings.walk(usual) if isinstance(value, float)]
    assert floats
    for name in floats:
        with pytest.raises(ConfigError, match=f"^'{name}' is nan; it must be a finite number"):
            build_method(make({"method": method, "set": settings.nested(name, float("nan"))}))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"local": {"epochs": 0}}, r"'local\.epochs' is 0; it must be at least 1"),
        (
            {"local": {"momentum": 2}},
            r"'local\.momentum' is 2\.0; it must be at least 0 and below 1",
        ),
        ({"local": {"weight_decay": -1}}, r"'local\.weight_decay' is -1\.0; it must be at least 0"),
        ({"local": {"lr": 10**400}}, r"'local\.lr' is inf; it must be a finite number, above 0"),
        (
            {"objective": {"smoothing": 2}},
            r"'objective\.smoothing' is 2\.0; it must be at least 0 and at most 1",
        ),
        ({"ballot": {"name": "top-k", "k": 0}}, r"'ballot\.k' is 0; it must be at least 1"),
        (
            {"ballot": {"name": "calibrated", "veto": 0}},
            r"'ballot\.veto' is 0\.0; it must be above 0",
        ),
        ({"distil": {"epochs": -1}}, r"'distil\.epochs' is -1; it must be at least 0"),
    ],
)
def test_ranges_are_checked_before_anything_trains(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_method(make({"method": "closed-voting", "set": table}))


def test_what_has_a_meaning_of_its_own_is_taken() -> None:
    table = {
        "distil": {"epochs": 0},
        "ballot": {"name": "calibrated", "veto": float("inf")},
        "local": {"steps": 0},
    }
    method = build_method(make({"method": "closed-voting", "set": table}))
    assert (method.distil.epochs, method.ballot.veto, method.local.steps) == (0, float("inf"), 0)
    assert not method.needs.public
    assert build_method(
        make({"method": "closed-voting", "set": {"distil": {"steps": 5}}})
    ).needs.public
