"""All parties' shares in one file."""

from pathlib import Path

from ostraka.engines.shares import load_parties, save_parties
from tests.engines.toy_work import parties


def test_names_and_samples_of_all_parties_are_read(tmp_path: Path) -> None:
    save_parties(tmp_path, parties())
    found = load_parties(str(tmp_path))
    assert tuple(found.names) == tuple(parties().names)
    assert any(found.names)
    assert [len(party.samples) for party in found] == [len(party.samples) for party in parties()]
