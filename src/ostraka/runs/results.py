"""What a run has found, as values: the lines of its metrics, its summary,
and the records of a grid.

Each of them is one JSON object in a file (`metrics.jsonl`, `summary.json`, `results.json`);
`to_json` gives it and `from_json` reads it. None, or nothing, stands for what was not measured.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from ostraka.core.digest import digest_of
from ostraka.core.predictor import Promise
from ostraka.errors import StoreError
from ostraka.evaluation.evaluate import Confusion, Evaluation, OpenFigures

REMEDY = "it was changed, or is not what Ostraka writes there; make it anew"

BESIDE_ACCURACY = ("auroc", "known_refused", "unknown_refused", "open_balanced_accuracy")
"""Figures of `open` that stand beside the accuracy as well, in summaries and grids."""

UNCOUNTED = {"samples": 0, "unknown_samples": 0}
"""Of an evaluation that was stored without its numbers of samples."""


class Stored:
    """Values that JSON holds under the names of their fields, and so do the values in them."""

    called: ClassVar[str] = "the object"
    """What errors call it where nobody says from where it came."""
    left_out: ClassVar[tuple[str, ...]] = ()
    """Fields that are written only where they hold something."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the order of the fields."""
        return {
            name: _plain(value)
            for name, value in vars(self).items()
            if name not in self.left_out or value not in (None, "")
        }

    @classmethod
    def from_json(cls, held: Any, origin: str = "") -> Self:
        """What `to_json` gave; anything else is refused."""
        return cls(**read_fields(cls, held, origin or cls.called))


@dataclass(frozen=True)
class MetricsRow(Stored):
    """One evaluated round: a line of `metrics.jsonl`.

    Round 0 is the start of a run that has one.
    """

    round: int
    test: Evaluation
    """Without its confusion matrix: that is in `confusion`, and in the last round only."""
    validation: float | None = None
    """Accuracy on the server's validation samples."""
    answer: Promise | None = None
    confusion: Confusion | None = None
    per_party: Mapping[int, float | None] | None = None
    """The accuracy that each party would see, by its number; in the last round only."""
    bytes_up: int = 0
    bytes_down: int = 0
    run: str = ""
    """The hash of the run."""

    called, left_out = "the line", ("confusion", "per_party")

    def to_json(self) -> dict[str, Any]:
        """The line as plain values, the hash first."""
        return {"run": self.run} | super().to_json()


@dataclass(frozen=True)
class Best(Stored):
    """The accuracy of one round that was the best, and on what."""

    accuracy: float | None
    round: int
    validation: float | None = None
    """Its accuracy on the server's validation samples, if these chose it."""

    left_out = ("validation",)


@dataclass(frozen=True)
class DomainFigures(Stored):
    """The figures on the samples of one domain, those of the open answer beside the others."""

    samples: int = 0
    unknown_samples: int = 0
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    f1: float | None = None
    auroc: float | None = None
    fpr95: float | None = None
    oscr: float | None = None
    open_accuracy: float | None = None
    known_refused: float | None = None
    unknown_refused: float | None = None
    open_balanced_accuracy: float | None = None

    @classmethod
    def of(cls, part: Evaluation) -> "DomainFigures":
        """The figures of one domain's evaluation."""
        opened = part.open.as_dict()
        held = {**opened, **vars(part), "open_balanced_accuracy": opened["balanced_accuracy"]}
        return cls(**{spec.name: held[spec.name] for spec in fields(cls)})


@dataclass(frozen=True)
class StartFigures(Stored):
    """The run whose model was the first: what it was;
    costs are those of all runs before this one.
    """

    method: str
    digest: str
    out: str
    bytes_up: int
    bytes_down: int
    cpu_seconds: float
    accuracy: float | None = None


@dataclass(frozen=True)
class Summary(Stored):
    """The final figures of a run, in percent: `summary.json`.

    See docs/commands.md for each of them.
    """

    method: str
    data: str
    partition: str
    parties: int
    seed: int
    rounds: int
    accuracy: float | None
    balanced_accuracy: float | None = None
    f1: float | None = None
    open: OpenFigures = OpenFigures()
    answer: Promise | None = None
    best: Best | None = None
    best_on_validation: Best | None = None
    mean_last_20: float | None = None
    reached: Mapping[str, int] = field(default_factory=dict)
    """The first evaluated round with at least so much accuracy, by percent (`summary.LEVELS`)."""
    per_class: Mapping[str, float | None] = field(default_factory=dict)
    per_party: Mapping[str, float | None] = field(default_factory=dict)
    per_part: Mapping[str, float | None] = field(default_factory=dict)
    per_domain: Mapping[str, DomainFigures] = field(default_factory=dict)
    confusion: Confusion = ()
    notes: tuple[str, ...] = ()
    hardly_trained: tuple[str, ...] = ()
    """Signs that the models have learned next to nothing (`runs.summary`); empty: none."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    dropped: tuple[Mapping[str, Any], ...] = ()
    """Parties that failed and were dropped: `party` (its name), `round`, and `why`."""
    reused: int = 0
    start: StartFigures | None = None
    out: str = ""
    looked: Mapping[str, Any] = field(default_factory=dict)
    """How many unlabelled samples of what (`samples`, `of`: test, validation, public, half-test)
    its vote looked at before it was evaluated; empty: none."""
    trust: Mapping[str, Any] = field(default_factory=dict)
    """What a vote found of its members (`voting.trust`)."""
    selection: Mapping[str, Any] = field(default_factory=dict)
    """Which members vote and why (`voting.choice`); empty: all of them."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """CPU-seconds of parts of the server's work: `selection`, and `inference` of the test set."""
    run: str = ""
    """The hash of the run."""
    digest: str = ""
    """The hash of all the rest, in a file."""

    called, left_out = "the summary", ("run", "digest")

    @property
    def auroc(self) -> float | None:
        """How well unknown scores tell unknown samples from known ones."""
        return self.open.auroc

    @property
    def known_refused(self) -> float | None:
        """The share of known samples that are called unknown."""
        return self.open.known_refused

    @property
    def unknown_refused(self) -> float | None:
        """The share of unknown samples that are called unknown."""
        return self.open.unknown_refused

    @property
    def open_balanced_accuracy(self) -> float | None:
        """The mean of known samples answered with their class and of unknown ones refused."""
        return self.open.balanced_accuracy

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the order of the file; hashes only where there are any."""
        values: dict[str, Any] = {"run": self.run} if self.run else {}
        for name, value in super().to_json().items():
            if name == "open":
                values |= {figure: getattr(self, figure) for figure in BESIDE_ACCURACY}
            values[name] = value
        return values


@dataclass(frozen=True)
class BesidePublished(Stored):
    """A figure that a paper prints, ours, and the difference (ours minus theirs)."""

    value: float
    std: float | None
    table: str
    ours: float
    difference: float
    differs: tuple[str, ...] = ()
    """In what our cell is not the paper's, each as `what: ours for theirs`."""


@dataclass(frozen=True)
class Record:
    """One cell of a grid: the summary of its run, or, if it failed, why.

    A line of `results.json`.
    """

    method: str
    """As the grid calls it: a method, and the settings that it came with."""
    data: str
    partition: str
    seed: int
    summary: Summary | None = None
    error: str = ""
    published: Mapping[str, BesidePublished] = field(default_factory=dict)
    """What papers print of this cell, by figure."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What else decides its numbers, by dotted names (`rows.settings_of`)."""

    @classmethod
    def of(cls, summary: Summary, settings: Mapping[str, Any] | None = None) -> "Record":
        """The record of a finished run, under its summary's own names."""
        names = summary.method, summary.data, summary.partition, summary.seed
        return cls(*names, summary, settings=settings or {})

    @property
    def status(self) -> Literal["ok", "failed"]:
        """Whether the run has finished."""
        return "failed" if self.summary is None else "ok"

    @property
    def row(self) -> str:
        """The same for records that may be averaged: their settings are equal, all of them."""
        return digest_of({"method": self.method, **self.settings})

    @property
    def cell(self) -> tuple[str, str, str, int]:
        """What no other record of the same tables may have: settings, data, partition, seed."""
        return self.row, self.data, self.partition, self.seed

    def to_json(self) -> dict[str, Any]:
        """The summary or the error as plain values, with the status."""
        names = ("method", "data", "partition", "seed", "settings")
        named = {name: _plain(getattr(self, name)) for name in names}
        if self.summary is None:
            return {**named, "status": self.status, "error": self.error}
        found = {**self.summary.to_json(), **named, "status": self.status}
        return found | ({"published": _plain(self.published)} if self.published else {})

    @classmethod
    def from_json(cls, held: Any, origin: str = "the record") -> "Record":
        """The record that a file holds; what is none is refused."""
        values = read_fields(cls, held, origin)
        if held.get("status", "ok") == "ok":
            return cls(**values | {"summary": Summary.from_json(held, origin)})
        reason = str(held.get("error") or "no reason was recorded")
        return cls(**values | {"summary": None, "error": reason, "published": {}})


def read_fields(cls: type, held: Any, origin: str) -> dict[str, Any]:
    """Those values of a JSON object that are fields of `cls`, as these hold them; what lacks a
    field without a default, or has one of another type, is refused.

    None is as good as nothing where there is a default.
    """
    if not isinstance(held, Mapping):
        raise StoreError(f"{origin} is no JSON object; {REMEDY}")
    held = {**UNCOUNTED, **held} if cls is Evaluation else held
    hints, values = _hints(cls), dict[str, Any]()
    for spec in fields(cls):
        needed = spec.default is MISSING and spec.default_factory is MISSING
        if needed and spec.name not in held:
            raise StoreError(f"{origin} lacks {spec.name!r}; {REMEDY}")
        value = held.get(spec.name)
        if needed or value is not None:
            if not _fits(value, hints[spec.name]):
                raise StoreError(f"{spec.name!r} of {origin} is {value!r:.40}; {REMEDY}")
            values[spec.name] = _made(value, hints[spec.name], f"{origin}, {spec.name!r}")
    return values


@lru_cache(maxsize=32)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is of the simple type `hint`; what is in it is looked at later."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint in (int, float):
        number = int if hint is int else (int, float)
        return isinstance(value, number) and not isinstance(value, bool)
    if hint in (str, NoneType):
        return isinstance(value, hint)
    holder = {Mapping: Mapping, dict: Mapping, tuple: list | tuple}.get(get_origin(hint), object)
    return isinstance(value, holder)


def _made(value: Any, hint: Any, origin: str) -> Any:
    """A value of JSON as a field of the type `hint` holds it: objects as the dataclass that they
    are of, lists as tuples, numbers as keys where JSON has only text.
    """
    outer, inner = get_origin(hint), get_args(hint)
    if outer in (Union, UnionType):
        [kind] = [one for one in inner if one is not NoneType]
        return None if value is None else _made(value, kind, origin)
    if is_dataclass(hint) and isinstance(hint, type):
        return hint(**read_fields(hint, value, origin))
    if outer is tuple and isinstance(value, list | tuple):
        return tuple(_made(item, inner[0], origin) for item in value)
    if outer in (Mapping, dict) and isinstance(value, Mapping):
        # an error in the figures of a domain names the domain, not the field
        return {
            inner[0](key): _made(item, inner[1], origin.replace("'per_domain'", f"domain {key!r}"))
            for key, item in value.items()
        }
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Stored):
        return value.to_json()
    if isinstance(value, Evaluation | OpenFigures | Promise):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
