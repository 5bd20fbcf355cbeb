"""What happens to reports on their way: looked at when they arrive, kept until the checkpoint,
memory before report.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.core.seeds import derive
from ostraka.engines.base import carry_out
from ostraka.errors import Interrupted, PartyFailed
from ostraka.methods.panel import PanelMethod
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan, party_seed
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch
from ostraka.store.desk import Envelope, Place

BASE: dict[str, Any] = {
    "method": "closed-voting",
    "train_per_class": 10,
    "partition": "iid",
    "parties": 3,
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [8]}},
    "set": {"local": {"epochs": 1}},
}
ROUNDS = {**BASE, "method": "scaffold", "set": {"rounds": 3, "local": {"epochs": 1}}}


def plan_of(values: dict[str, Any], **more: Any) -> Plan:
    return make_plan(config.make({**values, **more}))


@pytest.fixture(params=[float("nan"), 1e30], ids=["nan", "huge"])
def sick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Party 1 sends weights that cannot be used."""
    usual = PanelMethod.local_update

    def update(self: PanelMethod, rnd: Any, party: Any, memory: Any) -> Any:
        report = usual(self, rnd, party, memory)
        if party.id == 1:
            for tensor in report.payload.values():
                tensor.mul_(request.param)
        return report

    monkeypatch.setattr(PanelMethod, "local_update", update)


@pytest.mark.usefixtures("sick")
def test_a_sick_member_is_the_failure_of_its_party_and_there_is_a_way_out(tmp_path: Path) -> None:
    home = RunDir(tmp_path / "run")
    with pytest.raises(PartyFailed, match=r"party-1: its report cannot be used: .*NaN or infinit"):
        execute(plan_of(BASE), home)
    summary = execute(plan_of(BASE, on_failure="drop"), home, resume=True)
    assert summary.dropped == (1,)
    assert summary.accuracy is not None
    assert len(list((home.root / "members").iterdir())) == 2


def test_a_report_in_another_partys_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = PanelMethod.local_update

    def update(self: PanelMethod, rnd: Any, party: Any, memory: Any) -> Any:
        report = usual(self, rnd, party, memory)
        return replace(report, card=replace(report.card, party=0))

    monkeypatch.setattr(PanelMethod, "local_update", update)
    with pytest.raises(
        PartyFailed, match=r"2 of 3 .*party-1: .*its card says that it is of party 0"
    ):
        execute(plan_of(BASE), RunDir(tmp_path / "run"))


def test_reports_stay_until_the_checkpoint_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while the checkpoint of round 2 is written:
    no party of round 2 may have to train again.
    """
    home, save = RunDir(tmp_path / "run"), Place.save

    def killed(self: Place, value: Any) -> None:
        if self.seal["what"] == "checkpoint" and value["round"] == 2:
            raise KeyboardInterrupt
        save(self, value)

    monkeypatch.setattr(Place, "save", killed)
    with pytest.raises(Interrupted):
        execute(plan_of(ROUNDS), home)
    monkeypatch.setattr(Place, "save", save)
    ready: list[tuple[int, int]] = []

    class Note(Watch):
        def round_begins(self, index: int, rounds: int, parties: int, ready_now: int) -> None:
            ready.append((index, ready_now))

    execute(plan_of(ROUNDS), home, Note(), resume=True)
    assert ready == [(2, 3), (3, 0)]


def test_a_memory_is_stored_before_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that exists says that all of its party's work is there; so it comes last."""
    order: list[str] = []
    write = Place.write

    def note(self: Place, data: bytes, durable: bool = True) -> None:
        if self.seal["what"] in ("memory", "report"):
            order.append(f"{self.seal['what']} {self.seal['round']} {self.seal['party']}")
        write(self, data, durable)

    monkeypatch.setattr(Place, "write", note)
    execute(plan_of(ROUNDS), RunDir(tmp_path / "run"), save_seconds=0)
    expected = [
        f"{what} {r} {p}" for r in (1, 2, 3) for p in (0, 1, 2) for what in ("memory", "report")
    ]
    assert order == expected


def test_every_round_and_party_has_a_seed_of_its_own() -> None:
    plan = plan_of(ROUNDS)
    seeds = [party_seed(plan.config, index, party) for index in (1, 2, 3) for party in (0, 1, 2)]
    assert len(set(seeds)) == 9
    assert party_seed(plan.config, 2, 1) == derive(0, "round", 2, "party", 1)


def test_a_round_uses_its_own_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, int]] = []

    def note(work: Any, order: Any, progress: Any) -> Any:
        seen.append((order.round, order.party, order.seed))
        return carry_out(work, order, progress)

    monkeypatch.setattr("ostraka.engines.base.carry_out", note)
    plan = plan_of(ROUNDS)
    execute(plan, RunDir(tmp_path / "run"))
    assert seen == [(r, p, party_seed(plan.config, r, p)) for r in (1, 2, 3) for p in (0, 1, 2)]


def test_cpu_time_is_the_sum_over_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three parties that say they used 100 CPU-seconds each, in one round.

    The server itself uses next to none.
    """

    def costly(report: Any, seconds: float, cpu_seconds: float, bytes_up: int) -> Envelope:
        return Envelope(report, seconds, 100.0, bytes_up)

    monkeypatch.setattr("ostraka.engines.base.Envelope", costly)
    assert 300 <= execute(plan_of(BASE), RunDir(tmp_path / "run")).cpu_seconds < 400


def test_costs_are_those_of_good_reports(tmp_path: Path) -> None:
    """Three parties, equal networks: three times the bytes of one."""
    three = execute(plan_of(BASE), RunDir(tmp_path / "three"))
    one = execute(plan_of(BASE, parties=1), RunDir(tmp_path / "one"))
    assert three.bytes_up == pytest.approx(3 * one.bytes_up, rel=0.01)
