"""Figures that the papers print, beside which a comparison shows ours.

`published_results.csv` holds them as typed off the papers' tables; the first word of a row's
`table` names the paper:

* fedov: Diao, Li & He, "Towards Addressing Label Skews in One-Shot Federated Learning", ICLR 2023
* fedpd: Yang, Zhu, Liu & Yuan, "FedPD: Federated Open Set Recognition with Parameter
  Disentanglement", ICCV 2023
* fedova: Zhu, Markos, Zhao, Zheng & Yu, "FedOVA: One-vs-All Training Method for Federated Learning
  with Non-IID Data", IJCNN 2021
* fedos: Mohamad, Neubert & Argayo, "FedOS: using open-set learning to stabilize training in
  federated learning", 2022
* dedes: Wang et al., "Data-Free Diversity-Based Ensemble Selection For One-Shot Federated
  Learning", supplementary material

An empty field of a row says that the paper leaves it open (rounds, net) or that it does not apply
(known, size, std). `known` is the number of known classes, or the one known class as `class 3`;
`size` is how many members are selected.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from math import log
from statistics import fmean
from typing import Any, NamedTuple

from ostraka.data.partitions.spec import format_spec, parse
from ostraka.data.sources.domains import LOOK_ALIKES, NAMED
from ostraka.data.sources.find import canonical
from ostraka.display.comparison import FIGURES
from ostraka.display.differing import differences
from ostraka.display.tables import MISSING, Cell, Number, Table, mean_over
from ostraka.errors import ConfigError, PartitionError
from ostraka.registry import BALLOTS, NETS, OBJECTIVES, PRESETS, SELECTORS
from ostraka.runs.config import Config, build_method, canonical_method
from ostraka.runs.results import BesidePublished, Record, Summary
from ostraka.runs.rows import distinct

FILE = "published_results.csv"

AUTO = "simple-cnn"
"""What the net `auto` is for all data sets of the papers: images of at least 16x16."""

PAPERS_NAME = {
    "fedov-sum": "fedov",
    "fedov-paper": "fedov",
    "closed-voting-paper": "closed-voting",
    "dd-crop": "dd-resized-crop",
    "dd-cutpaste": "open-proser-cutpaste",
    "dd-mixture": "open-proser-mixture",
    "fedavg-proser": "proser",
    "fedpd-matched": "fedma",
    "fedpd-gradient": "fedpd-split-gradient",
}
"""Our methods and presets that go by another name in the file. `fedov` itself is shown beside the
paper's, whose ballot is that of `fedov-sum`.
"""

METRICS = tuple(figure for figure, _ in FIGURES)
"""What a comparison has tables of, in their order."""

HDR_FL, HDR_FL_KNOWN = "hdr-fl", 6
"""FedPD's benchmark; the file leaves its number of known classes, the same in all rows, out."""

POOLED = "centralised"
"""The partition of rows on pooled data."""

SOFTMAX = "softmax"
"""FedPD's name for averaged networks trained with cross-entropy."""

UNKNOWN_COUNTS = ("fedov-20",)
"""Tables whose accuracy counts unknown as one more class."""


SCALINGS = {"raw": "raw", "off": "scaled", "on": "standardized"}
"""What FedOS's Table 1 calls the ways in which images are shown to a network."""

LAST_ROUNDS = "fedova"
"""The paper whose accuracy is the mean of the last 20 rounds."""


TOP_K = "accuracy-best-top-k"
"""FedOV's accuracy of the ballot top-k with the k that is best on the test samples."""

APART = {"parties": "parties", "rounds": "rounds", "net": "network", "size": "voting members"}
"""Columns in which a cell may differ from a row that stands beside it, and their words."""


class Published(NamedTuple):
    """A printed figure, its standard deviation if there is one, the table it is from, and in what
    our cell is another one.
    """

    value: float
    std: float | None
    table: str
    differs: tuple[str, ...] = ()


def published(
    data: str,
    partition: str,
    net: str,
    method: str,
    parties: int,
    rounds: int,
    metric: str = "accuracy",
    known: int | str | None = None,
    size: int | None = None,
    exact: Sequence[str] = (),
    apart: Sequence[str] = tuple(APART),
) -> Published | None:
    """The nearest figure, in percent: of the same data, partition, method, metric and known
    classes, which differs in as few of `apart` as possible; None if there is none.

    `exact` names those that must be the same. Of several tables that have it, the paper's first.
    """
    name = canonical_method(method)
    key = (canonical(data), _spec(partition), PAPERS_NAME.get(name, name), metric)
    own = {"parties": str(parties), "rounds": str(rounds), "net": _net(net)}
    own |= {} if size is None else {"size": str(size)}
    own = {name: value for name, value in own.items() if name in apart}
    rows_of_cell = _index().get((*key, "" if known is None else str(known)), ())
    found = [(_apart(own, row), row) for row in rows_of_cell]
    found = [one for one in found if not set(exact) & set(one[0])]
    if not found:
        return None
    far, row = min(found, key=lambda one: (len(one[0]), sum(one[0].values())))
    std = float(row["std"]) if row["std"] else None
    differs = tuple(f"{APART[name]}: {own[name]} for {row[name]}" for name in far)
    return Published(float(row["value"]), std, row["table"], differs)


def _apart(own: Mapping[str, str], row: Mapping[str, str]) -> dict[str, float]:
    """The columns in which a row is another cell than ours, and how far: by numbers' ratio."""
    return {
        name: abs(log(int(value) / int(row[name]))) if value.isdecimal() else 0.0
        for name, value in own.items()
        if row[name] not in ("", value)
    }


@lru_cache(maxsize=1)
def _index() -> dict[tuple[str, ...], list[dict[str, str]]]:
    """The rows by what must be the same."""
    out: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows():
        key = tuple(row[name] for name in ("dataset", "partition", "method", "metric", "known"))
        out.setdefault(key, []).append(row)
    return out


@lru_cache(maxsize=1)
def rows() -> tuple[dict[str, str], ...]:
    """All rows of the file."""
    text = files("ostraka.display").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def with_published(configs: Sequence[Config | None], records: Sequence[Record]) -> list[Record]:
    """The records of a grid's cells, each with its configuration (None for one that failed).

    Where the papers have a cell, with its figures under `published`. They are keyed by figure:
    value, std, table, ours, the difference (ours minus theirs), and in what the cell is not the
    paper's. A choice of known classes that no paper has made has no counterpart, nor has an
    objective of the user's own choice, except under FedAvg and centralised training, which papers
    compare by objective. HDR-FL with fewer than its five domains stands beside the paper's figures
    on the same domains.
    """
    seeds = Counter((r.row, r.data, r.partition) for r in records if r.summary is not None)
    return [
        _annotated(config, record, record.summary, seeds[record.row, record.data, record.partition])
        if config is not None and record.summary is not None
        else record
        for config, record in zip(configs, records, strict=True)
    ]


def beside(records: Sequence[Record]) -> Table | None:
    """Our means over the seeds and the published figures,
    a row for each cell that has one; None if no cell has.
    """
    found: dict[str, dict[tuple[str, str], list[BesidePublished]]] = {}
    for record in distinct(records):
        for figure, told in record.published.items():
            place = record.method, f"{record.data} / {record.partition}"
            found.setdefault(figure, {}).setdefault(place, []).append(told)
    numbers: dict[str, int] = {}
    lines = [
        _line(*place, figure, told, numbers)
        for figure, cells in found.items()
        for place, told in cells.items()
    ]
    if not lines:
        return None
    compared = [record.summary for record in records if record.published and record.summary]
    notes = [DIFFERS] if numbers else []
    notes += [f"[{number}] {text}" for text, number in numbers.items()]
    notes += dict.fromkeys(note for summary in compared for note in summary.notes)
    return Table(COLUMNS, lines, "Beside the published figures (%)", tuple(notes), keys=3)


COLUMNS = (
    "method", "data / partition", "figure", "ours", "published", "difference", "differs", "table"
)  # fmt: skip
DIFFERS = "differs: what is not as in the paper, ours for theirs"


def _line(
    method: str, place: str, figure: str, told: Sequence[BesidePublished], numbers: dict[str, int]
) -> tuple[Cell, ...]:
    """A row; what differs is a number that stands for a note, and text in CSV and JSON."""
    theirs, ours = told[0], mean_over([one.ours for one in told])
    spread = "" if theirs.std is None else f" ± {theirs.std:.1f}"
    shown = Number(theirs.value, f"{theirs.value:.1f}{spread}")
    gap = ours.mean - theirs.value
    text = "; ".join(dict.fromkeys(words for one in told for words in one.differs))
    differs: Cell = MISSING
    if text:
        differs = Number(text, f"[{numbers.setdefault(text, len(numbers) + 1)}]")
    return (
        method, place, figure, ours, shown, Number(gap, f"{gap:+.1f}"), differs, theirs.table
    )  # fmt: skip


def _annotated(config: Config, record: Record, ours: Summary, seeds: int) -> Record:
    if config.known_classes and _known(config) is None:
        return record
    method = build_method(config)
    told = {}
    for figure, value, theirs in _pairs(config, method, ours):
        if value is not None:
            differs = differences(config, method, theirs.table.partition(",")[0], seeds)
            told[figure] = BesidePublished(
                *theirs[:3],
                ours=value,
                difference=value - theirs.value,
                differs=(*theirs.differs, *differs),
            )
    return replace(record, published=told)


def _pairs(
    config: Config, method: Any, ours: Summary
) -> Iterator[tuple[str, float | None, Published]]:
    """(figure, ours, theirs) of everything that the papers print of this cell."""
    if canonical(config.data) == HDR_FL:
        yield from _hdr_fl(config, method, ours)
        return
    ballot = getattr(method, "ballot", None)
    if ballot is not None and BALLOTS.name_of(type(ballot)) == "top-k":
        theirs = _lookup(config, method, ours, config.data, TOP_K, None)
        if theirs is not None:
            k = f"k: {ballot.k} for the best on the test samples"
            yield "accuracy, top-k", ours.accuracy, theirs._replace(differs=(*theirs.differs, k))
            return
    for metric in METRICS:
        theirs = _lookup(config, method, ours, config.data, metric, _known(config))
        if theirs is not None and theirs.table in UNKNOWN_COUNTS:
            yield "accuracy, unknown as a class", ours.open.open_accuracy, theirs
        elif theirs is not None and theirs.table.startswith(f"{LAST_ROUNDS}-"):
            yield "accuracy, mean of the last 20 rounds", ours.mean_last_20, theirs
        elif theirs is not None:
            yield metric, getattr(ours, metric), theirs


def _hdr_fl(
    config: Config, method: Any, ours: Summary
) -> Iterator[tuple[str, float | None, Published]]:
    """Figures on each domain, and the average: of domains that are not the paper's five,
    over the paper's same ones.
    """
    if _known(config) != HDR_FL_KNOWN:
        return
    originals = {alike: original for original, alike in LOOK_ALIKES.items()}
    per_domain = ours.per_domain
    for metric in METRICS:
        parts = {}
        for name, figures in per_domain.items():
            part = f"{HDR_FL}/{originals.get(name, name)}"
            theirs = _lookup(config, method, ours, part, metric, None)
            if theirs is not None:
                alike = (f"{name} for {originals[name]}",) if name in originals else ()
                parts[name] = theirs._replace(differs=(*theirs.differs, *alike))
                yield f"{metric}, {name}", getattr(figures, metric), parts[name]
        whole = _lookup(config, method, ours, f"{HDR_FL}/average", metric, None)
        if set(per_domain) != set(NAMED[HDR_FL]):
            whole = None
            if parts and len(parts) == len(per_domain):
                all_of_them = list(parts.values())
                table = f"{all_of_them[0].table}, mean of {len(parts)} domains"
                differs = dict.fromkeys(words for part in all_of_them for words in part.differs)
                mean = fmean(part.value for part in all_of_them)
                whole = Published(mean, None, table, tuple(differs))
        if whole is not None:
            yield metric, getattr(ours, metric), whole


def _lookup(
    config: Config, method: Any, ours: Summary, data: str, metric: str, known: int | str | None
) -> Published | None:
    """What papers print of the cell, the nearest; pooled data has no parties or rounds to differ
    in.
    """
    size = len(ours.selection["chosen"]) if ours.selection else None
    apart = ("net",) if method.pooled else tuple(APART)
    near = []
    for name in _names(config, method):
        own = not method.pooled or name == POOLED  # an objective stands there for an average
        for partition in [config.partition] * own + [POOLED] * method.pooled:
            place = data, partition, config.net.name, name, ours.parties, ours.rounds
            near.append(published(*place, metric, known, size, apart=apart))
    found = [theirs for theirs in near if theirs is not None]
    return min(found, key=lambda theirs: len(theirs.differs), default=None)


def _names(config: Config, method: Any) -> list[str]:
    """What the papers may call the method: its own name, that of its selector,
    or the objective averaged or trained on pooled data.
    """
    own = canonical_method(config.method)
    usual = build_method(Config(method=own))
    objective = getattr(method, "objective", None)
    chosen = objective != getattr(usual, "objective", None)
    base = PRESETS.get(own).method if own in PRESETS.names() else own
    if base not in ("fedavg", "centralised"):
        if type(objective) is not type(getattr(usual, "objective", None)):
            return []
        selector = SELECTORS.name_of(type(method.select)) if hasattr(method, "select") else "all"
        if own in ("closed-voting", "dedes"):
            return [own, "as"] if selector == "all" else [selector]
        return [own] if selector == "all" else []
    names = [
        name for name, objective in OBJECTIVES.working().items() if method.objective == objective()
    ]
    ours = [own]
    if method.pooled:
        scaling = SCALINGS.get(config.standardise)
        ours += [f"{own} scaling={scaling} lr={method.local.lr:g}"] if scaling else []
        names += [name for name in PRESETS.working() if method.objective == _ablated(name)]
    return [
        *([] if chosen else ours),
        *(SOFTMAX if name == "cross-entropy" else name for name in names),
    ]


def _ablated(preset: str) -> Any:
    """The objective of one of FedOV's ablations as a plain objective,
    without its method's recipe; None for others.
    """
    changes = PRESETS.get(preset).settings.get("objective", {})
    if PRESETS.get(preset).method != "fedov" or not isinstance(changes, Mapping):
        return None
    return build_method(
        Config(method="centralised", set={"objective": {"name": "fedov", **changes}})
    ).objective


def _known(config: Config) -> int | str | None:
    """The known classes as the file writes them; None where all are known,
    or for a choice that no paper has made.
    """
    listed = config.known_classes or range(config.known or 0)
    if len(listed) == 1:  # a plain 1 in the file is a mean over runs with each class alone
        return f"class {listed[0]}"
    return len(listed) or None if tuple(listed) == tuple(range(len(listed))) else None


def _spec(partition: str) -> str:
    """A partition as it is written in the file; what is none of our rules stays as it is."""
    try:
        return format_spec(parse(partition))
    except PartitionError:
        return partition


def _net(name: str) -> str:
    try:
        return AUTO if name == "auto" else NETS.canonical(name)
    except ConfigError:
        return name
