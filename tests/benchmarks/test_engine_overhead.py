"""Costs of engines are told apart: what a round, a party, a megabyte and the start take."""

import pytest

from benchmarks.engine_overhead import LARGE, SMALL, Lap, Laps, table

START, ROUND, PARTY, MEGABYTE = 20.0, 3.0, 0.5, 0.07
FEW, MANY = 2, 5


def lap(parties: int, megabytes: float) -> Lap:
    usual = ROUND + parties * (PARTY + megabytes * MEGABYTE)
    return Lap(START + usual, usual, megabytes)


def test_the_costs_that_made_the_rounds_are_found_again() -> None:
    laps: Laps = {
        ("some", FEW, SMALL): [lap(FEW, 0.0)],
        ("some", MANY, SMALL): [lap(MANY, 0.0)],
        ("some", FEW, LARGE): [lap(FEW, 16.0)],
    }
    (row,) = table(laps, ["some"], FEW, MANY)
    found = [row[name] for name in ("start", "round", "party", "megabyte")]
    assert found == pytest.approx([START, ROUND, PARTY, MEGABYTE])
    assert row["rounds"][f"{MANY} parties, {SMALL} units"] == pytest.approx([5.5])


def test_the_first_round_and_the_last_are_not_usual() -> None:
    """Launched at 100; rounds of 30, 2, 4 and 3 s, and a last one whose end nobody notes."""
    made = Lap.of(100.0, [110.0, 140.0, 142.0, 146.0, 149.0], 1.0)
    assert made == Lap(40.0, 3.0, 1.0)
