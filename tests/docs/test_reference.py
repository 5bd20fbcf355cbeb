"""docs/commands.md and docs/data.md are complete: what exists is there,
and what is there exists.
"""

import argparse
from dataclasses import MISSING, fields
from typing import get_type_hints

import pytest

import ostraka
from ostraka import errors
from ostraka.cli.main import EXIT_CODES, VERBS, parser
from ostraka.core.fit import RoundBudget
from ostraka.core.values import allowed
from ostraka.data.sources.advice import VARIABLE
from ostraka.nets.native.library import SWITCH
from ostraka.registry import ENGINES, PARTITIONS
from ostraka.runs.config import Config, EngineChoice, NetChoice
from ostraka.runs.summary import JSON_KEYS
from tests.docs.pages import ROOT, tables

COMMANDS = ROOT / "docs" / "commands.md"
TABLES = tables(COMMANDS)


def verbs() -> dict[str, argparse.ArgumentParser]:
    [choice] = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(choice.choices)


def test_every_verb_is_documented() -> None:
    assert [row[0] for row in TABLES["verb"]] == [module.NAME for module in VERBS]


def test_every_option_is_documented_with_its_verbs() -> None:
    exist: dict[str, set[str]] = {}
    for verb, own in verbs().items():
        for action in own._actions:
            for option in action.option_strings:
                if option not in ("-h", "--help") and action.help != argparse.SUPPRESS:
                    exist.setdefault(option, set()).add(verb)
    assert {row[0]: set(row[1].split(", ")) for row in TABLES["option"]} == exist


def test_every_setting_is_documented_with_its_default_and_range() -> None:
    exist = {}
    for prefix, cls in (("", Config), ("net.", NetChoice), ("engine.", EngineChoice)):
        for spec in fields(cls):
            default = spec.default if spec.default is not MISSING else {}
            if spec.name not in ("net", "engine"):
                exist[prefix + spec.name] = (
                    "none" if default is None else str(default).replace("()", "[]")
                )
    local = [f"local.{spec.name}" for spec in fields(RoundBudget)]
    ranges = {row[0]: row[-2] for row in TABLES["setting"]}
    for prefix, cls in (
        ("", Config),
        ("net.", NetChoice),
        ("engine.", EngineChoice),
        ("local.", RoundBudget),
    ):
        hints = get_type_hints(cls)
        for spec in fields(cls):
            if spec.name not in ("net", "engine"):
                told = allowed(hints[spec.name], spec.metadata.get("span"))
                assert ranges[prefix + spec.name] == (told or "table"), f"{prefix}{spec.name}"
    documented = {row[0]: row[1] for row in TABLES["setting"]}
    assert [name for name in documented if name.startswith("local.")] == local
    assert {
        name: value for name, value in documented.items() if not name.startswith("local.")
    } == exist


def test_every_engine_is_named_in_help_and_reference() -> None:
    own = {spec.name: spec.metadata.get("doc", "") for spec in fields(Config)}["engine"]
    texts = [own] + [row[-1] for row in TABLES["option"] if row[0] == "--engine"]
    texts += [row[-1] for row in TABLES["setting"] if row[0] == "engine.name"]
    assert len(texts) == 3
    assert [(name, text) for text in texts for name in ENGINES.names() if name not in text] == []


def test_every_exit_code_is_documented() -> None:
    codes = {int(row[0]) for row in TABLES["code"]}
    own = [
        e
        for e in vars(errors).values()
        if isinstance(e, type) and issubclass(e, errors.OstrakaError)
    ]
    assert codes == {0, 1, *(error.exit_code for error in own)}
    assert codes == {int(line.split()[0]) for line in EXIT_CODES.splitlines()[1:]}


def test_json_keys_and_variables_are_documented() -> None:
    text = COMMANDS.read_text(encoding="utf-8")
    assert [key for key in JSON_KEYS if f"`{key}`" not in text] == []
    assert {row[0] for row in TABLES["variable"]} == {VARIABLE, SWITCH}


def test_every_partition_is_documented() -> None:
    rules = {row[0].partition(":")[0] for row in tables(ROOT / "docs" / "data.md")["rule"]}
    assert rules == set(PARTITIONS.names())


@pytest.mark.parametrize("name", ostraka.__all__)
def test_public_names_load(name: str) -> None:
    assert getattr(ostraka, name) is not None
    assert name in dir(ostraka)


def test_public_names_are_the_announced_ones() -> None:
    assert set(ostraka.__all__) == set(ostraka._HOME)
    with pytest.raises(AttributeError, match="its public names"):
        _ = ostraka.nothing


def test_benchmarks_named_in_results_exist() -> None:
    rows = tables(ROOT / "docs" / "results" / "README.md")["question"]
    scripts = [word for row in rows for word in row[1].strip("`").split() if word.endswith(".py")]
    assert scripts
    assert [script for script in scripts if not (ROOT / script).is_file()] == []
