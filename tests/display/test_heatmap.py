"""The party and class counts, as a table and as a drawing."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ostraka.display.heatmap import (
    _by_largest_class,
    _colours,
    _ticks,
    heatmap_svg,
    party_class_table,
)
from ostraka.display.tables import Number
from ostraka.errors import ConfigError, DataError

COUNTS = np.array([[7, 0, 123], [0, 45, 0]])
PARTIES, CLASSES = ("north", "south"), ("ant", "bee", "cat")


def drawn_colours(path: Path) -> "np.ndarray":
    """The pixels of a PNG, [height, width, RGB] in 0..1."""
    from matplotlib.image import imread

    return imread(path)[..., :3]


def test_table_by_hand() -> None:
    table = party_class_table(COUNTS, PARTIES, CLASSES)
    assert table.columns == ("party", "ant", "bee", "cat", "all")
    assert table.rows[0] == (
        "north",
        Number(7, "7"),
        Number(0, "·"),
        Number(123, "123"),
        Number(130, "130"),
    )
    assert table.csv().splitlines()[2] == "south,0,45,0,45"
    assert table.notes == ("2 parties, 3 classes, 175 samples",)


def test_svg_writes_names_title_and_counts_but_no_zero(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "heat.svg"
    heatmap_svg(COUNTS, PARTIES, CLASSES, path, "Two hospitals")
    text = path.read_text()
    for expected in ("north", "south", "ant", "bee", "cat", ">7<", ">45<", "Two hospitals"):
        assert expected in text, expected
    assert text.count(">123<") == 2  # in its cell and as the top of the colour bar
    assert ">0<" not in text


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    heatmap_svg(COUNTS, PARTIES, CLASSES, first)
    heatmap_svg(COUNTS, PARTIES, CLASSES, second)
    assert first.read_bytes() == second.read_bytes()


def test_zero_is_blank_and_one_is_not(tmp_path: Path) -> None:
    """Even beside a count of 1,000 the colour of 1 is far from white,
    and more samples are darker.
    """
    colours, norm = _colours(np.array([[0, 1, 1000]]))
    shades = [
        np.array(colours(norm(np.ma.masked_equal(np.array([n]), 0))))[0, :3]
        for n in (0, 1, 50, 1000)
    ]
    assert shades[0].tolist() == [1, 1, 1]
    assert shades[1].min() < 0.8
    light = [float(shade.mean()) for shade in shades]
    assert light == sorted(light, reverse=True)
    path = tmp_path / "blank.png"
    heatmap_svg(np.zeros((2, 3), dtype=int), PARTIES, CLASSES, path)
    pixels = drawn_colours(path)
    # cells of nothing: white, but for the thin lines between
    assert np.all(pixels[len(pixels) // 3, 100:250] > 0.85)


def test_many_parties_lie_along_the_width_without_numbers(tmp_path: Path) -> None:
    """A thousand names say nothing: the axis counts parties, and says in which order they stand."""
    counts = np.full((1000, 26), 3)
    counts[:, 0] = 0
    letters = [chr(65 + k) for k in range(26)]
    path = tmp_path / "many.svg"
    heatmap_svg(counts, [f"p{i}" for i in range(1000)], letters, path)
    text = path.read_text()
    assert all(f">{letter}<" in text for letter in letters)  # every class is named
    # parties are counted at round positions
    assert 10 <= sum(f">{i}<" in text for i in range(20, 1000)) <= 30
    assert ">500<" in text
    assert ">p500<" not in text
    assert "parties, ordered by their largest class" in text
    assert text.count(">3<") == 1  # only on the colour bar
    png = tmp_path / "many.png"
    heatmap_svg(counts, [f"p{i}" for i in range(1000)], letters, png)
    height, width = drawn_colours(png).shape[:2]
    assert width >= 1000  # a pixel or more for each party
    assert width > height


@pytest.mark.parametrize(
    ("most", "ticks"), [(0, [1]), (1, [1]), (5, [1, 2, 5]), (484, [1, 20, 100, 200, 484])]
)
def test_colour_bar_ticks(most: int, ticks: list[int]) -> None:
    """484 has root 22, so ticks lie at least 2.64 apart in root: 1, 20 (4.5), 100
    (10), 200 (14.1), 484 (22).
    """
    assert _ticks(most) == ticks


def test_a_wrong_suffix_and_a_wrong_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"\.svg, \.png or \.pdf, but the file is called 'heat.gif'"
    ):
        heatmap_svg(COUNTS, PARTIES, CLASSES, tmp_path / "heat.gif")
    with pytest.raises(DataError, match=r"shape \(2, 3\) does not fit 2 parties and 2 classes"):
        heatmap_svg(COUNTS, PARTIES, CLASSES[:2], tmp_path / "heat.svg")
    with pytest.raises(DataError, match="the smallest is -1"):
        party_class_table(COUNTS - 1, PARTIES, CLASSES)
    with pytest.raises(DataError, match="at least one of each"):
        party_class_table(np.zeros((0, 3), dtype=int), (), CLASSES)


def test_importing_reports_does_not_import_matplotlib() -> None:
    code = (
        "import sys, ostraka.display.heatmap, ostraka.display.curves; "
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


def test_every_one_of_30_classes_is_named_and_numbers_are_written_where_they_fit(
    tmp_path: Path,
) -> None:
    """30 cells share 11 inches: five digits of 0.07 inches fit into one, six do not."""
    names = [f"kind {k}" for k in range(30)]
    for count, written in ((12345, True), (123456, False)):
        counts = np.full((2, 30), count)
        counts[0, 0] += 1  # what the colour bar shows
        heatmap_svg(counts, PARTIES, names, tmp_path / "x.svg")
        text = (tmp_path / "x.svg").read_text()
        assert all(f">{name}<" in text for name in names)
        assert (f">{count}<" in text) == written
    heatmap_svg(
        np.ones((2, 200), int), PARTIES, [f"kind {k}" for k in range(200)], tmp_path / "x.svg"
    )
    text = (tmp_path / "x.svg").read_text()
    assert "class (one in 10 of 200 is named)" in text
    assert ">kind 190<" in text
    assert ">kind 191<" not in text


def test_a_crowd_is_ordered_by_largest_class_and_its_share(tmp_path: Path) -> None:
    """Class 0: 9 of 9, then 5 of 6; class 1 after them.

    However the parties come, the picture is the same.
    """
    assert _by_largest_class(np.array([[0, 3], [5, 1], [9, 0]])).tolist() == [2, 1, 0]
    counts = np.array([[2, 0], [0, 2]] * 60)
    names = [f"p{i}" for i in range(120)]
    heatmap_svg(counts, names, CLASSES[:2], tmp_path / "a.svg")
    heatmap_svg(counts[np.argsort(counts[:, 0])], names, CLASSES[:2], tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
