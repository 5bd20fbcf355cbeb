"""Files of figures: formats, the same bytes every time, and places that cannot be written."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ostraka.display.canvas import check_suffix, new_figure, save
from ostraka.display.curves import Curve, accuracy_curve
from ostraka.errors import ConfigError, StoreError

DRAW = """
import sys
from pathlib import Path
from ostraka.display.curves import Curve, accuracy_curve
for name in ("a.pdf", "a.svg"):
    curve = Curve("fedavg", [1, 2], [[10, 20], [12, 21]])
    accuracy_curve([curve], Path(sys.argv[1]) / name, "Ten parties")
"""


def test_the_same_figure_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """Whatever the hash seed and the day, which matplotlib takes from
    SOURCE_DATE_EPOCH if it is given.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "86400000"}
    subprocess.run(
        [sys.executable, "-c", DRAW, str(tmp_path)], env=environment, check=True, timeout=120
    )
    for name, start in (("a.pdf", b"%PDF"), ("a.svg", b"<?xml")):
        accuracy_curve(
            [Curve("fedavg", [1, 2], [[10, 20], [12, 21]])], tmp_path / "here" / name, "Ten parties"
        )
        drawn = (tmp_path / name).read_bytes()
        assert drawn == (tmp_path / "here" / name).read_bytes(), name
        assert drawn.startswith(start)
        assert b"1972" not in drawn


@pytest.mark.parametrize("name", ["$$", "$\\x$", "$a_b$", "US$"])
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_dollar_is_no_formula(name: str, suffix: str, tmp_path: Path) -> None:
    """Parties and classes are called what they are called, also where matplotlib could not read
    it as a formula; in a title, a legend and beside an axis.
    """
    figure = new_figure(3, 2)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], label=name)
    axes.set_title(name)
    axes.set_xticks([0, 1], [name, "b"])
    axes.annotate(name, (0, 1))
    axes.legend()
    save(figure, tmp_path / f"figure{suffix}")
    if suffix == ".svg":
        assert (tmp_path / "figure.svg").read_text().count(f">{name}<") == 4


def test_names_that_say_no_format(tmp_path: Path) -> None:
    for name in ("figure", "figure.jpg", ".svg"):
        with pytest.raises(ConfigError, match=r"\.svg, \.png or \.pdf, but the file is called"):
            check_suffix(tmp_path / name)
    with pytest.raises(
        ConfigError, match=r"is a folder; give the name of a file in it, such as .*figure\.svg"
    ):
        check_suffix(tmp_path)
    for name in ("a.svg", "a.PNG", "a.pdf", "a" * 300 + ".svg"):
        check_suffix(tmp_path / name)


def test_a_place_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    """A file where a folder should be, and a name that is too long; a missing folder is made."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file stands where a folder should be"):
        save(new_figure(1, 1), tmp_path / "file" / "a.svg")
    with pytest.raises(StoreError, match="give it a shorter name"):
        save(new_figure(1, 1), tmp_path / ("a" * 300 + ".svg"))
    save(new_figure(1, 1), tmp_path / "new" / "deep" / "a.svg")
    assert [path.name for path in (tmp_path / "new" / "deep").iterdir()] == ["a.svg"]


def test_a_full_disk_leaves_no_empty_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in place of an older one, nor where there was none."""
    old = tmp_path / "old.svg"
    save(new_figure(2, 2), old)
    before = old.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ostraka.store.files.os.fsync", full)
    for path in (old, tmp_path / "new.png"):
        with pytest.raises(StoreError, match="No space left on device; free some space there"):
            save(new_figure(3, 3), path)
    assert old.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["old.svg"]
