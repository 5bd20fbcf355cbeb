"""What the server of a federation says on its console."""

from pathlib import Path

import pytest

from ostraka.engines.base import Failure, Outcome
from ostraka.federation.server import Aloud
from tests.methods.toy_line import plan_of


def test_a_party_that_failed_is_named_with_its_round(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Aloud()
    watch.run_begins(plan_of("fedavg"), Path("run"))
    watch.round_begins(7, 9, 3, 0)
    watch.party_ends(Outcome(0))
    watch.party_ends(Outcome(1, Failure(1, "it ran out of memory")))
    assert capsys.readouterr().err == "ostraka: party-1 failed in round 7: it ran out of memory\n"
