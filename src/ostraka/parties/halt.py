"""Half-finished training beside the file that it will become, and a Ctrl-C that saves it first."""

import hashlib
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, final

from ostraka.core.progress import Progress
from ostraka.errors import ConfigError
from ostraka.store.codec import read_bytes, write_atomically
from ostraka.store.desk import DiskProgress, Place
from ostraka.store.files import sweep

Tell = Callable[[float, float | None], None]
"""Called with the share of the work that is done (0 to 1) and the latest loss."""


def progress_of(path: Path) -> Path:
    """The folder beside a file in which its half-finished training lies."""
    return path.with_name(path.name + ".progress")


def note_of(path: Path) -> Path:
    """What says, until all else is done, which file a training ended with."""
    return path.with_name(f".{path.name}.made")


def check_free(path: Path, replace_file: bool, how: str) -> None:
    """Refuse a file that is there already, unless it may be replaced, or something half-finished
    lies beside it: that may have been killed when it had written the file. `how` says how to have
    it replaced.
    """
    for name in (path.name, note_of(path).name):
        sweep(path.parent, name)
    sweep(progress_of(path))
    unfinished = progress_of(path).exists() or note_of(path).exists()
    if path.exists() and not replace_file and not unfinished:
        raise _taken(path, how)


def deliver(path: Path, data: bytes, what: str, replace_file: bool, how: str) -> None:
    """Write the file that a training ended with; `tidy` comes next.

    One that is there already may be the same, written by a process that was killed then. `what`
    stands for all that it depends on, for `was_delivered`.
    """
    write_atomically(note_of(path), _note(what, data), private=True)
    if not path.exists() or replace_file:
        write_atomically(path, data)
    elif read_bytes(path) != data:
        raise _taken(path, how)


def was_delivered(path: Path, what: str) -> bool:
    """Whether the file is there and the one that a training of `what` ended with, which was killed
    before it had removed what was half-finished."""
    if not path.exists() or not note_of(path).exists():
        return False
    return read_bytes(note_of(path)) == _note(what, read_bytes(path))


def tidy(path: Path) -> None:
    """Remove what was half-finished, and last what says that the file is not."""
    shutil.rmtree(progress_of(path), ignore_errors=True)
    note_of(path).unlink(missing_ok=True)


def _note(what: str, data: bytes) -> bytes:
    return f"{what} {hashlib.sha256(data).hexdigest()}".encode()


def _taken(path: Path, how: str) -> ConfigError:
    return ConfigError(
        f"{path} is there already; give another file, or say that it may be replaced ({how})"
    )


def place_of(path: Path, mark: str, what: str) -> Place:
    """Where the half-finished training of the file `path` goes; what lies there already must be of
    the same training, which `mark` stands for.
    """
    folder = progress_of(path)
    others = [found.name for found in folder.glob("*") if found.name != mark]
    if others:
        raise ConfigError(
            f"{folder} holds half-finished training with other data, another task, seed or "
            f"version; give these to go on with it, or remove {folder} to begin anew"
        )
    return Place(folder / mark, {"what": what, "run": mark})


@final
class Halting(Progress):
    """Half-finished training that is saved now and then, and at once when somebody wants to stop.

    `fit` asks after every few steps whether it is time to save; after Ctrl-C it always is, and
    when that is done, this raises KeyboardInterrupt: nothing is lost.
    """

    def __init__(self, place: Place | None, watch: Tell | None, every_seconds: float) -> None:
        """Keep it at `place`; None: nothing is kept."""
        self.kept = None if place is None else DiskProgress(place)
        self.watch = watch
        self.every_seconds = every_seconds
        self.wanted = False

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return self.kept is not None

    def load(self, name: str) -> Mapping[str, Any] | None:
        """What was last saved under `name`, or None."""
        return None if self.kept is None else self.kept.load(name)

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep values under `name`; stop then, if that was wanted."""
        if self.kept is not None:
            self.kept.save(name, values)
        if self.wanted:
            raise KeyboardInterrupt

    def tell(self, done: float, loss: float | None) -> None:
        """Pass it on to whoever watches."""
        if self.watch is not None:
            self.watch(done, loss)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C: save as soon as it can be done; the second: stop at once."""
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted, self.every_seconds = True, -1.0

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Have Ctrl-C mean `stop` in the block; only the main thread may say what it means."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self.stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
