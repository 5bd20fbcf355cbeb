"""Ranges of numbers: what lies inside, and how they are told."""

from math import inf, nan

import pytest

from ostraka.core.span import ANYTHING, Span
from ostraka.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "inside", "outside", "words"),
    [
        ("[0, 1)", (0, 0.5), (-1e-9, 1, inf, nan), "at least 0 and below 1"),
        ("(0, 1]", (1e-9, 1), (0, 1.1, nan), "above 0 and at most 1"),
        ("[1, inf)", (1, 10**400), (0, inf, nan), "at least 1"),
        ("(0, inf]", (1e-300, inf), (0, nan), "above 0 (inf: no limit)"),
        ("(-inf, inf)", (-1e300, 7), (-inf, inf, nan), ""),
    ],
)
def test_what_lies_inside(
    text: str, inside: tuple[float, ...], outside: tuple[float, ...], words: str
) -> None:
    span = Span.read(text)
    assert [value in span for value in inside] == [True] * len(inside)
    assert [value in span for value in outside] == [False] * len(outside)
    assert span.words() == words


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("[0, 1)", 2, "'x' is 2; it must be at least 0 and below 1"),
        ("[0, 1)", nan, "'x' is nan; it must be a finite number, at least 0 and below 1"),
        ("(-inf, inf)", inf, "'x' is inf; it must be a finite number"),
        ("[0, 1)", "a", "'x' takes a number; 'a' was given"),
        ("[0, 1)", True, "'x' takes a number; True was given"),
    ],
)
def test_what_lies_outside_is_refused_with_the_range(text: str, value: object, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Span.read(text).check(value, "x")
    assert str(caught.value) == words


def test_without_a_range_only_nan_is_refused() -> None:
    for value in (-inf, 0, inf):
        ANYTHING.check(value, "x")
    with pytest.raises(ConfigError, match="'x' is nan"):
        ANYTHING.check(nan, "x")


def test_a_badly_written_range_is_the_authors_error() -> None:
    with pytest.raises(ValueError, match="is no interval"):
        Span.read("0, 1")
