"""Configurations: what they may say, and how they are written down."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.api import run
from ostraka.core import settings
from ostraka.core.settings import values_of
from ostraka.engines.auto import Auto
from ostraka.engines.pool import Pool
from ostraka.engines.serial import Serial
from ostraka.errors import ConfigError, DataError
from ostraka.registry import METHODS, PRESETS, Preset
from ostraka.runs import config
from ostraka.runs.config import (
    Config,
    identity,
    label_of,
    make,
    parse_assignments,
    read_toml,
    write_toml,
)
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"partys": 3}, r"unknown setting 'partys'\. Did you mean 'parties'\?"),
        ({"net": {"nam": "mlp"}}, r"unknown setting 'net\.nam'\. Did you mean 'name'\?"),
        ({"parties": 0}, "'parties' is 0; it must be at least 1"),
        ({"parties": "ten"}, "'parties' takes a whole number"),
        ({"eval_every": 0}, "'eval_every' is 0; it must be at least 1"),
        ({"validation": 1.0}, "'validation' is 1.0; it must be at least 0 and below 1"),
        ({"on_failure": "ignore"}, "allowed: stop, drop"),
        ({"known": 3, "known_classes": [1]}, "not both"),
        ({"device": "tpu"}, "allowed: auto, cpu, cuda, mps"),
        ({"set": 3}, "'set' is a table"),
        ({"known_classes": 3}, "'known_classes' takes a list"),
    ],
)
def test_what_is_wrong_is_said(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"method": "fedavgg"}, r"unknown method 'fedavgg'\. Did you mean 'fedavg'\?"),
        ({"set": {"locl": {}}}, r"unknown setting 'locl'\. Did you mean 'local'\?"),
        (
            {"set": {"local": {"epoch": 1}}},
            r"unknown setting 'local\.epoch'\. Did you mean 'epochs'\?",
        ),
        ({"set": {"objective": "proserr"}}, "unknown objective 'proserr'"),
    ],
)
def test_a_wrong_method_or_setting_of_one(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config.build_method(make(values))


def test_a_configuration_survives_toml(tmp_path: Path) -> None:
    full = make(
        {
            "method": "closed-voting",
            "known_classes": [0, 3],
            "train_per_class": 5,
            "validation": 0.25,
            "net": {"name": "mlp", "options": {"hidden": [4, 2]}},
            "set": {"local": {"epochs": 2, "lr": 0.5}, "ballot": {"name": "sum"}},
            "workers": 3,
            "engine": {"name": "pool", "options": {"timeout": 60.0}},
        }
    )
    for one in (Config(), full):
        path = tmp_path / "x.toml"
        path.write_text(write_toml(values_of(one)))
        assert make(read_toml(path)) == one


def test_identity_is_what_decides_the_numbers() -> None:
    base = identity(Config())
    assert (
        identity(make({"engine": "serial", "workers": 1, "device": "cpu", "data_dir": "x"})) == base
    )
    for change in (
        {"seed": 1},
        {"data": "digits"},
        {"set": {"rounds": 2}},
        {"net": {"name": "mlp"}},
        {"eval_every": 2},
    ):
        assert identity(make(change)) != base


@pytest.mark.parametrize(
    ("pairs", "values"),
    [
        ([], {}),
        (["rounds=3"], {"rounds": 3}),
        (["local.epochs=20", "local.lr=0.1"], {"local": {"epochs": 20, "lr": 0.1}}),
        (["objective=proser"], {"objective": "proser"}),
        (["objective=proser", "objective.w=2"], {"objective": {"name": "proser", "w": 2}}),
        (
            ["flag=true", "text = 'a=b'", "hidden=[1, 2]"],
            {"flag": True, "text": "a=b", "hidden": [1, 2]},
        ),
        (["a=1", "a=2"], {"a": 2}),
        (["name="], {"name": ""}),
    ],
)
def test_assignments(pairs: list[str], values: dict[str, Any]) -> None:
    assert parse_assignments(pairs) == values


@pytest.mark.parametrize("pair", ["rounds", "=3", ""])
def test_assignments_that_are_none(pair: str) -> None:
    with pytest.raises(ConfigError, match="takes NAME=VALUE"):
        parse_assignments([pair])


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("a = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_toml(bad)
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_toml(bad)


def test_a_preset_is_a_method_plus_settings() -> None:
    """The user's own settings go over the preset's, table by table."""
    PRESETS.add("test-preset")(
        Preset("fedavg", {"rounds": 7, "local": {"epochs": 3, "lr": 0.5}}, "for a test")
    )
    try:
        method = config.build_method(
            make({"method": "test-preset", "set": {"local": {"lr": 0.25}}})
        )
    finally:
        PRESETS.remove("test-preset")
    assert type(method) is METHODS.get("fedavg")
    assert (method.rounds, method.local.epochs, method.local.lr) == (7, 3, 0.25)


def test_aliases_lead_to_the_name() -> None:
    assert config.canonical_method("pooled") == "centralised"
    assert type(config.build_method(make({"method": "pooled"}))) is METHODS.get("centralised")


def test_plans_check_the_whole_before_anything_trains() -> None:
    with pytest.raises(ConfigError, match="known is 11"):
        make_plan(make({"known": 11}))
    with pytest.raises(ConfigError, match="'train_per_class' is 0"):
        make_plan(make({"train_per_class": 0}))
    with pytest.raises(DataError, match="is empty"):
        make_plan(
            make({"train_per_class": 1, "validation": 0.01, "parties": 1, "partition": "iid"})
        )
    with pytest.raises(ConfigError, match=r"unknown setting 'net.depth'"):
        make_plan(make({"net": {"name": "mlp", "options": {"depth": 2}}}))


@pytest.mark.parametrize(
    ("local", "words"),
    [
        (
            {"epochs": 100},
            (
                "2 of 2 parties end before their 100 epochs, "
                "the first after 2.5: local.most_steps is 10"
            ),
        ),
        (
            {"epochs": 100, "class_steps": 1, "most_steps": 11},
            (
                "2 of 2 parties end before their 100 epochs, the first after 2.5: local.most_steps "
                "is 11 and local.class_steps is 1"
            ),
        ),
        ({"epochs": 100, "class_steps": 40, "most_steps": 0}, None),
        ({"epochs": 2}, None),
        ({"epochs": 100, "most_steps": 0}, None),
        ({"epochs": 100, "steps": 3}, None),
        ({}, None),
    ],
)
def test_epochs_that_will_not_be_trained_are_told(local: dict[str, int], words: str | None) -> None:
    """Two parties of 50 samples, batch 16: an epoch has 4 steps, so 10 steps are 2.5 epochs."""
    table = {"local": {"batch": 16, "most_steps": 10, "class_steps": 0, **local}}
    plan = make_plan(
        make(
            {
                "method": "fedov",
                "train_per_class": 10,
                "parties": 2,
                "partition": "iid",
                "set": table,
            }
        )
    )
    assert [note.split(";")[0] for note in plan.notes if "epochs" in note] == (
        [words] if words else []
    )


def test_validation_samples_are_taken_from_training() -> None:
    """A fifth of 100 rows: 80 are left to the parties, 20 are held, none is both.

    The test set is untouched.
    """
    plan = make_plan(
        make({"train_per_class": 10, "validation": 0.2, "parties": 4, "partition": "iid"})
    )
    assert plan.validation is not None
    assert plan.validation.samples.rows is not None
    held, left = set(plan.validation.samples.rows.tolist()), set(plan.parties.rows.tolist())
    assert (len(held), len(left)) == (20, 80)
    assert not held & left
    assert plan.counts.sum() == 80


def test_the_fingerprint_stands_for_data_division_and_task() -> None:
    base = {"train_per_class": 5, "parties": 4, "partition": "iid"}
    prints = [
        make_plan(make({**base, **change})).fingerprint
        for change in (
            {},
            {"method": "solo"},
            {"seed": 1},
            {"parties": 5},
            {"net": {"name": "mlp"}},
        )
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def as_older(home: RunDir, **more: Any) -> None:
    """Write the configuration as older versions did: rounds for all,
    a schedule over them in every training.
    """
    values = config.read_toml(home.config)
    late = {"late_rate": 1.0}
    older = {"rounds": 1, **more, "local": late, "distil": late}
    home.config.write_text(config.write_toml(settings.merge(values, {"set": older})))


def test_a_run_of_one_exchange_with_rounds_among_its_settings_is_still_the_same_run(
    tmp_path: Path,
) -> None:
    home, values = RunDir(tmp_path / "run"), {"data": "digits", "partition": "iid", "parties": 2}
    wanted = {"set": {"local": {"steps": 1}}, "engine": "serial"}
    done = run("closed-voting", out=home.root, **values, **wanted)
    as_older(home)
    assert "rounds" in home.config.read_text()
    plan = make_plan(config.make({"method": "closed-voting", **values, **wanted}), home)
    home.check_same(plan.config, resume=True)
    assert identity(home.stored_config()) == identity(plan.config)
    assert run("closed-voting", out=home.root, resume=True, **values, **wanted) == done
    again = make_plan(config.make(config.read_toml(home.config)))
    assert again.config == replace(plan.config, partition="iid")
    as_older(home, rounds=2)
    with pytest.raises(ConfigError, match="'rounds' is 2, but the method closed-voting has no"):
        home.stored_config()


def test_an_engine_is_a_name_or_a_table() -> None:
    assert make({"engine": "serial"}) == make({"engine": {"name": "serial"}})
    assert make({}).engine == config.EngineChoice("auto", {})
    auto = make({"workers": 3, "engine": {"options": {"timeout": 5}}})
    assert config.build_engine(auto) == Auto(workers=3, timeout=5.0)
    pool = make({"workers": 3, "engine": {"name": "pool", "options": {"timeout": 5}}})
    assert config.build_engine(pool) == Pool(workers=3, timeout=5.0)
    assert config.build_engine(make({"engine": "serial", "workers": 3})) == Serial()
    assert identity(pool) == identity(make({"engine": "serial"}))


def test_the_column_of_the_classes_is_that_of_the_runs_data_alone() -> None:
    config = Config(data="own.csv", label="kind", public="more.csv")
    assert [label_of(config, name) for name in ("own.csv", "more.csv")] == ["kind", None]
