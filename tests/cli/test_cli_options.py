"""Options of the command line are made from the settings of a run: type, default and help."""

import argparse
from dataclasses import fields

import pytest

from ostraka.cli.options import RUN_OPTIONS, add_run_options, add_settings, help_of
from ostraka.runs.config import Config

SPECS = {spec.name: spec for spec in fields(Config)}


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_run_options(made)
    add_settings(made, {"seed": "S"})
    return made


def test_an_option_says_what_its_setting_says(parser: argparse.ArgumentParser) -> None:
    actions = {action.dest: action for action in parser._actions}
    for name in (*RUN_OPTIONS, "seed"):
        assert actions[name].help == help_of(SPECS[name])
        assert actions[name].default is None, "the configuration has the default"
        assert actions[name].option_strings == ["--" + name.replace("_", "-")]
    parser.format_help()  # a percent sign in a text would be taken for a place to fill


def test_values_are_of_the_type_of_the_setting(parser: argparse.ArgumentParser) -> None:
    words = "--parties 3 --validation 0.5 --unknown-rate 10% --known-classes 0,7 --seed -4"
    words += " --threshold -1.5 --public half-test --on-failure drop"
    found = parser.parse_args(words.split())
    assert (found.parties, found.validation, found.unknown_rate) == (3, 0.5, 0.1)
    assert (found.known_classes, found.seed, found.threshold) == ([0, 7], -4, -1.5)
    assert (found.public, found.on_failure) == ("half-test", "drop")
    with pytest.raises(SystemExit):
        parser.parse_args(["--parties", "2.5"])


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("seed", "seed of everything random (default 0)"),
        ("eval_every", "and the last (default 1)"),
        ("unknown_rate", "as 0.05 or 5%% (default)"),
        ("validation", "that the server holds back"),
        ("workers", "default: one per core"),
    ],
)
def test_a_default_is_told_once(name: str, end: str) -> None:
    assert help_of(SPECS[name]).endswith(end)
