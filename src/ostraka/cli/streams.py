"""Output that cannot fail: streams that know few characters get plain ones,
and a reader that leaves is no error.
"""

import codecs
import io
import os
import sys
from typing import TextIO

PLAIN = {
    "—": "-",
    "–": "-",
    "±": "~",
    "×": "x",
    "…": ".",
    "·": ".",
    "→": ">",
    "░": "-",
    "▒": "+",
    "▓": "*",
}
"""What is written for a character that the stream's encoding lacks;
boxes and blocks have one for all of them. Each is one character, so columns stay where they are.
"""

BOXES, BLOCKS = ("\u2500", "\u257f"), ("\u2580", "\u259f")


def plain_where_needed() -> None:
    """Let standard output and error replace what they cannot encode.

    One that the caller has closed takes anything.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (it serves until the end)
    codecs.register_error("ostraka-plain", _replace)
    encoding = "ascii" if locale_name() in ("C", "POSIX") else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="ostraka-plain")


def locale_name() -> str:
    """The locale of characters that the user chose; empty if none, which Python takes for UTF-8."""
    return next(
        (value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), ""
    )


def leave_unread(stream: TextIO) -> None:
    """Forget what is still to be written to a pipe whose reader is gone,
    so that the end of Python does not try.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(
        _plain(character) for character in error.object[error.start : error.end]
    ), error.end


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    if BOXES[0] <= character <= BOXES[1]:
        return "-"
    return "#" if BLOCKS[0] <= character <= BLOCKS[1] else "?"
