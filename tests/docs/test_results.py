"""Tables of results can be repeated: each names the commit that it was written at, and its section
the command that made it.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ostraka.cli.compare import make_grid
from ostraka.cli.main import parse
from ostraka.cli.options import values_from
from ostraka.errors import ConfigError
from ostraka.runs.config import build_method, make
from tests.docs.pages import ROOT, blocks

RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
COMMIT = re.compile(r"^(?:Commits? )((?:`[0-9a-f]{7,40}`(?: and |, |\.))+)", re.M)
COMMAND = re.compile(r"^(?:\$ )?(?:ostraka|python|make) |`(?:ostraka|python|make) [^`]*`", re.M)
FIGURE = re.compile(r"\|[ *]*[\d,]+(?:\.\d+)?\D{0,3}(?: [^|]*)?\|")


@dataclass(frozen=True)
class Measured:
    """A table with figures, what stands between it and the next table or heading, and where."""

    page: Path
    line: int
    after: str
    section: str

    def __str__(self) -> str:
        return f"{self.page.name}, line {self.line}"


def measured(page: Path) -> Iterator[Measured]:
    """The tables of a page that have figures."""
    line = 1
    for section in re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.M):
        for match in re.finditer(r"^(?:\|.*\n)+", section, re.M):
            rows = match[0].splitlines()[2:]
            if any(FIGURE.search(row) and not COMMAND.search(row) for row in rows):
                after = re.split(r"^(?:\||#)", section[match.end() :], flags=re.M)[0]
                at = line + section[: match.start()].count("\n")
                yield Measured(page, at, after, section)
        line += section.count("\n")


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_every_table_has_a_commit_and_a_command(page: Path) -> None:
    for table in measured(page):
        assert COMMIT.search(table.after), f"{table}: no 'Commit `...`.' after it"
        assert COMMAND.search(table.section), f"{table}: no command in its section"


def test_the_check_sees_tables() -> None:
    tables = [table for page in RESULTS for table in measured(page)]
    assert len(tables) > 60
    assert sum(not list(measured(page)) for page in RESULTS) == 1  # the list of pages


def commands(page: Path) -> list[list[str]]:
    """The commands in a page's blocks; a line that is indented goes on with the one before."""
    found: list[list[str]] = []
    for block in blocks(page):
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.startswith(" ") and found:
                found[-1] += shlex.split(line)
            else:
                found.append(shlex.split(line))
    return [words for words in found if words and words[0] == "ostraka" and "..." not in words]


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_commands_name_what_exists(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options, methods, recipes and settings; the data is not looked for."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("ostraka.data.sources.data_dirs", lambda option: [])
    for words in commands(page):
        options = parse(words[1:])
        try:
            if options.verb == "compare":
                for cell in make_grid(options).cells():
                    build_method(cell)
            elif options.verb == "run":
                values = values_from(options, ("method", "data", "partition", "seed"))
                build_method(make(values))
        except ConfigError as error:
            if "to start from" not in str(error):  # a run before it, which was not made here
                raise


def test_the_commits_exist() -> None:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("the history is not here")
    said = {
        commit
        for page in RESULTS
        for match in COMMIT.finditer(page.read_text(encoding="utf-8"))
        for commit in re.findall(r"[0-9a-f]{7,40}", match[1])
    }
    known = set(git("log", "--format=%H").split())
    assert {one for one in said if not any(full.startswith(one) for full in known)} == set()
