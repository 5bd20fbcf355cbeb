"""The papers' figures: every row resolves or is listed as pending, lookups by hand,
and the table beside ours.
"""

import csv
import io
from typing import Any

import pytest

from ostraka.data.partitions.spec import format_spec, parse
from ostraka.data.sources.domains import NAMED
from ostraka.data.sources.find import canonical
from ostraka.display.formats import latex
from ostraka.display.published import (
    PAPERS_NAME,
    SOFTMAX,
    Published,
    beside,
    published,
    rows,
    with_published,
)
from ostraka.errors import ConfigError
from ostraka.registry import METHODS, NETS, OBJECTIVES, PRESETS
from ostraka.runs.config import Config, make
from ostraka.runs.results import Record

PAPERS = {"fedov", "fedpd", "fedova", "fedos", "dedes"}

PENDING_DATA = {"kws"}  # FedOVA's spoken words
DOMAINS = {f"hdr-fl/{part}" for part in (*NAMED["hdr-fl"], "average")}
PENDING_NETS: set[str] = set()
PENDING_METHODS = {
    "fedpd-split-none",  # repeats the figures of fedma
    "as", "cv", "ds", "rs", "ld",  # selectors: settings of a vote
    "dd-paste", "dd-swap",  # the two halves of the operation `cut`
}  # fmt: skip
NO_PARTITION = {"centralised", ""}
"""Pooled data, and run times that are not of one partition."""


def is_method(name: str) -> bool:
    """A method, preset or objective, of ours or under the name that the papers' table gives it.

    `centralised lr=0.1` is one.
    """
    name = {theirs: ours for ours, theirs in PAPERS_NAME.items()}.get(name, name).split(" ")[0]
    return name in {*METHODS.names(), *PRESETS.names(), *OBJECTIVES.names(), SOFTMAX}


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
    assert column("dataset") - PENDING_DATA == usual | DOMAINS


def test_every_partition_resolves() -> None:
    assert {
        spec for spec in column("partition") - NO_PARTITION if format_spec(parse(spec)) != spec
    } == set()


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
    found = published("cifar10", "labels:2", "simple-cnn", "fedov", 10, 1)
    assert found == (42.0, 2.4, "fedov-1", ())
    assert published("cifar10", "labels:2", "simple-cnn", "fedavg", 10, 1) == Published(
        11.1, 1.9, "fedov-1"
    )


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
        "data": "cifar10", "partition": "labels:2", "net": "simple-cnn", "method": "fedov",
        "parties": 10, "rounds": 1,
    }  # fmt: skip
    assert published(**{**cell, **other}) == published(**cell) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, "fashion-4k"), (0, "no such data"), (1, "labels:7"), (1, "nonsense"), (3, "centralised")],
)
def test_what_no_paper_has_is_none(place: int, value: Any) -> None:
    assert published(*CELL) is not None
    changed = list(CELL)
    changed[place] = value
    assert published(*changed) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "value", "differs"),
    [
        (2, "mlp", "network: mlp for simple-cnn"),
        (4, 11, "parties: 11 for 10"),
        (5, 2, "rounds: 2 for 1"),
    ],
)
def test_what_may_differ_is_said(place: int, value: Any, differs: str) -> None:
    changed = list(CELL)
    changed[place] = value
    found = published(*changed)  # type: ignore[arg-type]
    assert found == published(*CELL)._replace(differs=(differs,))  # type: ignore[arg-type, union-attr]
    exact = ("net", "parties", "rounds")
    assert published(*changed, exact=exact) is None  # type: ignore[arg-type]


def test_the_nearest_row_is_taken() -> None:
    """FedOV, Tables 1 and 4, labels:2: 42.0 with 10 parties, 38.6 with 20, 33.1 with 40 and 26.4
    with 80; 57 is nearer to 40 (1.43 times) than to 80 (1.40 times less) by ratio: 80 is.
    """
    cell = ("cifar10", "labels:2", "simple-cnn", "fedov")
    for parties, nearest in ((11, 10), (14, 10), (15, 20), (56, 40), (57, 80), (20, 20)):
        found = published(*cell, parties, 1)
        assert found is not None
        expected = published(*cell, nearest, 1, exact=("parties",))
        assert expected is not None
        assert (found.value, found.table) == (expected.value, expected.table)
        said = () if parties == nearest else (f"parties: {parties} for {nearest}",)
        assert found.differs == said


def test_known_classes_and_metrics_are_told_apart() -> None:
    assert published(*CELL, metric="auroc") is None
    assert published(*CELL, known=4) is None


def test_the_number_of_voting_members_is_compared() -> None:
    """DeDES, Table S2 (10 parties, the net left open, 5 of them chosen): 98.34."""
    alike = ("emnist-digits", "dirichlet:0.4", "densenet", "dedes", 10, 1)
    found = published(*alike, size=5)
    assert found == (98.34, None, "dedes-s2", ())
    other = published(*alike, size=3)
    assert other is not None
    assert other.differs == ("voting members: 3 for 5",)


def test_rounds_that_the_paper_leaves_open_fit_any() -> None:
    found = published("fashion-mnist", "shards:2", "fedova-cnn", "data-sharing-5", 100, 77)
    assert found is not None
    assert found.table == "fedova-2"


def grid_cell(method: str, seed: int, accuracy: float | None, **more: Any) -> tuple[Config, Record]:
    place = {"method": method, "data": "cifar10", "partition": "labels:2", "seed": seed}
    found = {"accuracy": accuracy, "parties": 10, "rounds": 1, "status": "ok"}
    config = make(place | {k: v for k, v in more.items() if k in ("set", "known_classes")})
    told = {k: v for k, v in more.items() if k in ("status", "error", "rounds")}
    return config, Record.from_json({**place, **found, **told})


def test_a_comparison_beside_the_papers() -> None:
    """FedAvg 13.1 and 15.1 with two seeds: mean 14.1, published 11.1 ± 1.9, difference +3.0."""
    cells = [
        grid_cell("fedavg", 0, 13.1),
        grid_cell("fedavg", 1, 15.1),
        grid_cell("fedvc", 0, 50.0),
    ]
    records = with_published(*zip(*cells, strict=True))
    told = records[0].published["accuracy"]
    assert (told.value, told.std, told.table) == (11.1, 1.9, "fedov-1")
    assert told.difference == pytest.approx(2.0)
    assert not records[2].published
    table = beside(records)
    assert table is not None
    row = "| fedavg | cifar10 / labels:2 | accuracy | 14.10 ± 1.41 | 11.1 ± 1.9 | +3.0 | [1] |"
    assert f"{row} fedov-1 |" in table.markdown()
    differs = (
        "epochs: 10 for 200; batch: 32 for 64; learning rate: 0.02 for 0.001; seeds: 2 for 3; "
        "minimum of steps: 20 for none; minimum of batches: 4 for 1"
    )
    assert f"- [1] {differs}" in table.markdown()
    assert f"[1] {differs}" in latex([table])
    assert table.records()[0]["differs"] == differs
    assert told.differs == tuple(differs.split("; "))
    [line] = csv.DictReader(io.StringIO(table.csv()))
    assert float(line["published"]) == 11.1
    assert float(line["difference"]) == pytest.approx(3.0)
    assert line["differs"] == differs


@pytest.mark.parametrize(
    "more",
    [
        {"status": "failed", "error": "no"},
        {"set": {"objective": "proser"}},
        {"known_classes": [1, 2]},
    ],
)
def test_what_is_not_the_same_experiment_stays_alone(more: dict[str, Any]) -> None:
    records = with_published(*zip(grid_cell("fedavg", 0, 13.1, **more), strict=True))
    assert not records[0].published
    assert beside(records) is None


def cell_of(method: str, figures: dict[str, Any], **values: Any) -> Record:
    """The annotated record of one finished cell."""
    config = make({"method": method, **values})
    record = {
        "method": method,
        "data": config.data,
        "partition": config.partition,
        "seed": 0,
        "parties": 5,
        "rounds": 100,
    }
    [told] = with_published([config], [Record.from_json(record | figures)])
    return told


def on_domains(*names: str) -> dict[str, Any]:
    """Accuracy 80 and AUROC 60 on every domain."""
    return {
        "accuracy": 80.0,
        "open": {"auroc": 60.0},
        "per_domain": {n: {"accuracy": 80.0, "auroc": 60.0} for n in names},
    }


HDR = {"data": "hdr-fl", "partition": "domain", "known": 6, "net": {"name": "digits"}}


def test_all_five_domains_of_hdr_fl() -> None:
    """FedPD, Table 1: PROSER 98.04 / 83.63 on MNIST, 86.92 / 71.76 on SynthDigits,
    88.58 / 76.20 on average.
    """
    told = cell_of(
        "fedavg", on_domains(*NAMED["hdr-fl"]), **HDR, set={"objective": "proser"}
    ).published
    assert len(told) == 12
    assert (told["accuracy"].value, told["auroc"].value) == (88.58, 76.2)
    assert told["accuracy"].table == "fedpd-1"
    assert told["accuracy, mnist"].value == 98.04
    assert told["accuracy, mnist"].difference == pytest.approx(80 - 98.04)
    assert told["auroc, synthdigits"].value == 71.76


def test_fewer_domains_stand_beside_the_same_ones_of_the_paper() -> None:
    """FedAvg trained with cross-entropy is the paper's SoftMax: 97.97 on USPS, 83.99 on
    SynthDigits, mean 90.98.
    """
    record = cell_of(
        "fedavg",
        on_domains("usps", "synthdigits-like") | {"parties": 2, "notes": ["a stand-in"]},
        **HDR,
    )
    told = record.published
    assert told["accuracy"].value == pytest.approx((97.97 + 83.99) / 2)
    assert told["accuracy"].table == "fedpd-1, mean of 2 domains"
    assert told["accuracy, synthdigits-like"].value == 83.99
    table = beside([record])
    assert table is not None
    assert table.notes[-1] == "a stand-in"
    assert told["accuracy, usps"].differs[0] == "parties: 2 for 5"
    assert told["accuracy"].differs[:2] == ("parties: 2 for 5", "synthdigits-like for synthdigits")
    assert (
        "| fedavg | hdr-fl / domain | accuracy, usps | 80.00 | 98.0 | -18.0 | [1] | fedpd-1 |"
        in table.markdown()
    )


@pytest.mark.parametrize(
    "other",
    [
        {"known": 5},
        {"known": None},
        {"known": None, "known_classes": [0, 1, 2, 3, 4, 6]},
        {"partition": "iid"},
        {"set": {"objective": {"name": "proser", "w_mix": 0.5}}},
    ],
)
def test_another_setting_than_hdr_fls_stays_alone(other: dict[str, Any]) -> None:
    assert cell_of("fedavg", on_domains("usps", "mnist"), **HDR).published
    assert not cell_of("fedavg", on_domains("usps", "mnist"), **{**HDR, **other}).published


def test_cifar10_with_known_classes() -> None:
    """FedPD, Table 2, 6:4: PROSER 85.77 ± 0.48, AUROC 80.69 ± 0.27."""
    place = {
        "data": "cifar10",
        "partition": "iid",
        "net": {"name": "wideresnet"},
        "set": {"objective": "proser"},
    }
    figures = {"accuracy": 80.0, "open": {"auroc": 70.0}, "rounds": 50}
    for known in ({"known": 6}, {"known_classes": list(range(6))}):
        told = cell_of("fedavg", figures, **place, **known).published
        assert (told["accuracy"].value, told["accuracy"].std) == (85.77, 0.48)
        assert (told["auroc"].value, told["auroc"].std) == (80.69, 0.27)


def test_centralised_open_set_training() -> None:
    """FedOV, Table 20, MNIST, 6 known: PROSER + DD + AOE 70.9 ± 1.1, PROSER 65.9 ± 1.3,
    with unknown as a class.

    Its accuracy is not the closed one; neither partition, nor parties,
    nor rounds matter to pooled data.
    """
    figures = {"accuracy": 99.0, "open": {"auroc": 90.0, "open_accuracy": 70.0}, "parties": 10}
    for objective, value in (("fedov", 70.9), ("proser", 65.9)):
        told = cell_of(
            "centralised", figures, data="mnist", known=6, set={"objective": objective}
        ).published
        assert list(told) == ["accuracy, unknown as a class"]
        [figure] = told.values()
        assert (figure.value, figure.ours, figure.table) == (value, 70.0, "fedov-20")
    assert not cell_of("centralised", figures, data="mnist", known=6).published
    other = cell_of("fedavg", figures, data="mnist", known=6, set={"objective": "proser"})
    assert not other.published


@pytest.mark.parametrize(
    ("shown", "lr", "value"),
    [("raw", 0.2, 47.67), ("off", 0.005, 28.71), ("on", 0.1, 54.27), ("on", 0.3, None)],
)
def test_fedos_table_1_by_learning_rate_and_what_images_are_like(
    shown: str, lr: float, value: float | None
) -> None:
    values = {"data": "cifar10", "net": {"name": "lenet5"}, "standardise": shown}
    training = {"rounds": 20, "local": {"lr": lr}}
    told = cell_of("centralised", {"accuracy": 50.0}, set=training, **values).published
    assert {name: figure.value for name, figure in told.items()} == (
        {"accuracy": value} if value else {}
    )


def test_one_known_class_on_pooled_data() -> None:
    """FedOV, Table 16, MNIST: PROSER + DD has 99.1 with class 0 known, 94.1 with class 3.

    The average is no run.
    """
    figures = {"accuracy": 100.0, "open": {"auroc": 90.0}}
    without = {"objective": {"name": "fedov", "w_adversarial": 0.0}}
    for known, value in (({"known": 1}, 99.1), ({"known_classes": [3]}, 94.1)):
        told = cell_of("centralised", figures, data="mnist", set=without, **known).published
        assert told["auroc"].value == value
        assert told["auroc"].table == "fedov-16"


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("fedpd", 98.73),
        ("fedpd-matched", 97.21),
        ("fedpd-no-divide", 98.39),
        ("fedavg-proser", 98.04),
    ],
)
def test_fedpd_and_its_ablations(method: str, value: float) -> None:
    """Tables 1 and 3, accuracy on MNIST."""
    told = cell_of(method, on_domains("mnist", "usps"), **HDR).published
    assert told["accuracy, mnist"].value == value


@pytest.mark.parametrize(
    ("method", "parties", "value"),
    [
        ("fedova", 100, 89.4),
        ("fedova", 1000, 88.9),
        ("fedavg", 100, 84.3),
        ("data-sharing-10", 100, 88.1),
    ],
)
def test_fedovas_tables_stand_beside_the_mean_of_the_last_rounds(
    method: str, parties: int, value: float
) -> None:
    place = {
        "data": "fashion-mnist",
        "partition": "shards:2",
        "net": {"name": "fedova-cnn"},
        "parties": parties,
    }
    figures = {"accuracy": 70.0, "mean_last_20": 80.0, "rounds": 60, "parties": parties}
    told = cell_of(method, figures, **place).published
    assert list(told) == ["accuracy, mean of the last 20 rounds"]
    (found,) = told.values()
    assert (found.value, found.ours) == (value, 80.0)


def training_of(method: str, **values: Any) -> tuple[str, ...]:
    """What is said to differ of the accuracy of one cell on CIFAR-10, labels:2, ten parties."""
    config = make({"method": method, "data": "cifar10", "partition": "labels:2", **values})
    held = {
        "method": method, "data": "cifar10", "partition": "labels:2", "seed": 0, "parties": 10,
        "rounds": 1, "accuracy": 50.0,
    }  # fmt: skip
    [told] = with_published([config], [Record.from_json(held)])
    [figure] = told.published.values()
    return figure.differs


PAPERS_OWN = {"epochs": 200, "batch": 64, "lr": 0.001}


def test_nothing_that_differs_goes_unsaid() -> None:
    """FedOV trains 200 epochs of batches of 64 at 0.001 on all images, three seeds."""
    assert training_of("fedavg", set={"local": PAPERS_OWN}) == ("seeds: 1 for 3",)
    small = training_of("fedavg", train_per_class=30, set={"local": {**PAPERS_OWN, "epochs": 3}})
    assert small == (
        "training samples per class: 30 for all",
        "epochs: 3 for 200",
        "seeds: 1 for 3",
    )
    other = training_of("fedprox", set={"local": PAPERS_OWN, "mu": 7.0, "fraction": 0.5})
    assert other == ("seeds: 1 for 3", "set: fraction=0.5, mu=7.0")
    halved = training_of("fedavg", public="half-test", set={"local": PAPERS_OWN})
    assert halved == ("test samples: half for all", "seeds: 1 for 3")
    steps = training_of("fedavg", set={"local": {**PAPERS_OWN, "steps": 9}})
    assert steps == ("seeds: 1 for 3", "set: local.steps=9")
    paper = training_of("fedov", set={"recipe": "paper", "ballot": "sum"})
    assert paper == ("seeds: 1 for 3",)
    assert {"ballot: guarded for sum", "outliers: auto for destruction"} <= {*training_of("fedov")}
    assert "share held out by parties: 0.1 for none" in training_of("fedov")


def test_rounds_and_the_open_rate_of_fedpd_are_said() -> None:
    """Tables of 100 rounds on the digits, one epoch in each, rates 0.01 and 0.0001."""
    figures = on_domains("mnist", "usps") | {"rounds": 20}
    own = {"recipe": "digits", "rounds": 20, "open_lr": 0.001}
    told = cell_of("fedpd", figures, **HDR, set=own).published
    differs = told["accuracy, mnist"].differs
    assert differs == ("rounds: 20 for 100", "open-set learning rate: 0.001 for 0.0001")


def test_pooled_epochs_are_those_of_all_rounds() -> None:
    """Table 20: 200 epochs. Four rounds of fifty are as many, and neither parties nor rounds
    differ.
    """
    figures = {"accuracy": 99.0, "open": {"open_accuracy": 70.0}, "rounds": 4}
    training = {"rounds": 4, "objective": "proser", "local": {**PAPERS_OWN, "epochs": 50}}
    told = cell_of("centralised", figures, data="mnist", known=6, set=training).published
    assert told["accuracy, unknown as a class"].differs == ("seeds: 1 for 3",)


def test_top_k_stands_beside_the_best_k() -> None:
    """Table 11, CIFAR-10, labels:2: FedOV 42.2, while Table 1 has 42.0."""
    training = {"recipe": "paper", "ballot": {"name": "top-k", "k": 4}}
    config = make({"method": "fedov", "data": "cifar10", "set": training})
    held = {
        "method": "fedov", "data": "cifar10", "partition": "labels:2", "seed": 0, "parties": 10,
        "rounds": 1, "accuracy": 50.0,
    }  # fmt: skip
    [told] = with_published([config], [Record.from_json(held)])
    [(figure, found)] = told.published.items()
    assert (figure, found.table) == ("accuracy, top-k", "fedov-11")
    k = "k: 4 for the best on the test samples"
    assert found.differs == (k, "seeds: 1 for 3", "set: ballot.k=4")


def test_pooled_training_is_not_taken_for_an_average() -> None:
    """PROSER on CIFAR-10 with 4 known classes: 45.5 pooled (FedOV, Table 20), 85.77 and so on
    averaged over parties (FedPD, Table 2); neither has this network.
    """
    place = {"data": "cifar10", "partition": "iid", "known": 4, "net": "mlp"}
    figures = {"accuracy": 80.0, "open": {"open_accuracy": 70.0}, "rounds": 1}
    told = cell_of("centralised", figures, **place, set={"objective": "proser"}).published
    assert [figure.table for figure in told.values()] == ["fedov-20"]


def test_settings_without_effect_do_not_differ() -> None:
    """Closed-set members hold nothing out, and without adversarial outliers there are no steps."""
    assert not any("held out" in words for words in training_of("closed-voting"))
    assert any("held out" in words for words in training_of("fedov"))
    assert not any("adversarial" in words for words in training_of("open-proser-dd"))
    assert any("adversarial steps: 2 for 5" in words for words in training_of("fedov"))
