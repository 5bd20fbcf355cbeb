"""What lies in a folder of samples: a sub-folder for each class, or files without classes.

Hidden files and what systems leave behind are passed over. Links that lead out of the folder are
refused: its owner may not know what lies there. Folders inside a class belong to that class.
"""

import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ostraka.core.kind import Kind
from ostraka.core.names import normal
from ostraka.data.names import BREAKING, flaw
from ostraka.data.own.collection import SHOWN, listed, note, some
from ostraka.data.own.form import Asked, Part
from ostraka.errors import DataError

T = TypeVar("T")

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
SOUNDS = (".wav", ".wave")
"""How the names of files end that are samples."""

SAMPLES: Mapping[Kind, tuple[str, tuple[str, ...]]] = {
    "image": ("images", IMAGES),
    "sound": ("recordings", SOUNDS),
}
"""What samples of a kind are called, and how the names of their files end."""

JUNK = {"__MACOSX", "Thumbs.db", "desktop.ini", "@eaDir", "$RECYCLE.BIN"}
"""What systems leave in folders, besides hidden files."""

PARTS: dict[str, Part | None] = {
    "train": "train",
    "test": "test",
    "val": None,
    "valid": None,
    "validation": None,
}
"""Sub-folders that are parts of the data and no classes; validation samples are not used."""

MOST_CLASSES = 1000
"""Classes that data may have; more are most likely no classes."""

LONGEST = 200
"""Letters that the name of a class may have."""

AT_ONCE = 64
"""Files that a thread reads before it tells."""

MOST_THREADS = 16

REMEDY = (
    ". To leave out what cannot be read: --skip-broken (ostraka train, ostraka task init), or for "
    'a run {"skip_broken": true} in the JSON file beside the data'
)


@dataclass(frozen=True)
class File:
    """A file in a folder; `within` are the names on the way to it, its own last."""

    path: str
    within: tuple[str, ...]
    size: int
    mtime_ns: int

    @classmethod
    def at(cls, path: Path) -> "File":
        """One file by itself."""
        about = path.stat()
        return cls(str(path), (path.name,), about.st_size, about.st_mtime_ns)

    @property
    def end(self) -> str:
        """How its name ends, in small letters."""
        return os.path.splitext(self.within[-1])[1].lower()

    @property
    def name(self) -> str:
        """Its path from the folder, fit to be shown."""
        return printable("/".join(self.within))


@dataclass(frozen=True)
class Listing:
    """The files of a folder, and what is to be said of it."""

    root: Path
    files: tuple[File, ...]
    folders: tuple[str, ...]
    """Sub-folders of the folder itself."""
    notes: tuple[str, ...] = ()


@dataclass
class _Walk:
    files: list[File] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)


def list_folder(asked: Asked) -> Listing:
    """Every file of the part that is asked for, in the order of their names."""
    root, notes = _part(asked)
    walk = _Walk()
    _look(root, (), os.path.realpath(root), walk)
    notes += note(walk.strange, "entry is", "entries are", "no file", "left out")
    done = "not followed, as its files would be read twice"
    notes += note(walk.linked, "link leads", "links lead", "to a folder inside", done)
    walk.files.sort(key=lambda file: file.within)
    return Listing(root, tuple(walk.files), tuple(sub_folders(root)), tuple(notes))


def chosen(
    listing: Listing, asked: Asked, kind: Kind
) -> tuple[list[File], list[str] | None, list[str]]:
    """(files that are samples of this kind, the class of each or None, notes)."""
    notes, (what, ends) = list(listing.notes), SAMPLES[kind]
    wanted = [file for file in listing.files if file.end in ends]
    others = [file.name for file in listing.files if file.end not in ends]
    done = f"left out. What is read: {', '.join(sorted(ends))}"
    notes += note(others, f"file is no {what[:-1]}", f"files are no {what}", "", done)
    inside = [file for file in wanted if len(file.within) > 1]
    if not wanted:
        raise DataError(
            f"{listing.root} holds no {what} ({len(others)} other files); what is read: "
            f"{', '.join(sorted(ends))}. Give each class a sub-folder with its {what}"
        )
    if asked.labelled is False or (asked.labelled is None and not inside):
        return wanted, None, notes
    if not inside:
        raise DataError(
            f"{listing.root} holds {len(wanted)} {what}, but no sub-folders, so that nobody can "
            f"say of which class they are; put the {what} of each class into a folder of its name"
        )
    loose = [file.name for file in wanted if len(file.within) == 1]
    where, done = "beside the folders of the classes", "left out, as nobody can say of which class"
    notes += note(loose, f"{what[:-1]} lies", f"{what} lie", where, done)
    labels = [file.within[0] for file in inside]
    notes += check_classes(listing.root, set(labels))
    notes += _nested(listing.root, inside)
    empty = [printable(name) for name in listing.folders if name not in set(labels)]
    done = "no class was made of it"
    notes += note(empty, "sub-folder holds", "sub-folders hold", f"no {what}", done)
    return inside, labels, notes


def _nested(root: Path, inside: Sequence[File]) -> list[str]:
    """A note on one folder that holds several, which may be the classes that were meant."""
    deeper = sorted({file.within[:2] for file in inside if len(file.within) > 2})
    outer = {file.within[0] for file in inside}
    if len(outer) > 1 or len(deeper) < 2:
        return []
    names = listed([printable(name) for _, name in deeper], "folder", "folders")
    place = printable(str(root / deeper[0][0]))
    return [
        f"all samples of {root.name} are of the class {printable(deeper[0][0])!r}, whose folder "
        f"holds {names}; if these are the classes, give {place}"
    ]


def each(
    files: Sequence[File], work: Callable[[int, File], T], skip_broken: bool
) -> tuple[list[T | None], list[str]]:
    """What `work` gives for every file and its position, in order, and notes.

    Files for which it raises a DataError end the reading, which stops soon after there are more
    than a message lists; with `skip_broken` they have None in their place and are counted in a
    note. Decoders release the interpreter's lock, so that threads are enough.
    """
    wrong: dict[int, str] = {}

    def batch(start: int) -> list[T | None]:
        found: list[T | None] = []
        for at in range(start, min(start + AT_ONCE, len(files))):
            if len(wrong) > SHOWN and not skip_broken:
                break
            try:
                found.append(work(at, files[at]))
            except DataError as error:
                wrong[at] = str(error)
                found.append(None)
        return found

    threads = min(MOST_THREADS, os.cpu_count() or 1, 1 + len(files) // AT_ONCE)
    with ThreadPoolExecutor(threads) as pool:
        results = [one for part in pool.map(batch, range(0, len(files), AT_ONCE)) for one in part]
    if not wrong:
        return results, []
    first = wrong[min(wrong)]
    if len(wrong) == len(files) and (skip_broken or len(files) > 1):
        raise DataError(f"none of {len(files)} files can be read; the first: {first}")
    names = listed([files[at].name for at in sorted(wrong)], "file", "files")
    if skip_broken:
        return results, [f"{names} could not be read, left out; the first: {first}"]
    if len(wrong) == 1:
        raise DataError(f"{first}{REMEDY}")
    least = "at least " if len(wrong) > SHOWN else ""
    raise DataError(f"{least}{names} cannot be read; the first: {first}{REMEDY}")


def check_classes(owner: object, names: Names[str]) -> list[str]:
    """Refuse names that no class can have, and more classes than data can have."""
    if len(names) > MOST_CLASSES:
        raise DataError(
            f"{owner} has {len(names):,} classes ({some(sorted(names))}); at most {MOST_CLASSES:,} "
            "are taken. Are these classes, or numbers, dates or people? Give what says the class"
        )
    long = [name for name in names if len(name) > LONGEST]
    if long:
        raise DataError(
            f"{owner}: a class has a name of {len(long[0]):,} letters "
            f"({printable(long[0][:40])}...); at most {LONGEST} are taken. Is it free text? Give "
            "what says the class"
        )
    wrong = flaw(sorted(names), "class")
    if wrong:
        raise DataError(f"{owner}: {printable(wrong)}; give every class a name on one line")
    joined = len(names) - len({normal(name) for name in names})
    return [f"{joined} names of classes are other spellings of one name; joined"] if joined else []


def sub_folders(root: Path) -> list[str]:
    """The names of its sub-folders."""
    return sorted(entry.name for entry in _entries(root, "") if entry.is_dir())


def parts_of(root: Path) -> dict[Part, Path]:
    """The parts that the data of a folder is stored in; none where its sub-folders are classes."""
    names = sub_folders(root)
    if not any(name.lower() == "train" for name in names) or any(
        name.lower() not in PARTS for name in names
    ):
        return {}
    return {part: root / name for name in names if (part := PARTS[name.lower()]) is not None}


def printable(name: str) -> str:
    """A name without what could disturb a terminal or a file."""
    return "".join("?" if unicodedata.category(c) in BREAKING else c for c in name)


def _part(asked: Asked) -> tuple[Path, list[str]]:
    """The folder of the part that is asked for, and what is left aside."""
    parts = parts_of(asked.path)
    if not parts and asked.which == "train":
        return asked.path, []
    if asked.which not in parts:
        raise DataError(
            f"{asked.path} has no part {asked.which}; put these samples into the sub-folder "
            f"{asked.which}, beside train"
        )
    others = [name for name in sub_folders(asked.path) if name != parts[asked.which].name]
    told = f"{asked.path.name} has the parts {', '.join(others)} too, which were not read"
    return parts[asked.which], [told] if others and asked.part is None else []


def _look(folder: Path, within: tuple[str, ...], root: str, walk: _Walk) -> None:
    for entry in _entries(folder, "/".join(within)):
        names = (*within, entry.name)
        if entry.is_symlink() and _follow(entry, names, root, walk):
            continue
        if entry.is_dir():
            _look(Path(entry.path), names, root, walk)
        elif entry.is_file():  # opening a pipe would wait for ever
            about = entry.stat()
            walk.files.append(File(entry.path, names, about.st_size, about.st_mtime_ns))
        else:
            walk.strange.append(printable("/".join(names)))


def _follow(entry: os.DirEntry[str], names: Sequence[str], root: str, walk: _Walk) -> bool:
    """Whether a link is done with: one that leads to a file in the folder is read as that file."""
    name, target = printable("/".join(names)), os.path.realpath(entry.path)
    if os.path.commonpath([root, target]) != root:
        raise DataError(
            f"{name} in {root} is a link that leads out of the folder, to {printable(target)}; "
            "copy what belongs to the data, or remove the link"
        )
    if not os.path.exists(target):
        walk.strange.append(name)
        return True
    if os.path.isdir(target):
        walk.linked.append(name)
        return True
    return False


def _entries(folder: Path, name: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError as error:
        raise DataError(
            f"{printable(name or str(folder))} cannot be looked into: {error.strerror}; allow it, "
            "or give a folder that you may read"
        ) from None
    return (one for one in found if not one.name.startswith(".") and one.name not in JUNK)
