"""The errors a user may meet. Standard library only, so that every layer may import it."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

MOST = 4000
"""Characters of a message that are shown."""

OF_VALUE = 80
"""Characters of a value that a message shows."""


class OstrakaError(Exception):
    """Root of every error that is the user's to fix: shown as one message, never as a traceback.

    However large what it was given is, the message is not: its middle is left out.
    """

    exit_code = 2

    def __str__(self) -> str:
        text = super().__str__()
        cut = len(text) - MOST
        return text if cut <= 0 else f"{text[: MOST // 2]} [...] {text[-MOST // 2 :]}"


def shown(value: object) -> str:
    """A value as a message shows it; of a long one the beginning, and what it is."""
    text = " ".join(repr(value).split()) if not isinstance(value, str) else repr(value)
    kind = type(value).__name__
    return text if len(text) <= OF_VALUE else f"a {kind} ({text[:OF_VALUE]} ...)"


class ConfigError(OstrakaError):
    """A setting, an option or a name is wrong."""


class DataError(OstrakaError):
    """Data is missing, malformed or does not fit the task."""


class PartitionError(OstrakaError):
    """The data cannot be divided as asked."""


class StoreError(OstrakaError):
    """A file of a run or a member is missing, damaged or of another kind."""


class DamagedFile(StoreError):
    """A file's content is not what was written there."""


class NeedError(OstrakaError):
    """A method needs something (public data, a generator, ...) that the run does not have."""


class PartyFailed(OstrakaError):
    """One or more parties did not finish; what the others did is kept."""

    exit_code = 3


class ReportRefused(OstrakaError):
    """What a party sent cannot be used: the failure of that party."""

    exit_code = 3


class PluginWarning(UserWarning):
    """A plug-in cannot be used; everything else goes on without it."""


class Interrupted(OstrakaError):
    """The user stopped the run; it can be resumed."""

    exit_code = 130


def printable(text: str, keep: str = "") -> str:
    """The text with a mark for every control character but those to `keep`: what a terminal would
    obey. Names of files are strangers', too.
    """
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def choices(names: Iterable[str]) -> str:
    """The allowed names as one readable list."""
    return ", ".join(sorted(names)) or "(none)"


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """`" Did you mean 'x'?"`, or nothing when no name is near."""
    near = get_close_matches(given, list(names), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


_REMEDIES = {
    errno.ENOSPC: "free some space there, or choose another place",
    errno.EDQUOT: "free some of your quota, or choose another place",
    errno.EACCES: "choose a place that you may write to",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that you may write to",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ENOTDIR: "a file stands where a folder should be; choose another place",
    errno.EEXIST: "a file stands where a folder should be; choose another place",
    errno.EISDIR: "a folder stands where the file should be; choose another name",
}


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn what the system says while `path` is written (full disk, no permission,
    a bad name) into a StoreError.
    """
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "choose another place")
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}; {remedy}"
        ) from error
    except ValueError as error:
        if "null" not in str(error):  # what Python says of a name with a NUL byte in it
            raise
        raise StoreError(
            f"{str(path)!r} cannot be written: {error}; give it another name"
        ) from error
