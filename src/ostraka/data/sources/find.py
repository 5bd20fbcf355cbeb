"""Find and load datasets by name.

A name is looked for among the built-in sets, then in every data folder in turn (`--data-dir`, then
`OSTRAKA_DATA`), in the folder itself and two levels of folders below it. A path to a file or folder
may be given instead of a name, and `domains:A+B` joins several sets.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ostraka.data.dataset import Dataset
from ostraka.data.sources import domains
from ostraka.data.sources.advice import (
    VARIABLE,
    check_local,
    content,
    fetched,
    is_unread,
    looked,
    unread,
)
from ostraka.data.sources.own import check_folder, read_dataset
from ostraka.data.sources.source import Source
from ostraka.errors import DataError, choices, did_you_mean
from ostraka.registry import SOURCES

DEPTH = 2

FILES = (".npz", ".mat", ".csv", ".tsv", ".parquet")
"""How the names of files end that are given without a folder."""

ALIASES = {
    "embedded-fashion-mnist-4k": "fashion-4k",
    "fashion": "fashion-mnist",
    "fashionmnist": "fashion-mnist",
    "fmnist": "fashion-mnist",
    "kuzushiji-mnist": "kmnist",
    "mnistm": "mnist-m",
    "cifar-10": "cifar10",
    "cifar-100": "cifar100",
}


@dataclass(frozen=True)
class Found:
    """A dataset that can be loaded; `path` is None for built-in ones and for those joined of
    several `parts`."""

    name: str
    kind: str
    path: Path | None
    parts: tuple[str, ...] = ()


def data_dirs(option: str | None = None) -> list[Path]:
    """The data folders: those of the option, then those of OSTRAKA_DATA (both are lists as in
    PATH), each once.

    A folder of the option that is not there is an error; the variable may name folders that other
    machines have.
    """
    asked, usual = _folders(option or ""), _folders(os.environ.get(VARIABLE, ""))
    if option is not None and not asked:
        raise DataError(
            "--data-dir (data_dir) names no folder; give an existing one, or leave it out"
        )
    for folder in asked:
        if not os.path.isdir(folder):
            wrong = "is a file, not a folder" if os.path.exists(folder) else "does not exist"
            raise DataError(
                f"the data folder {folder} (--data-dir, data_dir) {wrong}; give an existing folder"
            )
    return list(dict.fromkeys([*asked, *usual]))


def _folders(listed: str) -> list[Path]:
    return [_expanded(folder) for folder in listed.split(os.pathsep) if folder]


def _expanded(path: str) -> Path:
    """With the home folder in place of ~; a ~user that there is none of stays as it is."""
    return Path(os.path.expanduser(path))  # Path.expanduser raises instead


def survey(dirs: Sequence[Path]) -> list[tuple[Found, Source | None]]:
    """Every dataset that `load` finds, built-in ones first; of two with the same name only the one
    it would load.

    Sets that are joined of several have no source of their own.
    """
    found: dict[str, tuple[Found, Source | None]] = {}
    for place, source in sorted(_places(dirs), key=lambda pair: pair[1].yields):
        if source.listed:
            found.setdefault(place.name, (place, source))
    for name in domains.NAMED:
        parts, _ = domains.choose(name, found)
        if len(parts) > 1:
            found.setdefault(name, (Found(name, "domains", None, parts), None))
    return list(found.values())


def available(dirs: Sequence[Path] | None = None) -> list[Found]:
    """Every dataset that `load` finds; `dirs` defaults to the folders of OSTRAKA_DATA."""
    return [place for place, _ in survey(data_dirs() if dirs is None else dirs)]


def load(name: str, dirs: Sequence[Path] | None = None, label: str | None = None) -> Dataset:
    """The dataset called `name`, or at the path `name`; `dirs` defaults to the folders of
    OSTRAKA_DATA. `label` names the column of a table that holds the classes."""
    folders = data_dirs() if dirs is None else list(dirs)
    if label is not None:
        return _labelled(name, folders, label)
    if name.startswith(domains.PREFIX):
        parts, size = domains.parse(name)
        return domains.join(name, [load(part, folders) for part in parts], size)
    place, source = _find(name, folders)
    if source is None:
        return _load_named(place.name, folders)
    return source.read(place.path or Path(), place.name)


def _labelled(name: str, folders: Sequence[Path], label: str) -> Dataset:
    """The table called `name`, with the classes in the column `label`."""
    found = locate(name, folders)
    place, source = found[0]
    if len(found) > 1 or source.kind != "table" or place.path is None:
        raise DataError(
            f"label is {label!r}, a column with the classes, but {name} is not a table; leave "
            "label out"
        )
    return read_dataset(place.path, place.name, label)


def locate(name: str, dirs: Sequence[Path]) -> list[tuple[Found, Source]]:
    """Where the data called `name` is read from, and by which source; several where it is joined of
    several sets."""
    if name.startswith(domains.PREFIX):
        return [pair for part in domains.parse(name)[0] for pair in locate(part, dirs)]
    place, source = _find(name, dirs)
    if source is not None:
        return [(place, source)]
    parts, _ = domains.choose(place.name, (found.name for found in available(dirs)))
    return [pair for part in parts for pair in locate(part, dirs)]


def _find(name: str, folders: Sequence[Path]) -> tuple[Found, Source | None]:
    """One data set and its source; no source where the name stands for a list of domains."""
    check_local(name)
    if os.sep in name or "/" in name or name.lower().endswith(FILES) or name in (".", ".."):
        return _find_path(_expanded(name))
    wanted = canonical(name)
    places = [(place, source) for place, source in _places(folders) if place.name == wanted]
    # A refused copy (pickles) must not hide a readable one in a later folder.
    for place, source in sorted(places, key=lambda pair: _rank(pair[1])):
        return place, source
    if wanted in domains.NAMED:
        return Found(wanted, "domains", None), None
    raise _missing(name, wanted, folders)


def _load_named(name: str, folders: Sequence[Path]) -> Dataset:
    """A named list of domains, with those of its sets that are there."""
    parts, missing = domains.choose(name, (found.name for found in available(folders)))
    if len(parts) < 2:
        needed = "; ".join(f"{part}: {content(part)}" for part in missing)
        raise DataError(
            f"{name} needs at least two of its data sets {choices(domains.NAMED[name])}; found: "
            f"{choices(parts)}. Looked in: {looked(folders)}. {fetched(missing)}Put there, or in "
            f"folders named with --data-dir or {VARIABLE}: {needed}"
        )
    all_of = len(domains.NAMED[name])
    left_out = (
        f"{name} here is {len(parts)} of its {all_of} domains ({', '.join(parts)}); not found: "
    )
    notes = [left_out + ", ".join(missing)] if missing else []
    return domains.join(name, [load(part, folders) for part in parts], domains.SIZE, notes)


def canonical(name: str) -> str:
    """The one name behind the usual spellings: lower case, hyphens, known aliases."""
    name = name.lower().replace("_", "-")
    return ALIASES.get(name, name)


def _find_path(path: Path) -> tuple[Found, Source]:
    if not os.path.exists(path):  # False too for a name that no file can have
        raise DataError(
            f"{path} does not exist; give an existing file or folder, or a dataset's name"
        )
    if path.suffix == ".mat":
        path = path.parent
    for source in _sources():
        names = [canonical(name) for name in _names(source, path)]
        if len(names) > 1:
            raise DataError(
                f"{path} holds several datasets ({choices(names)}); name one of them with "
                f"--data-dir {path}"
            )
        if names:
            return Found(names[0], source.kind, path), source
    if is_unread(path.name) and path.is_file():
        raise unread(str(path), _kinds())
    if path.is_dir():
        check_folder(path)
    folder = "a folder and " if path.is_dir() else ""
    raise DataError(
        f"{path} is {folder}not a dataset of a known kind. Known kinds: {'; '.join(_kinds())}"
    )


def _kinds() -> list[str]:
    return [source.summary for source in _sources() if source.listed and not source.builtin]


def _sources() -> list[Source]:
    """Sources that work; those that are only there to refuse come last."""
    return sorted(SOURCES.working().values(), key=_rank)


def _rank(source: Source) -> tuple[bool, bool]:
    """Who goes first where several find the same."""
    return not source.listed, source.yields


def _names(source: Source, path: Path) -> list[str]:
    """The datasets that a source finds at a path; a source that fails there finds none."""
    try:
        return source.find(path)
    except Exception as error:  # a plug-in's: it must not hide what others find
        warnings.warn(
            f"the source {source.kind!r} failed on {path}: {error!r}; fix or remove it",
            stacklevel=2,
        )
        return []


def _places(dirs: Sequence[Path]) -> Iterator[tuple[Found, Source]]:
    sources = _sources()
    for source in sources:
        for name in source.builtin:
            yield Found(name, source.kind, None), source
    for folder in dirs:
        for path in _walk(folder, DEPTH):
            for source in sources:
                for name in _names(source, path):
                    yield Found(canonical(name), source.kind, path), source


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """The folder and what is in it, to the given depth; folders that may not be read are passed
    over."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    yield folder
    for entry in entries:
        if entry.is_dir():
            if depth and not entry.name.startswith("."):
                yield from _walk(entry, depth - 1)
        else:
            yield entry


def _missing(name: str, wanted: str, dirs: Sequence[Path]) -> DataError:
    if wanted in SOURCES.names():
        SOURCES.get(wanted)  # a plug-in that is asked for and cannot be loaded says why
    if is_unread(name):
        return unread(name, _kinds())
    known, public = [found.name for found in available(dirs)], fetched([wanted])
    here = [*known, *(alias for alias, own in ALIASES.items() if own in known)]
    hint = "" if public else did_you_mean(wanted, here)
    return DataError(
        f"no dataset {name!r} was found.{hint} Looked in: {looked(dirs)}. {public}Put "
        f"there {content(wanted)}, or name other folders with --data-dir or {VARIABLE}. Found now: "
        f"{choices(known, wanted)}"
    )
