"""The round loop: folders that are refused, parties that fail,
members that are shared, figures that are kept.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ostraka.core.method import Memory, Report, Round
from ostraka.core.party import Party
from ostraka.engines.base import Outcome
from ostraka.errors import ConfigError, Interrupted, PartyFailed, StoreError
from ostraka.methods.fedavg import FedAvg
from ostraka.registry import METHODS
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir, load_state
from ostraka.runs.results import MetricsRow
from ostraka.runs.summary import brief
from ostraka.runs.watch import Watch
from ostraka.store import codec, jsonfile

BASE: dict[str, Any] = {
    "train_per_class": 10,
    "partition": "iid",
    "parties": 4,
    "engine": "serial",
    "net": {"name": "mlp", "options": {"hidden": [8]}},
    "set": {"local": {"epochs": 1}},
}


def plan_of(method: str = "fedavg", **values: Any) -> Plan:
    return make_plan(config.make({**BASE, "method": method, **values}))


@dataclass(frozen=True)
class Unlucky(FedAvg):
    """Party 2 always fails; the others train."""

    bad: tuple[int, ...] = (2,)

    def local_update(self, rnd: Round[Any], party: Party, memory: Memory) -> Report[Any]:
        if party.id in self.bad:
            raise RuntimeError("out of luck")
        return super().local_update(rnd, party, memory)


@pytest.fixture
def unlucky() -> Iterator[str]:
    METHODS.add("unlucky")(Unlucky)
    yield "unlucky"
    METHODS.remove("unlucky")


class Counter(Watch):
    """How many parties a run trained, and how many it found ready."""

    def __init__(self) -> None:
        self.trained, self.ready = list[int](), list[int]()

    def round_begins(self, index: int, rounds: int, parties: int, ready: int) -> None:
        self.ready.append(ready)

    def party_ends(self, outcome: Outcome) -> None:
        if outcome.failure is None:
            self.trained.append(outcome.party)


def test_a_finished_run(tmp_path: Path) -> None:
    home = RunDir(tmp_path / "run")
    summary = execute(plan_of(set={"rounds": 3, "local": {"epochs": 1}}), home)
    names = {path.name for path in home.root.iterdir()}
    assert {
        "config.toml",
        "partition.json",
        "environment.json",
        "metrics.jsonl",
        "summary.json",
    } <= names
    assert "model.safetensors" in names
    assert "checkpoint.safetensors" not in names
    rows = home.read_metrics()
    assert [row.round for row in rows] == [1, 2, 3]
    figures = [row.test.accuracy for row in rows]
    assert summary.accuracy == figures[-1]
    assert summary.best.accuracy == max(figures)
    assert summary.mean_last_20 == pytest.approx(sum(figures) / 3)
    assert json.loads(home.summary.read_text()) == summary.to_json()
    assert "auroc" not in brief(summary)
    stored, state = load_state(home.root)
    assert config.identity(stored) == config.identity(
        plan_of(set={"rounds": 3, "local": {"epochs": 1}}).config
    )
    assert stored.set["local"]["lr"] == 0.02, (
        "settings that were left at their defaults are written out"
    )
    assert state.keys() == plan_of().method.init(plan_of().task, 0).keys()


def test_bytes_are_counted_per_party_and_round(tmp_path: Path) -> None:
    """Four parties get and give the same network in each of 2 rounds:
    twice the bytes of one round, up and down.
    """
    once, twice = (
        execute(plan_of(set={"rounds": n, "local": {"epochs": 1}}), RunDir(tmp_path / str(n)))
        for n in (1, 2)
    )
    state = codec.encode(plan_of().method.init(plan_of().task, 0))
    assert once.bytes_down == 4 * len(state)
    assert twice.bytes_down == 2 * once.bytes_down
    assert once.bytes_up > 4 * len(state)  # a card comes with each
    assert twice.bytes_up == pytest.approx(2 * once.bytes_up, rel=0.01)


def test_eval_every_and_the_last_round(tmp_path: Path) -> None:
    home = RunDir(tmp_path / "run")
    execute(plan_of(eval_every=2, set={"rounds": 5, "local": {"epochs": 1}}), home)
    assert [row.round for row in home.read_metrics()] == [2, 4, 5]


def test_best_on_validation(tmp_path: Path) -> None:
    home = RunDir(tmp_path / "run")
    summary = execute(plan_of(validation=0.2, set={"rounds": 3, "local": {"epochs": 1}}), home)
    rows = home.read_metrics()
    best = max(rows, key=lambda row: row.validation)
    assert summary.best_on_validation.round == best.round
    assert summary.best_on_validation.accuracy == best.test.accuracy


def test_a_process_that_has_imported_nothing_else_can_load_a_run(tmp_path: Path) -> None:
    """Scaffold's state is of a type of its own, which its module registers."""
    execute(plan_of(method="scaffold", set={"local": {"epochs": 1}}), RunDir(tmp_path / "run"))
    code = "import sys; from ostraka.runs.record import load_state; from pathlib import Path; "
    code += "print(type(load_state(Path(sys.argv[1]))[1]).__name__)"
    shown = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert shown.stdout.strip() == "Controls", shown.stderr


def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    """The file stays, as `lock`; whoever held it is gone, and so is the hold."""
    home = RunDir(tmp_path / "run")
    code = "import sys, time; from pathlib import Path; from ostraka.runs.record import RunDir\n"
    code += "with RunDir(Path(sys.argv[1])).locked(): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code, home.root], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="another run is at work"), home.locked():
            pass
        process.kill()
    assert (home.root / "lock").exists()
    for _ in range(2):  # nor does one that ended
        with home.locked():
            pass


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    home = RunDir(tmp_path / "run")
    with home.locked(), pytest.raises(ConfigError, match="another run is at work"):
        execute(plan_of(), home)
    execute(plan_of(), home)
    with pytest.raises(ConfigError, match="holds a finished run; add --resume"):
        execute(plan_of(), home)


def test_resuming_a_finished_run_gives_its_summary(tmp_path: Path) -> None:
    home, counter = RunDir(tmp_path / "run"), Counter()
    summary = execute(plan_of(), home)
    assert execute(plan_of(), home, counter, resume=True) == summary
    assert counter.ready == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 1}, r"seed = 0 \(now 1\)"),
        ({"parties": 5}, r"parties = 4 \(now 5\)"),
        ({"set": {"local": {"epochs": 2}}}, r"set\.local\.epochs = 1 \(now 2\)"),
    ],
)
def test_resuming_with_another_setting_is_refused(
    changed: dict[str, Any], words: str, tmp_path: Path
) -> None:
    home = RunDir(tmp_path / "run")
    execute(plan_of(), home)
    with pytest.raises(ConfigError, match=words):
        execute(plan_of(**changed), home, resume=True)


def test_resuming_with_another_engine_is_allowed(tmp_path: Path) -> None:
    home = RunDir(tmp_path / "run")
    summary = execute(plan_of(), home)
    assert execute(plan_of(engine="pool", workers=1), home, resume=True) == summary


def test_a_failed_party_stops_the_run_and_keeps_the_others(unlucky: str, tmp_path: Path) -> None:
    home, counter = RunDir(tmp_path / "run"), Counter()
    with pytest.raises(
        PartyFailed, match="1 of 4 parties failed: party-2: RuntimeError: out of luck"
    ):
        execute(plan_of(unlucky), home)
    assert "Traceback" in (home.root / "failures.log").read_text()
    plan = plan_of(unlucky)
    execute(
        replace(plan, method=Unlucky(bad=(), local=plan.method.local)), home, counter, resume=True
    )  # fixed
    assert counter.ready[0] == 3
    assert counter.trained[0] == 2


def test_a_failed_party_can_be_dropped(unlucky: str, tmp_path: Path) -> None:
    """The others' mean; the dropped one is named once for every round."""
    summary = execute(
        plan_of(unlucky, on_failure="drop", set={"rounds": 2, "local": {"epochs": 1}}),
        RunDir(tmp_path / "run"),
    )
    assert summary.dropped == tuple(
        {"party": "party-2", "round": index, "why": "RuntimeError: out of luck"} for index in (1, 2)
    )
    assert (tmp_path / "run" / "failures.log").exists()


def test_a_round_ends_with_the_fewest_parties_and_not_with_fewer(
    unlucky: str, tmp_path: Path
) -> None:
    """One of four fails: three are left. What may be too few can be said anew on resume."""
    home = RunDir(tmp_path / "run")
    with pytest.raises(PartyFailed, match="1 of 4 parties failed; at least 4 must finish"):
        execute(plan_of(unlucky, on_failure="drop", min_parties=4), home)
    summary = execute(plan_of(unlucky, on_failure="drop", min_parties=3), home, resume=True)
    assert {one["party"] for one in summary.dropped} == {"party-2"}


def test_the_fewest_parties_are_a_setting_of_the_run_and_not_of_the_engine() -> None:
    def engine(**more: Any) -> Any:
        return config.build_engine(config.make({"engine": "flower", **more}))

    assert engine(on_failure="drop", min_parties=3).min_parties == 3
    assert engine(min_parties=3).min_parties is None, "who stops at a failure needs all"
    with pytest.raises(ConfigError, match="--min-parties"):
        engine(engine={"name": "flower", "options": {"min_parties": 2}})


def test_a_round_in_which_all_fail_stops_even_so(tmp_path: Path) -> None:
    plan = replace(plan_of(on_failure="drop"), method=Unlucky(bad=(0, 1, 2, 3)))
    with pytest.raises(PartyFailed, match="4 of 4 parties failed"):
        execute(plan, RunDir(tmp_path / "run"))


def test_members_are_trained_once_for_every_ballot(tmp_path: Path) -> None:
    """A second run with another ballot takes all members from the shelf.

    Another seed or training does not.
    """
    first, second, other, seed = Counter(), Counter(), Counter(), Counter()
    shelf = tmp_path / "shelf"
    execute(plan_of("closed-voting"), RunDir(tmp_path / "a"), first, shelf=shelf)
    ballot = {"local": {"epochs": 1}, "ballot": "plurality"}
    execute(plan_of("closed-voting", set=ballot), RunDir(tmp_path / "b"), second, shelf=shelf)
    execute(
        plan_of("closed-voting", set={"local": {"epochs": 2}}),
        RunDir(tmp_path / "c"),
        other,
        shelf=shelf,
    )
    execute(plan_of("closed-voting", seed=1), RunDir(tmp_path / "d"), seed, shelf=shelf)
    assert len(first.trained) == len(other.trained) == len(seed.trained) == 4
    assert (second.trained, second.ready) == ([], [4])


ROW = {"run": "ab12", "round": 1, "test": {"accuracy": 50.0}}
ROWS = [MetricsRow.from_json(ROW), MetricsRow.from_json({**ROW, "round": 2})]


def begun(root: Path) -> RunDir:
    home = RunDir(root)
    jsonfile.write_signed(home.marks, {"run": "ab12", "data": {}, "partition": ""})
    return home


def test_a_metrics_line_cut_short_by_a_kill_is_left_out(tmp_path: Path) -> None:
    home = begun(tmp_path)
    home.write_metrics(ROWS)
    with home.metrics.open("a") as file:
        file.write('{"round": 3, "te')
    assert home.read_metrics() == ROWS


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "garbage",
        json.dumps(ROW),
        json.dumps({**ROW, "run": "cd34", "round": 2}),
        '{"run": "ab12", "round": 2}',
    ],
    ids=["empty", "list", "garbage", "the same round again", "another run", "no figures"],
)
def test_a_strange_metrics_line_is_refused(line: str, tmp_path: Path) -> None:
    home = begun(tmp_path)
    home.write_metrics(ROWS[:1])
    with home.metrics.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(
        StoreError, match=r"line 2 of .*metrics\.jsonl is not the next evaluated round of this run"
    ):
        home.read_metrics()


def test_metrics_of_a_round_without_checkpoint_come_again_once(tmp_path: Path) -> None:
    """Stopped after round 2 was evaluated and before it was checkpointed:
    its line must not be there twice.
    """

    class Stop(Watch):
        def evaluated(self, index: int, accuracy: float | None) -> None:
            if index == 2:
                raise KeyboardInterrupt

    values = {"set": {"rounds": 3, "local": {"epochs": 1}}}
    home = RunDir(tmp_path / "run")
    with pytest.raises(Interrupted):
        execute(plan_of(**values), home, Stop())
    assert [row.round for row in home.read_metrics()] == [1, 2]
    assert home.checkpoint_place().load()["round"] == 1
    execute(plan_of(**values), home, resume=True)
    assert [row.round for row in home.read_metrics()] == [1, 2, 3]


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no finished run"):
        load_state(tmp_path)
    with pytest.raises(ConfigError, match="there is no run to resume"):
        RunDir(tmp_path).stored_config()


def test_open_set_figures(tmp_path: Path) -> None:
    """With six known classes the test has unknown samples, and the summary their figures."""
    summary = execute(plan_of(known=6), RunDir(tmp_path / "run"))
    refused = {"known_refused", "unknown_refused", "balanced_accuracy"}
    assert summary.open.as_dict().keys() == {"auroc", "fpr95", "oscr", "open_accuracy"} | refused
    assert brief(summary)["auroc"] == summary.open.auroc
    assert len(summary.per_class) == 6
