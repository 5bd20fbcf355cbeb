"""Parties: many of them over one storage."""

import time

import pytest
import torch

from ostraka.core.party import Parties, labels
from ostraka.core.progress import NoProgress
from ostraka.core.samples import Samples
from ostraka.errors import PartitionError

SAMPLES = Samples(torch.arange(6.0).unsqueeze(1), torch.tensor([0, 1, 0, 1, 0, 1]))
PARTIES = Parties.of(SAMPLES, [torch.tensor([5, 0]), torch.tensor([2]), torch.tensor([1, 3, 4])])


def test_each_party_holds_its_rows() -> None:
    assert [p.samples.inputs().flatten().tolist() for p in PARTIES] == [
        [5.0, 0.0],
        [2.0],
        [1.0, 3.0, 4.0],
    ]
    assert [p.samples.labels.tolist() for p in PARTIES] == [[1, 0], [0], [1, 1, 0]]
    assert [p.id for p in PARTIES] == [0, 1, 2]


def test_roster() -> None:
    assert [(r.id, r.size, str(r)) for r in PARTIES.roster()] == [
        (0, 2, "party 0"),
        (1, 1, "party 1"),
        (2, 3, "party 2"),
    ]
    assert [p.ref for p in PARTIES] == list(PARTIES.roster())


def test_pooled_is_one_party_with_everything() -> None:
    pooled = PARTIES.pooled()
    assert len(pooled) == 1
    assert sorted(pooled[0].samples.inputs().flatten().tolist()) == [0, 1, 2, 3, 4, 5]
    assert pooled.roster()[0].name == "all data"


def test_names() -> None:
    named = Parties.of(SAMPLES, [torch.tensor([0]), torch.tensor([1])], ["north", "south"])
    assert [str(r) for r in named.roster()] == ["north", "south"]


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_no_such_party(index: int) -> None:
    """A negative number must not wrap around to the last party."""
    with pytest.raises(IndexError, match="there are 3 parties"):
        PARTIES[index]


def test_a_federation_has_parties() -> None:
    with pytest.raises(PartitionError, match="at least one party"):
        Parties.of(SAMPLES, [])


def test_rows_count_from_the_storage_not_from_a_view() -> None:
    """Rows are those of the full set, whatever view the samples were."""
    parties = Parties.of(SAMPLES.take(torch.tensor([4, 5])), [torch.tensor([1])])
    assert parties[0].samples.inputs().flatten().tolist() == [1.0]


def test_a_thousand_parties_share_one_storage() -> None:
    """Made on demand over the same tensor: far below a second for all of them."""
    x = torch.zeros(10_000, 16)
    began = time.perf_counter()
    parties = Parties.of(
        Samples(x, torch.zeros(10_000, dtype=torch.long)), list(torch.arange(10_000).split(10))
    )
    assert len(parties) == len(parties.roster()) == 1000
    assert all(len(p.samples) == 10 and p.samples.x.data_ptr() == x.data_ptr() for p in parties)
    assert time.perf_counter() - began < 5


def test_at_work() -> None:
    progress = NoProgress()
    party = PARTIES[0].at_work(progress)
    assert party.progress is progress
    assert party.samples.x is PARTIES[0].samples.x


def test_labels_of_parties_never_repeat() -> None:
    assert labels(("north", "south")) == ("north", "south")
    assert labels(("north", "north", "0: north")) == ("0: north", "1: north", "2: 0: north")
