"""TOML as a person would write it: lists on one line, a comment above each setting."""

import json
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

WIDTH = 96
"""Characters of a line."""


def comment(text: str) -> str:
    """Lines of a comment."""
    return "".join(f"# {line}\n" for line in wrap(text, WIDTH, break_on_hyphens=False))


def entry(name: str, value: Any) -> str:
    """A setting, or a table of them with a heading; None is left out."""
    if not isinstance(value, Mapping):
        return "" if value is None else f"{_key(name)} = {_plain(value)}\n"
    inner = {key: item for key, item in value.items() if isinstance(item, Mapping)}
    own = [entry(key, item) for key, item in value.items() if key not in inner]
    tables = [entry(f"{name}.{_key(key)}", item) for key, item in inner.items()]
    heading = f"[{name}]\n" if own or not tables else ""
    return "\n".join([heading + "".join(own)] * bool(heading) + tables)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_plain(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        line = f"[{', '.join(items)}]"
        short = len(line) < WIDTH and not any(isinstance(item, Mapping) for item in value)
        return line if short else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    # what JSON writes for text, numbers and truth values is TOML, but for one character
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007F")


def _key(name: str) -> str:
    bare = name.replace(".", "").replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else json.dumps(name, ensure_ascii=False)
