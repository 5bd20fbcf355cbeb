"""What a round costs depends on the parties that it has drawn,
not on how many there are; counted, not timed.
"""

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from ostraka.core.party import Parties, PartyRef
from ostraka.engines.base import Outcome
from ostraka.methods.fedavg import FedAvg
from ostraka.registry import METHODS
from ostraka.runs import arrivals, config
from ostraka.runs.loop import MESSAGES_HELD, execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.runs.watch import Watch
from ostraka.store import codec
from ostraka.store.desk import Desk, Memories, Place

FILE_EVENTS = ("open", "os.scandir", "os.listdir", "os.remove", "os.rename", "os.mkdir", "os.rmdir")
_listeners: list[list[str]] = []


def _hear(event: str, details: tuple[Any, ...]) -> None:
    if _listeners and event in FILE_EVENTS and isinstance(details[0], str | Path):
        _listeners[-1].append(str(details[0]))


sys.addaudithook(_hear)  # Python has no way to remove one: this one is deaf while nobody listens


@contextmanager
def touched() -> Iterator[list[str]]:
    """The paths that are opened, listed, made, moved or removed meanwhile."""
    _listeners.append([])
    try:
        yield _listeners[-1]
    finally:
        _listeners.pop()


def plan_of(method: str, parties: int, rounds: int, drawn: int) -> Plan:
    return make_plan(
        config.make(
            {
                "method": method,
                "data": "digits",
                "partition": "iid",
                "parties": parties,
                "engine": "serial",
                "net": {"name": "mlp", "options": {"hidden": [4]}},
                "set": {"rounds": rounds, "fraction": drawn / parties, "local": {"steps": 1}},
            }
        )
    )


class Drawn(Watch):
    """Who has taken part in each round."""

    def __init__(self) -> None:
        self.rounds: list[set[int]] = []

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        self.rounds.append(set())

    def party_ends(self, outcome: Outcome) -> None:
        self.rounds[-1].add(outcome.party)


def test_only_the_drawn_parties_memories_are_touched(tmp_path: Path) -> None:
    """Scaffold's parties keep memories.

    Those of earlier rounds must not be looked at by later ones.
    """
    watch, seen = Drawn(), list[set[int]]()

    class Listener(Drawn):
        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            seen.append(
                {int(path.split("memory/p")[1][:5]) for path in paths if "memory/p" in path}
            )
            paths.clear()
            watch.round_begins(index, rounds, parties, ready)

        def party_ends(self, outcome: Outcome) -> None:
            watch.party_ends(outcome)

    with touched() as paths:
        execute(
            plan_of("scaffold", parties=200, rounds=4, drawn=3),
            RunDir(tmp_path / "run"),
            Listener(),
        )
        seen.append({int(path.split("memory/p")[1][:5]) for path in paths if "memory/p" in path})
    assert len(set.union(*watch.rounds)) > 6  # or there would be no other memories to leave alone
    # the jobs of a round, and so the look for its parties' memories, are made before it begins
    for number, parties in enumerate(watch.rounds):
        following = watch.rounds[number + 1] if number + 1 < len(watch.rounds) else set()
        assert seen[number + 1] <= parties | following


def test_the_end_of_a_round_touches_the_memories_of_its_parties_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for party in range(20):
        desk.memory(1, party).save({})
    memories = Memories(desk, 1)
    for party in (4, 7):
        desk.memory(2, party).save({})
    with touched() as paths:
        memories.round_ends(2, [4, 7])
        assert memories.newest(5) == desk.memory(1, 5)
    assert {path.split("memory/")[1][:6] for path in paths if "memory" in path} == {
        "p00004",
        "p00007",
    }
    assert not desk.memory(1, 4).exists()
    assert desk.memory(2, 4).exists()
    assert desk.memory(1, 5).exists()


def test_a_round_makes_no_list_of_all_parties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The roster is made once; figures of every party are in the last line of the metrics only."""
    made: list[int] = []
    usual = Parties.roster

    def roster(self: Parties) -> tuple[PartyRef, ...]:
        made.append(len(self))
        return usual(self)

    plan, home = plan_of("fedavg", parties=50, rounds=5, drawn=2), RunDir(tmp_path / "run")
    monkeypatch.setattr(Parties, "roster", roster)
    summary = execute(plan, home)
    assert made == [50]
    rows = home.read_metrics()
    assert [len(row.per_party or ()) for row in rows] == [0, 0, 0, 0, 50]
    assert len(summary.per_party) == 50


def test_reports_are_never_in_memory_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Received, looked at and averaged one by one:
    the one before may still be held while the next is loaded.
    """
    alive: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()
    most, usual = [0], Place.load

    def load(self: Place) -> Any:
        found = usual(self)
        if self.seal.get("what") == "report":
            alive.add(next(iter(found.report.payload.values())))
            most[0] = max(most[0], len(alive))
        return found

    monkeypatch.setattr(Place, "load", load)
    monkeypatch.setattr(arrivals, "HELD", 0)
    execute(plan_of("fedavg", parties=30, rounds=1, drawn=30), RunDir(tmp_path / "run"))
    assert 1 <= most[0] <= 2


def test_few_reports_are_held_until_they_are_averaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for a few of thirty reports the others are read again; the average is the same."""
    read: list[int] = []
    usual = Place.load

    def load(self: Place) -> Any:
        if self.seal.get("what") == "report":
            read.append(int(self.seal["party"]))
        return usual(self)

    monkeypatch.setattr(Place, "load", load)
    plan = plan_of("fedavg", parties=30, rounds=1, drawn=30)
    execute(plan, RunDir(tmp_path / "all"))
    assert read == []
    size = len(codec.encode(load_state(tmp_path / "all")[1]))
    monkeypatch.setattr(arrivals, "HELD", 4 * size)  # a report is more than its weights
    execute(plan, RunDir(tmp_path / "some"))
    assert 26 <= len(read) < 30
    assert read == list(range(30 - len(read), 30))
    averages = [codec.encode(load_state(tmp_path / name)[1]) for name in ("all", "some")]
    assert averages[0] == averages[1]


COPIES: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()
MOST = [0]


@dataclass(frozen=True)
class Personal(FedAvg):
    """Every party gets a message of its own."""

    def message(self, state: Any, party: PartyRef) -> Any:
        """A copy of the model, counted while it lives."""
        made = {name: tensor.clone() for name, tensor in state.items()}
        COPIES.add(next(iter(made.values())))
        MOST[0] = max(MOST[0], len(COPIES))
        return made


@pytest.fixture
def personal() -> Iterator[str]:
    METHODS.add("personal")(Personal)
    MOST[0] = 0
    yield "personal"
    METHODS.remove("personal")


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the message files that are written."""
    saved: list[str] = []
    usual = codec.save

    def save(path: Path, value: Any, *others: Any, **named: Any) -> int:
        saved.extend([path.name] if "messages" in path.parts else [])
        return usual(path, value, *others, **named)

    monkeypatch.setattr(codec, "save", save)
    return saved


def test_messages_of_many_parties_are_not_held(
    tmp_path: Path, personal: str, messages: list[str]
) -> None:
    execute(plan_of(personal, parties=40, rounds=1, drawn=40), RunDir(tmp_path / "run"))
    assert MOST[0] <= MESSAGES_HELD + 2
    assert messages == ["all.safetensors", *(f"p{party:05d}.safetensors" for party in range(1, 40))]


def test_parties_that_get_the_same_object_share_a_file(tmp_path: Path, messages: list[str]) -> None:
    execute(plan_of("fedavg", parties=20, rounds=1, drawn=20), RunDir(tmp_path / "run"))
    assert messages == ["all.safetensors"]


def test_fedova_sends_one_file_to_all_and_touches_the_drawn_parties_alone(
    tmp_path: Path, messages: list[str]
) -> None:
    """As many files are touched with 400 parties as with 40; the state does not grow
    with them.
    """
    counts, sizes = [], []
    for parties in (40, 400):
        plan = plan_of("fedova", parties=parties, rounds=3, drawn=4)
        with touched() as paths:
            execute(plan, RunDir(tmp_path / str(parties)))
        counts.append(len(paths))
        sizes.append(len(codec.encode(load_state(tmp_path / str(parties))[1])))
        assert messages == ["all.safetensors"] * 3
        messages.clear()
    assert counts[0] == counts[1]
    assert abs(sizes[0] - sizes[1]) < 200  # numbers of other lengths
