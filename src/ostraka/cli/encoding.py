"""Output for terminals that cannot show every character: plain ASCII stands in, and nothing ends in an error."""

import codecs
import io
import os
import sys

STANDINS = {"·": ".", "—": "-", "–": "-", "±": "+-", "…": "...", "×": "x", "░": "-", "▒": "+", "▓": "*", "█": "#"}

NAME = "ostraka-standins"
"""The error handler's name among Python's codecs."""


def prepare_output() -> None:
    """Let both output streams replace what they cannot encode; with the locale C or POSIX they are plain ASCII."""
    codecs.register_error(NAME, _stand_in)
    plain = locale_name() in ("C", "POSIX")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="ascii" if plain else None, errors=NAME)


def locale_name() -> str:
    """The locale of characters that the user chose; empty if none, which Python takes for UTF-8."""
    return next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(STANDINS.get(character, "?") for character in lost), error.end
