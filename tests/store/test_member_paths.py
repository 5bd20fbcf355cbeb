"""What is given as the path of a member file and is none: refused, and nobody waits."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostraka.errors import StoreError
from ostraka.store.container import plain_file
from ostraka.store.member import load_member
from tests.store.member_files import GOOD


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """Whatever waits is woken by a signal, and fails."""

    def wake(*_: object) -> None:
        raise AssertionError("the reader waits")

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_link(tmp_path: Path) -> None:
    """The file itself is read, also by a path that leads through linked folders."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_bytes(GOOD)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "x")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    with pytest.raises(StoreError, match="link' is a symbolic link; give the path of the file its"):
        load_member(tmp_path / "link")
    assert load_member(tmp_path / "folder" / "x").card.name == "north"


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="pipe' is a pipe"):
        load_member(tmp_path / "pipe")


def test_a_pipe_that_takes_the_place_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the path and its opening."""
    path = tmp_path / "x"
    path.write_bytes(GOOD)
    looked = os.lstat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "lstat", lambda _: looked)
    with pytest.raises(StoreError, match="is a pipe"), plain_file(path):
        pass


def test_a_link_that_takes_the_place_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the path and its opening: it is not followed."""
    (tmp_path / "real").write_bytes(GOOD)
    (tmp_path / "x").symlink_to(tmp_path / "real")
    looked = os.lstat(tmp_path / "real")
    monkeypatch.setattr(os, "lstat", lambda _: looked)
    with pytest.raises(StoreError, match="x' cannot be read: Too many levels of symbolic links"):
        load_member(tmp_path / "x")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/tty"])
def test_a_device(device: str) -> None:
    with pytest.raises(StoreError, match=f"'{device}' is a device"):
        load_member(device)


def test_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
        with pytest.raises(StoreError, match="'socket' is a socket"):
            load_member("socket")


def test_a_folder_nothing_and_no_path(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        load_member(tmp_path)
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        load_member(tmp_path / "none")
    with pytest.raises(StoreError, match=r"cannot be read: .*null"):
        load_member("a\0b")
    with pytest.raises(StoreError, match="cannot be read: File name too long"):
        load_member("x" * 5000)
    # a file that says it has no bytes and never ends
    with pytest.raises(StoreError, match="has 0 bytes"):
        load_member("/proc/self/environ")


def test_a_disk_that_fails_while_it_is_read() -> None:
    """The memory of a process: a plain file that opens, and whose first byte nobody can read."""
    with pytest.raises(StoreError, match="mem' cannot be read: Input/output error; give another"):
        load_member("/proc/self/mem")
