"""`ostraka run`: JSON, configuration files, folders, resuming, failures."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from ostraka.store import jsonfile
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka

KEYS = {
    "method",
    "accuracy",
    "seconds",
    "cpu_seconds",
    "bytes_up",
    "bytes_down",
    "rounds",
    "seed",
    "out",
}


def test_json_is_one_object_with_the_promised_keys(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--seed", "3", "--json", "--out", "first")
    assert done.code == 0
    found = done.json()
    assert found.keys() >= KEYS
    assert "auroc" not in found
    assert (found["method"], found["seed"], found["rounds"], found["out"]) == (
        "fedavg",
        3,
        20,
        "first",
    )
    assert 0 <= found["accuracy"] <= 100
    assert found["bytes_up"] > 0
    assert found["bytes_down"] > 0
    assert len(done.out.strip().splitlines()) == 1


def test_open_set_runs_report_auroc(ostraka: Ostraka) -> None:
    done = ostraka(
        "run", "closed-voting", *TINY, *ONE_EPOCH, "--known", "6", "--json", "--out", "open"
    )
    assert 0 <= done.json()["auroc"] <= 100
    listed = ostraka(
        "run", "closed-voting", *TINY, *ONE_EPOCH, "--known-classes", "7,0,3", "--out", "listed"
    )
    assert listed.code == 0
    assert "AUROC of unknown" in listed.out
    stored = jsonfile.read_json(Path("listed/summary.json"))
    assert list(stored["per_class"]) == ["7", "0", "3"]
    refused = {"known_refused", "unknown_refused", "balanced_accuracy"}
    assert stored["open"].keys() == {"auroc", "fpr95", "oscr", "open_accuracy"} | refused


def test_a_run_leaves_everything_in_its_folder(ostraka: Ostraka) -> None:
    done = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--rounds", "2")
    assert done.code == 0
    home = Path("runs/fedavg-digits-iid-s0-1")
    assert f"Results: {home}" in done.out
    wanted = {
        "config.toml",
        "partition.json",
        "environment.json",
        "metrics.jsonl",
        "summary.json",
        "model.safetensors",
    }
    assert {path.name for path in home.iterdir()} >= wanted
    assert len((home / "metrics.jsonl").read_text().splitlines()) == 2
    assert ostraka("run", "fedavg", *TINY, *ONE_EPOCH).code == 0
    assert Path("runs/fedavg-digits-iid-s0-2").is_dir()


def test_the_stored_configuration_repeats_the_run(ostraka: Ostraka) -> None:
    first = ostraka(
        "run", "fedavg", *TINY, *ONE_EPOCH, "--seed", "5", "--json", "--out", "a"
    ).json()
    again = ostraka("run", "--config", "a/config.toml", "--json", "--out", "b").json()
    assert again["accuracy"] == first["accuracy"]
    assert Path("a/model.safetensors").read_bytes() == Path("b/model.safetensors").read_bytes()


def test_options_override_the_configuration_file(ostraka: Ostraka) -> None:
    Path("exp.toml").write_text(
        'method = "fedavg"\ndata = "digits"\npartition = "iid"\nparties = 3\ntrain_per_class = 6\n'
        'engine = "serial"\nseed = 1\n[net]\nname = "mlp"\n[net.options]\nhidden = [8]\n'
        "[set]\nrounds = 2\n[set.local]\nepochs = 1\nlr = 0.5\n"
    )
    given = (
        "--config",
        "exp.toml",
        "--seed",
        "2",
        "--parties",
        "2",
        "--rounds",
        "1",
        "--set",
        "local.lr=0.1",
    )
    assert (
        ostraka("run", *given, "--set", "net.hidden=[4]", "--json", "--out", "mine").json()["seed"]
        == 2
    )
    stored = tomllib.loads(Path("mine/config.toml").read_text())
    assert (stored["parties"], stored["set"]["rounds"]) == (2, 1)
    assert (stored["set"]["local"]["epochs"], stored["set"]["local"]["lr"]) == (1, 0.1)
    assert stored["set"]["local"]["momentum"] == 0.9, (
        "settings that nobody gave are written out too"
    )
    assert stored["net"] == {"name": "mlp", "options": {"hidden": [4]}}


def test_another_objective_or_ballot_than_the_files_has_not_its_settings(ostraka: Ostraka) -> None:
    Path("exp.toml").write_text(
        'method = "fedov"\ndata = "digits"\n[set.objective]\nname = "proser"\nw_mix = 0.5\n'
        '[set.ballot]\nname = "calibrated"\nveto = 0.4\n'
    )
    for options in ("--objective openmax", "--set ballot=plurality --set ballot.ties=lot"):
        done = ostraka("run", "--config", "exp.toml", *options.split(), "--dry-run")
        assert done.code == 0, done.err
    done = ostraka("run", "--config", "exp.toml", "--set", "ballot=sum", "--set", "ballot.veto=0.3")
    assert "unknown setting 'ballot.veto'" in done.err


def test_another_net_or_engine_than_the_files_has_not_its_options(ostraka: Ostraka) -> None:
    Path("exp.toml").write_text(
        'method = "fedavg"\n[net]\nname = "mlp"\n[net.options]\nhidden = [8]\n'
        '[engine]\nname = "pool"\n[engine.options]\ntimeout = 600\n'
    )
    few = ("--data", "digits", "--rounds", "1", "--set", "local.steps=1")
    for number, (options, net, engine) in enumerate([
        (("--net", "mlp"), {"hidden": [8]}, {"timeout": 600}),
        (("--net", "simple-cnn", "--set", "net.padding=same"), {"padding": "same"},
         {"timeout": 600}),
        (("--engine", "serial"), {"hidden": [8]}, {}),
    ]):  # fmt: skip
        done = ostraka("run", "--config", "exp.toml", *few, *options, "--out", str(number))
        assert done.code == 0, done.err
        stored = tomllib.loads((Path(str(number)) / "config.toml").read_text())
        assert stored["net"].get("options", {}) == net
        assert stored["engine"].get("options", {}) == engine


def test_a_folder_that_holds_a_run_is_refused_and_resume_returns_it(ostraka: Ostraka) -> None:
    first = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--json", "--out", "mine").json()
    again = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--out", "mine")
    assert again.code == 2
    assert "mine holds a finished run" in again.err
    assert ostraka("run", "--resume", "--out", "mine", "--json").json() == first
    other = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--seed", "9", "--resume", "--out", "mine")
    assert other.code == 2
    assert "seed = 0 (now 9)" in other.err


def test_a_run_is_gone_on_with_on_another_engine(ostraka: Ostraka) -> None:
    """What was set for the former one, as an address, is not the new one's."""
    engine = ("--engine", "auto", "--set", "engine.timeout=500")
    first = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, *engine, "--out", "mine", "--json").json()
    for other in ("serial", "auto"):
        Path("mine/summary.json").unlink()  # as if it were not finished
        again = ostraka("run", "--resume", "--out", "mine", "--engine", other, "--json").json()
        assert again["accuracy"] == first["accuracy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--resume",), "--resume needs --out"),
        (("--resume", "--out", "nothing"), "there is no run to resume in nothing"),
    ],
)
def test_resume_without_a_run(ostraka: Ostraka, words: tuple[str, ...], message: str) -> None:
    done = ostraka("run", *words)
    assert done.code == 2
    assert message in done.err


def test_a_failed_party_is_named_and_the_others_are_kept(ostraka: Ostraka, fragile: str) -> None:
    done = ostraka("run", fragile, *TINY, *ONE_EPOCH, "--out", "mine")
    assert done.code == 3
    assert (
        "1 of 3 parties failed: party-1: RuntimeError: the disk of this party is full" in done.err
    )
    assert "ostraka run --resume --out mine" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in Path("mine/failures.log").read_text()
    assert len(list(Path("mine", "work", "reports").rglob("p*.safetensors"))) == 2


def test_a_failed_party_can_be_dropped(ostraka: Ostraka, fragile: str) -> None:
    done = ostraka("run", fragile, *TINY, *ONE_EPOCH, "--on-failure", "drop", "--out", "mine")
    assert done.code == 0
    assert "party-1, round 1: RuntimeError: the disk of this party is full" in done.out
    assert done.out.count("disk of this party") == 1
    assert done.err.count("party-1 failed in round 1: RuntimeError: the disk") == 1
    assert jsonfile.read_json(Path("mine/summary.json"))["dropped"] == [
        {"party": "party-1", "round": 1, "why": "RuntimeError: the disk of this party is full"}
    ]


def test_ctrl_c_leaves_a_run_that_resumes_to_the_same_bits(ostraka: Ostraka) -> None:
    """SIGINT after the first round.

    The resumed model equals that of a run that was never stopped.
    """
    words = ["run", "fedavg", *TINY, *ONE_EPOCH, "--rounds", "40", "--eval-every", "10"]
    command = [sys.executable, "-m", "ostraka.cli.main", *words, "--out", "stopped"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "80"}
    ) as process:
        limit = time.monotonic() + 60
        while not Path("stopped/checkpoint.safetensors").exists() and time.monotonic() < limit:
            assert process.poll() is None, "the run ended before it could be stopped"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "ostraka run --resume --out stopped" in errors
    assert "Traceback" not in errors
    assert not Path("stopped/summary.json").exists()
    assert ostraka("run", "--resume", "--out", "stopped", "--json").code == 0
    assert ostraka(*words, "--out", "straight").code == 0
    assert (
        Path("stopped/model.safetensors").read_bytes()
        == Path("straight/model.safetensors").read_bytes()
    )


def test_a_run_that_rejects_everything_says_so(ostraka: Ostraka) -> None:
    """On the terminal and in JSON."""
    words = ("run", "fedov", *TINY)
    said = "100 % of the samples of known classes are rejected as unknown"
    done = ostraka(*words, "--threshold", "-99", "--json")
    assert any(note.startswith(said) for note in json.loads(done.out)["notes"])
    assert said not in ostraka(*words, "--threshold", "99").out
