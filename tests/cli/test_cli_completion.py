"""`ostraka completion`: the scripts are valid, and the shell offers what the parser takes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ostraka.cli.completion import FILES, FOLDERS, names, words_of
from ostraka.cli.main import VERBS, parser
from ostraka.registry import BALLOTS, METHODS, NETS, PARTITIONS, SELECTORS
from tests.cli.calling import Ostraka

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture(scope="module")
def verbs() -> dict[str, dict[str, object]]:
    """What may stand behind every option of every verb."""
    found = words_of(parser(), names())
    return {
        v.name: {"": v.free} | {option: w.values for w in v.words for option in w.options}
        for v in found
    }


@pytest.fixture
def script(ostraka: Ostraka, tmp_path: Path) -> Path:
    """The script for bash."""
    path = tmp_path / "complete.bash"
    path.write_text(ostraka("completion", "bash").out)
    return path


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_its_script(ostraka: Ostraka, shell: str) -> None:
    Path("script").write_text(ostraka("completion", shell).out)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-n", "script"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_verb_and_option_is_in_every_script(ostraka: Ostraka, shell: str) -> None:
    text = ostraka("completion", shell).out
    assert [verb.NAME for verb in VERBS if verb.NAME not in text] == []
    long = {
        option
        for verb in words_of(parser(), {})
        for option in verb.options
        if option.startswith("--")
    }
    assert len(long) > 30
    assert [
        option
        for option in long
        if (f"-l {option[2:]} " if shell == "fish" else option) not in text
    ] == []


def test_options_offer_names_files_and_folders(verbs: dict[str, dict[str, object]]) -> None:
    run = verbs["run"]
    assert set(METHODS) < set(run[""])  # type: ignore[call-overload]
    assert run["--net"] == ("auto", *NETS)
    assert {"digits", "fashion-4k"} <= set(run["--data"])  # type: ignore[call-overload]
    assert {"iid", "labels:", "file:"} <= set(run["--partition"])  # type: ignore[call-overload]
    assert len(run["--partition"]) == len(set(PARTITIONS))  # type: ignore[arg-type]
    assert (run["--out"], run["--config"], run["--rounds"]) == (FOLDERS, FILES, None)
    assert (verbs["figure"]["--out"], verbs["figure"]["--runs"]) == (FILES, FOLDERS)
    assert verbs["compare"]["--format"] == ("rich", "markdown", "csv", "latex")
    assert (verbs["vote"][""], verbs["vote"]["--html"]) == (FILES, FILES)
    assert verbs["vote"]["--ballot"] == tuple(BALLOTS)
    assert verbs["select"]["--method"] == tuple(SELECTORS)
    assert "settings" in verbs["list"][""]  # type: ignore[operator]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ru",), ["run"]),
        (("run", "scaf"), ["scaffold"]),
        (("run", "--on-failure", ""), ["stop", "drop"]),
        (("run", "--data", "dig"), ["digits", "digits-rows"]),
        (("run", "--data", "digits", "scaf"), ["scaffold"]),
        (("run", "--json", "scaf"), ["scaffold"]),
        (("compare", "--data", "digits", "fashion"), ["fashion-4k"]),
        (("run", "--partition", "lab"), ["labels:"]),
        (("run", "--out", "fol"), ["folder"]),
        (("run", "--config", "f"), ["file.toml", "folder"]),
        (("run", "--rounds", ""), []),
        (("list", "meth"), ["methods"]),
        (("figure", "--x", "b"), ["bytes"]),
        (("completion", "f"), ["fish"]),
        (("run", "--dr"), ["--dry-run"]),
    ],
)
def test_bash_completes(
    script: Path, tmp_path: Path, words: tuple[str, ...], offered: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.toml").write_text("")
    program = (
        'source "$1"; shift; COMP_WORDS=(ostraka "$@"); COMP_CWORD=$#; _ostraka; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", str(script), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == sorted(offered)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(ostraka: Ostraka) -> None:
    Path("script").write_text(ostraka("completion", "fish").out)
    ask = (
        'source script; complete -C "ostraka ru"; complete -C "ostraka run --data dig"; complete '
        '-C "ostraka run scaf"'
    )
    done = subprocess.run(
        ["fish", "--no-config", "-c", ask], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [
        "run",
        "digits",
        "digits-rows",
        "scaffold",
    ]
