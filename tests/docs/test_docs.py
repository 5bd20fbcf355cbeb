"""What the documentation says is run: every block, in order, page by page,
each page in a folder of its own.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ostraka import __file__ as package_file
from ostraka.cli.main import main, parse
from tests.docs.pages import PAGES, ROOT, Block, blocks, links
from tests.docs.printed import Claim, check_printed, in_order

RUNNABLE = ("console", "bash", "python")
FILES = ("toml", "json", "")
PLUGIN_PAGES = [ROOT / "docs" / name for name in ("adding-a-method.md", "plug-ins.md")]


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if page not in PLUGIN_PAGES], ids=names)
def test_every_block_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And prints the figures that the page says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("OSTRAKA_DATA", raising=False)
    shown = ""
    for block in in_order(page):
        if isinstance(block, Claim):
            block.check(shown)
            continue
        assert block.language in (*RUNNABLE, *FILES), (
            f"{block}: {block.language} blocks are not run"
        )
        if block.file:
            write(block, tmp_path)
        elif block.printed:
            check_printed(block, shown)
        elif not block.slow and not block.engines:
            run_here(block)
            shown += capsys.readouterr().out


def test_commands_that_need_other_machines_are_understood() -> None:
    commands = [c for page in PAGES for b in blocks(page) if b.engines for c in b.commands()]
    assert commands
    for command in commands:
        words = shlex.split(command)
        assert words[0] in ("ostraka", "ray", "export"), command
        if words[0] == "ostraka":
            parse(words[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b.slow for b in blocks(page))], ids=names
)
def test_slow_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if block.slow:
            run_here(block)


@pytest.mark.parametrize(
    ("page", "package", "says"),
    [
        (
            PLUGIN_PAGES[0],
            "fedmedian",
            ["3 passed", r"fedmedian +The median of every weight", "fedmedian on digits"],
        ),
        (
            PLUGIN_PAGES[1],
            "wards",
            [
                "7 passed",
                r"median +The median of the members",
                r"first-takes:SHARE",
                r"cells +\?",
                "on cells",
            ],
        ),
    ],
    ids=["adding-a-method", "plug-ins"],
)
def test_a_plug_in_page_makes_a_package(
    page: Path, package: str, says: list[str], tmp_path: Path
) -> None:
    """The package of the page is stored, made visible as if installed,
    checked by its own tests, and used.
    """
    found = blocks(page)
    for block in found:
        if block.file:
            write(block, tmp_path)
    install(tmp_path / package)
    environment = {**os.environ, "PYTHONPATH": with_source(tmp_path / package), "COLUMNS": "80"}
    commands = [
        c
        for block in found
        if block.language == "console"
        for c in block.commands()
        if not checked_only(c)
    ]
    shown = call(shlex.split(commands[0]), tmp_path, environment)
    script = (
        "import sys; from tests.docs.test_docs import ostraka; sys.exit(max(ostraka(line) "
        "for line in sys.argv[1:]))"
    )
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[2])
    # one process: torch loads once
    shown += call(["python", "-c", script, *commands[1:]], tmp_path, environment)
    for words in says:
        assert re.search(words, shown), f"{words!r} is not in\n{shown}"


def with_source(*folders: Path) -> str:
    """Where Python looks for modules: these folders, and this ostraka."""
    return os.pathsep.join(map(str, [*folders, Path(package_file).parents[1]]))


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=names)
def test_examples_run(
    script: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert "%" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [target for target in links(page) if not (page.parent / target).exists()]
    assert missing == []


def test_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if not line.startswith("<!--")]) <= 160


def run_here(block: Block) -> None:
    """Run a block in the current folder: ostraka's commands in this process,
    scripts in one of their own.
    """
    if block.language == "python":
        Path("block.py").write_text(block.text)
        call(["python", "block.py"], Path.cwd(), dict(os.environ))
    elif block.language in ("console", "bash"):
        for command in block.commands():
            if not checked_only(command):
                assert ostraka(command) == 0, f"{block}: {command}"


def ostraka(command: str) -> int:
    """One command; one party after the other, which gives the same numbers and starts faster."""
    words = shlex.split(command)
    assert words[0] == "ostraka", (
        f"only ostraka, make, git clone and pip install belong into a block, not: {command}"
    )
    if words[1] in ("run", "compare") and "--help" not in words:
        words += ["--engine", "serial"]
    try:
        return main(words[1:])
    except SystemExit as leave:
        return int(leave.code or 0)


def checked_only(command: str) -> bool:
    """Whether a command is not run here but looked up: make's targets,
    files named to pip, git clone.
    """
    words = shlex.split(command)
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(words[1:]) <= set(targets), f"{command}: the Makefile has no such target"
        return True
    if words[:2] == ["pip", "install"]:
        assert "-c" not in words or (ROOT / words[words.index("-c") + 1]).is_file(), command
        return True
    return words[:2] == ["git", "clone"] or words == ["python", "-m", "build"]


def write(block: Block, folder: Path) -> None:
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text)


def install(package: Path) -> None:
    """Give a package the metadata that an installation would leave, from its own pyproject.toml."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    info = package / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def call(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a command with the tools of this Python; its output."""
    tool = Path(sys.executable).with_name(words[0])
    assert tool.exists(), f"{words[0]} is not installed beside {sys.executable}"
    done = subprocess.run(
        [str(tool), *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
