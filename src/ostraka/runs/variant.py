"""A method with settings of its own in a grid: `fedavg:lr=0.1`,
`fedavg:local.epochs=5,net.hidden=[64, 32]`.
"""

from typing import Any

from ostraka.errors import ConfigError
from ostraka.runs.config import SHORT, canonical_method, parse_assignments

OPEN, CLOSE, QUOTES = "[{", "]}", "\"'"


def read_variant(word: str) -> tuple[str, dict[str, Any]]:
    """The method that `word` names, and the values of a run that it changes."""
    method, colon, rest = word.partition(":")
    if not colon:
        return method, {}
    if not method or not rest.strip():
        raise ConfigError(
            f"{word!r} is no method with settings; write it as "
            "METHOD:NAME=VALUE, such as fedavg:lr=0.1"
        )
    return method, as_values(_settings(word, rest))


def label_of(word: str) -> str:
    """What a grid calls the method that `word` names: its own name,
    and the settings as they were given.
    """
    method, colon, rest = word.partition(":")
    return canonical_method(method) + colon + ",".join(part.strip() for part in _parts(rest))


def as_values(assigned: dict[str, Any]) -> dict[str, Any]:
    """Settings of a method, `net.NAME` and `engine.NAME` for those of
    net and engine, as values of a run.
    """
    method = {key: value for key, value in assigned.items() if key not in ("net", "engine")}
    values: dict[str, Any] = {"set": method} if method else {}
    for key in ("net", "engine"):
        options = assigned.get(key, {})
        if not isinstance(options, dict):
            raise ConfigError(
                f"the {key} is chosen with --{key} {options}; "
                f"--set {key}.NAME=VALUE is for its options"
            )
        values |= {key: {"options": options}} if options else {}
    return values


def _settings(word: str, rest: str) -> dict[str, Any]:
    pairs: list[str] = []
    for part in _parts(rest):
        name, sign, value = part.partition("=")
        name = SHORT.get(name.strip(), name.strip())
        if not sign or not name:
            raise ConfigError(
                f"{part.strip()!r} in {word!r} is no setting; write METHOD:NAME=VALUE,NAME=VALUE, "
                "such as fedavg:lr=0.1,epochs=5"
            )
        pairs.append(f"{name}={value}")
    return parse_assignments(pairs)


def _parts(text: str) -> list[str]:
    """The text cut at its commas, but for those inside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        else:
            depth += (letter in OPEN) - (letter in CLOSE)
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
