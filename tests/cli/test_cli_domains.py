"""Data with domains from the command line:
figures per domain and their average, in every output.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from ostraka.data.sources import load
from ostraka.display.curves import Curve
from ostraka.runs.plan import make_plan
from ostraka.runs.record import load_state
from tests.cli.calling import ONE_EPOCH, Ostraka

RUN = (
    "--data",
    "hdr-fl",
    "--data-dir",
    ".",
    "--partition",
    "domain",
    "--known",
    "6",
    "--engine",
    "serial",
    *ONE_EPOCH,
)


@pytest.fixture
def data(ostraka: Ostraka) -> None:
    """Scikit-learn's digits as USPS, and turned to their negative, in colour,
    as the look-alike of SynthDigits.
    """
    digits = load("digits", [])
    for name, turn in (
        ("usps", lambda x: x),
        ("synthdigits-like", lambda x: np.repeat(255 - x, 3, axis=-1)),
    ):
        arrays: dict[str, np.ndarray] = {}
        for part, samples in (("train", digits.train), ("test", digits.test)):
            images = (samples.x.numpy() * 15).transpose(0, 2, 3, 1)
            arrays |= {f"x_{part}": turn(images[:150]), f"y_{part}": samples.labels.numpy()[:150]}
        np.savez(f"{name}.npz", **arrays)


def test_a_run_reports_every_domain_and_the_average(ostraka: Ostraka, data: None) -> None:
    shown = ostraka("run", "fedavg", *RUN, "--rounds", "2", "--out", "run").out
    assert "accuracy, average of 2 domains" in shown
    assert "per domain (%)" in shown
    assert (
        "Note: hdr-fl here is 2 of its 5 domains (usps, synthdigits-like); not found: mnist, svhn"
        in shown
    )
    assert "Note: synthdigits-like is a look-alike of SynthDigits, not the original data" in shown
    summary = json.loads(Path("run/summary.json").read_text())
    parts = summary["per_domain"]
    assert list(parts) == ["synthdigits-like", "usps"]
    assert {part["samples"] for part in parts.values()} == {150}
    assert parts["usps"].keys() >= {
        "balanced_accuracy",
        "open_balanced_accuracy",
        "known_refused",
        "unknown_refused",
    }
    opened = {**summary["open"], "open_balanced_accuracy": summary["open"]["balanced_accuracy"]}
    del opened["balanced_accuracy"]
    for figure, average in {"accuracy": summary["accuracy"], **opened}.items():
        assert average == pytest.approx(
            (parts["usps"][figure] + parts["synthdigits-like"][figure]) / 2
        )
    assert summary["per_party"].keys() == parts.keys()
    # all parties hold the same classes: a party's own figure differs only through its domain
    assert summary["per_party"]["usps"] == pytest.approx(parts["usps"]["accuracy"], abs=3)
    brief = ostraka("run", "--resume", "--out", "run", "--json").json()
    assert (brief["per_domain"], brief["notes"]) == (parts, summary["notes"])
    rounds = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert rounds[-1]["test"]["per_domain"]["usps"]["accuracy"] == parts["usps"]["accuracy"]


def test_validation_counts_every_domain_the_same(ostraka: Ostraka, data: None) -> None:
    """Of 150 and 25 training images 40 % are held back: mostly USPS,
    and still each domain is half of the figure.
    """
    few = dict(np.load("synthdigits-like.npz"))
    np.savez("synthdigits-like.npz", **few | {key: few[key][:25] for key in ("x_train", "y_train")})
    ostraka("run", "fedavg", *RUN, "--validation", "0.4", "--out", "run")
    config, state = load_state(Path("run"))
    plan = make_plan(config)
    assert plan.validation is not None
    sizes = {name: len(index) for name, index in plan.validation.domains.items()}
    assert sizes["usps"] > 2 * sizes["synthdigits-like"] > 0
    predictor = plan.method.predictor(plan.task, state)
    found = predictor.scores(plan.validation.samples.stored()).closed
    hits = (found == plan.validation.samples.labels).double()
    shares = [100 * hits[index].mean().item() for index in plan.validation.domains.values()]
    assert shares[0] != shares[1]
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["validation"] == pytest.approx(sum(shares) / 2)


def test_a_comparison_has_tables_per_domain(ostraka: Ostraka, data: None) -> None:
    words = ("compare", "fedavg", "solo", *RUN, "--rounds", "1", "--out", "grid")
    shown = ostraka(*words, "--format", "markdown").out
    for title in ("Accuracy (%)", "AUROC (%)"):
        assert f"**{title} per domain: hdr-fl / domain**" in shown
    assert "| method | synthdigits-like | usps | average |" in shown
    assert "- hdr-fl: plain average over 2 domains" in shown
    assert "per domain: hdr-fl / domain" in Path("grid/results.md").read_text()
    assert Path("grid/accuracy.csv").read_text().startswith("method,data,partition,seed")
    found = ostraka(*words, "--json").json()
    assert found["cells"][0]["per_domain"].keys() == {"usps", "synthdigits-like"}
    assert found["tables"][2][0]["average"]["mean"] == found["cells"][0]["accuracy"]


def test_closed_comparisons_write_no_table_under_a_wrong_name(ostraka: Ostraka, data: None) -> None:
    words = [word for word in RUN if word not in ("--known", "6")]
    assert ostraka("compare", "fedavg", *words, "--out", "grid").code == 0


def test_partition_and_list_name_the_domains(ostraka: Ostraka, data: None) -> None:
    shown = ostraka(
        "partition", "domain", "--data", "hdr-fl", "--data-dir", ".", "--train-per-class", "16"
    ).out
    assert "synthdigits-like" in shown
    assert "Note: usps has fewer than 16 training samples of some classes" in shown
    listed = ostraka("list", "data", "--data-dir", ".").out
    assert "usps +" in listed
    assert "domains:A+B" in listed
    refused = ostraka("partition", "domain", "--data", "hdr-fl")
    assert refused.code == 2
    assert "hdr-fl needs at least two" in refused.err


def test_the_vote_of_all_members_is_drawn_as_the_run_reports_it(
    ostraka: Ostraka, data: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """USPS has only zeros to test on: the last point of the curve, where all members count,
    averages domains too.
    """
    few = dict(np.load("usps.npz"))
    zeros = few["y_test"] == 0
    np.savez("usps.npz", **few | {key: few[key][zeros] for key in ("x_test", "y_test")})
    summary = ostraka("run", "closed-voting", *RUN, "--json", "--out", "run").json()
    drawn: list[Curve] = []
    monkeypatch.setattr(
        "ostraka.display.curves.accuracy_curve", lambda curves, *_, **__: drawn.extend(curves)
    )
    assert ostraka("figure", "top-k", "--run", "run", "--out", "x.svg").code == 0
    assert drawn[0].values[0][-1] == pytest.approx(summary["accuracy"])
