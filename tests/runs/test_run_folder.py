"""Nothing is written into somebody else's folder."""

from pathlib import Path

import pytest

from ostraka.errors import ConfigError
from ostraka.runs.folder import check_free, kind_of


def folder_with(tmp_path: Path, *names: str) -> Path:
    home = tmp_path / "out"
    home.mkdir()
    for name in names:
        (home / name).write_text("")
    return home


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ((), None),
        (("lock",), None),
        (("lock", "environment.json"), None),
        (("config.toml", "lock", "my notes.txt"), "run"),
        (("summary.json",), "run"),
        (("cells", "division.svg"), "grid"),
        (("results.json",), "grid"),
        (("thesis.tex",), "foreign"),
        (("lock", "thesis.tex"), "foreign"),
    ],
)
def test_what_a_folder_is(tmp_path: Path, names: tuple[str, ...], kind: str | None) -> None:
    assert kind_of(folder_with(tmp_path, *names)) == kind


@pytest.mark.parametrize("kind", ["run", "grid"])
def test_new_empty_and_own_folders_are_free(tmp_path: Path, kind: str) -> None:
    check_free(tmp_path / "new", kind)  # type: ignore[arg-type]
    check_free(folder_with(tmp_path), kind)  # type: ignore[arg-type]
    (tmp_path / "out" / ("config.toml" if kind == "run" else "results.json")).write_text("")
    check_free(tmp_path / "out", kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            ("a", "b", "c", "d", "e"),
            r"out holds files that are not of a run: a, b, c and 2 more; choose an empty",
        ),
        (("a",), r"not of a run: a; choose"),
        (("results.json",), "is the folder of a grid, not of a run"),
    ],
)
def test_other_folders_are_refused_with_what_they_hold(
    tmp_path: Path, names: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_free(folder_with(tmp_path, *names), "run")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file, and a grid needs a folder"):
        check_free(tmp_path / "file", "grid")
