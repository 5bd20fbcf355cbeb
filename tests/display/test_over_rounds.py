"""The table over rounds, by hand, and the rounds to an accuracy."""

from dataclasses import replace

from ostraka.display.comparison import over_rounds
from ostraka.display.tables import MISSING, Mean, Number
from ostraka.evaluation.evaluate import Evaluation, OpenFigures
from ostraka.runs.results import Best, MetricsRow, Record, Summary
from ostraka.runs.summary import _reached

SUMMARY = Summary(
    method="fedova",
    data="digits",
    partition="iid",
    parties=4,
    seed=0,
    rounds=10,
    accuracy=80.0,
    best=Best(84.0, 7),
    mean_last_20=70.0,
    reached={"50": 2, "80": 6},
    bytes_up=5_000,
    bytes_down=20_000,
)


def test_means_over_seeds_rounds_to_and_bytes_of_a_round() -> None:
    """Seed 1 has 90, 94 and 80, gets to 50 in round 5 and never to 80; 5 and 20 kB over ten
    rounds are 500 B and 2 kB. FedAvg never gets anywhere; one round is no curve.
    """
    other = replace(
        SUMMARY, seed=1, accuracy=90.0, best=Best(94.0, 9), mean_last_20=80.0, reached={"50": 5}
    )
    poor = replace(SUMMARY, method="fedavg", reached={})
    single = replace(SUMMARY, method="solo", rounds=1)
    failed = Record("fedprox", "digits", "iid", 0, error="no")
    (table,) = over_rounds([*map(Record.of, (SUMMARY, other, poor, single)), failed])
    assert table.title == "Over rounds (%): digits / iid"
    assert table.columns[4:] == ("rounds to 50 %", "rounds to 80 %", "up", "down")
    fedova, fedavg = table.rows
    assert [one.mean for one in fedova[1:4] if isinstance(one, Mean)] == [85.0, 89.0, 75.0]
    assert [str(one.text) for one in fedova[4:] if isinstance(one, Number)] == [
        "3.5",
        "6 (1 never)",
        "500 B",
        "2.0 kB",
    ]
    assert (fedavg[0], *fedavg[4:6]) == ("fedavg", MISSING, MISSING)
    assert over_rounds([Record.of(single)]) == []


def test_rounds_have_one_decimal() -> None:
    """The mean of 1, 1 and 3 is 1.666...; that of 2 and 2 is 2."""
    firsts = ({"50": 1, "60": 2}, {"50": 1, "60": 2}, {"50": 3})
    records = [
        Record.of(replace(SUMMARY, seed=seed, reached=reached))
        for seed, reached in enumerate(firsts)
    ]
    [row] = over_rounds(records)[0].rows
    assert [str(one.text) for one in row[4:6] if isinstance(one, Number)] == ["1.7", "2 (1 never)"]


def test_the_first_round_with_an_accuracy() -> None:
    """49, 65, 55, 85: 50 and 60 in round 2, 70 to 85 in round 8, no more."""
    accuracies = {1: 49.0, 2: 65.0, 4: 55.0, 8: 85.0}
    rows = [
        MetricsRow(index, Evaluation(1, 0, found, None, None, {}, OpenFigures()))
        for index, found in accuracies.items()
    ]
    assert _reached(rows) == {"50": 2, "60": 2, "70": 8, "80": 8, "85": 8}
    assert Summary.from_json(SUMMARY.to_json()).reached == SUMMARY.reached


def test_an_accuracy_that_is_not_defined_reaches_nothing() -> None:
    rows = [MetricsRow(1, Evaluation(1, 1, None, None, None, {}, OpenFigures()))]
    assert _reached(rows) == {}
