"""Figures that the papers print, beside which a comparison shows ours.

`published_results.csv` holds them as typed off the papers' tables; the first word of a row's `table` names the paper:

* fedov: Diao, Li & He, "Towards Addressing Label Skews in One-Shot Federated Learning", ICLR 2023
* fedpd: Yang, Zhu, Liu & Yuan, "FedPD: Federated Open Set Recognition with Parameter Disentanglement", ICCV 2023
* fedova: Zhu, Markos, Zhao, Zheng & Yu, "FedOVA: One-vs-All Training Method for Federated Learning with Non-IID Data",
  IJCNN 2021
* fedos: Mohamad, Neubert & Argayo, "FedOS: using open-set learning to stabilize training in federated learning", 2022
* dedes: Wang et al., "Data-Free Diversity-Based Ensemble Selection For One-Shot Federated Learning", supplementary
  material

An empty field of a row says that the paper leaves it open (rounds, net) or that it does not apply (known, size, std).
`known` is the number of known classes, or the one known class as `class 3`; `size` is how many members are selected.
"""

import csv
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from ostraka.data.partition import format_spec, parse
from ostraka.data.sources import canonical
from ostraka.errors import ConfigError, PartitionError
from ostraka.registry import NETS
from ostraka.report.tables import Cell, Mean, Number, Table
from ostraka.runs.config import Config, canonical_method

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
}
"""Our methods and presets that go by another name in the file. `fedov` itself is shown beside the paper's, whose ballot
is that of `fedov-sum`."""

METRICS = ("accuracy", "auroc")
"""What a comparison has tables of, in their order."""


class Published(NamedTuple):
    """A printed figure, its standard deviation if there is one, and the table it is from."""

    value: float
    std: float | None
    table: str


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
) -> Published | None:
    """The figure of one cell, in percent, or None; of several tables that have it, the paper's first."""
    name = canonical_method(method)
    wanted = {
        "dataset": canonical(data),
        "partition": _spec(partition),
        "method": PAPERS_NAME.get(name, name),
        "parties": str(parties),
        "metric": metric,
        "known": "" if known is None else str(known),
        "size": "" if size is None else str(size),
    }
    left_open = {"net": _net(net), "rounds": str(rounds)}
    for row in rows():
        fits = all(row[key] == value for key, value in wanted.items())
        if fits and all(row[key] in ("", value) for key, value in left_open.items()):
            return Published(float(row["value"]), float(row["std"]) if row["std"] else None, row["table"])
    return None


@lru_cache(maxsize=1)
def rows() -> tuple[dict[str, str], ...]:
    """All rows of the file."""
    text = files("ostraka.report").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def with_published(configs: Sequence[Config], records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records of a grid's cells; where the papers have a cell, with its figures under `published`.

    They are keyed by metric: value, std, table and the difference (ours minus theirs). A cell with an objective, or
    known classes, of the user's own choice has no counterpart.
    """
    return [_annotated(config, dict(record)) for config, record in zip(configs, records, strict=True)]


def beside(tables: Sequence[Table], records: Sequence[Mapping[str, Any]]) -> Table | None:
    """Our means and the published figures, a row for each cell that has one; None if no cell has."""
    found: dict[tuple[str, str, str], Published] = {}
    for record in records:
        for metric, told in record.get("published", {}).items():
            place = f"{record['data']} / {record['partition']}"
            found[str(record["method"]), place, metric] = Published(told["value"], told["std"], told["table"])
    lines = []
    for table, metric in zip(tables, METRICS, strict=False):
        for row in table.rows:
            for column, cell in zip(table.columns, row, strict=True):
                theirs = found.get((str(row[0]), column, metric))
                if theirs is not None and isinstance(cell, Mean):
                    lines.append(_line(str(row[0]), column, metric, cell, theirs))
    columns = ("method", "data / partition", "figure", "ours", "published", "difference", "table")
    return Table(columns, lines, title="Beside the published figures (%)") if lines else None


def _line(method: str, place: str, metric: str, ours: Mean, theirs: Published) -> tuple[Cell, ...]:
    spread = "" if theirs.std is None else f" ± {theirs.std:.1f}"
    shown = Number(theirs.value, f"{theirs.value:.1f}{spread}")
    gap = ours.mean - theirs.value
    plain = Mean(ours.mean, ours.std, ours.n)
    return method, place, metric, plain, shown, Number(gap, f"{gap:+.1f}"), theirs.table


def _annotated(config: Config, record: dict[str, Any]) -> dict[str, Any]:
    if record.get("status") != "ok" or config.known_classes or "objective" in config.set:
        return record
    told = {}
    for metric in METRICS:
        ours = record.get(metric)
        theirs = published(
            config.data, config.partition, config.net.name, config.method, record["parties"], record["rounds"], metric,
            config.known,
        )  # fmt: skip
        if theirs is not None and ours is not None:
            told[metric] = {**theirs._asdict(), "difference": ours - theirs.value}
    return record | ({"published": told} if told else {})


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
