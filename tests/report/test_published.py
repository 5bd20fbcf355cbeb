"""The papers' figures: every row resolves or is listed as pending, lookups by hand, and the table beside ours."""

import csv
import io
from typing import Any

import pytest

from ostraka.data.partition import format_spec, parse
from ostraka.data.sources import canonical
from ostraka.errors import ConfigError
from ostraka.registry import METHODS, NETS, PRESETS
from ostraka.report.published import PAPERS_NAME, Published, beside, published, rows, with_published
from ostraka.report.tables import comparison
from ostraka.runs.config import make

PAPERS = {"fedov", "fedpd", "fedova", "fedos", "dedes"}

PENDING_DATA = {
    *(f"hdr-fl/{part}" for part in ("average", "mnist", "mnist-m", "svhn", "synthdigits", "usps")),  # FedPD's domains
    "kws",  # FedOVA's spoken words
}
PENDING_NETS = {"resnet50", "vgg11", "wideresnet", "densenet", "dla", "digits", "fedova-cnn", "kws-cnn"}
PENDING_METHODS = {
    "fedova", "fedos", "fedma",
    "fedpd", "fedpd-no-divide", "fedpd-no-conquer", "fedpd-split-none", "fedpd-split-gradient",
    "dedes", "as", "cv", "ds", "rs", "ld", "average", "average-by-size",
    "softmax", "openmax", "rpl", "arpl", "proser", "dias", "ssb",  # objectives under averaging, and centralised
    "dd-paste", "dd-swap",  # the two halves of the operation `cut`
}  # fmt: skip
NO_PARTITION = {"centralised", ""}
"""Pooled data, and run times that are not of one partition."""


def is_method(name: str) -> bool:
    """A method or preset, of ours or under the name that the papers' table gives it; `centralised lr=0.1` is one."""
    name = {theirs: ours for ours, theirs in PAPERS_NAME.items()}.get(name, name).split(" ")[0]
    return name in METHODS.names() or name in PRESETS.names()


def is_net(name: str) -> bool:
    try:
        return NETS.canonical(name) == name
    except ConfigError:
        return False


def column(name: str) -> set[str]:
    return {row[name] for row in rows()}


def test_every_method_resolves_or_is_pending() -> None:
    assert {name for name in column("method") if not is_method(name)} == PENDING_METHODS


def test_every_net_resolves_or_is_pending() -> None:
    assert {name for name in column("net") if name and not is_net(name)} == PENDING_NETS


def test_every_data_set_has_its_usual_name_or_is_pending() -> None:
    assert {name for name in column("dataset") if canonical(name) != name} == set()
    assert column("dataset") >= PENDING_DATA
    usual = {"mnist", "fashion-mnist", "cifar10", "cifar100", "svhn"}
    usual |= {"emnist-digits", "emnist-letters", "emnist-balanced"}
    assert column("dataset") - PENDING_DATA == usual


def test_every_partition_resolves() -> None:
    assert {spec for spec in column("partition") - NO_PARTITION if format_spec(parse(spec)) != spec} == set()


def test_the_file_is_whole() -> None:
    assert len(rows()) == 1582
    assert {row["table"].split("-")[0] for row in rows()} == PAPERS
    for row in rows():
        assert 0 <= float(row["value"]) <= 1024
        assert row["std"] == "" or float(row["std"]) >= 0
        assert int(row["parties"]) >= 1


def test_our_other_names_exist() -> None:
    assert {ours for ours in PAPERS_NAME if ours not in PRESETS.names()} == set()
    assert set(PAPERS_NAME.values()) <= column("method")


CELL = ("mnist", "labels:2", "simple-cnn", "fedavg", 10, 1)


def test_a_figure_of_table_1() -> None:
    """FedOV, Table 1, CIFAR-10 with #C=2: FedOV 42.0 ± 2.4, and FedAvg 11.1 ± 1.9."""
    assert published("cifar10", "labels:2", "simple-cnn", "fedov", 10, 1) == (42.0, 2.4, "fedov-1")
    assert published("cifar10", "labels:2", "simple-cnn", "fedavg", 10, 1) == Published(11.1, 1.9, "fedov-1")


@pytest.mark.parametrize(
    "other",
    [
        {"data": "cifar-10"},
        {"partition": "#C=2"},
        {"partition": "labels:2,first=cycle"},
        {"net": "auto"},
        {"net": "simple_cnn"},
        {"method": "fedov-sum"},
        {"method": "fedov-paper"},
    ],
)
def test_other_spellings_find_the_same(other: dict[str, Any]) -> None:
    cell = {
        "data": "cifar10", "partition": "labels:2", "net": "simple-cnn", "method": "fedov", "parties": 10, "rounds": 1,
    }  # fmt: skip
    assert published(**{**cell, **other}) == published(**cell) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, "fashion-4k"), (0, "no such data"), (1, "labels:7"), (1, "nonsense"), (2, "mlp"), (3, "centralised"), (4, 11),
     (5, 2)],
)  # fmt: skip
def test_what_no_paper_has_is_none(place: int, value: Any) -> None:
    assert published(*CELL) is not None
    changed = list(CELL)
    changed[place] = value
    assert published(*changed) is None  # type: ignore[arg-type]


def test_known_classes_metrics_and_sizes_are_told_apart() -> None:
    assert published(*CELL, metric="auroc") is None
    assert published(*CELL, known=4) is None
    assert published(*CELL, size=5) is None
    alike = ("emnist-digits", "dirichlet:0.4", "densenet", "dedes", 10, 1)
    assert published(*alike, size=5) is not None  # that table leaves the net open
    assert published(*alike) is None


def test_rounds_that_the_paper_leaves_open_fit_any() -> None:
    found = published("fashion-mnist", "shards:2", "fedova-cnn", "data-sharing-5", 100, 77)
    assert found is not None
    assert found.table == "fedova-2"


def grid_cell(method: str, seed: int, accuracy: float | None, **more: Any) -> tuple[Any, dict[str, Any]]:
    place = {"method": method, "data": "cifar10", "partition": "labels:2", "seed": seed}
    costs = {"seconds": 1.0, "cpu_seconds": 1.0, "bytes_up": 1, "bytes_down": 1}
    record = {**place, **costs, "accuracy": accuracy, "auroc": None, "parties": 10, "rounds": 1, "status": "ok"}
    return make(place | {k: v for k, v in more.items() if k in ("set", "known_classes")}), record | {
        k: v for k, v in more.items() if k in ("status", "error", "rounds")
    }


def test_a_comparison_beside_the_papers() -> None:
    """FedAvg 13.1 and 15.1 with two seeds: mean 14.1, published 11.1 ± 1.9, difference +3.0."""
    cells = [grid_cell("fedavg", 0, 13.1), grid_cell("fedavg", 1, 15.1), grid_cell("fedvc", 0, 50.0)]
    records = with_published(*zip(*cells, strict=True))
    told = records[0]["published"]["accuracy"]
    assert (told["value"], told["std"], told["table"]) == (11.1, 1.9, "fedov-1")
    assert told["difference"] == pytest.approx(2.0)
    assert "published" not in records[2]
    table = beside(comparison(records), records)
    assert table is not None
    assert "| fedavg | cifar10 / labels:2 | accuracy | 14.10 ± 1.41 | 11.1 ± 1.9 | +3.0 | fedov-1 |" in table.markdown()
    [line] = csv.DictReader(io.StringIO(table.csv()))
    assert float(line["published"]) == 11.1
    assert float(line["difference"]) == pytest.approx(3.0)


@pytest.mark.parametrize(
    "more",
    [
        {"status": "failed", "error": "no"},
        {"rounds": 2},
        {"set": {"objective": "proser"}},
        {"known_classes": [1, 2]},
    ],
)
def test_what_is_not_the_same_experiment_stays_alone(more: dict[str, Any]) -> None:
    records = with_published(*zip(grid_cell("fedavg", 0, 13.1, **more), strict=True))
    assert "published" not in records[0]
    assert beside(comparison(records), records) is None
