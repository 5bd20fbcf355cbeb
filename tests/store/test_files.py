"""Files in one step, for their owner alone or for whom the umask lets; and what a kill leaves."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostraka.errors import StoreError
from ostraka.store.files import is_left, make_folder, opened_log, retire, sweep, write_atomically

WRITING = """
import os, sys
from ostraka.store import files
os.replace = lambda *_: (print("half", flush=True), sys.stdin.read())
files.write_atomically(files.Path(sys.argv[1]), b"new")
"""


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_private_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    write_atomically(tmp_path / "a/b/c", b"x", private=True)
    make_folder(tmp_path / "d/e")
    with opened_log(tmp_path / "log", "a") as log:
        log.write("x")
    folders, files = ("a", "a/b", "d", "d/e"), ("a/b/c", "log")
    assert {mode(tmp_path / name) for name in folders} == {0o700}
    assert {mode(tmp_path / name) for name in files} == {0o600}
    assert mode(tmp_path) == 0o700, "a folder that was there is not changed"


def test_what_is_handed_over_has_the_permissions_of_the_umask(tmp_path: Path, umask: int) -> None:
    write_atomically(tmp_path / "a/b", b"x")
    make_folder(tmp_path / "c/d", private=False)
    assert {mode(tmp_path / name) for name in ("a", "c", "c/d")} == {0o777 & ~umask}
    assert mode(tmp_path / "a/b") == 0o666 & ~umask


def test_a_private_file_beside_others_changes_nobody_elses_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    write_atomically(tmp_path / "checkpoint", b"x", private=True)
    write_atomically(tmp_path / "summary", b"x")
    assert (mode(tmp_path), mode(tmp_path / "checkpoint")) == (0o755, 0o600)
    assert mode(tmp_path / "summary") & 0o044


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    for private in (False, True):
        with pytest.raises(StoreError, match="a file stands where a folder should be"):
            write_atomically(tmp_path / "a/b", b"x", private=private)


def left_by_a_kill(path: Path) -> Path:
    """A file as a killed process leaves it."""
    left = path.with_name(f".{path.name}.4711-0123abcd")
    left.write_text("half")
    return left


def test_what_a_kill_has_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    inside = tmp_path / "memory" / "p00001"
    inside.mkdir(parents=True)
    lefts = [left_by_a_kill(tmp_path / "run.json"), left_by_a_kill(inside / "r00001.safetensors")]
    whole = tmp_path / ".work.9-0123abcd"
    (whole / "p00000").mkdir(parents=True)
    stay = [".hidden", ".x.12-0123abc", ".x.12-0123ABCD", "x.12-0123abcd", ".x-0123abcd", "y"]
    for name in stay:
        (tmp_path / name).write_text("")
    (tmp_path / ".link.12-0123abcd").symlink_to(tmp_path / "y")
    sweep(tmp_path)
    assert not [path for path in (*lefts, whole) if path.exists()]
    kept = {*stay, "memory", ".link.12-0123abcd"}
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert [is_left(name) for name in (whole.name, *stay)] == [True, *[False] * len(stay)]


def test_beside_a_file_that_is_handed_over_only_its_own_is_swept(tmp_path: Path) -> None:
    """Its folder is the user's: another program of ours may have been killed there too."""
    own, other = left_by_a_kill(tmp_path / "a.member"), left_by_a_kill(tmp_path / "b.member")
    below = tmp_path / "below"
    below.mkdir()
    deeper = left_by_a_kill(below / "a.member")
    write_atomically(tmp_path / "a.member", b"x")
    assert (own.exists(), other.exists(), deeper.exists()) == (False, True, True)


def test_what_another_process_is_writing_stays_until_it_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, str(tmp_path / "x")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    (half,) = tmp_path.iterdir()
    sweep(tmp_path)
    write_atomically(tmp_path / "x", b"ours")
    assert half.exists(), "its writer lives"
    process.kill()
    process.communicate()
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_retired_is_gone_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while it is removed leaves nothing under its name."""
    work = tmp_path / "work"
    (work / "memory").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("ostraka.store.files.shutil.rmtree", lambda path: None)
        retire(work)
    (left,) = tmp_path.iterdir()
    assert is_left(left.name)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
    retire(work)  # twice is as good as once


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    write_atomically(tmp_path / "x", b"old")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "x", "text")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"
