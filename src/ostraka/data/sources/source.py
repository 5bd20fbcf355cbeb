"""What a source of datasets is: one reader of one kind of file or folder, or of data that comes
with a library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ostraka.data.dataset import Dataset


@dataclass(frozen=True)
class Summary:
    """A data set in a few numbers: the shape of one sample, how many classes, training and test
    samples."""

    shape: tuple[int, ...]
    classes: int
    train: int
    test: int


@dataclass(frozen=True)
class Source:
    """`find` names the datasets that a file or folder holds (none: not of this kind); `read` loads
    one of them.

    `builtin` lists datasets that need no file; `read` then ignores its path. A source that is not
    `listed` only recognises files in order to refuse them with a reason. `files` names what `read`
    opens: a run whose files have not changed since then need not read its data again. `peek` tells
    shape and sizes without reading all of it. One that `yields` gives way to others that find
    a dataset of the same name. In one that is `loose` every file is a sample, so that a file that
    was removed is no damage.
    """

    kind: str
    summary: str
    read: Callable[[Path, str], Dataset]
    find: Callable[[Path], list[str]] = lambda path: []
    builtin: tuple[str, ...] = ()
    listed: bool = True
    files: Callable[[Path, str], Sequence[Path]] | None = None
    peek: Callable[[Path, str], Summary] | None = None
    yields: bool = False
    loose: bool = False
