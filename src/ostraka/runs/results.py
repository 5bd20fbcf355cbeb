"""What a run has found, as values: the lines of its metrics, its summary,
and the records of a grid.

Each of them is one JSON object in a file (`metrics.jsonl`, `summary.json`, `results.json`);
`to_json` gives it and `from_json` reads it. None, or nothing, stands for what was not measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

from ostraka.core.digest import digest_of
from ostraka.core.predictor import Promise
from ostraka.errors import StoreError
from ostraka.evaluation.evaluate import Confusion, Evaluation, OpenFigures
from ostraka.store.typed import REMEDY, fits, read_fields

BESIDE_ACCURACY = ("auroc", "known_refused", "unknown_refused", "open_balanced_accuracy")
"""Figures of `open` that stand beside the accuracy as well, in summaries and grids."""


@dataclass(frozen=True)
class MetricsRow:
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

    def to_json(self) -> dict[str, Any]:
        """The line as plain values."""
        row: dict[str, Any] = {
            "run": self.run,
            "round": self.round,
            "test": self.test.as_dict(),
            "validation": self.validation,
            "answer": _promise_out(self.answer),
        }
        if self.confusion is not None:
            row["confusion"] = self.confusion
        if self.per_party is not None:
            row["per_party"] = dict(self.per_party)
        return row | {"bytes_up": self.bytes_up, "bytes_down": self.bytes_down}

    @classmethod
    def from_json(cls, held: Any, origin: str = "the line") -> "MetricsRow":
        """The row that a line holds; anything else is refused."""
        values = read_fields(cls, held, origin)
        values["test"] = _evaluation(values["test"], f"{origin}, 'test'")
        values["answer"] = _promise(values.get("answer"), origin)
        if "confusion" in values:
            values["confusion"] = _matrix(values["confusion"])
        if "per_party" in values:
            values["per_party"] = {int(party): seen for party, seen in values["per_party"].items()}
        return cls(**values)


class _Plain:
    """Values that JSON holds under the names of their fields."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, held: Any, origin: str) -> Self:
        """What `to_json` gave."""
        return cls(**read_fields(cls, held, origin))


@dataclass(frozen=True)
class Best(_Plain):
    """The accuracy of one round that was the best, and on what."""

    accuracy: float | None
    round: int
    validation: float | None = None
    """Its accuracy on the server's validation samples, if these chose it."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        held = super().to_json()
        return {k: v for k, v in held.items() if k != "validation" or v is not None}


@dataclass(frozen=True)
class DomainFigures(_Plain):
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
class StartFigures(_Plain):
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
class Summary:
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
        for spec in fields(self):
            if spec.name == "open":
                values |= {name: getattr(self, name) for name in BESIDE_ACCURACY}
            if spec.name not in ("run", "digest"):
                values[spec.name] = _plain(getattr(self, spec.name))
        return values | ({"digest": self.digest} if self.digest else {})

    @classmethod
    def from_json(cls, held: Any, origin: str = "the summary") -> "Summary":
        """The summary that a file holds; what is none is refused."""
        values = read_fields(cls, held, origin)
        values["open"] = _open(values.get("open"), f"{origin}, 'open'")
        values["answer"] = _promise(values.get("answer"), origin)
        for name, kind in (("best", Best), ("best_on_validation", Best), ("start", StartFigures)):
            if name in values:
                values[name] = kind.from_json(values[name], f"{origin}, {name!r}")
        values["per_domain"] = {
            name: DomainFigures.from_json(part, f"{origin}, domain {name!r}")
            for name, part in values.get("per_domain", {}).items()
        }
        values["confusion"] = _matrix(values.get("confusion", ()))
        for name in ("notes", "dropped"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)


@dataclass(frozen=True)
class BesidePublished(_Plain):
    """A figure that a paper prints, ours, and the difference (ours minus theirs)."""

    value: float
    std: float | None
    table: str
    ours: float
    difference: float
    differs: tuple[str, ...] = ()
    """In what our cell is not the paper's, each as `what: ours for theirs`."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "differs": list(self.differs)}

    @classmethod
    def from_json(cls, held: Any, origin: str) -> "BesidePublished":
        """What `to_json` gave."""
        values = read_fields(cls, held, origin)
        return cls(**values | {"differs": tuple(values.get("differs", ()))})


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
        named = {
            "method": self.method,
            "data": self.data,
            "partition": self.partition,
            "seed": self.seed,
            "settings": dict(self.settings),
        }
        if self.summary is None:
            return {**named, "status": self.status, "error": self.error}
        told = {figure: beside.to_json() for figure, beside in self.published.items()}
        found = {**self.summary.to_json(), **named, "status": self.status}
        return found | ({"published": told} if told else {})

    @classmethod
    def from_json(cls, held: Any, origin: str = "the record") -> "Record":
        """The record that a file holds; what is none is refused."""
        values = read_fields(cls, held, origin)
        if held.get("status", "ok") != "ok":
            reason = str(held.get("error") or "no reason was recorded")
            return cls(**values | {"summary": None, "error": reason, "published": {}})
        published = {
            figure: BesidePublished.from_json(beside, f"{origin}, 'published'")
            for figure, beside in values.pop("published", {}).items()
        }
        return cls(**values | {"summary": Summary.from_json(held, origin), "published": published})


def _evaluation(held: Any, origin: str) -> Evaluation:
    if not isinstance(held, Mapping) or not fits(held.get("accuracy", ""), float | None):
        raise StoreError(f"{origin} has no accuracy; {REMEDY}")
    parts = {
        kind: {name: _evaluation(part, origin) for name, part in held.get(kind, {}).items()}
        for kind in ("per_part", "per_domain")
    }
    return Evaluation(
        samples=held.get("samples", 0),
        unknown_samples=held.get("unknown_samples", 0),
        accuracy=held["accuracy"],
        balanced_accuracy=held.get("balanced_accuracy"),
        f1=held.get("f1"),
        per_class=dict(held.get("per_class", {})),
        open=_open(held.get("open"), origin),
        per_part={int(party): part for party, part in parts["per_part"].items()},
        per_domain=parts["per_domain"],
        per_network=dict(held.get("per_network", {})),
    )


def _open(held: Any, origin: str) -> OpenFigures:
    return OpenFigures(**read_fields(OpenFigures, held or {}, origin))


def _promise(held: Any, origin: str) -> Promise | None:
    return None if held is None else Promise(**read_fields(Promise, held, f"{origin}, 'answer'"))


def _promise_out(promise: Promise | None) -> dict[str, Any] | None:
    return None if promise is None else promise.as_dict()


def _matrix(held: Any) -> Confusion:
    """Lines of counts; what is none is kept as it is, and refused by whoever wants to show it."""
    lines = isinstance(held, Sequence) and all(isinstance(line, Sequence) for line in held)
    return tuple(map(tuple, held)) if lines else held


def _plain(value: Any) -> Any:
    if isinstance(value, OpenFigures | Promise):
        return value.as_dict()
    if isinstance(value, Best | StartFigures | DomainFigures):
        return value.to_json()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
