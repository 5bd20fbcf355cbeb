"""Names that a user's files give to parties and classes: they stand in tables, figures and file
names."""

import unicodedata
from collections.abc import Sequence

BREAKING = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that break a line or a file: control characters, halves of characters, line
separators."""


def flaw(names: Sequence[str], what: str) -> str:
    """What is wrong with the first bad one of `names` (such as "class 3 has an empty name"), or
    nothing."""
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name.strip():
            return f"{what} {i} has an empty name"
        if any(unicodedata.category(letter) in BREAKING for letter in name):
            inside = "a line break or another control character"
            return f"the name {name!r} of {what} {i} has {inside} in it"
        if name in first:
            return f"{what} {first[name]} and {what} {i} are both called {name!r}"
        first[name] = i
    return ""
