"""What happens to reports on their way: looked at when they arrive, kept until the checkpoint,
memory before report.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.core.seeds import derive
from ostraka.engines.base import Outcome, carry_out
from ostraka.errors import Interrupted, PartyFailed
from ostraka.methods.fedavg import FedAvg
from ostraka.methods.panel import PanelMethod
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan, party_seed
from ostraka.runs.record import RunDir
from ostraka.runs.watch import Watch
from ostraka.store import codec
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
    assert [(one["party"], one["round"]) for one in summary.dropped] == [("party-1", 1)]
    assert "NaN or infinit" in summary.dropped[0]["why"]
    assert summary.accuracy is not None
    assert len(list((home.root / "members").iterdir())) == 2


@pytest.mark.usefixtures("sick")
def test_whoever_watches_hears_of_a_report_that_is_refused_and_each_party_once(
    tmp_path: Path,
) -> None:
    """It was told that the party had finished."""
    heard: list[tuple[int, bool]] = []

    class Listens(Watch):
        def party_ends(self, outcome: Outcome) -> None:
            heard.append((outcome.party, outcome.failure is None))

    execute(plan_of(BASE, on_failure="drop"), RunDir(tmp_path / "run"), Listens())
    assert sorted(heard) == [(0, True), (1, False), (2, True)]


def test_nobody_owns_the_mean_by_what_it_says_of_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weight of 1e15 made the server's model that of its party; its samples are 33."""
    usual = FedAvg.local_update

    def update(self: FedAvg, rnd: Any, party: Any, memory: Any) -> Any:
        report = usual(self, rnd, party, memory)
        return replace(report, weight=1e15) if party.id == 1 else report

    monkeypatch.setattr(FedAvg, "local_update", update)
    plan = plan_of({**ROUNDS, "method": "fedavg"})
    size = plan.parties[1].ref.size
    words = rf"1 of 3 .*party-1: .*its weight is 1e\+15; .* at most {size}, .* {size} samples"
    with pytest.raises(PartyFailed, match=words):
        execute(plan, RunDir(tmp_path / "run"))


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


AVERAGE = {**BASE, "method": "fedavg", "set": {"rounds": 3, "local": {"epochs": 1}}}


def reports_written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Round and party of every report that is written from now on."""
    written: list[tuple[Any, Any]] = []
    write = Place.write

    def note(self: Place, data: bytes, durable: bool = True) -> None:
        if self.seal["what"] == "report":
            written.append((self.seal["round"], self.seal["party"]))
        write(self, data, durable)

    monkeypatch.setattr(Place, "write", note)
    return written


@pytest.mark.parametrize(
    ("values", "save_seconds", "expected"),
    [(AVERAGE, 60.0, 0), (AVERAGE, 0.0, 9), (BASE, 60.0, 3)],
    ids=["short rounds", "no time to wait", "one exchange"],
)
def test_reports_of_a_short_round_are_not_written(
    values: dict[str, Any],
    save_seconds: float,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checkpoint commits a round; members of one exchange are written one by one."""
    written = reports_written(monkeypatch)
    execute(plan_of(values), RunDir(tmp_path / "run"), save_seconds=save_seconds)
    assert len(written) == len(set(written)) == expected


def test_reports_that_wait_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One second between arrivals, 1.5 to wait: the third writes the two before it as well."""
    written, now = reports_written(monkeypatch), [0.0]
    monkeypatch.setattr("ostraka.runs.arrivals.time.monotonic", lambda: now[0])
    seen: list[int] = []

    class Clock(Watch):
        def party_ends(self, outcome: Any) -> None:
            now[0] += 1.0
            seen.append(len(written))

    plan = plan_of(AVERAGE, parties=5, set={"rounds": 2, "local": {"epochs": 1}})
    execute(plan, RunDir(tmp_path / "run"), Clock(), save_seconds=6 * 1.5)
    assert seen[:5] == [0, 0, 3, 3, 3]


@pytest.mark.parametrize("where", ["party_ends", "aggregate"])
def test_what_ended_before_an_interruption_is_written(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the second party, or while the server averages: nobody trains twice, and the
    result is that of a run that was left alone."""
    home, alone = RunDir(tmp_path / "run"), RunDir(tmp_path / "alone")
    execute(plan_of(AVERAGE), alone)

    class Stop(Watch):
        def party_ends(self, outcome: Any) -> None:
            if where == "party_ends" and outcome.party == 1:
                raise KeyboardInterrupt

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "aggregate":
            patch.setattr(FedAvg, "aggregate", stopped)
        with pytest.raises(Interrupted):
            execute(plan_of(AVERAGE), home, Stop())
    ready: list[int] = []

    class Note(Watch):
        def round_begins(self, index: int, rounds: int, parties: int, ready_now: int) -> None:
            ready.append(ready_now)

    execute(plan_of(AVERAGE), home, Note(), resume=True)
    assert ready == [2 if where == "party_ends" else 3, 0, 0]
    states = [codec.encode(run.model_place().load()["state"]) for run in (home, alone)]
    assert states[0] == states[1]


def test_a_party_that_goes_on_with_its_report_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Server and party in one process share no tensor: it is as if bytes had crossed."""
    execute(plan_of(AVERAGE), RunDir(tmp_path / "alone"))
    usual, sent = FedAvg.local_update, list[Any]()

    def update(self: FedAvg, rnd: Any, party: Any, memory: Any) -> Any:
        for payload in sent:
            for tensor in payload.values():
                tensor.fill_(float("nan"))
        report = usual(self, rnd, party, memory)
        sent.append(report.payload)
        return report

    monkeypatch.setattr(FedAvg, "local_update", update)
    execute(plan_of(AVERAGE), RunDir(tmp_path / "run"))
    states = [
        codec.encode(RunDir(tmp_path / name).model_place().load()["state"])
        for name in ("alone", "run")
    ]
    assert states[0] == states[1]


def test_reports_without_room_are_written_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(plan_of(AVERAGE), RunDir(tmp_path / "alone"))
    written = reports_written(monkeypatch)
    monkeypatch.setattr("ostraka.runs.arrivals.HELD", 0)
    execute(plan_of(AVERAGE), RunDir(tmp_path / "run"))
    assert len(written) == 9
    states = [
        codec.encode(RunDir(tmp_path / name).model_place().load()["state"])
        for name in ("alone", "run")
    ]
    assert states[0] == states[1]
