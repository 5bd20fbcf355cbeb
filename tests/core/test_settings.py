"""Settings from plain values and back."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
import torch

from ostraka.core.settings import (
    Former,
    Option,
    build,
    merge,
    nested,
    options_of,
    setting,
    values_of,
    without_former,
)
from ostraka.core.span import Span
from ostraka.core.values import allowed, convert, plain
from ostraka.errors import ConfigError, OstrakaError, shown
from ostraka.registry import Registry

SHAPES: Registry[Any] = Registry("shape", "ostraka.errors")


@SHAPES.add("circle", "disc")
@dataclass(frozen=True)
class Circle:
    radius: float = setting(1.0, "its radius")


@SHAPES.add("square")
@dataclass(frozen=True)
class Square:
    side: int = setting(2, "its side")


@dataclass(frozen=True)
class Inner:
    count: int = setting(3, "a number")
    kind: Literal["warm", "cold"] = setting("warm", "one of two")


@dataclass(frozen=True)
class Outer:
    inner: Inner = setting(Inner(), "a group")
    shape: Any = setting(Circle(), "by name", registry=SHAPES)
    rate: float = setting(0.5, "a number")
    limit: int | None = setting(None, "a number or none")
    widths: tuple[int, ...] = setting((), "a list")
    flag: bool = setting(False, "yes or no")
    name: str = setting("x", "text")
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Demanding:
    needed: int


CHANGED = Outer(Inner(7, "cold"), Square(5), 2.0, 4, (1, 2), True, "y", {"a": [1, {"b": None}]})


def test_round_trip() -> None:
    for value in (Outer(), CHANGED):
        assert build(Outer, values_of(value)) == value


def test_values_are_plain() -> None:
    assert values_of(CHANGED) == {
        "inner": {"count": 7, "kind": "cold"},
        "shape": {"name": "square", "side": 5},
        "rate": 2.0,
        "limit": 4,
        "widths": [1, 2],
        "flag": True,
        "name": "y",
        "options": {"a": [1, {"b": None}]},
    }


def test_what_is_not_given_comes_from_the_base_or_the_default() -> None:
    assert build(Outer, {"inner": {"count": 1}}) == Outer(Inner(1, "warm"))
    assert build(Outer, {"inner": {"count": 1}}, CHANGED).inner == Inner(1, "cold")
    assert build(Outer, {"shape": {"side": 9}}, CHANGED).shape == Square(9)


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ("square", Square()),
        ("disc", Circle()),
        ({"name": "square", "side": 4}, Square(4)),
        ({"radius": 3}, Circle(3.0)),
        (None, None),
    ],
)
def test_registry_tables(given: Any, shape: Any) -> None:
    assert build(Outer, {"shape": given}).shape == shape


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rat": 1.0}, r"unknown setting 'rat'\. Did you mean 'rate'\?"),
        ({"inner": {"cuont": 1}}, r"unknown setting 'inner\.cuont'\. Did you mean 'count'\?"),
        ({"shape": {"name": "circle", "side": 1}}, r"unknown setting 'shape\.side'"),
        ({"shape": "cirle"}, r"unknown shape 'cirle'\. Did you mean 'circle'\?"),
        ({"shape": 3}, r"'shape' takes the name of one shape \(circle, square\); 3 was given"),
        ({"inner": 3}, r"'inner' is a group of settings; 3 was given\. Use inner\.<name> = value"),
        ({"inner": {"count": "many"}}, r"'inner\.count' takes a whole number; 'many' was given"),
        ({"inner": {"count": 1.5}}, "takes a whole number; 1.5"),
        ({"inner": {"count": True}}, "takes a whole number; True"),
        (
            {"inner": {"kind": "wram"}},
            r"'inner\.kind' is 'wram'; allowed: warm, cold\. Did you mean 'warm'\?",
        ),
        ({"rate": "fast"}, "'rate' takes a number; 'fast'"),
        ({"rate": True}, "'rate' takes a number; True"),
        ({"flag": 1}, "'flag' takes true or false; 1"),
        ({"name": 1}, "'name' takes text; 1"),
        ({"widths": 3}, r"'widths' takes a list, such as \[1, 2\]; 3"),
        ({"widths": [1, "a"]}, "'widths' takes a whole number; 'a'"),
        ({"limit": "a"}, "'limit' takes a whole number; 'a'"),
        (
            {"options": 3},
            r"'options' is a table of settings; 3 was given\. Use options\.<name> = value",
        ),
    ],
)
def test_errors_say_what_is_allowed(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build(Outer, values)


def test_numbers_are_taken_as_their_field_wants_them() -> None:
    made = build(Outer, {"rate": 2, "inner": {"count": 4.0}, "limit": "none"})
    assert (made.rate, type(made.rate)) == (2.0, float)
    assert (made.inner.count, type(made.inner.count)) == (4, int)
    assert made.limit is None


def test_what_python_users_give_is_taken_as_plain_values() -> None:
    given = {
        "inner": {"count": np.int32(4)},
        "rate": np.float32(0.5),
        "widths": np.arange(3),
        "flag": np.bool_(True),
        "name": Path("a/b"),
        "options": {"hidden": (np.int64(8), 4)},
    }
    made = build(Outer, given)
    assert (made.inner.count, made.rate, made.widths, made.flag, made.name) == (
        4,
        0.5,
        (0, 1, 2),
        True,
        "a/b",
    )
    assert made.options == {"hidden": [8, 4]}
    assert [type(value) for value in (made.inner.count, made.rate, made.flag)] == [int, float, bool]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"widths": {1, 2}}, r"'widths' takes a list, such as \[1, 2\]; \{1, 2\} was given"),
        (
            {"options": {"a": {1, 2}}},
            r"'options\.a' takes numbers, text, true or false, lists and tables",
        ),
        ({"shape": {"name": 3}}, "'shape' takes the name of one shape"),
        ({3: 4}, "unknown setting '3'"),
        ({"count": 4}, r"unknown setting 'count'\. Did you mean 'inner\.count'\? Settings here: "),
        ({"radus": 4}, r"unknown setting 'radus'\. Did you mean 'shape\.radius'\?"),
        ({"rate": float("nan")}, "'rate' is nan"),
    ],
)
def test_odd_values_are_refused_with_a_reason(values: dict[Any, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build(Outer, values)


def test_several_groups_may_have_the_setting_that_was_meant() -> None:
    @dataclass(frozen=True)
    class Two:
        first: Inner = setting(Inner(), "a group")
        second: Inner = setting(Inner(), "another")

    with pytest.raises(ConfigError, match=r"Did you mean 'first\.count' or 'second\.count'\?"):
        build(Two, {"count": 1})


def test_parameters_of_a_function_are_options() -> None:
    def make(
        shape: tuple[int, ...],
        width: Annotated[int, Option("channels", "[1, inf)")] = 8,
        extra=None,
        **rest,
    ):
        return shape, width, extra, rest

    options = options_of(make, given=("shape",))
    assert [spec.name for spec in fields(options)] == ["width", "extra"]
    assert build(options, {"width": 4.0, "extra": [1]}).width == 4
    with pytest.raises(ConfigError, match=r"'net\.width' is 0; it must be at least 1"):
        build(options, {"width": 0}, path="net.")
    with pytest.raises(
        ConfigError, match=r"unknown setting 'net\.zzz'\. Settings of the net x: extra, width"
    ):
        build(options, {"zzz": 0}, path="net.", owner="the net x")


@pytest.mark.parametrize(
    ("hint", "span", "words"),
    [
        (int, "[1, inf)", "whole number, at least 1"),
        (int, "(-inf, inf)", "whole number"),
        (float, "[0, 1)", "at least 0 and below 1"),
        (float, "(-inf, inf)", "any number"),
        (int | None, "[1, inf)", "whole number, at least 1, or none"),
        (tuple[int, ...], "[0, inf)", "list; each: whole number, at least 0"),
        (Literal["warm", "cold"], None, "warm, cold"),
        (bool, None, "true, false"),
        (str | None, None, "text, or none"),
    ],
)
def test_what_is_allowed_in_words(hint: Any, span: str | None, words: str) -> None:
    assert allowed(hint, Span.read(span) if span else None) == words


def test_a_setting_without_default_must_be_given() -> None:
    with pytest.raises(ConfigError, match="'needed' has no default"):
        build(Demanding, {})
    assert build(Demanding, {"needed": 2}) == Demanding(2)


def test_a_literal_of_numbers() -> None:
    @dataclass(frozen=True)
    class Sized:
        bits: Literal[8, 16] = 8

    assert build(Sized, {"bits": 16}).bits == 16
    with pytest.raises(ConfigError, match="allowed: 8, 16"):
        build(Sized, {"bits": 17})


def test_merge_goes_table_by_table() -> None:
    base = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge(base, {"a": {"c": 5}, "e": 6}) == {"a": {"b": 1, "c": 5}, "d": 3, "e": 6}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}


def test_another_choice_begins_anew() -> None:
    """Settings of the square are nothing to the circle; those of the square itself stay."""
    base = {"shape": {"name": "square", "side": 3, "line": {"name": "thin", "dash": 1}}}
    assert merge(base, {"shape": {"name": "circle", "radius": 2}}) == {
        "shape": {"name": "circle", "radius": 2}
    }
    assert merge(base, {"shape": {"name": "square", "line": {"name": "thick"}}}) == {
        "shape": {"name": "square", "side": 3, "line": {"name": "thick"}}
    }
    assert merge({"shape": {"side": 3}}, {"shape": {"name": "square"}}) == {
        "shape": {"name": "square", "side": 3}
    }
    assert base["shape"]["line"] == {"name": "thin", "dash": 1}


def test_merge_of_a_name_and_its_settings() -> None:
    """`shape = "square"` and then `shape.side = 3` belong together.

    A new name replaces the old one.
    """
    assert merge({"shape": "square"}, {"shape": {"side": 3}}) == {
        "shape": {"name": "square", "side": 3}
    }
    assert merge({"shape": {"name": "square", "side": 3}}, {"shape": "circle"}) == {
        "shape": "circle"
    }


def test_nested() -> None:
    assert nested("a.b.c", 1) == {"a": {"b": {"c": 1}}}
    assert nested("a", 1) == {"a": 1}


@dataclass(frozen=True)
class Shrunk:
    FORMER: ClassVar[Mapping[str, Former]] = {"turns": Former(1, "there is one turn")}
    size: int = setting(3, "a number")


@dataclass(frozen=True)
class Grown(Shrunk):
    turns: int = setting(4, "a number")


@dataclass(frozen=True)
class Nest:
    small: Shrunk = setting(Shrunk(), "a group")
    large: Grown = setting(Grown(), "a group")


OLD = {"small": {"size": 5, "turns": 1}, "large": {"turns": 1}}


def test_a_setting_of_an_older_version_is_passed_over_where_it_says_nothing() -> None:
    """`Grown` still has it: there the value counts."""
    assert build(Nest, OLD) == Nest(Shrunk(5), Grown(3, 1))


@pytest.mark.parametrize("value", [2, 0, "1", None])
def test_another_value_of_an_older_setting_is_refused(value: Any) -> None:
    words = (
        f"'small.turns' is {value!r}, but small has no such setting: "
        "there is one turn; leave it out"
    )
    with pytest.raises(ConfigError, match=words):
        build(Nest, {"small": {"turns": value}})


def test_values_without_those_of_older_versions() -> None:
    """What is no setting at all stays: it is for `build` to refuse it."""
    assert without_former(OLD, Nest()) == {"small": {"size": 5}, "large": {"turns": 1}}
    assert without_former({"turns": 1, "else": {"turns": 1}}, Shrunk()) == {"else": {"turns": 1}}


def test_a_large_value_is_not_shown_whole() -> None:
    """Arrays and networks that Python users give where a name is wanted."""
    for value in (np.random.default_rng(0).random((300, 64)), torch.zeros(99, 99), "x" * 5000):
        with pytest.raises(ConfigError, match=r"'data' takes text; a .* was given") as caught:
            convert(plain(value) if not isinstance(value, str) else [value], str, "data")
        assert len(str(caught.value)) < 200
    assert shown("net") == "'net'"
    assert shown([1] * 100) == f"a list ({str([1] * 100)[:80]} ...)"


def test_no_message_is_longer_than_a_page() -> None:
    """Whatever raised it; its end, with the remedy, stays."""
    error = OstrakaError(f"{'x' * 264_000} was given; give the name of a net")
    assert len(str(error)) < 4010
    assert str(error).startswith("xxx")
    assert str(error).endswith("give the name of a net")
    assert str(OstrakaError("y" * 4000)) == "y" * 4000
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
