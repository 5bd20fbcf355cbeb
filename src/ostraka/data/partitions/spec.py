"""How a partition is written: `rule:argument,option=value,...`, and what the rules are."""

import dataclasses
import inspect
import re
from typing import Any, get_type_hints

from ostraka.data.partitions.rule import Rule
from ostraka.errors import ConfigError, PartitionError, choices, did_you_mean
from ostraka.registry import PARTITIONS

ALIAS_PATTERNS = (
    (re.compile(r"(?:noniid-#label|noniid-l|#c=?)(\d+)"), r"labels:\1"),  # NIID-Bench, DeDES, FedOV
    (re.compile(r"non-?iid-(\d+)"), r"shards:\1"),  # FedOVA
    (
        re.compile(r"noniid-labeldir"),
        "dirichlet:0.5",
    ),  # the default of NIID-Bench's own command line
    (re.compile(r"noniid-lds"), "dirichlet:0.4"),  # DeDES
    (re.compile(r"iid-diff-quantity"), "iid-quantity:0.5"),  # NIID-Bench
)
"""Names that carry their number, or that had a fixed one where they come from."""


def parse(spec: str) -> Rule:
    """The rule that a spec describes, with its settings."""
    text = spec.strip()
    for pattern, replacement in ALIAS_PATTERNS:
        # A number given by the user, as in noniid-labeldir:0.1, goes before the alias's own.
        head, comma, tail = text.partition(",")
        if pattern.fullmatch(head.lower()):
            text = pattern.sub(replacement, head.lower()) + comma + tail
            break
    name, _, argument = text.partition(":")
    name = name.strip().lower()
    try:
        kind: type[Rule] = PARTITIONS.get(name)
    except ConfigError as error:
        raise PartitionError(
            f"{error}. How each is written: {'; '.join(usage for usage, _ in describe())}"
        ) from error
    values: dict[str, Any] = {}
    own = [f for f in dataclasses.fields(kind) if f.init]
    first = own[0].name if own and kind.argument else None
    pieces = [argument] if kind.whole_argument else argument.split(",")
    for position, piece in enumerate(piece.strip() for piece in pieces):
        key, equals, value = piece.partition("=")
        if position == 0 and first is not None and (kind.whole_argument or not equals):
            key, value = first, piece
        elif position == 0 and not piece:
            continue
        values[key.strip()] = _value(kind, key.strip(), value.strip(), spec)
    missing = first is not None and values.get(first, "") == ""
    if missing:
        raise PartitionError(f"partition {spec!r} lacks its argument; write it as {usage_of(kind)}")
    return kind(**values)


def _value(kind: type[Rule], key: str, text: str, spec: str) -> Any:
    """`text` as the type of the rule's field `key`."""
    types = {f.name: get_type_hints(kind)[f.name] for f in dataclasses.fields(kind) if f.init}
    if key not in types:
        allowed = choices(types) if types else "none"
        raise PartitionError(
            f"partition {spec!r}: unknown option {key!r}.{did_you_mean(key, types)} Options of this rule: {allowed}"
        )
    wanted = types[key]
    if wanted is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if wanted is not bool:
            return wanted(text)
    except ValueError:
        pass
    if not text:
        raise PartitionError(
            f"partition {spec!r}: {key} has no value; write it as {usage_of(kind)}"
        )
    kinds = {bool: "true or false", int: "a whole number", float: "a number"}
    raise PartitionError(
        f"partition {spec!r}: {key} is {text!r}; it must be {kinds.get(wanted, wanted.__name__)}"
    )


def format_spec(rule: Rule) -> str:
    """The spec of a rule: its registered name, its argument and the options that differ from their defaults."""
    name = PARTITIONS.name_of(type(rule))
    own = [f for f in dataclasses.fields(rule) if f.init]
    parts = []
    for position, field in enumerate(own):
        value = getattr(rule, field.name)
        text = (
            str(value).lower()
            if isinstance(value, bool)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        if position == 0 and rule.argument:
            parts.append(text)
        elif value != field.default:
            parts.append(f"{field.name}={text}")
    return f"{name}:{','.join(parts)}" if parts else name


def usage_of(kind: type[Rule]) -> str:
    """How a rule is written, such as `labels:K[,first=cycle]`."""
    name = PARTITIONS.name_of(kind)
    own = [f for f in dataclasses.fields(kind) if f.init]
    options = own[1:] if kind.argument else own
    shown = [f"{f.name}={str(f.default).lower()}" for f in options]
    return (
        name
        + (f":{kind.argument}" if kind.argument else "")
        + (f"[,{','.join(shown)}]" if shown else "")
    )


def describe() -> list[tuple[str, str]]:
    """(how it is written, one line) for every rule."""
    kinds = list(PARTITIONS.working().values())
    return [(usage_of(kind), (inspect.getdoc(kind) or "").partition("\n")[0]) for kind in kinds]
