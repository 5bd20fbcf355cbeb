"""Promises as they are written on the command line."""

import pytest

from ostraka.core.private import Private
from ostraka.errors import ConfigError
from ostraka.parties.dp import parse, secret_seed


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("epsilon=8", Private(8.0)),
        ("8", Private(8.0)),
        ("epsilon=1, delta=1e-6, clip=0.5", Private(1.0, 1e-6, 0.5)),
        ("epsilon=2,counts=0.5", Private(2.0, counts=0.5)),
    ],
)
def test_promises_are_read(text: str, promise: Private) -> None:
    assert parse(text) == promise


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not NAME=NUMBER. Write epsilon=8"),
        ("much", "is not NAME=NUMBER"),
        ("epsilon=", "'epsilon=' is not NAME=NUMBER"),
        ("epsilon=8,delta", "'delta' is not NAME=NUMBER"),
        ("epsilon=0", "needs an epsilon above 0"),
        ("delta=1e-5", "needs an epsilon above 0"),
        ("epsilon=-1", r"'dp\.epsilon' is -1"),
        ("epsilon=nan", r"'dp\.epsilon' is nan"),
        ("epsilon=8,delta=1", r"'dp\.delta' is 1"),
        ("epsilon=8,sigma=2", r"unknown setting 'dp\.sigma'"),
    ],
)
def test_what_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(text)


def test_seeds_differ() -> None:
    seeds = {secret_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert max(seeds).bit_length() > 55
