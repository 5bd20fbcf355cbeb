"""Orders and answers: bytes in, bytes out, nothing but them; files and resume are the server's."""

import pickle
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from ostraka.core.progress import NoProgress
from ostraka.core.samples import Samples
from ostraka.engines import pool
from ostraka.engines.base import Answer, Order, Outcome, Reader, Work, carry_out
from ostraka.engines.pool import Pool
from ostraka.engines.serial import Serial
from ostraka.errors import StoreError
from ostraka.store import codec
from ostraka.store.desk import Desk, Envelope, seal
from tests.engines.toy_work import Odd, do, jobs, parties, work

PLAIN = (int, str, bytes, type(None))


def order(method: Odd, memory: bytes | None = None) -> Order:
    return Order(1, 1, 5, "ab12", codec.encode(method.init(work(method).task, 5)), memory)


def test_an_order_and_its_answer_are_bytes_and_plain_values() -> None:
    method = Odd(keeps=True)
    given = order(method)
    answer, loss = carry_out(work(method), given, NoProgress())
    assert all(isinstance(getattr(given, spec.name), PLAIN) for spec in fields(given))
    assert all(isinstance(getattr(answer, spec.name), bytes) for spec in fields(answer))
    assert loss is None
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_carrying_out_an_order_touches_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where it runs: without a place for half-finished training there is none."""
    monkeypatch.chdir(tmp_path)
    method = Odd(keeps=True)
    given, plan = order(method), work(method)

    def refuse(*given: object, **more: object) -> None:
        raise AssertionError(f"a file was opened: {given}")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    carry_out(plan, given, NoProgress())
    assert not list(tmp_path.iterdir())


def test_the_answer_says_whose_it_is() -> None:
    method = Odd(keeps=True)
    answer, _ = carry_out(work(method), order(method), NoProgress())
    envelope: Envelope = codec.decode(answer.report, seal=seal("report", "ab12", 1, 1))
    assert envelope.report.card.party == 1
    assert envelope.report.memory == {}, "what a party keeps is not in its report"
    assert answer.memory is not None
    kept = codec.decode(answer.memory, seal=seal("memory", "ab12", 1, 1))
    assert kept["times"] == 1
    with pytest.raises(StoreError, match="party 2"):
        codec.decode(answer.report, seal=seal("report", "ab12", 1, 2))


def test_the_memory_of_an_answer_is_that_of_the_next_order() -> None:
    method = Odd(keeps=True)
    first, _ = carry_out(work(method), order(method), NoProgress())
    second, _ = carry_out(work(method), order(method, first.memory), NoProgress())
    assert second.memory is not None
    assert codec.decode(second.memory)["times"] == 2


def test_a_party_that_keeps_nothing_has_no_memory_unless_it_had_one() -> None:
    """None: nothing to store; an emptied memory must replace the old one."""
    silent = Odd()
    nothing, _ = carry_out(work(silent), order(silent), NoProgress())
    assert nothing.memory is None
    emptied, _ = carry_out(work(silent), order(silent, codec.encode({"times": 4})), NoProgress())
    assert emptied.memory is not None
    assert codec.decode(emptied.memory) == {}


def test_cpu_time_of_earlier_attempts_counts() -> None:
    method = Odd()
    progress = NoProgress()
    progress.spent_before = 50.0
    answer, _ = carry_out(work(method), order(method), progress)
    assert 50.0 < codec.decode(answer.report).cpu_seconds < 60.0


@pytest.mark.parametrize("engine", [Serial(), Pool(workers=2)], ids=["serial", "pool"])
def test_an_engine_says_who_can_take_part(engine: Serial | Pool) -> None:
    with engine.open(work(Odd())) as crew:
        assert [(ref.id, ref.size, ref.name) for ref in crew.roster()] == [
            (0, 6, "north"), (1, 9, "east"), (2, 7, "south"), (3, 8, "west")
        ]  # fmt: skip


@pytest.mark.parametrize("engine", [Serial(), Pool(workers=2)], ids=["serial", "pool"])
def test_an_order_that_cannot_be_read_is_the_failure_of_its_party(
    engine: Serial | Pool, tmp_path: Path
) -> None:
    """Another party's memory lies where party 1's should: the others work on."""
    method, desk = Odd(keeps=True), Desk(tmp_path)
    with engine.open(work(method)) as crew:
        do(crew, desk, method, 1)
        desk.memory(1, 1).path.write_bytes(desk.memory(1, 2).path.read_bytes())
        outcomes = {outcome.party: outcome.failure for outcome in do(crew, desk, method, 2)}
    assert [party for party, failure in sorted(outcomes.items()) if failure] == [1]
    assert "it was copied or moved there" in outcomes[1].reason  # type: ignore[union-attr]
    assert outcomes[1].storage  # type: ignore[union-attr]


def test_an_answer_that_cannot_be_stored_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, desk = Odd(), Desk(tmp_path)

    def full(path: Path, data: bytes, durable: bool, private: bool) -> None:
        raise StoreError(f"{path.name} cannot be written: No space left on device")

    with Serial().open(work(method)) as crew:
        lying = jobs(desk, method, 1, which=[0])
        monkeypatch.setattr(codec, "write_atomically", full)
        (outcome,) = crew.run(lying)
        assert isinstance(outcome.answer, Answer)
        from ostraka.runs.arrivals import kept

        failed = kept(outcome, desk, 1)
    assert failed.failure is not None
    assert failed.failure.storage
    assert "No space left" in failed.failure.reason


class Counting(Samples):
    """Samples that count how often they are moved to another device."""

    moves = 0

    def to(self, device: object) -> Samples:
        type(self).moves += 1
        return self


def test_samples_move_to_a_device_once_and_not_in_every_round() -> None:
    own = parties()
    counting = Counting(own.samples.x, own.samples.y)
    Counting.moves = 0
    elsewhere = Work(Odd(), work(Odd()).task, replace(own, samples=counting), device="meta")
    for _ in range(3):
        elsewhere.party(0)
    elsewhere.party(1)
    assert Counting.moves == 2
    here = replace(elsewhere, device="cpu")
    here.party(0)
    assert Counting.moves == 2, "on the processor nothing moves"
    assert torch.equal(here.party(1).samples.labels, own[1].samples.labels)


def test_a_worker_for_every_device_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers on one of them would only wait for each other; on the processor there is one per
    core.
    """
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert pool.devices_of("cuda") == ["cuda:0", "cuda:1", "cuda:2"]
    assert pool.devices_of("cpu") == ["cpu"]
    assert pool.devices_of("mps") == ["mps"]
    started: list[str] = []

    class Idle:
        def __init__(self, work: Work) -> None:
            started.append(work.device)

        def kill(self) -> None:
            pass

    monkeypatch.setattr(pool, "_Worker", Idle)
    monkeypatch.setattr(pool, "cores", lambda: 4)
    for device, workers, expected in (
        ("cuda", None, ["cuda:0", "cuda:1", "cuda:2"]),
        ("cuda", 4, ["cuda:0", "cuda:1", "cuda:2", "cuda:0"]),
        ("cpu", None, ["cpu"] * 4),
        ("mps", None, ["mps"]),
    ):
        started.clear()
        with Pool(workers=workers).open(replace(work(Odd()), device=device)):
            assert started == expected


def test_workers_of_a_pool_get_the_message_of_their_round(tmp_path: Path) -> None:
    """The same message does not travel twice; that of the next round does, and a new worker in
    the place of a dead one is sent it again."""
    method, desk = Odd(), Desk(tmp_path)
    with Pool(workers=1).open(work(method)) as crew, Serial().open(work(method)) as alone:
        for index in (1, 2):
            lying = jobs(desk, method, index)
            codec.save(desk.message(index, None), method.init(work(method).task, index))
            if index == 2:
                crew.workers[0].kill()  # type: ignore[attr-defined]
            found = [{o.party: _payload(o) for o in c.run(lying)} for c in (crew, alone)]
            assert found[0] == found[1]


def _payload(outcome: Outcome) -> bytes:
    assert outcome.answer is not None, outcome.failure
    report = outcome.answer.report
    opened = codec.Opened.of(report) if isinstance(report, bytes) else report
    return codec.encode(opened.value().report)


def test_a_message_is_read_once_for_those_that_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parties 0 and 1 get one message, 2 another, and that of 1 is gone when it is asked again."""
    method, desk = Odd(), Desk(tmp_path)
    first, second, *_ = jobs(desk, method, 1)
    other = replace(second, message=desk.message(1, 7))
    codec.save(first.message, {"n": 1})
    codec.save(other.message, {"n": 2})
    reads: list[Path] = []
    usual = codec.read_bytes

    def read(path: Path) -> bytes:
        reads.append(path)
        return usual(path)

    monkeypatch.setattr(codec, "read_bytes", read)
    reader = Reader()
    told = [reader.order_of(job) for job in (first, second, other, first)]
    assert reads == [first.message, other.message, first.message]
    assert [codec.decode(o.message)["n"] for o in told if isinstance(o, Order)] == [1, 1, 2, 1]
    first.message.unlink()
    reader = Reader()
    failed = [reader.order_of(first), reader.order_of(second)]
    assert all(isinstance(o, Outcome) and o.failure is not None for o in failed)
