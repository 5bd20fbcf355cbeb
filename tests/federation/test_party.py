"""A party's own data, the wait for its server, and a server's plan for data that it never sees."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ostraka.core.net import Recipe
from ostraka.core.samples import View
from ostraka.core.task import Task
from ostraka.engines.base import Work
from ostraka.engines.brief import Brief, brief_of, read_brief
from ostraka.engines.flower import CannotAsk
from ostraka.errors import ConfigError, DataError, NeedError
from ostraka.federation import party as party_module
from ostraka.federation.party import UNKNOWN_SECONDS, own_of, read_own, until_taken, wait_for_server
from ostraka.federation.plan import plan_for_own_data
from ostraka.federation.project import PartyFolder
from ostraka.federation.server import _pass_on, _told, has_ended
from ostraka.runs.config import make
from ostraka.runs.plan import make_plan

TASK = Task(("ant", "bee", "cat"), (4,), Recipe("mlp", {"hidden": [8]}), view=View(kind="table"))


SEEN = View(mean=(1.0,) * 4, std=(2.0,) * 4, kind="table")


def brief(view: View = SEEN) -> Brief:
    return Brief(method=None, task=TASK, view=view)  # type: ignore[arg-type]


def folder(root: Path, **more: Any) -> PartyFolder:
    return PartyFolder(root, "fed", 0, "north", "localhost:18600", **more)


def save(path: Path, labels: list[str], width: int = 4) -> str:
    x = np.arange(len(labels) * width, dtype=np.float32).reshape(len(labels), width)
    names = sorted(set(labels))
    y = np.array([names.index(label) for label in labels])
    np.savez(path, x=x, y=y, classes=np.array(names))
    return str(path)


def test_own_labels_are_those_of_the_task_by_name(tmp_path: Path) -> None:
    """The file knows only two of three classes: its 0 is the task's 1."""
    samples = read_own(save(tmp_path / "a.npz", ["bee", "cat", "cat"]), brief())
    assert samples.labels.tolist() == [1, 2, 2]
    assert samples.view == brief().view
    assert samples.stored()[1].tolist() == [4.0, 5.0, 6.0, 7.0]


def test_a_class_that_the_task_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="dog"):
        read_own(save(tmp_path / "a.npz", ["bee", "dog"]), brief())


def test_samples_in_other_units_are_brought_to_the_tasks(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", ["bee", "cat"])
    here = read_own(path, brief(View(kind="table")))
    there = read_own(path, brief(View(scale=0.5, kind="table")))
    assert torch.equal(here.inputs(), there.inputs()), "what a network sees is the same"
    assert not torch.equal(here.stored(), there.stored())


def test_a_party_keeps_its_state_for_itself(tmp_path: Path) -> None:
    own = own_of(folder(tmp_path, data="somewhere"))
    assert own.folder == tmp_path / "state"
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_a_party_without_data_says_how_to_give_some(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"north has no data yet.*--data PATH"):
        own_of(folder(tmp_path))


def test_a_share_is_that_of_a_run_in_one_process(tmp_path: Path) -> None:
    text = 'method = "fedov"\ndata = "digits"\npartition = "labels:4"\nparties = 3\n'
    (tmp_path / "run.toml").write_text(text)
    own = own_of(replace(folder(tmp_path, share=True), party=2))
    plan = make_plan(
        make({"method": "fedov", "data": "digits", "partition": "labels:4", "parties": 3})
    )
    samples, mine = own.samples(brief()), plan.parties[2].samples
    assert torch.equal(samples.row_numbers, mine.row_numbers)
    assert samples.view == mine.view


class Waiting:
    """A party that waits: each step of the clock, the next of what the server is like."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reach: list[str], known: list[bool]):
        self.now, self.words = 0.0, list[str]()
        monkeypatch.setattr(party_module, "reach_problem", lambda h, p: self.next(reach))
        monkeypatch.setattr(party_module, "shown_problem", lambda p: "")
        monkeypatch.setattr(party_module, "read_private", lambda p: None)
        monkeypatch.setattr(party_module, "is_registered", lambda *given: self.next(known))
        monkeypatch.setattr(party_module, "say_aloud", self.words.append)

    @staticmethod
    def next(values: list[Any]) -> Any:
        return values.pop(0) if len(values) > 1 else values[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, root: Path, seconds: float) -> None:
        wait_for_server(folder(root), seconds, clock=lambda: self.now, sleep=self.sleep)


def test_a_party_waits_for_a_server_that_comes_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, ["it is down", "it is down", ""], [False, True])
    waiting.wait(tmp_path, 100)
    assert ["it is down" in words for words in waiting.words] == [True, False]
    assert "does not know this party's key" in waiting.words[1]


def test_a_party_waits_no_longer_than_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, ["it is down"], [False])
    with pytest.raises(ConfigError, match="north cannot join localhost:18600: it is down"):
        waiting.wait(tmp_path, 50)
    assert 50 <= waiting.now <= 54


def test_a_party_that_the_server_does_not_know_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, [""], [False])
    with pytest.raises(ConfigError, match="does not know this party's key"):
        waiting.wait(tmp_path, 1e9)
    assert waiting.now <= UNKNOWN_SECONDS + 4


def test_a_certificate_that_is_wrong_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, [""], [True])
    monkeypatch.setattr(party_module, "shown_problem", lambda p: "it expired on 2020-01-01")
    with pytest.raises(ConfigError, match="it expired on 2020-01-01"):
        waiting.wait(tmp_path, 1e9)


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), CannotAsk("no answer")])
def test_a_server_that_goes_away_while_it_is_asked_is_waited_for(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was reached a moment ago, and is being started again."""
    waiting, answers = Waiting(monkeypatch, [""], [True]), iter([error, error])

    def ask(*given: Any) -> bool:
        told = next(answers, None)
        if told is not None:
            raise told
        return True

    monkeypatch.setattr(party_module, "is_registered", ask)
    waiting.wait(tmp_path, 100)
    assert [str(error) in words for words in waiting.words] == [True]


def test_a_party_is_not_started_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes would both write what it keeps, and the server would take turns with them."""
    here = folder(tmp_path)
    refused = []

    def second(party: PartyFolder, wait: float) -> None:
        with pytest.raises(ConfigError, match="north is at work already"):
            party_module.start(party, wait)
        refused.append(party.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(party_module, "wait_for_server", second)
    for _ in range(2):  # and it can be started again once it has ended
        with pytest.raises(KeyboardInterrupt):
            party_module.start(here, 5.0)
    assert refused == ["north", "north"]


def test_a_plan_for_own_data_gives_nobody_any() -> None:
    config = make(
        {"method": "fedavg", "data": "digits", "parties": 2, "set": {"local": {"epochs": 3}}}
    )
    plan = plan_for_own_data(config, ("north", "east"))
    assert [(ref.size, ref.name) for ref in plan.parties.roster()] == [(0, "north"), (0, "east")]
    assert plan.counts.sum() == 0
    assert plan.config.partition == "own"
    assert len(plan.test) > 100
    work = Work(plan.method, plan.task, plan.parties)
    assert read_brief(brief_of(work)).task.classes == plan.task.classes


def test_a_method_that_needs_to_know_all_labels_is_refused() -> None:
    with pytest.raises(NeedError, match="label shares"):
        plan_for_own_data(make({"method": "fedir", "data": "digits"}), ("north",))


def test_what_the_run_says_is_passed_on_in_whole_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tmp_path / "said.txt"
    said.write_bytes(b"old\nostraka: one\nostraka: tw")
    place = _pass_on(said, 4)
    with said.open("ab") as file:
        file.write(b"o\n")
    _pass_on(said, place)
    assert capsys.readouterr().err == "ostraka: one\nostraka: two\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [('note\n{"run-id": "5"}', {"run-id": "5"}), ("nothing", {}), ("{broken", {}), ("", {})],
)
def test_what_flower_says_may_stand_between_other_words(text: str, told: dict[str, str]) -> None:
    assert _told(text) == told


@pytest.mark.parametrize(
    ("status", "ended"),
    [("running", False), ("pending", False), ("finished:failed", True), ("finished:stopped", True)],
)
def test_a_run_is_over_when_flower_says_so(status: str, ended: bool) -> None:
    """Every run in the list has a key `finished-at`, over or not."""
    assert has_ended({"success": True, "runs": [{"status": status, "finished-at": "N/A"}]}) == ended
    assert not has_ended({})
    assert not has_ended({"runs": []})


def test_the_runs_process_ends_with_its_server() -> None:
    """One that was killed, too: else it would keep the run from the next server."""
    server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    code = (
        "import sys, time; from ostraka.federation.server import end_with; end_with(sys.argv[1]); "
        "print('up', flush=True); time.sleep(60)"
    )
    app = subprocess.Popen(
        [sys.executable, "-c", code, str(server.pid)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert app.stdout is not None
        assert app.stdout.readline() == b"up\n"
        assert app.poll() is None, "while the server lives"
        server.kill()
        server.wait()
        assert app.wait(timeout=20) == 1
    finally:
        for process in (server, app):
            process.kill()
            process.wait()
        assert app.stdout is not None
        app.stdout.close()


@pytest.mark.parametrize(
    ("lives", "code", "runs"),
    [
        ([(3, 1), (3, 1), (100, 1)], 1, 3),  # refused twice, then taken, and failed later
        ([(3, 1), (3, 0)], 0, 2),
        ([(3, -15)], -15, 1),  # ended by a signal
        ([(20, 1)] * 99, 1, 8),  # 20 seconds and 4 between them, until 180 are over
    ],
)
def test_a_node_that_the_server_does_not_take_is_begun_again(
    lives: list[tuple[float, int]], code: int, runs: int
) -> None:
    now, begun = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def run() -> int:
        nonlocal begun
        lasted, ended = lives[begun]
        begun += 1
        sleep(lasted)
        return ended

    assert until_taken("east", run, lambda: now, sleep) == code
    assert begun == runs
