"""How a partition is written: `rule:argument,option=value,...`, and what the rules are."""

import re

from ostraka.core import line
from ostraka.data.partitions.rule import Rule
from ostraka.errors import ConfigError, PartitionError
from ostraka.registry import PARTITIONS, summary_of

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
    try:
        return line.read(
            kind, argument, PARTITIONS.canonical(name), kind.argument, kind.whole_argument
        )
    except ConfigError as error:
        raise PartitionError(f"partition {spec!r}: {error}") from error


def format_spec(rule: Rule) -> str:
    """The spec of a rule: its registered name, its argument and the options that differ from their
    defaults."""
    return line.write(rule, PARTITIONS.name_of(type(rule)), rule.argument)


def usage_of(kind: type[Rule]) -> str:
    """How a rule is written, such as `labels:K[,first=cycle]`."""
    return line.usage(kind, PARTITIONS.name_of(kind), kind.argument)


def describe() -> list[tuple[str, str]]:
    """(how it is written, one line) for every rule."""
    kinds = list(PARTITIONS.working().values())
    return [(usage_of(kind), summary_of(kind)) for kind in kinds]
