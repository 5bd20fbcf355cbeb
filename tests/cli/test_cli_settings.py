"""How settings are given, listed and refused: short options, files for the wrong verb,
one method several times.
"""

import csv
import json
import warnings
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from ostraka.cli.listing import SHELVES
from ostraka.core.method import Method
from ostraka.registry import METHODS, NETS, OBJECTIVES
from ostraka.runs.config import read_toml
from ostraka.runs.record import RunDir
from ostraka.runs.variant import read_variant
from ostraka.store import jsonfile
from tests.cli.calling import TINY, Ostraka

FILE = 'data = "digits"\npartition = "iid"\nparties = 2\ntrain_per_class = 4\nengine = "serial"\n'
QUICK = (*TINY, "--epochs", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--set local.epochs=0", "'local.epochs' is 0; it must be at least 1"),
        ("--set local.momentum=2", "'local.momentum' is 2.0; it must be at least 0 and below 1"),
        ("--lr nan", "'local.lr' is nan; it must be a finite number, above 0"),
        ("--batch 0", "'local.batch' is 0; it must be at least 1"),
        (
            "--net mlp --set net.hidden=big",
            "'net.hidden' takes a list, such as [1, 2]; 'big' was given",
        ),
        ("--net mlp --set net.hidden=[0]", "'net.hidden' is 0; it must be at least 1"),
        (
            "--net vgg9 --set net.dropout=2",
            "'net.dropout' is 2.0; it must be at least 0 and below 1",
        ),
        ("--net digits --set net.width=-1", "'net.width' is -1.0; it must be above 0"),
        ("--set net=mlp", "the net is chosen with --net mlp"),
        ("--set engine=serial", "the engine is chosen with --engine serial"),
        ("--set engine.timeout=0", "'engine.timeout' is 0.0; it must be above 0"),
        ("--set engine.timeot=9", "unknown setting 'engine.timeot'. Did you mean 'timeout'?"),
        ("--engine serial --set engine.timeout=9", "Settings of the engine serial: (none)"),
        ("--set engine.workers=2", "give it as a setting of the run: --workers"),
        (
            "--set epochs=5",
            "unknown setting 'epochs'. Did you mean 'local.epochs'? Settings of the method fedavg:",
        ),
        ("--set learning_rate=0.1", "unknown setting 'learning_rate'. Did you mean 'local.lr'?"),
        ("--set local.batch_size=8", "unknown setting 'local.batch_size'. Did you mean 'batch'?"),
        ("--set local.learning_rate=1", "setting 'local.learning_rate'. Did you mean 'lr'?"),
        ("--set num_rounds=8", "unknown setting 'num_rounds'. Did you mean 'rounds'?"),
        ("--set local.epochs", "--set takes NAME=VALUE"),
        ("--set =3", "--set takes NAME=VALUE"),
        ("--set local..epochs=3", "--set takes NAME=VALUE"),
        (
            "--epochs 3 --set local.epochs=3",
            "--epochs is 3 and --set local.epochs is 3; give one of them",
        ),
        ("--rounds 3 --set rounds=3", "--rounds is 3 and --set rounds is 3; give one of them"),
        ("--seeds 3", "ostraka compare fedavg --data digits --seeds 3"),
        ("--config .", "is a folder; give the file, such as config.toml"),
    ],
)
def test_mistakes_are_refused_with_what_is_allowed(
    ostraka: Ostraka, words: str, message: str
) -> None:
    done = ostraka("run", "fedavg", "--data", "digits", *words.split())
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not Path("runs").exists()


def test_short_options_are_settings_of_the_parties_training(ostraka: Ostraka) -> None:
    Path("exp.toml").write_text(FILE + "[set.local]\nlr = 0.5\nepochs = 9\n")
    given = ("--epochs", "2", "--lr", "0.25", "--batch", "8", "--set", "local.momentum=.5")
    assert ostraka("run", "fedavg", "--config", "exp.toml", *given, "--out", "one").code == 0
    local = read_toml(Path("one/config.toml"))["set"]["local"]
    assert [local[key] for key in ("epochs", "lr", "batch", "momentum")] == [2, 0.25, 8, 0.5]


def test_a_method_without_local_training_is_named(ostraka: Ostraka) -> None:
    @METHODS.add("still")
    @dataclass(frozen=True)
    class Still(Method[Any, Any, Any]):
        """Trains nothing."""

        def init(self, task: Any, seed: int) -> Any: ...
        def message(self, state: Any, party: Any) -> Any: ...
        def local_update(self, rnd: Any, party: Any, memory: Any) -> Any: ...
        def aggregate(self, task: Any, state: Any, reports: Any) -> Any: ...
        def predictor(self, task: Any, state: Any) -> Any: ...

    try:
        for words in (("run", "still"), ("compare", "solo", "still")):
            done = ostraka(*words, "--lr", "0.1", "--epochs", "2")
            assert done.code == 2
            assert (
                "the method 'still' has no settings local.*, so --epochs, --lr cannot be given"
                in done.err
            )
    finally:
        METHODS.remove("still")


@pytest.mark.parametrize(
    ("verb", "text", "message"),
    [
        (
            "run",
            'methods = ["solo"]',
            "exp.toml describes a grid (methods), not one run; use: ostraka compare --config",
        ),
        ("run", '[method.solo]\nstart = "own"', "describes a grid ([method.NAME])"),
        ("run", 'data = ["digits"]', "describes a grid (data)"),
        (
            "compare",
            'method = "solo"',
            "describes one run (method = 'solo'), not a grid; use: ostraka run --config",
        ),
        ("run", 'method = "fedavg"\nfraction = 0.5', "it belongs under [set] (fraction = ...)"),
        ("run", 'method = "fedavg"\n[local]\nepochs = 3', "it belongs under [set.local]"),
        ("run", 'method = "fedavg"\nsteps = 3', "it belongs under [set.local] (steps = ...)"),
        (
            "run",
            'method = "fedavg"\nepochs = 3\n[set.local]\nepochs = 4',
            "exp.toml has epochs = 3 and local.epochs = 4 under [set]; give one of them",
        ),
        (
            "run",
            'method = "fedov"\nballot = "sum"',
            "'ballot' is a setting of the method fedov, not of the run",
        ),
        ("run", 'method = "fedov"\nrecipe = "paper"', "'recipe' is a setting of the method fedov"),
        (
            "run",
            'method = "fedavg"\n[net]\nhidden = [3]',
            "'net.hidden' is an option of the net: in a file it belongs",
        ),
        ("compare", "methods = 3", "'methods' takes a name or a list of names; 3 was given"),
        (
            "compare",
            'methods = "solo"\nmethod = 3',
            "'method' is a table of settings, such as [method.fedavg]; 3 was",
        ),
        ("compare", 'methods = "solo"\nmethod = ["solo"]', "'method' is a table of settings"),
        ("compare", 'methods = "solo"\n[method]\nsolo = 3', "'method.solo' is a table of settings"),
        (
            "compare",
            'methods = "solo"\nset = 3',
            "'set' is a table of settings, such as [set]; 3 was given",
        ),
        ("compare", 'methods = "solo"\ndata_dir = 3', "'data_dir' takes text; 3 was given"),
        ("run", 'method = "fedavg"\nset = 3', "'set' is a table of settings"),
        ("run", 'method = "fedavg"\ndata_dir = 3', "'data_dir' takes text; 3 was given"),
        ("compare", 'methods = "solo"\nseeds = [1.5]', "seeds is [1.5]; give a number"),
        (
            "compare",
            'methods = "solo"\nseeds = 2\nseed = 3',
            "give seeds (2) or seed (3), not both",
        ),
    ],
)
def test_files_that_say_it_in_the_wrong_place(
    ostraka: Ostraka, verb: str, text: str, message: str
) -> None:
    Path("exp.toml").write_text(text + "\n")
    done = ostraka(verb, "--config", "exp.toml")
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_the_configuration_of_a_run_is_no_grid(ostraka: Ostraka) -> None:
    """With methods named or not: its settings are all written out, and are those of one method."""
    assert ostraka("run", "fedavg", *QUICK, "--out", "one").code == 0
    for methods in ((), ("fedavg",), ("solo", "fedavg")):
        done = ostraka("compare", *methods, "--config", "one/config.toml", "--out", "grid")
        assert (done.code, done.out) == (2, "")
        assert "one/config.toml describes one run (method = 'fedavg'), not a grid" in done.err
    assert not Path("grid").exists()


def test_a_byte_order_mark_and_a_net_by_its_name(ostraka: Ostraka) -> None:
    text = f'method = "fedavg"\nnet = "mlp"\n{FILE}[set.local]\n\tepochs = 1\n'.replace(
        "\n", "\r\n"
    )
    Path("exp.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert (
        ostraka("run", "--config", "exp.toml", "--set", "net.hidden=[4]", "--out", "one").code == 0
    )
    assert read_toml(Path("one/config.toml"))["net"] == {"name": "mlp", "options": {"hidden": [4]}}
    assert (
        ostraka("run", "--config", "exp.toml", "--net", "simple-cn").err.count(
            "Did you mean 'simple-cnn'?"
        )
        == 1
    )


def test_a_grid_file_may_name_one_of_each(ostraka: Ostraka) -> None:
    Path("grid.toml").write_text(f'methods = "fedavg"\nseed = 4\n{FILE}[set.local]\nepochs = 1\n')
    found = ostraka("compare", "--config", "grid.toml", "--json", "--out", "one").json()["cells"]
    assert [(cell["method"], cell["data"], cell["seed"]) for cell in found] == [
        ("fedavg", "digits", 4)
    ]
    given = ostraka(
        "compare", "--config", "grid.toml", "--seed", "7", "--json", "--out", "one"
    ).json()["cells"]
    assert [cell["seed"] for cell in given] == [7]


def test_what_may_change_on_resume_is_said(ostraka: Ostraka) -> None:
    assert ostraka("run", "fedavg", *QUICK, "--seed", "3", "--out", "one").code == 0
    for words, was in [
        (("--seed", "5"), "seed = 3 (now 5)"),
        (("--lr", "0.5"), "local.lr = 0.02 (now 0.5)"),
        (("fedprox",), "method = 'fedavg' (now 'fedprox')"),
        (("--set", "net.hidden=[3]"), "net.options.hidden = None (now [3])"),
    ]:
        done = ostraka("run", *words, "--resume", "--out", "one")
        assert done.code == 2
        assert f"the run in one was begun with {was}; it can only be resumed as it is" in done.err
        assert "What may change: --start-from" in done.err
    same = ostraka(
        "run",
        "fedavg",
        "--resume",
        "--out",
        "one",
        "--seed",
        "3",
        "--epochs",
        "1",
        "--workers",
        "2",
        "--json",
    )
    assert (same.code, same.json()["seed"]) == (0, 3)


def test_another_recipe_is_not_resumed_in_silence(ostraka: Ostraka) -> None:
    given = ("--partition", "iid", "--epochs", "1")
    assert ostraka("run", "closed-voting", *TINY, *given, "--out", "one").code == 0
    done = ostraka("run", "closed-voting", "--resume", "--out", "one", "--set", "recipe=paper")
    assert done.code == 2
    assert "local.batch = 32 (now 64)" in done.err


def test_one_method_with_several_settings(ostraka: Ostraka) -> None:
    """Two rates, one of them with another net, and the method as it is:
    three rows, three folders.
    """
    named = ["fedavg:lr=0.01,epochs=2", "fedavg:local.lr=0.5,net.hidden=[4, 4]", "fedavg"]
    words = (
        "compare",
        *named,
        *QUICK,
        "--rounds",
        "2",
        "--set",
        "fedavg:local.momentum=0",
        "--out",
        "grid",
        "--json",
    )
    done = ostraka(*words).json()
    assert [cell["method"] for cell in done["cells"]] == named
    assert [row["method"] for row in done["tables"][0]] == named
    assert [cell["method"] for cell in jsonfile.read_json(Path("grid/results.json"))] == named
    assert [
        row["method"] for row in csv.DictReader(Path("grid/accuracy.csv").read_text().splitlines())
    ] == named
    stored = [read_toml(Path(cell["out"]) / "config.toml") for cell in done["cells"]]
    assert [one["set"]["local"]["lr"] for one in stored] == [0.01, 0.5, 0.02]
    assert [one["set"]["local"]["epochs"] for one in stored] == [2, 1, 1], (
        "--epochs lies below a method's own"
    )
    assert [one["set"]["rounds"] for one in stored] == [2, 2, 2]
    assert [one["set"]["local"]["momentum"] for one in stored] == [0, 0, 0], (
        "--set METHOD: is for all of its settings"
    )
    assert [one["net"]["options"] for one in stored] == [{}, {"hidden": [4, 4]}, {}]
    assert len({cell["out"] for cell in done["cells"]}) == 3
    drawn = Path("grid/rounds.svg").read_text()
    assert "local.lr=0.5" in drawn


def test_variants_in_a_grid_file(ostraka: Ostraka) -> None:
    Path("grid.toml").write_text(
        f'methods = ["fedavg:lr=0.1", "pooled:lr=0.1"]\n{FILE}[method.fedavg.local]\nepochs = 1\n'
    )
    found = ostraka(
        "compare", "--config", "grid.toml", "--epochs", "2", "--json", "--out", "one"
    ).json()["cells"]
    assert [cell["method"] for cell in found] == ["fedavg:lr=0.1", "centralised:lr=0.1"]
    stored = [
        read_toml(Path(cell["out"]) / "config.toml")["set"]["local"]["epochs"] for cell in found
    ]
    assert stored == [1, 2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fedavg:lr=0.1", "fedavg:lr=0.1"), "the grid names methods twice"),
        (
            ("fedavg:lr=0.1", "fedavg:local.lr=0.1"),
            "fedavg:lr=0.1 and fedavg:local.lr=0.1 are the same run",
        ),
        (("centralised", "pooled"), "the grid names methods twice"),
        (("fedavg:",), "write it as METHOD:NAME=VALUE"),
        (("fedavg:lr",), "'lr' in 'fedavg:lr' is no setting"),
        (("fedavg:epoch=3",), "unknown setting 'epoch'. Did you mean 'local.epochs'?"),
        (("fedavg:lr=-1",), "'local.lr' is -1.0; it must be above 0"),
        (("fedavgg:lr=1",), "unknown method 'fedavgg'. Did you mean 'fedavg'?"),
        (("fedavg", "--seed", "1", "--seeds", "2"), "give seeds (2) or seed (1), not both"),
    ],
)
def test_variants_that_are_none(ostraka: Ostraka, words: tuple[str, ...], message: str) -> None:
    done = ostraka("compare", *words, "--data", "digits")
    assert done.code == 2
    assert message in done.err


def test_commas_in_brackets_and_quotes_belong_to_a_value() -> None:
    method, values = read_variant(
        "fedov:net.hidden=[8, 4],objective={name='proser', w_mix=1},x='a,b',lr=.5"
    )
    assert method == "fedov"
    assert values == {
        "set": {"objective": {"name": "proser", "w_mix": 1}, "x": "a,b", "local": {"lr": 0.5}},
        "net": {"options": {"hidden": [8, 4]}},
    }


def listed(ostraka: Ostraka, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ostraka("list", "settings", name, "--json").json()["settings"]
    return found


def values_in(ostraka: Ostraka, name: str) -> dict[str, Any]:
    return {row["setting"]: row["value"] for row in listed(ostraka, name)[0]["settings"]}


def test_the_settings_of_a_preset_are_its_own(ostraka: Ostraka) -> None:
    paper, usual = values_in(ostraka, "fedov-paper"), values_in(ostraka, "fedov")
    assert (paper["local.epochs"], usual["local.epochs"]) == (200, 45)
    assert (paper["ballot"], usual["ballot"]) == ("sum", "guarded")
    assert values_in(ostraka, "pooled") == values_in(ostraka, "centralised")
    assert " 200 " in ostraka("list", "settings", "fedov-paper").out


def test_settings_are_listed_with_what_is_allowed_and_how_they_are_set(ostraka: Ostraka) -> None:
    by_name = {row["setting"]: row for one in listed(ostraka, "fedavg") for row in one["settings"]}
    assert by_name["local.momentum"]["allowed"] == "at least 0 and below 1"
    assert by_name["local.optimiser"]["allowed"] == "sgd, adam"
    assert by_name["local.steps"]["allowed"] == "whole number, at least 0, or none"
    assert by_name["objective"] == {
        "setting": "objective", "value": "cross-entropy", "allowed": "ostraka list objectives",
        "meaning": "what the parties minimise",
    }  # fmt: skip
    for name, kind, usage in [
        ("simple-cnn", "net", "--set net.padding=VALUE"),
        ("proser", "objective", "--set objective.NAME=VALUE"),
        ("calibrated", "ballot", "--set ballot.NAME=VALUE"),
        ("run", "run", "ostraka.run(...)"),
    ]:
        [one] = listed(ostraka, name)
        assert one["kind"] == kind
        assert usage in one["usage"]
        assert one["settings"]
    both = ostraka("list", "settings", "fedov").out
    assert "fedov is the name of several things: method, objective." in both


@pytest.mark.parametrize("what", sorted(SHELVES))
def test_every_list_as_json(ostraka: Ostraka, what: str) -> None:
    found = ostraka("list", what, "--json").json()
    assert list(found) == [what]
    assert found[what]
    assert all(isinstance(row, dict) and all(" " not in key for key in row) for row in found[what])


def test_a_list_takes_no_name_but_that_of_settings(ostraka: Ostraka) -> None:
    done = ostraka("list", "nets", "mlp")
    assert (done.code, "takes no name" in done.err) == (2, True)
    unknown = ostraka("list", "settings", "simple-cn")
    assert (unknown.code, "Did you mean 'simple-cnn'?" in unknown.err) == (2, True)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> str:
    """A plug-in of several kinds that cannot be imported, first in the alphabet."""
    for registry in (METHODS, OBJECTIVES, NETS):
        registry.names()
        point = EntryPoint("aaa", "no_such_module_at_all:X", registry.group)
        monkeypatch.setitem(registry._plugins, "aaa", point)  # type: ignore[arg-type]
    return "aaa"


@pytest.mark.filterwarnings("default::ostraka.errors.PluginWarning")  # the command line shows them
def test_a_broken_plug_in_stops_nothing_but_itself(ostraka: Ostraka, broken: str) -> None:
    shown = ostraka("list", "methods")
    assert (shown.code, "fedavg" in shown.out, broken in shown.out) == (0, True, False)
    assert (
        "ostraka: warning: the plug-in method 'aaa' (no_such_module_at_all:X) cannot be loaded"
        in shown.err
    )
    assert "registry.py" not in shown.err
    assert ostraka("compare", "fedavg", *QUICK, "--out", "one").code == 0
    asked = ostraka("run", broken, *QUICK)
    assert asked.code == 2
    assert "the plug-in method 'aaa' (no_such_module_at_all:X) cannot be loaded" in asked.err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = json.loads(ostraka("doctor", "--json").out)
    assert len([reason for reason in told["broken_plug_ins"] if "'aaa'" in reason]) == 3


def test_a_plug_in_of_the_wrong_kind_is_told_when_it_is_used(
    ostraka: Ostraka, monkeypatch: pytest.MonkeyPatch
) -> None:
    METHODS.names()
    monkeypatch.setitem(METHODS._plugins, "path", EntryPoint("path", "pathlib:Path", METHODS.group))  # type: ignore[arg-type]
    done = ostraka("run", "path")
    assert done.code == 2
    assert "the plug-in method 'path' (pathlib:Path) cannot be loaded" in done.err
    assert "is no Method" in done.err


def test_the_progress_of_a_grid_names_what_is_compared(ostraka: Ostraka) -> None:
    told = ostraka("compare", "fedavg:lr=0.01", "fedavg:lr=0.1", *QUICK, "--out", "rates").err
    assert "[1/2] fedavg:lr=0.01 on digits" in told
    assert "[2/2] fedavg:lr=0.1 on digits" in told


def test_a_file_takes_the_names_of_the_options(ostraka: Ostraka) -> None:
    """`--config` promises the same names; options lie over them."""
    names = 'rounds = 2\nepochs = 1\nlr = 0.5\nbatch = 7\nobjective = "proser"\n'
    Path("run.toml").write_text(f'method = "fedavg"\nunknown_rate = "5%"\n{names}')
    words = ("run", "--config", "run.toml", *TINY, "--out", "mine")
    assert ostraka(*words, "--batch", "9").code == 0
    config = RunDir(Path("mine")).stored_config()
    assert config.unknown_rate == 0.05
    assert (config.set["rounds"], config.set["objective"]["name"]) == (2, "proser")
    local = config.set["local"]
    assert (local["epochs"], local["lr"], local["batch"]) == (1, 0.5, 9)
    Path("grid.toml").write_text(f'methods = ["solo", "fedavg"]\n{names}')
    cells = ostraka("compare", "--config", "grid.toml", *TINY, "--json").json()["cells"]
    assert [cell["rounds"] for cell in cells] == [1, 2]
    assert {cell["settings"]["local.batch"] for cell in cells} == {7}


@pytest.mark.parametrize("given", ["%", "x%", "5 % or so"])
def test_what_is_no_share_in_a_file(ostraka: Ostraka, given: str) -> None:
    Path("run.toml").write_text(f'method = "fedavg"\nunknown_rate = "{given}"')
    done = ostraka("run", "--config", "run.toml", *TINY)
    assert done.code == 2
    assert f"'unknown_rate' takes a number; '{given}' was given" in done.err
