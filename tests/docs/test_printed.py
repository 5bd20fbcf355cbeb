"""The check of figures that pages say and commands print."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.docs.printed import PERCENT, Claim, alike, check_printed, claims

SHOWN = """\
  accuracy                       98.60 %
  known samples called unknown    7.48 % (promised: 5 %)
  fedov      95.40 ± 0.71   2.8 s   707.8 kB
  slow       90.00 ± 1.00   1 min 02 s   1,234 kB
"""


def claim(text: str, labels: str, within: str = "last digit") -> Claim:
    return Claim(ROOT / "README.md", 1, within, tuple(labels.split(" | ")), text)


@pytest.mark.parametrize(
    ("said", "real", "within", "same"),
    [
        ("98.6", "98.60", "last digit", True),
        ("98.6", "98.74", "last digit", True),  # 0.1 and half a digit of rounding
        ("98.6", "98.76", "last digit", False),
        ("82", "83.4", "last digit", True),
        ("82", "83.6", "last digit", False),
        ("7.5", "7.9", "within 0.5", True),
        ("7.5", "8.1", "within 0.5", False),
        ("91", "81.56", "within 2", False),
        ("1,234", "1234", "last digit", True),
    ],
)
def test_what_is_alike(said: str, real: str, within: str, same: bool) -> None:
    assert alike(said, real, within) is same


def test_a_sentence_is_held_to_what_was_printed() -> None:
    labels = "accuracy | known samples called unknown"
    claim("98.6 % are right, 7.5 % refused (`--unknown-rate 12 %`)", labels).check(SHOWN)
    claim("98.6 %, and elsewhere 30 %", "accuracy | -").check(SHOWN)
    with pytest.raises(AssertionError, match=r"12 % for 'known samples called unknown'"):
        claim("98.6 %, of the known ones 12 %", labels).check(SHOWN)
    with pytest.raises(AssertionError, match="for the labels"):
        claim("98.6 %", labels).check(SHOWN)
    with pytest.raises(AssertionError, match="prints 'recall'"):
        claim("98.6 %", "recall").check(SHOWN)
    claim("7 %", "known samples called unknown").check(
        "known samples called unknown 90 %\n" + SHOWN
    )


def test_a_table_is_held_to_what_was_printed() -> None:
    def block(text: str) -> Block:
        return Block(ROOT / "README.md", 1, "", text, printed="within 0.3")

    right = "  fedov 95.60 ± 0.50  99.9 s 707.8 kB\n\n slow 90.0 ± 1.0 3 s 1,234 kB\n"
    check_printed(block(right), SHOWN)
    for wrong in (
        "fedov 95.80 ± 0.71 2.8 s 707.8 kB",
        "fedova 95.40 ± 0.71 2.8 s 707.8 kB",
        "fedov 95.40 ± 0.71 2.8 s 709.8 kB",
        "fedov 95.40 ± 0.71 2.8 s",
        "slow 90.00 ± 1.00 62 s 1,234 kB\nfedov 95.40 ± 0.71 2.8 s 707.8 kB",  # the other order
    ):
        with pytest.raises(AssertionError, match="was not printed"):
            check_printed(block(wrong), SHOWN)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_printed_tables_are_marked(page: Path) -> None:
    """So that none is left out of the comparison; commands of results pages take too long."""
    for block in blocks(page):
        if not block.language and "results" not in page.parts and not block.file:
            assert block.printed or (not PERCENT.search(block.text) and "±" not in block.text), (
                block
            )


def test_readmes_figures_are_marked() -> None:
    page = ROOT / "README.md"
    marked = "\n\n".join(one.text for one in claims(page))
    for paragraph in page.read_text().split("\n\n"):
        if PERCENT.search(paragraph) and "```" not in paragraph:
            text = paragraph.partition("-->\n")[2] or paragraph
            assert text in marked, f"give this paragraph a mark (tests/docs/printed.py):\n{text}"
