"""Names of classes and parties as they are compared: files of several parties meet by them."""

import unicodedata
from collections.abc import Sequence

UNKNOWN_NAME = "unknown"
"""The answer to a sample of no class that the group knows: no class may be called so."""

ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅԌԚԜανορυχιΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡ\u2010\u2011\u2012\u2013\u2212",
    "aeopcyxijshdqwABEKMHOPCTYXIJSGQWavopuxiABEZHIKMNOPTYXiag-----",
)
"""Letters, Cyrillic and Greek above all, that look like Latin ones, and signs like a hyphen."""


def normal(name: str) -> str:
    """A name as it is compared: spellings of the same letters (NFKC) are the same."""
    return unicodedata.normalize("NFKC", name).strip()


def look(name: str) -> str:
    """What a reader takes a name for: equal for names that only the script of their letters, signs
    without width or kinds of spaces tell apart.
    """
    seen = "".join(c for c in normal(name) if unicodedata.category(c) != "Cf")
    return " ".join(seen.translate(ALIKE).split())


def letters(name: str) -> str:
    """The name with every letter that is not ASCII called by its own name, for messages."""
    odd = [unicodedata.name(c, f"U+{ord(c):04X}") for c in name if not c.isascii()]
    return f"{name!r} ({', '.join(odd)})" if odd else repr(name)


def class_flaw(names: Sequence[str]) -> str:
    """Why these names cannot stand for the classes of one model, in words; empty where they can."""
    seen: dict[str, str] = {}
    for name in names:
        shown = look(name)
        if shown.casefold() == UNKNOWN_NAME:
            return f"has a class called {name!r}, which is the answer to samples of no class"
        if shown in seen:
            pair = f"{letters(seen[shown])} and {letters(name)}"
            return f"has the classes {pair}, which look the same"
        seen[shown] = name
    return ""
