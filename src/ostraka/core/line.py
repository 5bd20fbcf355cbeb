"""Settings in one line, as partitions and augmentations are written: `name:argument,option=value`.

The argument, where there is one, is the first field and goes without its name.
"""

from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, get_type_hints

from ostraka.core import settings
from ostraka.errors import ConfigError

T = TypeVar("T")


def read(cls: type[T], text: str, owner: str, argument: str = "", whole: bool = False) -> T:
    """An instance of `cls` from what stands behind the colon.

    `argument` is how the argument is called in messages; empty: there is none. With `whole` all of
    the text is the argument, commas too.
    """
    hints, values = get_type_hints(cls), dict[str, Any]()
    names = [spec.name for spec in _own(cls)]
    first = names[0] if argument else ""
    for position, piece in enumerate([text] if whole else text.split(",")):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if position == 0 and argument and (whole or not equals):
            key, value = first, piece.strip()
        elif position == 0 and not key:
            continue
        if key in names and not value:
            lacking = f"{key!r} has no value" if key != first else f"{owner} lacks its {argument}"
            raise ConfigError(f"{lacking}; write it as {usage(cls, owner, argument)}")
        values[key] = _plain(value, hints.get(key, str))
    return settings.build(cls, values, owner=owner)


def write(value: Any, name: str, argument: str = "") -> str:
    """The line of an instance: its name, its argument and what differs from the defaults."""
    parts = []
    for position, spec in enumerate(_own(type(value))):
        given = getattr(value, spec.name)
        if position == 0 and argument:
            parts.append(_text(given))
        elif given != spec.default:
            parts.append(f"{spec.name}={_text(given)}")
    return f"{name}:{','.join(parts)}" if parts else name


def usage(cls: type[Any], name: str, argument: str = "") -> str:
    """How it is written, such as `labels:K[,first=cycle]`."""
    shown = [f"{spec.name}={_text(spec.default)}" for spec in _own(cls) if spec.default != MISSING]
    options = f"[{',' if argument else ':'}{','.join(shown)}]" if shown else ""
    return name + (f":{argument}" if argument else "") + options


def _own(cls: type[Any]) -> list["Field[Any]"]:
    return [spec for spec in fields(cls) if spec.init]


def _plain(text: str, hint: Any) -> Any:
    """The text as the number or the truth value that it is, unless text is wanted."""
    if hint is str:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
