"""Help, mistakes, and the verbs that train nothing."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ostraka.cli.listing import SHELVES
from ostraka.cli.main import EXIT_CODES, VERBS, main
from ostraka.nets import native
from ostraka.registry import all_registries
from ostraka.runs.grid import Grid, run_grid
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka
from tests.docs.pages import ROOT


@pytest.mark.parametrize("verb", [module.NAME for module in VERBS])
def test_help_of_every_verb_shows_an_example_and_fits_80_columns(
    ostraka: Ostraka, verb: str
) -> None:
    done = ostraka(verb, "--help")
    assert done.code == 0
    assert re.search(rf"examples?:\n  ostraka {verb} ", done.out)
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_top_help_lists_verbs_and_exit_codes(ostraka: Ostraka) -> None:
    shown = ostraka("--help").out
    assert EXIT_CODES.strip() in shown
    assert all(module.NAME in shown for module in VERBS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rum fedavg", "Did you mean 'run'?"),
        ("run", "name a method"),
        ("run fedavgg", "unknown method 'fedavgg'. Did you mean 'fedavg'?"),
        ("run fedavg --set local.epoch=2", "unknown setting 'local.epoch'. Did you mean 'epochs'?"),
        (
            "run fedavg --set local.epochs=many",
            "'local.epochs' takes a whole number; 'many' was given",
        ),
        ("run fedavg --set local.batch=0", "'local.batch' is 0; it must be at least 1"),
        ("run fedavg --set epochs", "--set takes NAME=VALUE"),
        ("run fedavg --set objective=cross-entropi", "Did you mean 'cross-entropy'?"),
        ("run fedavg --parties 0", "'parties' is 0; it must be at least 1"),
        ("run fedavg --partition label:2", "Did you mean 'labels'?"),
        ("run fedavg --partition labels:20", "there are only 10 classes"),
        ("run fedavg --partition file:gone.json", "gone.json cannot be read"),
        ("run fedavg --engine seriel", "Did you mean 'serial'?"),
        ("run fedavg --net simple-cn", "Did you mean 'simple-cnn'?"),
        ("run fedavg --known 11", "give 1 to 10"),
        ("run fedavg --known 3 --known-classes 1,2", "not both"),
        ("run fedavg --validation 1.5", "must be at least 0 and below 1"),
        ("run fedavg --on-failure explode", "allowed: stop, drop"),
        ("run fedavg --config gone.toml", "gone.toml cannot be read"),
        ("run closed-voting --rounds 3", "'rounds' is 3; the method closed-voting has a single"),
        (
            "run fedov --threshold 1 --unknown-rate 5%",
            "set by hand, and --unknown-rate is 0.05, which would place it",
        ),
        ("run fedov --threshold 1 --rate-from told", "Give either --threshold or --rate-from"),
        (
            "run fedov --objective proser --set objective=dd",
            "--objective is proser and --set objective is dd; give one of them",
        ),
        (
            "run fedov --objective proser --set objective.name=dd",
            "--objective is proser and --set objective.name is dd",
        ),
        (
            "run fedavg --set local.lr=0.01 --set local.lr=0.1",
            "'local.lr' is 0.01 and 0.1; a setting has one value",
        ),
        ("compare fedavg:lr=0.01,lr=0.1", "'local.lr' is 0.01 and 0.1; a setting has one value"),
        ("compare fedavg:lr=1,local.lr=2", "'local.lr' is 1 and 2; a setting has one value"),
        ("partition dirichlet", "write it as dirichlet:BETA"),
        ("run fedavg --standardise maybe", "allowed: auto, on, off, raw"),
        ("run fedavg --data https://example.org/mnist.npz", "a run downloads nothing"),
        ("partition iid --plot x.gif", ".svg, .png or .pdf"),
        ("partition iid --plot x", ".svg, .png or .pdf, but the file is called 'x'"),
        ("figure outliers --out .", ". is a folder; give the name of a file in it"),
        ("figure outliers --out x.gif", ".svg, .png or .pdf"),
        ("figure rounds --runs gone --out x.svg", "there is no folder gone"),
        ("figure confusion --run gone --out x.svg", "there is no folder gone"),
        ("figure confusion --out x.svg", "needs --run"),
        ("list method", "Did you mean 'methods'?"),
        ("list settings fedavgg", "Did you mean 'fedavg'?"),
        ("run fedavg --known-classes a", "is not a list of class numbers"),
    ],
)
def test_a_users_mistake_is_one_message_and_exit_code_2(
    ostraka: Ostraka, words: str, message: str
) -> None:
    done = ostraka(*words.split())
    assert done.code == 2
    assert message in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


def test_an_unknown_key_in_a_file_is_refused_with_a_suggestion(ostraka: Ostraka) -> None:
    Path("exp.toml").write_text("partys = 3\n")
    done = ostraka("run", "fedavg", "--config", "exp.toml")
    assert done.code == 2
    assert "unknown setting 'partys'. Did you mean 'parties'?" in done.err


def test_missing_data_says_where_it_looked_and_what_to_put_there(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("here").mkdir()
    monkeypatch.setenv("OSTRAKA_DATA", "there")
    done = ostraka("run", "fedavg", "--data", "usps", "--data-dir", "here")
    assert done.code == 2
    assert "Looked in: here, there (does not exist)" in done.err
    assert "usps.npz" in done.err
    assert "OSTRAKA_DATA" in done.err
    assert "digits" in done.err


def test_partition_saves_what_file_reads(ostraka: Ostraka) -> None:
    given = ("--data", "digits", "--parties", "4", "--seed", "3")
    made = ostraka("partition", "dirichlet:0.5", *given, "--save", "mine.json", "--json").json()
    again = ostraka("partition", "file:mine.json", "--data", "digits", "--json").json()
    assert (again["parties"], again["counts"]) == (made["parties"], made["counts"])
    assert sum(map(sum, made["counts"])) == 1442
    tiny = ("--data", "digits", "--engine", "serial")
    done = ostraka(
        "run",
        "fedavg",
        *tiny,
        *ONE_EPOCH,
        "--partition",
        "file:mine.json",
        "--json",
        "--out",
        "run",
    )
    assert (done.code, done.json()["parties"]) == (0, 4)
    kept = [
        json.loads(Path(name).read_text())["parties"]
        for name in ("run/partition.json", "mine.json")
    ]
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("words", "apart"),
    [
        ((), (0, 0, 0, 355)),
        (("--public", "half-test"), (0, 0, 177, 178)),
        (("--public", "digits"), (0, 0, 1442, 355)),
        (("--validation", "0.1", "--shared", "0.25"), (144, 360, 0, 355)),
    ],
)
def test_partition_has_the_division_of_a_run_with_the_same_options(
    ostraka: Ostraka, words: tuple[str, ...], apart: tuple[int, ...]
) -> None:
    given = ("--data", "digits", "--seed", "3", "--parties", "4", *words)
    found = ostraka("partition", "dirichlet:0.5", *given, "--save", "mine.json", "--json").json()
    assert tuple(found[key] for key in ("validation", "shared", "public", "test")) == apart
    assert sum(map(sum, found["counts"])) == 1442 - apart[0] - apart[1]
    run = ("run", "fedavg", "--engine", "serial", *given, *ONE_EPOCH)
    assert ostraka(*run, "--partition", "dirichlet:0.5", "--out", "a").code == 0
    assert ostraka(*run, "--partition", "file:mine.json", "--out", "b").code == 0
    rows = [
        json.loads(Path(name).read_text())["parties"]
        for name in ("mine.json", "a/partition.json", "b/partition.json")
    ]
    assert rows[0] == rows[1] == rows[2]


def test_partition_says_what_nobody_holds(ostraka: Ostraka) -> None:
    words = ("partition", "iid", "--data", "digits")
    shown = ostraka(*words, "--public", "half-test", "--shared", "0.25").out
    assert "Public (half-test): 177 samples without labels; 178 to test on" in shown
    assert (
        "Held back before the division: 360 samples that all parties may use, with labels" in shown
    )
    assert "validation" not in shown
    assert not {"Public", "Held"} & set(ostraka(*words).out.split())
    done = ostraka(*words, "--public", "fashion-4k")
    assert done.code == 2
    assert "public samples 'fashion-4k' have shape" in done.err


def test_partition_prints_a_table_and_draws_it(ostraka: Ostraka) -> None:
    done = ostraka("partition", "labels:2", "--plot", "pictures/division.svg")
    assert done.code == 0
    assert "10 parties, 10 classes, 4000 samples" in done.out
    assert "Drawn: pictures/division.svg" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    drawn = Path("pictures/division.svg").read_text()
    assert "<svg" in drawn
    assert "Ankle boot" in drawn


def test_every_list_that_is_named_somewhere_exists() -> None:
    """In help, errors and docs: `ostraka list augmentations` was named and did not exist."""
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {
        (word, path.name)
        for path in sources
        for word in re.findall(r"ostraka list ([a-z]+)\b", path.read_text())
    }
    assert len(named) > 10
    assert {(word, name) for word, name in named if word not in SHELVES} == set()
    assert {f"{kind.kind}s" for kind in all_registries()} <= set(SHELVES)


@pytest.mark.parametrize("what", sorted(SHELVES))
def test_every_list_fits_80_columns(ostraka: Ostraka, what: str) -> None:
    done = ostraka("list", what)
    assert done.code == 0
    assert done.out.strip()
    assert all(len(line) <= 80 for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("methods", ("fedavg", "closed-voting", "solo", "centralised")),
        ("nets", ("simple-cnn", "lenet5", "mlp")),
        ("data", ("fashion-4k", "digits")),
        ("partitions", ("labels:K", "party-dirichlet:ALPHA", "file:PATH")),
        ("engines", ("serial", "pool")),
        ("settings", ("local.epochs", "rounds", "fraction")),
    ],
)
def test_lists_name_what_there_is(ostraka: Ostraka, what: str, names: tuple[str, ...]) -> None:
    shown = ostraka("list", what).out
    assert [name for name in names if name not in shown] == []


def test_doctor(ostraka: Ostraka) -> None:
    Path("mine").mkdir()
    facts = ostraka("doctor", "--json", "--data-dir", "mine").json()
    assert facts.keys() >= {"ostraka", "python", "torch", "cores", "device", "convolution"}
    assert facts["data_folders"] == ["mine"]
    fast = {"simple-cnn", "lenet5", "vgg9"} if native.available() else set()
    assert fast == {"simple-cnn", "lenet5", "vgg9", "resnet50", "dla"} & {*facts["nets_with_it"]}
    assert {"digits", "fashion-4k"} <= set(facts["data_sets"])
    assert facts["missing_data_folders"] == []
    assert facts.keys() >= {"memory", "disk", "temporary_folder", "compiler", "plugins"}
    shown = ostraka("doctor").out
    assert "convolution" in shown
    assert "OSTRAKA_DATA" in shown


def test_doctor_goes_on_where_a_probe_fails(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such file\nand more")

    monkeypatch.setattr("ostraka.nets.native.describe", broken)
    monkeypatch.setattr("shutil.disk_usage", broken)
    done = ostraka("doctor", "--json")
    assert done.code == 0
    facts = done.json()
    assert facts["convolution"] == facts["disk"] == "failed: RuntimeError: no such file"
    assert "digits" in facts["data_sets"]


def test_doctor_names_plug_ins(ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("sound", "json:dumps", "ostraka.nets"),
        EntryPoint("gone", "no_such_module:X", "ostraka.nets"),
    ]
    monkeypatch.setattr(
        "ostraka.cli.doctor.entry_points", lambda group: points if group == "ostraka.nets" else []
    )
    assert ostraka("doctor", "--json").json()["plugins"] == [
        "sound (json:dumps)",
        "gone (no_such_module:X)",
    ]


def test_demo_says_where_its_results_are_and_what_to_try_next(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo with as little training as possible."""

    def short(grid: Grid, out: Path, watch: object) -> object:
        base = {"set": {"local": {"epochs": 1}}, "train_per_class": 10, "engine": "serial"}
        return run_grid(replace(grid, base=base, per_method={}), out)

    monkeypatch.setattr("ostraka.runs.grid.run_grid", short)
    done = ostraka("demo", "--out", "mine")
    assert done.code == 0
    assert "10 parties, 10 classes, 4000 samples" in done.out
    assert "centralised" in done.out
    assert "Results: mine" in done.out
    assert "What to try next:" in done.out
    assert {path.name for path in Path("mine").iterdir()} >= {"results.md", "division.svg", "cells"}


def test_ctrl_c_is_exit_code_130_anywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ostraka.data.sources.data_dirs", stopped)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "ostraka: interrupted\n"


def test_the_installed_command(tmp_path: Path) -> None:
    """The one test that starts the program as a user does.

    A quiet run prints its result and nothing else.
    """
    words = ["run", "fedavg", *TINY, *ONE_EPOCH, "--json"]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ostraka")), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["method"] == "fedavg"
