"""The digest of plain values depends on what they are and on nothing else."""

import math
import subprocess
import sys
from typing import Any

import pytest

from ostraka.core.digest import digest_of


def test_a_known_value_has_a_known_digest() -> None:
    """It names folders: another version must find them again. By `b2sum -l 32` of
    {"a":{"x":"\\u00e9","y":true},"b":[1,2.5,null]}.
    """
    assert digest_of({"b": [1, 2.5, None], "a": {"y": True, "x": "é"}}, size=4) == "f537437d"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": {"x": 1, "y": 2}, "b": 3}, {"b": 3, "a": {"y": 2, "x": 1}}),
        ([{"x": 1, "y": 2}], [{"y": 2, "x": 1}]),
        ((1, (2,)), [1, [2]]),
        ({"lr": 1.0}, {"lr": 1}),
        (-0.0, 0),
        (math.inf, float("inf")),
    ],
    ids=["tables", "tables in a list", "tuples", "whole floats", "zero", "infinite"],
)
def test_equal_values_have_the_same(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(other)


def test_other_values_have_others() -> None:
    values: list[Any] = [
        None, True, False, 0, 1, "1", "", "true", 0.1, 0.2, math.inf, "Infinity", [], [1], [[1]],
        {}, {"a": 1}, {"a": {"b": 1}}, {"a.b": 1}, {"a": [1, 2]}, {"a": [2, 1]},
    ]  # fmt: skip
    assert len({digest_of(value) for value in values}) == len(values)
    assert [len(digest_of(1, size)) for size in (4, 16)] == [8, 32]


@pytest.mark.parametrize("value", [{1: 2}, {"a": object()}, [b"x"], {1, 2}])
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a digest is of"):
        digest_of(value)


def test_it_is_the_same_in_every_process() -> None:
    """Python's own hash of a text is not."""
    told = [
        sys.executable,
        "-c",
        "from ostraka.core.digest import digest_of; print(digest_of({'a': 'b'}))",
    ]
    assert subprocess.run(
        told, capture_output=True, text=True, check=True
    ).stdout.strip() == digest_of({"a": "b"})
