"""Pages of documentation as values: their code blocks and their tables."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"(?:<!-- (?P<mark>[a-z]+): (?P<value>[^>]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    `<!-- file: PATH -->` above it stores it; `<!-- run: slow -->` leaves it to the slow tests,
    `<!-- run: engines -->` to those of engines that start processes of their own;
    `<!-- printed: within 0.5 -->` says that it is what the commands before it print.
    """

    page: Path
    line: int
    language: str
    text: str
    file: str = ""
    slow: bool = False
    engines: bool = False
    printed: str = ""

    def commands(self) -> list[str]:
        """The commands of a console block (lines after `$ `) or of a shell script (every line)."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            return [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if line and not line.startswith("#")]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        mark, value = match["mark"], match["value"]
        assert mark in (None, "file", "run", "printed"), f"{page}: the mark {mark!r} is not known"
        line = text[: match.start("language")].count("\n") + 1
        file, printed = (value if mark == kind else "" for kind in ("file", "printed"))
        slow, engines = ((mark, value) == ("run", when) for when in ("slow", "engines"))
        found.append(
            Block(page, line, match["language"], match["text"], file, slow, engines, printed)
        )
    return found


def tables(page: Path) -> dict[str, list[list[str]]]:
    """The tables of a page by their first heading cell; cells without backticks around them."""
    found: dict[str, list[list[str]]] = {}
    current: list[list[str]] | None = None
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            current = None
            continue
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if current is None:
            current = found.setdefault(cells[0], [])
        elif not set(cells[0]) <= set(":-"):
            current.append(cells)
    return found


def links(page: Path) -> list[str]:
    """Targets of links to other files of the repository."""
    targets = [
        match["target"].partition("#")[0]
        for match in LINK.finditer(page.read_text(encoding="utf-8"))
    ]
    return [target for target in targets if target and "://" not in target]
