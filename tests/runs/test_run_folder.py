"""Nothing is written into somebody else's folder."""

from pathlib import Path

import pytest
from filelock import FileLock

from ostraka.api import run
from ostraka.errors import ConfigError, StoreError
from ostraka.runs.folder import check_free, kind_of
from ostraka.runs.record import RunDir


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
        (("lock", ".run.json.4711-0123abcd"), None),
        ((".thesis.tex",), "foreign"),
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


TINY = {"data": "digits", "train_per_class": 4, "partition": "iid", "parties": 2, "epochs": 1}
LEFT = ("checkpoint.safetensors", "work/memory/p00000/r00001.safetensors", "work/.x.1-0123abcd",
        "members/.p00000.safetensors.4711-0123abcd", ".summary.json.4711-0123abcd")  # fmt: skip


def killed_at_its_end(root: Path) -> list[Path]:
    """A run whose summary was written, and whose process was killed then."""
    run("closed-voting", out=root, progress=False, **TINY)  # type: ignore[arg-type]
    for name in LEFT:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("left")
    return [root / name for name in LEFT]


def test_what_a_kill_left_of_a_finished_run_is_swept_unless_somebody_is_at_work_in_it(
    tmp_path: Path,
) -> None:
    left = killed_at_its_end(tmp_path / "run")
    with FileLock(tmp_path / "run" / "lock"):
        again = run("closed-voting", out=tmp_path / "run", resume=True, progress=False, **TINY)  # type: ignore[arg-type]
    assert again.summary.accuracy is not None, "it is shown all the same"
    assert all(path.exists() for path in left)
    run("closed-voting", out=tmp_path / "run", resume=True, progress=False, **TINY)  # type: ignore[arg-type]
    assert not any(path.exists() for path in left)
    assert not (tmp_path / "run" / "work").exists()
    assert len(list((tmp_path / "run" / "members").iterdir())) == 2


def test_a_summary_that_is_not_the_runs_is_no_end(tmp_path: Path) -> None:
    """Whoever removes it goes on: the checkpoint and the work must still be there."""
    left = killed_at_its_end(tmp_path / "run")
    home = RunDir(tmp_path / "run")
    home.summary.write_text(home.summary.read_text().replace("closed-voting", "fedov"))
    with home.locked(), pytest.raises(StoreError, match="was changed after it was written"):
        home.finished()
    assert [path.exists() for path in left] == [True, True, False, False, False]
