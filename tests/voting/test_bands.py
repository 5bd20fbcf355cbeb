"""Class counts that are told as bands: on cards, in files, and wherever counts are used."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.card import Card, banded
from ostraka.registry import BALLOTS, SELECTORS
from ostraka.runs.config import make
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.store.member import load_member
from ostraka.voting.calibrated import any_counts
from ostraka.voting.electorate import unkept
from ostraka.voting.guards import capped
from ostraka.voting.panel import Panel

BASE: dict[str, Any] = {
    "data": "digits",
    "parties": 3,
    "partition": "iid",
    "train_per_class": 40,
    "net": {"name": "mlp", "options": {"hidden": [8]}},
    "engine": "serial",
}


def run(folder: Path, method: str, **values: Any) -> RunDir:
    given = {"tell": "bands", "local": {"steps": 4, "batch": 16}, **values}
    home = RunDir(folder)
    execute(make_plan(make({**BASE, "method": method, "set": given})), home)
    return home


def test_the_least_of_each_band() -> None:
    assert banded((0, 9, 10, 99, 100, 999, 1000, 10**6)) == (0, 0, 10, 10, 100, 100, 1000, 1000)


def test_a_run_tells_bands_and_keeps_the_exact_counts_to_itself(tmp_path: Path) -> None:
    """40 samples of each class at three parties are 13 or 14 at each: 10 to 99."""
    home = run(tmp_path / "run", "fedov")
    _, state = load_state(home.root)
    assert isinstance(state, Panel)
    assert [seat.card.counts for seat in state.members] == [(10,) * 10] * 3
    files = sorted((home.root / "members").iterdir())
    assert len(files) == 3
    for file in files:
        assert b'\\"bands\\"' in file.read_bytes()
        member = load_member(file)
        assert member.made.banded
        assert (member.made.method, member.card.counts) == ("fedov", (10,) * 10)


@pytest.mark.parametrize("ballot", BALLOTS.names())
def test_every_ballot_counts_with_bands(ballot: str, tmp_path: Path) -> None:
    home = run(tmp_path / "run", "fedov", ballot=ballot)
    done = home.finished()
    assert done is not None
    assert done.accuracy > 0


@pytest.mark.parametrize("selector", SELECTORS.names())
def test_every_selector_chooses_with_bands(selector: str, tmp_path: Path) -> None:
    sized = {} if selector == "all" else {"size": 2}
    run(tmp_path / "run", "closed-voting", scored=True, select={"name": selector, **sized})


def test_fewer_than_ten_of_every_class_say_nothing() -> None:
    cards = [Card(i, 12, (0, 0)) for i in range(2)]
    assert not any_counts(cards)
    assert "fewer than ten" in unkept(cards, 0.05)
    assert "fewer than ten" not in unkept([*cards, Card(2, 12, (10, 0))], 0.05)


def test_most_parties_telling_nothing_do_not_cap_the_others_to_nothing() -> None:
    """Of totals 0, 0, 0, 10 and 100 the median is 0; of those that tell any it is 55."""
    counts = torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [10.0, 0.0], [0.0, 100.0]])
    assert capped(counts)[3:].tolist() == [[10.0, 0.0], [0.0, pytest.approx(55.0)]]
