"""How the program starts: light, under either name, on any stream;
and what it says to a first mistake.
"""

import os
import subprocess
import sys

import pytest

from ostraka.cli.completion import verb_parsers
from ostraka.cli.main import VERBS, parser
from ostraka.core import settings
from ostraka.core.synonyms import _OURS
from ostraka.runs.config import Config, build_method
from tests.cli.calling import ONE_EPOCH, TINY, Ostraka

HEAVY = {"torch", "numpy", "scipy", "sklearn", "matplotlib"}


def started(script: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_and_mistakes_load_nothing_heavy() -> None:
    """Every verb's help, the version, and mistakes in a command, all in one process:
    what they import adds up.
    """
    script = """
import sys
from ostraka.cli.main import VERBS, main
commands = [["--version"], ["--help"], [], ["help"], ["nothing"]]
commands += [["run", "--nothing"], ["run", "--parties", "x"]]
for words in commands + [[verb.NAME, "--help"] for verb in VERBS]:
    try:
        main(words)
    except SystemExit:
        pass
heavy = {name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])
sys.exit(f"loaded: {sorted(heavy)}" if heavy else 0)
"""
    done = started(script, *HEAVY)
    assert done.returncode == 0, done.stderr.splitlines()[-1]


def test_lists_are_ascii_where_they_must_be_and_load_neither_scipy_nor_matplotlib() -> None:
    """One process for three things, as torch takes its time:
    the last list goes to a stream that the shell closed.
    """
    script = """
import sys
from ostraka.cli.main import main
codes = [main(["list", what]) for what in ("methods", "nets", "partitions", "engines")]
sys.stdout.flush()
sys.stdout = None
codes.append(main(["list", "nets"]))
slow = [name for name in ("scipy", "sklearn", "matplotlib", "ot") if name in sys.modules]
sys.exit(f"{codes} {slow}" if any(codes) or slow else 0)
"""
    done = started(script, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fedavg" in done.stdout
    assert done.stdout.isascii()


def test_python_m_ostraka_is_the_command() -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ostraka", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert call("run", "--help").stdout.startswith("usage: ostraka run ")
    wrong = call("rum")
    assert (wrong.returncode, "Did you mean 'run'?" in wrong.stderr) == (2, True)


def test_ctrl_c_while_the_program_loads() -> None:
    """The import of the command line is the moment.

    A finder that is asked for it presses Ctrl-C.
    """
    script = """
import sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "ostraka.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from ostraka.__main__ import main
sys.exit(main())
"""
    done = started(script)
    assert (done.returncode, done.stderr) == (130, "ostraka: interrupted\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "name a verb, for example: ostraka demo"),
        ("help rum", "Did you mean 'run'?"),
        ("--data digits run fedavg", "options stand behind the verb: ostraka VERB --data"),
        (
            "run fedavg --partitions iid",
            "ostraka run has no option '--partitions'. Did you mean '--partition'?",
        ),
        (
            "run fedavg --partitions=iid",
            "has no option '--partitions'. Did you mean '--partition'?",
        ),
        ("run fedavg fedprox", "ostraka run does not take 'fedprox'"),
        ("run fedavg --parties x", "argument --parties: takes a whole number; given: 'x'"),
        ("run fedavg --validation x", "argument --validation: takes a number; given: 'x'"),
        ("run fedavg --data", "argument --data: expected one argument; see ostraka run --help"),
        ("run fedavg -q -v", "not allowed with"),
        ("figure nothing --out x.svg", "invalid choice: 'nothing'"),
        ("train north.npz --task t --out m --epochs 3", "no option '--epochs'. See ostraka train"),
        ("run fedov --xyz", "has no option '--xyz'. See ostraka run --help"),
    ],
)
def test_a_first_mistake_is_answered_in_one_line(
    ostraka: Ostraka, words: str, message: str
) -> None:
    done = ostraka(*words.split())
    assert done.code == 2
    assert message in done.err.splitlines()[-1]
    assert len(done.err.splitlines()) == 1 or words == "", (
        "only a call without any word shows the help above"
    )
    assert done.out == ""


@pytest.mark.parametrize("verb", [module.NAME for module in VERBS])
def test_help_is_a_verb_too(ostraka: Ostraka, verb: str) -> None:
    assert ostraka("help", verb).out == ostraka(verb, "--help").out
    assert ostraka("help").out == ostraka("--help").out


@pytest.mark.parametrize(
    "words", [("run", "fedavg"), ("compare", "fedavg"), ("demo",)], ids=lambda words: words[0]
)
def test_an_empty_out_is_refused(ostraka: Ostraka, words: tuple[str, ...]) -> None:
    done = ostraka(*words, "--out", "")
    assert done.code == 2
    assert "argument --out: the path is empty" in done.err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_a_stream_lacks_become_plain_ones(encoding: str) -> None:
    """`ascii` lacks all of them; Latin 1 has the plus-minus sign."""
    script = """
from ostraka.cli.main import plain_where_needed
plain_where_needed()
print("1 \\u2014 2 \\u00b1 \\u2588\\u2592\\u2500\\u732b")
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    expected = "1 - 2 ~ #+-?\n" if encoding == "ascii" else "1 - 2 ± #+-?\n"
    assert (done.returncode, done.stdout.decode(encoding)) == (0, expected)


@pytest.mark.parametrize("act", ["lambda options: print(1) or 0", "None"], ids=["a verb", "help"])
def test_a_reader_that_leaves_is_no_error(act: str) -> None:
    """Python would otherwise complain as it ends and leave with 120."""
    script = f"""
import sys
from ostraka.cli import doctor, main
doctor.act = {act}
sys.exit(main.main(["doctor"] if doctor.act else ["--help"]))
"""
    command = [sys.executable, "-c", script]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(timeout=60)
    assert (process.returncode, errors) == (0, b"")


def test_the_axes_of_figure_are_those_that_can_be_drawn(ostraka: Ostraka) -> None:
    """They are written out in the parser, so that it need not import what draws them."""
    from ostraka.display.rounds import AXES

    assert f"--x {{{','.join(AXES)}}}" in ostraka("figure", "--help").out


def test_options_of_json_say_what_is_quiet(ostraka: Ostraka) -> None:
    """`--json` alone is silent on standard error; with -v it tells."""
    assert ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--json", "--out", "a").err == ""
    told = ostraka("run", "fedavg", *TINY, *ONE_EPOCH, "--json", "-v", "--out", "b")
    assert "party-2 done" in told.err
    assert told.json()["out"] == "b"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--num-clients 5", "--parties"),
        ("--n-clients=5", "--parties"),
        ("--clients 5", "--parties"),
        ("--num-parties 5", "--parties"),
        ("--num-rounds 5", "--rounds"),
        ("--num_rounds 5", "--rounds"),
        ("--comm-round 5", "--rounds"),
        ("--local-epochs 5", "--epochs"),
        ("--learning-rate 0.1", "--lr"),
        ("-lr 0.1", "--lr"),
        ("--batch-size 8", "--batch"),
        ("--dataset mnist", "--data"),
        ("--model mlp", "--net"),
        ("--gpu 0", "--device"),
        ("--n-jobs 2", "--workers"),
        ("--output-dir x", "--out"),
        ("--alpha 0.5", "--partition dirichlet:ALPHA"),
        ("--dirichlet 0.5", "--partition dirichlet:ALPHA"),
        ("--shards 2", "--partition labels:K"),
        ("--lr-decay 0.9", "--set local.late_rate=VALUE"),
        ("--momentum 0.9", "--set local.momentum=VALUE"),
        ("--epsilon 8", "--set dp.epsilon=VALUE"),
    ],
)
def test_an_option_of_other_libraries_is_answered_with_ours(
    ostraka: Ostraka, given: str, meant: str
) -> None:
    done = ostraka("run", "fedov", *given.split())
    typed = given.split()[0].partition("=")[0]
    told = f"ostraka run has no option {typed!r}. Did you mean {meant!r}? See ostraka run --help"
    assert (done.code, told in done.err) == (2, True), done.err


def test_the_method_has_no_option(ostraka: Ostraka) -> None:
    for verb in ("run", "compare"):
        done = ostraka(*f"{verb} --algorithm fedov".split())
        if verb == "run":
            assert f"Give it without a name: ostraka {verb} METHOD. See" in done.err
        assert done.code == 2


def test_every_synonym_means_a_setting_or_an_option_that_exists() -> None:
    options = {
        option
        for own in verb_parsers(parser()).values()
        for action in own._actions
        for option in action.option_strings
    }
    made = [build_method(Config(method=name)) for name in ("fedov", "fedavg")]
    method = {name for one in made for name, _, _ in settings.walk(one)}
    for name in _OURS:
        setting = name.partition("=")[0]
        exists = {"--" + setting.replace("_", "-")} & options or {setting} & method
        assert exists or name in ("method", "rounds"), name
