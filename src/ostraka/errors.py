"""The errors a user may meet. Standard library only, so that every layer may import it."""

from collections.abc import Iterable
from difflib import get_close_matches


class OstrakaError(Exception):
    """Root of every error that is the user's to mend: shown as one message, never as a traceback."""

    exit_code = 2


class ConfigError(OstrakaError):
    """A setting, an option or a name is wrong."""


class DataError(OstrakaError):
    """Data is missing, malformed or does not fit the task."""


class PartitionError(OstrakaError):
    """The data cannot be divided as asked."""


class StoreError(OstrakaError):
    """A file of a run or a member is missing, damaged or of another kind."""


class NeedError(OstrakaError):
    """A method needs something (public data, a generator, ...) that the run does not have."""


class PartyFailed(OstrakaError):
    """One or more parties did not finish; what the others did is kept."""

    exit_code = 3


class Interrupted(OstrakaError):
    """The user stopped the run; it can be resumed."""

    exit_code = 130


def choices(names: Iterable[str]) -> str:
    """The allowed names as one readable list."""
    return ", ".join(sorted(names)) or "(none)"


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """`" Did you mean 'x'?"`, or nothing when no name is near."""
    near = get_close_matches(given, list(names), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
