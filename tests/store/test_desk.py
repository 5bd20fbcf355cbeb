"""The folder of a run in progress."""

import shutil
from pathlib import Path

import pytest
import torch

from ostraka.core.card import Card
from ostraka.core.method import Report
from ostraka.errors import StoreError
from ostraka.store import codec
from ostraka.store.desk import Desk, DiskProgress, Envelope, Memories, Place, StoredReports


def put(place: Path | Place, value: object = 1) -> None:
    if isinstance(place, Place):
        place.save(value)
    else:
        codec.save(place, value)


@pytest.mark.parametrize(("finished", "newest"), [(1, None), (2, 2), (8, 2), (9, 9), (10, 10)])
def test_the_newest_memory_of_a_finished_round(
    tmp_path: Path, finished: int, newest: int | None
) -> None:
    """Party 3 took part in rounds 2, 9 and 10; names must sort as numbers do."""
    desk = Desk(tmp_path)
    for index in (2, 9, 10):
        put(desk.memory(index, 3), {"round": index})
    put(desk.memory(4, 2))
    memories = Memories(desk, finished)
    assert memories.newest(3) == (None if newest is None else desk.memory(newest, 3))
    assert memories.newest(1) is None
    later = {index for index in (2, 9, 10) if index > finished}
    kept = {index for index in (2, 9, 10) if desk.memory(index, 3).exists()}
    assert kept == later | ({newest} if newest else set()), "of the finished ones the last stays"


def test_a_round_that_ends_replaces_memories(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    memories = Memories(desk, 0)
    put(desk.memory(1, 0), {"n": 1})
    put(desk.memory(1, 5), {"n": 1})
    memories.round_ends(1, [0, 5])
    put(desk.memory(2, 0), {"n": 2})
    assert memories.newest(0) == desk.memory(1, 0), "until its round is checkpointed"
    memories.round_ends(2, [0])
    assert memories.newest(0) == desk.memory(2, 0)
    assert not desk.memory(1, 0).exists()
    assert memories.newest(5) == desk.memory(1, 5)
    assert desk.memory(1, 5).load() == {"n": 1}
    memories.round_ends(2, [0])
    assert desk.memory(2, 0).exists(), "the same end once more"


def test_what_finished_rounds_leave_is_removed(tmp_path: Path) -> None:
    """After round 2: its message, progress and reports go; memories are not touched."""
    desk = Desk(tmp_path)
    for index in (1, 2):
        put(desk.memory(index, 0))
    put(desk.message(1, None))  # of a process that was killed before it removed it
    put(desk.message(2, None))
    put(desk.message(2, 4))
    put(desk.report(2, 0))
    put(desk.progress(2, 0).inside("fit"))
    put(desk.report(3, 0))
    assert desk.reports_of(2) == {"p00000.safetensors"}
    desk.clear_until(2)
    assert desk.reports_of(2) == set()
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.safetensors"))
    assert left == [
        "memory/p00000/r00001.safetensors",
        "memory/p00000/r00002.safetensors",
        "reports/r00003/p00000.safetensors",
    ]


def test_a_shelf_keeps_its_reports(tmp_path: Path) -> None:
    """Reports on a shared shelf serve other runs; half-finished training beside them goes."""
    desk = Desk(tmp_path / "run", "ab12", tmp_path / "shelf" / "cd34")
    put(desk.report(1, 0))
    put(desk.progress(1, 0).inside("fit"))
    desk.clear_until(1)
    assert desk.report(1, 0).exists()
    assert not desk.progress(1, 0).exists()
    assert desk.report(1, 0).path.is_relative_to(tmp_path / "shelf")
    assert desk.report(1, 0).seal["run"] == "cd34", (
        "a shared report belongs to the shelf, not to one run"
    )
    assert desk.memory(1, 0).seal["run"] == "cd34", "one order has one owner"


def test_every_piece_says_whose_it_is(tmp_path: Path) -> None:
    """A file copied over that of another party, round or run is refused, whatever it is."""
    desk, other = Desk(tmp_path / "a", "ab12"), Desk(tmp_path / "b", "cd34")
    for place in (desk.report, desk.memory, lambda r, p: desk.progress(r, p).inside("fit")):
        place(1, 0).save("mine")
        for wrong in (place(1, 1), place(2, 0)):
            wrong.path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place(1, 0).path, wrong.path)
            with pytest.raises(StoreError, match="it was copied or moved there"):
                wrong.load()
    other.report(1, 0).path.parent.mkdir(parents=True)
    shutil.copy(desk.report(1, 0).path, other.report(1, 0).path)
    with pytest.raises(
        StoreError, match="of run cd34, round 1, party 0, but it is the report of run ab12"
    ):
        other.report(1, 0).load()


def test_progress_remembers_values_and_cpu_time(tmp_path: Path) -> None:
    first = DiskProgress(Place(tmp_path / "p", {"what": "x"}))
    assert first.load("fit") is None
    first.save("fit", {"x": torch.ones(2), "n": 3})
    first.save("other", {"n": 4})
    second = DiskProgress(Place(tmp_path / "p", {"what": "x"}))
    loaded = second.load("fit")
    assert loaded is not None
    assert loaded["x"].tolist() == [1.0, 1.0]
    assert loaded["n"] == 3
    saved = codec.load(tmp_path / "p" / "fit.safetensors", {"what": "x", "name": "fit"})[
        "cpu_seconds"
    ]
    assert second.cpu_seconds() >= second.spent_before == saved


def test_progress_tells_who_watches(tmp_path: Path) -> None:
    told: list[tuple[float, float | None]] = []
    DiskProgress(Place(tmp_path, {}), lambda done, loss: told.append((done, loss))).tell(0.5, 2.0)
    DiskProgress(Place(tmp_path, {})).tell(0.5, 2.0)
    assert told == [(0.5, 2.0)]


def test_stored_reports_load_on_access_without_memory(tmp_path: Path) -> None:
    """A memory that slipped into a file is not shown to the server;
    deleted files show that nothing is cached.
    """
    places = tuple(Place(tmp_path / f"{i}.safetensors", {"party": i}) for i in range(3))
    for i, place in enumerate(places):
        report = Report({"w": torch.full((1,), float(i))}, 1.0, Card(i, 1), memory={"secret": 1})
        place.save(Envelope(report, 0.1, 0.1, 10))
    reports = StoredReports(places)
    assert len(reports) == 3
    assert [r.card.party for r in reports] == [0, 1, 2]
    assert reports[-1].card.party == 2
    assert [r.card.party for r in reports[1:]] == [1, 2]
    assert all(r.memory == {} for r in reports)
    places[0].path.unlink()
    assert reports[1].card.party == 1


def test_whoever_looks_at_a_held_report_gets_a_copy(tmp_path: Path) -> None:
    """It was never written; whoever changes it finds what arrived when looking again."""
    place = Desk(tmp_path).report(1, 0)
    report = Report({"w": torch.zeros(2)}, 1.0, Card(0, 1), memory={"secret": 1})
    held = {place.path: codec.Opened.of_value(Envelope(report, 0.0, 0.0, 0))}
    reports = StoredReports((place,), held)
    first = reports[0]
    assert first.memory == {}
    first.payload["w"].fill_(5)
    assert reports[0].payload["w"].tolist() == [0, 0]
    assert reports[:1][0].payload["w"].tolist() == [0, 0]
    assert not place.exists()
