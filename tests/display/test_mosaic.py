"""Counts as characters: shades, rulers and words, within the width that there is."""

import numpy as np
import pytest

from ostraka.display.mosaic import ASCII, UNICODE, blocks, per_party, whole

LETTERS = tuple("abc")


def lines(
    counts: list[list[int]], width: int = 80, names: tuple[str, ...] = LETTERS, **more: object
) -> list[str]:
    found = blocks(
        np.array(counts),
        [f"p{i}" for i in range(len(counts))],
        names,
        width,
        **({"pen": UNICODE} | more),
    )  # type: ignore[arg-type]
    assert found is not None
    return [line.plain for line in found]


def test_shades_by_hand() -> None:
    """Of 16 the quarters of the root are 1, 4, 9, 16: below 1 nothing, 1-3, 4-8 and 9-16."""
    assert lines([[0, 3, 4], [8, 9, 16]], total="all") == [
        "   a b c  all",
        "p0 · ▒▒▓▓   7",
        "p1 ▓▓████  33",
        "",
        "· none   ▒ 1-3   ▓ 4-8   █ 9-16",
    ]
    assert lines([[0, 1, 2]], pen=ASCII) == ["   a b c ", "p0 . **##", "", ". none   * 1   # 2"]
    assert lines([[0, 0, 0]])[-1] == "· none"


def test_blocks_become_thin_and_then_give_up() -> None:
    """A name of two letters and a blank, then two or one character for each of three classes."""
    assert lines([[0, 1, 1]], width=9)[1] == "p0 · ████"
    assert lines([[0, 1, 1]], width=8)[1] == "p0 ·██"
    assert blocks(np.ones((1, 3), int), ["p0"], LETTERS, 5, UNICODE) is None


def test_the_ruler_numbers_classes_whose_names_are_long() -> None:
    """Every fifth number where blocks are two wide, every tenth where they are one.

    Below, the last digits.
    """
    names = tuple(f"class {k}" for k in range(12))
    wide = lines([[1] * 12], 80, names)
    assert wide[:2] == ["   0         5         10", "   0 1 2 3 4 5 6 7 8 9 0 1 "]
    assert lines([[1] * 12], 20, names)[:2] == ["   0         10", "   012345678901"]


def test_the_legend_keeps_a_shade_and_its_counts_on_one_line() -> None:
    found = lines([[100, 20, 1]], width=20)
    assert found[3:] == ["· none   ░ 1-6", "▒ 7-24   ▓ 25-56", "█ 57-100"]


def test_words_for_each_party_by_hand() -> None:
    """Halves of two of four classes: entropy log 2 of log 4, half a bar.

    One class alone: an empty one.
    """
    counts = np.array([[5, 5, 0, 0], [0, 0, 0, 3]])
    found = [
        line.plain
        for line in per_party(counts, ("north", "south"), ("ant", "bee", "cat", "dog"), 80, UNICODE)
    ]
    assert found[0].split() == ["party", "samples", "classes", "mix", "largest", "classes"]
    assert found[1] == "north       10        2  █████░░░░░  ant (50%), bee (50%)"
    assert found[2] == "south        3        1  ░░░░░░░░░░  dog (100%)"
    narrow = [
        line.plain for line in per_party(counts, ("north", "south"), ("antelope",) * 4, 36, ASCII)
    ]
    assert narrow[1] == "north       10        2  an..e (50%)"


def test_the_whole_by_hand() -> None:
    """Classes per party 2, 1, 1; samples 10, 3, 2; owners of ant 2, bee 1, cat 0, dog 1."""
    counts = np.array([[5, 5, 0, 0], [0, 0, 0, 3], [2, 0, 0, 0]])
    found = [line.plain.split() for line in whole(counts, ("ant", "bee", "cat", "dog"))]
    assert found[0] == ["min", "median", "max"]
    assert [line[-3:] for line in found[1:4]] == [
        ["1", "1", "2"],
        ["2", "3", "10"],
        ["0", "1", "2"],
    ]
    assert " ".join(found[4]) == "classes that one party alone holds: 2 of 4 (bee, dog)"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("classes", [10, 26, 100, 200])
@pytest.mark.parametrize("parties", [5, 30])
def test_every_line_fits(width: int, classes: int, parties: int) -> None:
    counts = np.random.default_rng(0).integers(0, 2000, (parties, classes))
    names = [f"hospital of the city {i}" for i in range(parties)]
    species = [f"black-footed albatross {k}" for k in range(classes)]
    shown = blocks(counts, names, species, width, UNICODE, "all")
    assert (shown is None) == (width // 4 + 1 + classes + 7 > width)
    for line in shown or per_party(counts, names, species, width, UNICODE)[: parties + 1]:
        assert line.cell_len <= width, line.plain
