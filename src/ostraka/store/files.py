"""How files are written: in one step, private where nobody else is to read them; and how what a
kill has left is found and removed.

A file is written under a name of ours beside its place, then moved there. Until then its writer
holds a lock on it, which ends with the process, however that goes: what has such a name and no lock
is nobody's. Private files and the folders made for them are their owner's alone, whatever the
umask; all others have the permissions that it gives.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ostraka.errors import writing

FILE, FOLDER = 0o600, 0o700
"""Permissions of what is private."""

_OURS = re.compile(r"\.(?P<name>.+)\.\d+-[0-9a-f]{8}", re.DOTALL)


def write_atomically(path: Path, data: bytes, durable: bool = True, private: bool = False) -> None:
    """Replace `path` by `data` in one step; an error in between leaves the old file whole.

    A `durable` file survives a power cut. One that is not may then be empty or cut short, which
    its digest tells; it is for what can be made again, and costs a small part of the time.
    """
    with writing(path):
        make_folder(path.parent, private)
        if not private:  # private ones lie in folders that are swept as a whole
            sweep(path.parent, path.name)
        name, file = _begun(path, FILE if private else 0o666)
        with file:
            try:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                os.replace(name, path)
            except BaseException:
                name.unlink(missing_ok=True)
                raise


def make_folder(folder: Path, private: bool = True) -> None:
    """Make a folder, and those above it, where they are not there."""
    missing = [] if folder.is_dir() else [p for p in (folder, *folder.parents) if not p.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER if private else 0o777, exist_ok=True)
    if not missing and not folder.is_dir():
        folder.mkdir()  # says what stands in its place


def opened_log(path: Path, mode: str) -> IO[Any]:
    """A private file that is not written in one step, open in this mode; text goes out
    line by line."""
    encoding, lines = (None, -1) if "b" in mode else ("utf-8", 1)
    return open(path, mode, lines, encoding, opener=_private)


def sweep(folder: Path, name: str = "") -> None:
    """Remove what killed processes have left in `folder` and the folders in it, or beside its file
    `name` alone. What is being written now stays, and so does what is not ours or not to be
    removed: whoever needs the place is told when it is written to.
    """
    with suppress(OSError):
        for entry in os.scandir(folder):
            found = _OURS.fullmatch(entry.name)
            if found and name in ("", found["name"]):
                _remove_if_left(Path(entry.path))
            elif not name and entry.is_dir(follow_symlinks=False):
                sweep(Path(entry.path))


def is_left(name: str) -> bool:
    """Whether a file of this name is one that is being written, or what a kill has left of it."""
    return _OURS.fullmatch(name) is not None


def retire(path: Path) -> None:
    """Remove a folder or file that is no longer needed, so that a kill leaves nothing that could
    be taken for it: under its own name it is gone in one step."""
    left = _name_beside(path)
    with suppress(OSError):
        os.rename(path, left)
        _remove_if_left(left)


def _remove_if_left(path: Path) -> None:
    with suppress(OSError), _locked(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def _locked(opened: int) -> Iterator[None]:
    """Hold the lock of an open file or folder; an OSError if another process does."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def _begun(path: Path, mode: int) -> tuple[Path, IO[bytes]]:
    """A new file beside `path`, open and locked, and its name."""
    while True:
        name = _name_beside(path)
        file = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")
        with suppress(OSError):  # some network disks have no locks; there nothing is swept either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # else swept away before it was locked
            return name, file
        file.close()


def _name_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, FILE)
