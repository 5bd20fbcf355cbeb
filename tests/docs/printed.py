"""Figures that a page says and that one of its commands prints.

A table as it is printed stands in a block without a language, below
`<!-- printed: within 0.5 -->`. A paragraph with such figures stands below
`<!-- figures: within 1: LABEL | LABEL -->`: for every figure in per cent, in order, the label of
the line that prints it, or `-` where none does (it was measured elsewhere). Code is passed over.

Both hold within what the mark says, in the figure's own unit; `last digit` stands for one in the
last digit that the page gives. Runs repeat to the bit on one machine, but processors round
differently, and one test sample of 355 is 0.3 %: so figures of small sets are given room, and
never less than the last digit. Times depend on the machine and are not compared.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, Block, blocks

MARK = re.compile(
    r"^<!-- figures: (?P<within>[^:|]+): (?P<labels>[^>]+?) -->\n(?P<text>.+?)(?=\n\n|\Z)",
    re.M | re.S,
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TIME = re.compile(r"\b(?:\d+ h )?(?:\d+ min )?\d+(?:\.\d+)? s(?=\s|$)|\b\d+ min\b")
WORDS = re.compile(r"\w")
PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True)
class Claim:
    """A paragraph with figures, and the labels of the lines that print them."""

    page: Path
    line: int
    within: str
    labels: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"

    @property
    def figures(self) -> list[str]:
        """The figures in per cent of the paragraph, as they are written."""
        return PERCENT.findall(re.sub(r"`[^`]*`", "", self.text))

    def check(self, shown: str) -> None:
        """Compare with what was printed so far; the last line of a label counts."""
        said = self.figures
        assert len(said) == len(self.labels), f"{self}: {said} for the labels {self.labels}"
        for figure, label in zip(said, self.labels, strict=True):
            if label != "-":
                found = re.findall(rf"^ *{re.escape(label)} +({NUMBER.pattern})", shown, re.M)
                assert found, f"{self}: no command before it prints {label!r}"
                assert alike(figure, found[-1], self.within), (
                    f"{self}: {figure} % for {label!r}, but printed is {found[-1]}"
                )


def claims(page: Path) -> list[Claim]:
    """The marked paragraphs of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Claim(
            page,
            text[: match.start("text")].count("\n") + 1,
            match["within"],
            tuple(label.strip() for label in match["labels"].split("|")),
            match["text"],
        )
        for match in MARK.finditer(text)
    ]


def in_order(page: Path) -> Iterator[Block | Claim]:
    """Blocks and marked paragraphs of a page."""
    yield from sorted([*blocks(page), *claims(page)], key=lambda item: item.line)


def alike(said: str, real: str, within: str) -> bool:
    """Whether a figure of a page is what was printed, but for rounding and the room it has."""
    last = 10.0 ** -len(said.partition(".")[2])
    room = max(last, float(within.removeprefix("within "))) if within != "last digit" else last
    return abs(float(said.replace(",", "")) - float(real.replace(",", ""))) <= room + last / 2


def check_printed(block: Block, shown: str) -> None:
    """Every line of the block was printed, in this order: the same words, and figures alike."""
    rest = iter(shown.splitlines())
    for line in filter(WORDS.search, block.text.splitlines()):  # not the rules of a table
        assert any(same_line(line, printed, block.printed) for printed in rest), (
            f"{block}: this line was not printed (within {block.printed!r}):\n{line}\nbut:\n{shown}"
        )


def same_line(said: str, real: str, within: str) -> bool:
    """Whether two lines have the same words, and figures that are alike."""
    one, other = (TIME.sub("TIME", line) for line in (said, real))
    words = [NUMBER.sub("N", line).split() for line in (one, other)]
    pairs = list(zip(NUMBER.findall(one), NUMBER.findall(other), strict=False))
    return words[0] == words[1] and all(alike(a, b, within) for a, b in pairs)
