"""Data, divisions and stored files that change between the stop of a run
and its resume, or after its end.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ostraka
from ostraka.engines.base import Outcome
from ostraka.errors import ConfigError, DataError, Interrupted, PartyFailed, StoreError
from ostraka.runs import config
from ostraka.runs.api import prepare
from ostraka.runs.division import load_once
from ostraka.runs.grid import Grid, run_grid
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, _print
from ostraka.runs.record import RunDir, load_state
from ostraka.runs.watch import Watch
from ostraka.store import codec

VALUES: dict[str, Any] = {
    "method": "fedavg",
    "data": "./mine.npz",
    "partition": "iid",
    "parties": 3,
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [4]}},
    "set": {"rounds": 3, "local": {"epochs": 1}},
}


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (60, 3, 3), dtype=np.uint8)
    return {
        "x_train": x[:40],
        "y_train": np.arange(40) % 4,
        "x_test": x[40:],
        "y_test": np.arange(20) % 4,
    }


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A data set in the working folder, and a way to write it anew
    as another process would meet it.
    """
    monkeypatch.chdir(tmp_path)

    def write(**changed: np.ndarray) -> None:
        np.savez("mine.npz", **{**arrays(), **changed})
        os.utime("mine.npz", ns=(1, (Path("mine.npz").stat().st_mtime_ns or 0) + 10**9))
        forget()

    write()
    return write


def forget() -> None:
    load_once.cache_clear()
    _print.cache_clear()


class StopAfter(Watch):
    def __init__(self, last: int) -> None:
        self.last = last

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        if index > self.last:
            raise KeyboardInterrupt


def go(
    out: str = "run",
    resume: bool = False,
    watch: Watch | None = None,
    save_seconds: float = 60.0,
    **values: Any,
) -> dict[str, Any]:
    home = RunDir(Path(out))
    ready = prepare(config.make({**VALUES, **values}), home, resume)
    if not isinstance(ready, Plan):
        return ready
    return execute(ready, home, watch, resume, save_seconds=save_seconds)


def stop(out: str = "run", after: int = 1, **values: Any) -> None:
    with pytest.raises(Interrupted):
        go(out, watch=StopAfter(after), **values)


OTHER_LABELS = {"y_train": (np.arange(40) + 1) % 4}


def test_labels_that_changed_between_stop_and_resume(mine: Callable[..., None]) -> None:
    stop()
    mine(**OTHER_LABELS)
    with pytest.raises(
        DataError,
        match=r"mine\.npz' has changed since the run in run was begun: other training labels",
    ):
        go(resume=True)
    mine()
    assert go(resume=True).rounds == 3, "the old data back, the run goes on"


@pytest.mark.parametrize(
    ("part", "words"),
    [("x_train", "training samples"), ("x_test", "test samples"), ("y_test", "test labels")],
)
def test_what_changed_is_said_of_a_finished_run_too(
    part: str, words: str, mine: Callable[..., None]
) -> None:
    go()
    values = arrays()[part].copy()
    values[0] = (values[0] + 1) % 4
    mine(**{part: values})
    with pytest.raises(DataError, match=f"other {words};"):
        go(resume=True)


def test_the_same_samples_in_another_file_are_the_same_data(mine: Callable[..., None]) -> None:
    done = go()
    np.savez_compressed("mine.npz", **arrays())
    forget()
    assert go(resume=True) == done
    stop("other")
    np.savez("mine.npz", **arrays())
    forget()
    assert go("other", resume=True).accuracy == done.accuracy


def test_files_of_the_same_size_and_time_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = go()
    forget()
    monkeypatch.setattr(
        "ostraka.data.fingerprint.load", lambda *_: pytest.fail("the data was decoded")
    )
    monkeypatch.setattr(
        "ostraka.data.fingerprint.sha256_of", lambda *_: pytest.fail("the file was read")
    )
    assert go(resume=True) == done


def test_a_finished_run_is_shown_without_its_data() -> None:
    done = go()
    Path("mine.npz").unlink()
    forget()
    again = go(resume=True)
    assert again.accuracy == done.accuracy
    assert len(again.notes) == len(done.notes) + 1
    assert "mine.npz can no longer be read" in again.notes[-1]


def test_a_grid_does_not_show_a_cell_of_other_data(mine: Callable[..., None]) -> None:
    base = {
        key: value for key, value in VALUES.items() if key not in ("method", "data", "partition")
    }
    grid = Grid(("fedavg",), ("./mine.npz",), ("iid",), (0,), base, {})
    (first,) = run_grid(grid, Path("grid"))
    assert run_grid(grid, Path("grid")) == [first]
    mine(**OTHER_LABELS)
    (second,) = run_grid(grid, Path("grid"))
    assert second.status == "failed"
    assert "other training labels" in second.error
    Path("mine.npz").unlink()
    forget()
    (third,) = run_grid(grid, Path("grid"))
    assert third.summary is not None
    assert first.summary is not None
    assert third.summary.accuracy == first.summary.accuracy
    assert "can no longer be read" in third.summary.notes[-1]


def test_a_shelf_is_not_asked_for_other_data(mine: Callable[..., None]) -> None:
    """Other training samples with the same labels: the members on the shelf are not theirs."""

    class Ready(Watch):
        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            found.append(ready)

    found: list[int] = []
    for out in ("a", "b", "c"):
        if out == "c":
            mine(x_train=arrays(1)["x_train"])
        plan = prepare(
            config.make({**VALUES, "method": "solo", "set": {"local": {"epochs": 1}}}),
            RunDir(Path(out)),
            False,
        )
        assert isinstance(plan, Plan)
        execute(plan, RunDir(Path(out)), Ready(), shelf=Path("shelf"))
    assert found == [0, 3, 0]


def division(names: list[str]) -> None:
    parties = [list(range(0, 40, 2)), list(range(1, 40, 2))]
    Path("division.json").write_text(json.dumps({"parties": parties, "names": names}))


def test_a_partition_file_that_is_gone_or_changed() -> None:
    division(["north", "south"])
    values = {"partition": "file:division.json", "parties": None}
    stop("run", **values)
    go("done", **values)
    Path("division.json").rename("kept.json")
    assert go("run", resume=True, **values).per_party.keys() == {"north", "south"}
    assert "division.json is gone" in go("done", resume=True, **values).notes[-1]
    stop("again", partition="file:kept.json", parties=None)
    division(["north", "west"])
    shutil.copy("division.json", "kept.json")
    with pytest.raises(DataError, match="the division among the parties is not the one"):
        go("again", resume=True, partition="file:kept.json", parties=None)
    with pytest.raises(DataError, match="the division among the parties is not the one"):
        go("done", resume=True, **values)


def test_rows_left_out_on_purpose_are_remembered() -> None:
    Path("division.json").write_text(
        json.dumps({"parties": [[0, 1, 2, 3], [4, 5, 6, 7]], "partial": True})
    )
    values = {"partition": "file:division.json", "parties": None}
    stop("run", **values)
    Path("division.json").unlink()
    assert go("run", resume=True, **values).parties == 2


def test_an_edited_division_of_the_run_itself_is_refused() -> None:
    stop()
    content = json.loads(Path("run/partition.json").read_text())
    content["parties"][0], content["parties"][1] = content["parties"][1], content["parties"][0]
    Path("run/partition.json").write_text(json.dumps(content))
    with pytest.raises(
        DataError, match=r"partition\.json or the file that it was read from has changed"
    ):
        go(resume=True)


def reports(out: str) -> list[Path]:
    return sorted(Path(out).glob("work/reports/r*/p*.safetensors"))


class StopInside(Watch):
    """Ctrl-C once two parties of round 2 have ended."""

    def __init__(self) -> None:
        self.ended = 0

    def party_ends(self, outcome: Outcome) -> None:
        self.ended += 1
        if self.ended == 5:
            raise KeyboardInterrupt


def test_a_report_copied_over_another_partys_is_its_failure() -> None:
    with pytest.raises(Interrupted):
        go(watch=StopInside())
    first, second = reports("run")
    shutil.copy(first, second)
    with pytest.raises(
        PartyFailed, match=r"party-1: its report cannot be used: .* party 1, but it is the report"
    ):
        go(resume=True)
    assert go(resume=True).accuracy == go("straight").accuracy, (
        "the party that was named has trained again"
    )


@pytest.mark.parametrize("left", [0, 10, -1, "zeros"])
def test_a_report_that_a_power_cut_left_unwhole_is_made_again(left: int | str) -> None:
    """Reports of many rounds are not synced one by one: a file may be there, and empty, short or
    full of zeros. Its party trains again; the whole one stays."""
    with pytest.raises(Interrupted):
        go(watch=StopInside())
    _, second = reports("run")
    data = second.read_bytes()
    second.write_bytes(bytes(len(data)) if left == "zeros" else data[: int(left)])
    trained: list[int] = []

    class Count(Watch):
        def party_ends(self, outcome: Outcome) -> None:
            trained.append(outcome.party)

    resumed = go(resume=True, watch=Count())
    assert trained == [1, 2, 0, 1, 2], "of round 2 the cut one and the missing one"
    assert resumed.accuracy == go("straight").accuracy
    states = [codec.encode(load_state(Path(out))[1]) for out in ("run", "straight")]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    ("method", "reports_synced"), [("fedavg", False), ("scaffold", False), ("closed-voting", True)]
)
def test_what_must_survive_a_power_cut_is_synced(
    monkeypatch: pytest.MonkeyPatch, method: str, reports_synced: bool
) -> None:
    """Members of one exchange, memories and checkpoints one by one; messages and the reports of
    rounds that are repeated anyway are not, where they are written at all."""
    synced: dict[str, set[bool]] = {}
    usual = codec.write_atomically

    def write(path: Path, data: bytes, durable: bool = True, mode: int | None = None) -> None:
        kinds = ("reports", "memory", "messages", "members")
        what = next((kind for kind in kinds if kind in path.parts), path.name)
        synced.setdefault(what, set()).add(durable)
        usual(path, data, durable, mode)

    monkeypatch.setattr(codec, "write_atomically", write)
    one_shot = {"local": {"steps": 2}}
    go(method=method, save_seconds=0, **({"set": one_shot} if method == "closed-voting" else {}))
    assert synced["reports"] == {reports_synced}
    assert synced["messages"] == {False}
    assert synced["checkpoint.safetensors"] == synced["model.safetensors"] == {True}
    assert synced.get("memory", {True}) == synced.get("members", {True}) == {True}
    assert ("memory" in synced) == (method == "scaffold")


@pytest.mark.parametrize("number", [999, -5, 0])
def test_a_checkpoint_of_a_round_that_there_is_not(number: int) -> None:
    stop(after=2)
    place = RunDir(Path("run")).checkpoint_place()
    place.save({**place.load(), "round": number})
    with pytest.raises(StoreError, match=f"is of round {number}, but this run has rounds 1 to 3"):
        go(resume=True)


def test_a_checkpoint_of_another_run_or_without_a_round() -> None:
    stop(after=2)
    stop("other", after=1, seed=1)
    shutil.copy("other/checkpoint.safetensors", "run/checkpoint.safetensors")
    with pytest.raises(StoreError, match="but it is the checkpoint of run"):
        go(resume=True)
    RunDir(Path("run")).checkpoint_place().save({"state": {}})
    with pytest.raises(StoreError, match="lacks 'round'"):
        go(resume=True)


def test_a_summary_of_another_run_or_an_edited_one_is_refused() -> None:
    go()
    go("other", seed=1)
    mine = Path("run/summary.json").read_text()
    shutil.copy("other/summary.json", "run/summary.json")
    with pytest.raises(
        StoreError, match=r"summary\.json is of the run .*, but this folder holds the run"
    ):
        go(resume=True)
    Path("run/summary.json").write_text(mine.replace('"parties": 3', '"parties": 4'))
    with pytest.raises(StoreError, match="was changed after it was written"):
        go(resume=True)
    for content in ("{}", "[]"):
        Path("run/summary.json").write_text(content)
        with pytest.raises(StoreError, match="not a file that Ostraka wrote"):
            go(resume=True)


def test_a_lock_that_is_a_folder_and_folders_that_are_not_ours() -> None:
    Path("run/lock").mkdir(parents=True)
    with pytest.raises(StoreError, match="a folder stands where the file should be"):
        go()
    Path("full").mkdir()
    Path("full/thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"full holds files that are not of a run: thesis\.txt"):
        go("full")
    Path("file").write_text("mine")
    with pytest.raises(ConfigError, match="file is a file, and a run needs a folder"):
        go("file")
    assert Path("file").read_text() == "mine"


def test_a_full_disk_stops_the_run_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up when party 2 stores its report, which it does at once.

    With space again, only that party trains.
    """
    write, full = codec.write_atomically, True

    def fails(path: Path, data: bytes, durable: bool = True, mode: int | None = None) -> None:
        if full and path.match("reports/*/p00002.safetensors"):
            raise StoreError(f"{path} cannot be written: No space left on device")
        write(path, data)

    monkeypatch.setattr(codec, "write_atomically", fails)
    with pytest.raises(
        StoreError, match=r"could not be stored: party-2: .*No space left.*--resume --out run"
    ) as caught:
        go(on_failure="drop", save_seconds=0)
    assert caught.value.exit_code == 2
    full = False
    trained: list[int] = []

    class Count(Watch):
        def party_ends(self, outcome: Outcome) -> None:
            trained.append(outcome.party)

    go(resume=True, watch=Count())
    assert trained[0] == 2
    assert len(trained) == 1 + 2 * 3


def test_a_log_that_cannot_be_written_does_not_hide_the_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ostraka.methods.fedavg.FedAvg.local_update", lambda *_: 1 / 0)
    plan = prepare(config.make(VALUES), RunDir(Path("run")), False)
    assert isinstance(plan, Plan)

    class Block(Watch):
        def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
            Path("run/failures.log").mkdir()

    with pytest.raises(PartyFailed, match=r"ZeroDivisionError.*failures\.log cannot be written"):
        execute(plan, RunDir(Path("run")), Block())


@pytest.mark.parametrize(
    ("steps", "message"), [(9, "the loss became"), (1, "its network answers with NaN")]
)
def test_what_would_fail_again_is_not_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, steps: int, message: str
) -> None:
    """A party's training diverges: its loss is no number, or its weights give none. The learning
    rate of a begun run cannot be changed, so there is nothing to fix before a resume.
    """
    from ostraka.methods.fedavg import FedAvg

    usual = FedAvg.local_update

    def away(self: Any, rnd: Any, party: Any, memory: Any) -> Any:
        fast = replace(self, local=replace(self.local, lr=1e30, steps=steps))
        if party.id == 2:
            raise ZeroDivisionError  # beside it another failure, which could be fixed
        return usual(fast if party.id == 1 else self, rnd, party, memory)

    monkeypatch.setattr(FedAvg, "local_update", away)
    with pytest.raises(PartyFailed, match=f"2 of 3 parties failed.*{message}") as caught:
        go()
    told = str(caught.value)
    assert "lower the learning rate" in told
    assert "begin a new run with other settings, or go on without: ostraka run --resume" in told
    assert "fix the cause" not in told


def test_a_failed_party_can_be_dropped_on_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    from ostraka.methods.fedavg import FedAvg

    usual = FedAvg.local_update
    monkeypatch.setattr(
        FedAvg,
        "local_update",
        lambda self, rnd, party, memory: usual(self, rnd, party, memory) if party.id else 1 / 0,
    )
    with pytest.raises(
        PartyFailed, match="or go on without: ostraka run --resume --out run --on-failure drop"
    ):
        go()
    assert go(resume=True, on_failure="drop").dropped == (0, 0, 0)


def test_the_public_function_goes_on_too() -> None:
    stop()
    values = {key: value for key, value in VALUES.items() if key != "method"}
    summary = ostraka.run("fedavg", out="run", resume=True, **values)
    assert ostraka.run("fedavg", out="run", resume=True, **values) == summary


def test_a_run_of_a_table_knows_the_column_with_the_classes(tmp_path: Path) -> None:
    """Another column makes another run; a file that was touched is read again by the column."""
    rows = [f"{i % 7},{'ab'[i % 2]},{'xyz'[i % 3]}\n" for i in range(60)]
    Path("w.csv").write_text("age,ward,kind\n" + "".join(rows))
    values = {**VALUES, "data": "./w.csv", "label": "kind", "parties": 2}
    values["set"] = {"rounds": 1, "local": {"epochs": 1}}
    done = ostraka.run(**values, out="out", progress=False)
    assert list(done.summary.per_class) == ["x", "y", "z"]
    os.utime("w.csv", ns=(1, (Path("w.csv").stat().st_mtime_ns or 0) + 10**9))
    again = ostraka.run(**values, out="out", resume=True, progress=False)
    assert again.summary.accuracy == done.summary.accuracy
    Path("w.csv").write_text("age,ward,kind\n" + "".join(rows).replace("3,b", "4,b"))
    with pytest.raises(DataError, match="training samples"):
        ostraka.run(**values, out="out", resume=True, progress=False)
    with pytest.raises(ConfigError, match=r"label = 'kind' \(now 'ward'\)"):
        ostraka.run(**{**values, "label": "ward"}, out="out", resume=True, progress=False)
