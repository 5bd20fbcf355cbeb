"""`--dp epsilon=8`: the promise of differential privacy as a party gives it on the command line.

A promise is worth as much as the seed is secret: noise that can be drawn again can be taken off
again. So a party that promises takes its seed from the system, keeps it to itself and gets another
one the next time.
"""

import secrets

from ostraka.core.private import Private
from ostraka.core.settings import build
from ostraka.errors import ConfigError

USAGE = "epsilon=8[,delta=1e-5][,clip=1][,counts=0.5]"


def parse(text: str) -> Private:
    """`epsilon=8,delta=1e-5` (or `8` alone) as a promise."""
    words = [word.strip() for word in text.split(",")]
    if len(words) == 1 and "=" not in words[0]:
        words = [f"epsilon={words[0]}"]
    values: dict[str, float] = {}
    for word in words:
        name, given, value = word.partition("=")
        try:
            values[name.strip()] = float(value) if given else float("nan")
        except ValueError:
            given = ""
        if not given:
            raise ConfigError(f"--dp is {text!r}; {word!r} is not NAME=NUMBER. Write {USAGE}")
    promise = build(Private, values, path="dp.", owner="--dp")
    if not promise.wanted:
        raise ConfigError(f"--dp is {text!r}; a promise needs an epsilon above 0: {USAGE}")
    return promise


def secret_seed() -> int:
    """A seed that nobody can guess: 63 bits of the system's randomness."""
    return secrets.randbits(63)
