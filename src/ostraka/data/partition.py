"""Divide a training set among parties: `partition("labels:2", labels, parties=10, seed=0, classes=10)`.

A spec is `rule:argument,option=value,...`; the rules are in `partition_rules` and `partition_given`. Whatever the
rule, the parties' index sets are disjoint, together they are the rows to divide, and the same seed gives the same sets.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ostraka.core.seeds import numpy_rng
from ostraka.data.names import flaw
from ostraka.data.rule import Pool, Rule, Shares, division_digest, party_names
from ostraka.errors import ConfigError, PartitionError, choices, did_you_mean, writing
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


@dataclass(frozen=True, eq=False)
class Partition:
    """Which training rows each party holds; row numbers are those of the full training set."""

    spec: str
    parties: tuple[NDArray[np.int64], ...]
    names: tuple[str, ...]
    seed: int
    partial: bool = False
    """Whether rows are left out on purpose."""

    def __len__(self) -> int:
        return len(self.parties)

    def table(self, labels: NDArray[Any], classes: int) -> NDArray[np.int64]:
        """[parties, classes]: how many samples of each class each party holds."""
        return np.stack([np.bincount(labels[rows], minlength=classes) for rows in self.parties])

    @property
    def digest(self) -> str:
        """A hash of who holds what."""
        return division_digest(self.names, self.parties)

    def save(self, path: str | Path) -> None:
        """Write the partition as JSON that `file:PATH` reads."""
        content: dict[str, Any] = {
            "spec": self.spec,
            "seed": self.seed,
            "names": list(self.names),
            "parties": [rows.tolist() for rows in self.parties],
        }
        if self.partial:
            content["partial"] = True
        with writing(path):
            Path(path).write_text(json.dumps(content) + "\n", encoding="utf-8")


def partition(
    spec: str,
    labels: NDArray[Any],
    parties: int,
    seed: int,
    *,
    rows: NDArray[Any] | None = None,
    columns: Mapping[str, NDArray[Any]] | None = None,
    classes: int,
) -> Partition:
    """Divide `rows` (default: all) of a training set with these `labels`.

    `labels` and `columns` have one value for each row of the full set. `parties` may be 0 for the rules that take the
    number of parties from the data (`by`, `domain`, `file`).
    """
    rule = parse(spec)
    pool = make_pool(labels, parties, seed, rows, columns or {}, classes)
    if not rule.counts_parties:
        pool.need_parties()
    shares = rule.divide(pool)
    _verify(rule, pool, shares)
    names = shares.names or party_names(len(shares.rows))
    _verify_names(rule, names, len(shares.rows))
    found = tuple(np.sort(rows).astype(np.int64) for rows in shares.rows)
    return Partition(format_spec(rule), found, names, seed, shares.partial)


def make_pool(
    labels: NDArray[Any],
    parties: int,
    seed: int,
    rows: NDArray[Any] | None,
    columns: Mapping[str, NDArray[Any]],
    classes: int,
) -> Pool:
    """The checked input of a rule."""
    labels = np.asarray(labels)
    rows = np.arange(len(labels)) if rows is None else np.sort(np.asarray(rows))
    if rows.size == 0:
        raise PartitionError(
            "there are no training samples to divide; check the known classes and the training subset"
        )
    if (
        rows.dtype.kind not in "iu"
        or rows[0] < 0
        or rows[-1] >= len(labels)
        or (np.diff(rows) == 0).any()
    ):
        raise PartitionError(
            f"the rows to divide must be distinct whole numbers from 0 to {len(labels) - 1}"
        )
    held = labels[rows]
    if held.dtype.kind not in "iu" or held.min() < 0 or held.max() >= classes:
        raise PartitionError(
            f"labels of the rows to divide must be whole numbers from 0 to {classes - 1}"
        )
    return Pool(
        labels.astype(np.int64),
        rows.astype(np.int64),
        parties,
        classes,
        columns,
        numpy_rng(seed, "partition"),
    )


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
    return [(usage_of(kind), summary_of(kind)) for kind in kinds]


def _verify(rule: Rule, pool: Pool, shares: Shares) -> None:
    """The promise of this module, checked for every rule, plug-ins included."""
    if not len(shares.rows):
        raise PartitionError(f"{format_spec(rule)} made no party; it must make at least one")
    for i, rows in enumerate(shares.rows):
        if len(rows) == 0:
            raise PartitionError(
                f"{format_spec(rule)}: party {i} would hold no sample of the {len(pool.rows)}; use fewer parties"
            )
    held = np.sort(np.concatenate(shares.rows))
    if (np.diff(held) == 0).any():
        raise PartitionError(
            f"{format_spec(rule)} gave row {held[:-1][np.diff(held) == 0][0]} to two parties"
        )
    if shares.partial and not np.isin(held, pool.rows).all():
        raise PartitionError(
            f"{format_spec(rule)} gave out row {np.setdiff1d(held, pool.rows)[0]}, which is not one to divide"
        )
    if not shares.partial and not np.array_equal(held, pool.rows):
        raise PartitionError(
            f"{format_spec(rule)} gave out {len(held)} rows, not exactly the {len(pool.rows)} to divide"
        )


def _verify_names(rule: Rule, names: tuple[str, ...], parties: int) -> None:
    """Figures and files are told apart by the parties' names."""
    if len(names) != parties:
        raise PartitionError(
            f"{format_spec(rule)} gave {len(names)} names to {parties} parties; give one to each"
        )
    wrong = flaw(names, "party")
    if wrong:
        raise PartitionError(
            f"{format_spec(rule)}: {wrong}; give every party a name of its own, on one line"
        )
