"""Methods side by side: the tables of a grid's records."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Literal

from ostraka.display.tables import (
    COSTS,
    MISSING,
    Cell,
    Mean,
    Number,
    Table,
    human_bytes,
    human_seconds,
    mean_over,
)
from ostraka.errors import DataError
from ostraka.evaluation.evaluate import OPEN_FIGURES
from ostraka.runs.results import DomainFigures, Record, Summary
from ostraka.runs.rows import distinct

Figure = Literal["accuracy", "auroc", "open_balanced_accuracy", "known_refused", "unknown_refused"]
"""What a summary, and a domain of it, may have to compare."""

FIGURES: tuple[tuple[Figure, str], ...] = (
    ("accuracy", "Accuracy (%)"),
    ("auroc", "AUROC (%)"),
)
"""What there are tables of; that of AUROC only if a record has one."""


def comparison(records: Sequence[Record]) -> list[Table]:
    """A row for each method with its settings, a column for each data / partition: accuracy,
    and AUROC if there is any.

    Means run over the seeds that finished; a note names those that did not. CPU time and traffic
    are medians over the method's finished cells. Order: first come.
    """
    records = distinct(records)
    _refuse_repeats(records)
    return [
        _compared(records, figure, title) for figure, title in FIGURES if _shown(records, figure)
    ]


def per_domain(records: Sequence[Record]) -> list[Table]:
    """For data with domains: a row for each method,
    a column for each domain and their plain average.

    A table for each data / partition, and AUROC's if any record has it.
    """
    tables = []
    for place, mine in _by_place(distinct(records)).items():
        domains = list(dict.fromkeys(name for record in mine for name in _domains(record)))
        tables += [
            _by_domain(mine, domains, figure, f"{title} per domain: {place}")
            for figure, title in FIGURES
            if domains and _shown(mine, figure)
        ]
    return tables


HARDLY = "†"
"""Marks figures of runs that have learned next to nothing."""

OPEN_ANSWERS: tuple[Figure, ...] = ("open_balanced_accuracy", "known_refused", "unknown_refused")
"""Figures of the open answer that a comparison shows."""

OPEN_NOTE = (
    "known / unknown refused: samples of known / unknown classes that are called unknown; "
    "balanced: mean of the known samples answered with their class and the unknown ones refused"
)


def open_answers(records: Sequence[Record]) -> list[Table]:
    """For tests with unknown classes: a row for each method, a column for each open-answer figure.

    A table for each data / partition. Neither share of refused samples marks a best method: one
    that never answers unknown has the lowest share of both, one that always does the highest.
    """
    return [
        _opened(mine, f"Open answers (%): {place}")
        for place, mine in _by_place(distinct(records)).items()
        if any(_value(record, "unknown_refused") is not None for record in mine)
    ]


LAST_COLUMNS = ("last round", "best round", "mean of the last 20")
ROUNDS_NOTE = (
    "rounds to N %: the first evaluated round with that accuracy, the mean over the seeds that "
    "reach it; bytes are those of one round, of all parties that it drew"
)


def over_rounds(records: Sequence[Record]) -> list[Table]:
    """For methods of several rounds: a row for each, with its last and best round, the mean of the
    last 20, the rounds to some accuracies, and the bytes of a round.

    A table for each data / partition.
    """
    tables = []
    for place, mine in _by_place(distinct(records)).items():
        several = [r for r in mine if r.summary is not None and r.summary.rounds > 1]
        if several:
            tables.append(_rounds_table(several, f"Over rounds (%): {place}"))
    return tables


def _rounds_table(records: Sequence[Record], title: str) -> Table:
    groups = {
        method: [record.summary for record in mine if record.summary is not None]
        for method, mine in _by_method(records).items()
    }
    figures: tuple[Callable[[Summary], float | None], ...] = (
        lambda summary: summary.accuracy,
        lambda summary: summary.best.accuracy if summary.best else None,
        lambda summary: summary.mean_last_20,
    )
    columns = [_mark_best([_over(map(one, mine)) for mine in groups.values()]) for one in figures]
    levels = {level for mine in groups.values() for summary in mine for level in summary.reached}
    names = [*LAST_COLUMNS]
    for level in sorted(levels, key=int):
        names.append(f"rounds to {level} %")
        columns.append([_first_round(mine, level) for mine in groups.values()])
    for side in ("bytes_up", "bytes_down"):
        each = ([getattr(one, side) / one.rounds for one in mine] for mine in groups.values())
        columns.append([_median(sent, human_bytes) for sent in each])
    rows = tuple(zip(groups, *columns, strict=True))
    return Table(("method", *names, "up", "down"), rows, title=title, notes=(ROUNDS_NOTE,))


def _over(values: Iterable[float | None]) -> Cell:
    """The mean of those that there are."""
    defined = [value for value in values if value is not None]
    return mean_over(defined) if defined else MISSING


def _first_round(mine: Sequence[Summary], level: str) -> Cell:
    """The mean round, and how many of the seeds never got there."""
    firsts = [summary.reached[level] for summary in mine if level in summary.reached]
    if not firsts:
        return MISSING
    mean, missed = sum(firsts) / len(firsts), len(mine) - len(firsts)
    shown = f"{mean:.1f}".removesuffix(".0")
    return Number(mean, shown + (f" ({missed} never)" if missed else ""))


_COSTS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("cpu_seconds", human_seconds),
    ("bytes_up", human_bytes),
    ("bytes_down", human_bytes),
)
"""What of a summary stands in the columns COSTS, and how it is written."""


def _value(found: Record | DomainFigures, figure: Figure) -> float | None:
    """One figure; None where there is none, or the cell failed."""
    source = found.summary if isinstance(found, Record) else found
    value: float | None = None if source is None else getattr(source, figure)
    return value


def _domains(record: Record) -> dict[str, DomainFigures]:
    return {} if record.summary is None else dict(record.summary.per_domain)


def _shown(records: Sequence[Record], figure: Figure) -> bool:
    return figure == "accuracy" or any(_value(record, figure) is not None for record in records)


def _place(record: Record) -> str:
    return f"{record.data} / {record.partition}"


def _by_place(records: Iterable[Record]) -> dict[str, list[Record]]:
    return _grouped(records, _place)


def _by_method(records: Iterable[Record]) -> dict[str, list[Record]]:
    return _grouped(records, lambda record: record.method)


def _grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def _by_domain(
    records: Sequence[Record], domains: Sequence[str], figure: Figure, title: str
) -> Table:
    groups = _by_method(records)
    columns: list[list[Cell]] = []
    for domain in domains:
        parts = (
            [_value(_domains(one)[domain], figure) for one in mine if domain in _domains(one)]
            for mine in groups.values()
        )
        columns.append(_mark_best([_over(values) for values in parts]))
    notes: list[str] = []
    columns.append(_mark_best([_mean(mine, figure, notes) for mine in groups.values()]))
    notes += _said(records)
    rows = tuple(zip(groups, *columns, strict=True))
    return Table(("method", *domains, "average"), rows, title, tuple(notes))


def _opened(records: Sequence[Record], title: str) -> Table:
    groups = _by_method(records)
    notes: list[list[str]] = [[] for _ in OPEN_ANSWERS]  # a failure has one number in all columns
    columns = [
        [_mean(mine, figure, said) for mine in groups.values()]
        for figure, said in zip(OPEN_ANSWERS, notes, strict=True)
    ]
    rows = tuple(zip(groups, _mark_best(columns[0]), *columns[1:], strict=True))
    told = dict.fromkeys(note for said in notes for note in said)
    notes_below = (*told, *_said(records), OPEN_NOTE)
    names = (OPEN_FIGURES[figure].column for figure in OPEN_ANSWERS)
    return Table(("method", *names), rows, title, notes_below)


def _said(records: Sequence[Record]) -> list[str]:
    """What the data itself says must stand beside its figures, and which of them are averages."""
    several = {record.data: len(_domains(record)) for record in records if _domains(record)}
    averages = [f"{data}: plain average over {count} domains" for data, count in several.items()]
    notes = [note for record in records if record.summary for note in record.summary.notes]
    return list(dict.fromkeys([*averages, *notes, *_hardly_trained(records)]))


def _hardly_trained(records: Sequence[Record]) -> Iterator[str]:
    """A line for each method that has learned next to nothing in some runs: in how many, and the
    signs of the first."""
    for method, mine in _by_method(records).items():
        bad = [record for record in mine if record.summary and record.summary.hardly_trained]
        if bad and bad[0].summary:
            signs = "; ".join(bad[0].summary.hardly_trained)
            place = f"{_place(bad[0])}, seed {bad[0].seed}"
            runs = f"{len(bad)} of {len(mine)} runs"
            yield f"{HARDLY} {method}: hardly trained in {runs} ({place}): {signs}"


def _compared(records: Sequence[Record], figure: Figure, title: str) -> Table:
    methods, places = _by_method(records), _by_place(records)
    notes: list[str] = []
    columns = []
    for mine in places.values():
        held = _by_method(mine)
        columns.append(_mark_best([_mean(held.get(m, []), figure, notes) for m in methods]))
    done = [
        [r.summary for r in mine if r.summary and _failure(r, figure) is None]
        for mine in methods.values()
    ]
    for cost, show in _COSTS:
        columns.append([_median([getattr(one, cost) for one in mine], show) for mine in done])
    rounds = [sorted({one.rounds for one in mine}) for mine in done]
    several = len({count for mine in rounds for count in mine}) > 1
    if several:  # one exchange beside many is no like for like
        columns.insert(len(places), [_rounds(mine) for mine in rounds])
    notes += _said(records)
    notes.append("CPU time and bytes sent up and down: medians over the method's finished cells")
    shared = dict.fromkeys(r.method for r in records if r.summary and r.summary.reused)
    if shared:
        notes.append(
            f"trained once and shared: {', '.join(shared)} took members that another row or call "
            "had trained; the CPU time of each row counts all training that its result needs"
        )
    rows = tuple(zip(methods, *columns, strict=True))
    names = ("method", *places, *(("rounds",) if several else ()), *COSTS)
    return Table(names, rows, title, tuple(notes))


def _rounds(counts: Sequence[int]) -> Cell:
    return Number(counts[-1], ", ".join(map(str, counts))) if counts else MISSING


def _mark_best(column: list[Cell]) -> list[Cell]:
    """The same cells, the highest mean (all that tie) marked as best; unrounded means decide."""
    highest = max((c.mean for c in column if isinstance(c, Mean)), default=None)
    return [
        replace(c, best=True) if isinstance(c, Mean) and c.mean == highest else c for c in column
    ]


def _mean(records: Sequence[Record], figure: Figure, notes: list[str]) -> Cell:
    """One cell of the comparison; a failure adds a note and its number marks the cell."""
    failures = [_failure(record, figure) for record in records]
    reasons = [
        f"seed {record.seed}: {failure}"
        for record, failure in zip(records, failures, strict=True)
        if failure is not None
    ]
    mark = f" [{len(notes) + 1}]" if reasons else ""
    bad = any(record.summary and record.summary.hardly_trained for record in records)
    if reasons:
        place = f"{records[0].method} on {_place(records[0])}"
        notes.append(f"{mark.strip()} {place} failed: {'; '.join(reasons)}")
    pairs = zip(records, failures, strict=True)
    finished = [_value(record, figure) for record, failure in pairs if failure is None]
    values = [value for value in finished if value is not None]
    if values:
        return mean_over(values, mark + f" {HARDLY}" * bad)
    return f"failed{mark}" if reasons else MISSING


def _failure(record: Record, figure: Figure) -> str | None:
    """Why a cell has no result to show, or None."""
    if record.summary is None:
        return record.error
    value = _value(record, figure)
    return f"its {figure} is {value}" if value is not None and not math.isfinite(value) else None


def _median(values: Sequence[float], show: Callable[[float], str]) -> Cell:
    return Number(middle := median(values), show(middle)) if values else MISSING


def _refuse_repeats(records: Sequence[Record]) -> None:
    seen = set()
    for record in records:
        if record.cell in seen:
            raise DataError(
                f"two results for {record.method} / {_place(record)}, seed {record.seed}; a seed "
                "may count only once"
            )
        seen.add(record.cell)
