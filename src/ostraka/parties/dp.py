"""`--dp epsilon=8`: the promise of differential privacy as a party gives it on the command line.

A promise covers the training and what is told. What a party does with its samples before is not
covered unless it looks at no sample: so no class is left out for being rare, and inputs are not
standardised by own means.
"""

from ostraka.core.private import Private
from ostraka.core.samples import Samples
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
        name, _, value = word.partition("=")
        try:
            values[name.strip()] = float(value)
        except ValueError:
            wrong = f"--dp is {text!r}; {word!r} is not NAME=NUMBER. Write {USAGE}"
            raise ConfigError(wrong) from None
    promise = build(Private, values, path="dp.", owner="--dp")
    if not promise.wanted:
        raise ConfigError(f"--dp is {text!r}; a promise needs an epsilon above 0: {USAGE}")
    return promise


def check_covered(standardise: str, samples: Samples) -> None:
    """Refuse inputs that are standardised by the samples' own means."""
    if standardise == "own" and samples.x.is_floating_point():
        raise ConfigError(
            "standardise is 'own': the means and deviations of your samples would be in the file, "
            'and differential privacy does not cover them; use a task with standardise = "task" '
            'or "off"'
        )
