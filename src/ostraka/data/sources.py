"""Find and load datasets by name.

A name is looked for among the built-in sets, then in every data folder in turn (`--data-dir`, then `OSTRAKA_DATA`), in
the folder itself and two levels of folders below it. A path to a file or folder may be given instead of a name, and
`domains:A+B` joins several sets.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ostraka.data import bundled, cifar, digits, domains, idx, npz, svhn
from ostraka.data.dataset import Dataset
from ostraka.data.source import Source
from ostraka.errors import DataError, choices, did_you_mean
from ostraka.registry import SOURCES

__all__ = ["Found", "available", "bundled", "cifar", "data_dirs", "digits", "domains", "idx", "load", "npz", "svhn"]

VARIABLE = "OSTRAKA_DATA"
DEPTH = 2

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

WANTED = {
    "cifar10": "the folder cifar-10-batches-bin (CIFAR-10, binary version), or cifar10.npz",
    "cifar100": "the folder cifar-100-binary (CIFAR-100, binary version), or cifar100.npz",
    "synthdigits": "synthdigits.npz (or its look-alike, synthdigits-like.npz or synthdigits-like.packed.npz)",
    "svhn": "a folder with train_32x32.mat and test_32x32.mat, or svhn.npz",
    "emnist-letters": "emnist-letters.npz, or a folder with emnist-letters-train-images-idx3-ubyte.gz and the rest",
}


@dataclass(frozen=True)
class Found:
    """A dataset that can be loaded; `path` is None for built-in ones and for those joined of several `parts`."""

    name: str
    kind: str
    path: Path | None
    parts: tuple[str, ...] = ()


def data_dirs(option: str | None = None) -> list[Path]:
    """The data folders: those of the option, then those of OSTRAKA_DATA (both are lists as in PATH), each once."""
    listed = [*(option or "").split(os.pathsep), *os.environ.get(VARIABLE, "").split(os.pathsep)]
    return list(dict.fromkeys(Path(folder).expanduser() for folder in listed if folder))


def available(dirs: Sequence[Path] | None = None) -> list[Found]:
    """Every dataset that `load` finds, built-in ones first; of two with the same name only the one it would load."""
    found: dict[str, Found] = {}
    for place, source in _places(data_dirs() if dirs is None else dirs):
        if source.listed:
            found.setdefault(place.name, place)
    for name in domains.NAMED:
        parts, _ = domains.choose(name, found)
        if len(parts) > 1:
            found.setdefault(name, Found(name, "domains", None, parts))
    return list(found.values())


def load(name: str, dirs: Sequence[Path] | None = None) -> Dataset:
    """The dataset called `name`, or at the path `name`; `dirs` defaults to the folders of OSTRAKA_DATA."""
    folders = data_dirs() if dirs is None else list(dirs)
    if name.startswith(domains.PREFIX):
        parts, size = domains.parse(name)
        return domains.join(name, [load(part, folders) for part in parts], size)
    if _is_path(name):
        return _load_path(Path(name).expanduser())
    wanted = canonical(name)
    places = [(place, source) for place, source in _places(folders) if place.name == wanted]
    # A refused copy (pickles) must not hide a readable one in a later folder.
    for place, source in sorted(places, key=lambda pair: not pair[1].listed):
        return source.read(place.path or Path(), wanted)
    if wanted in domains.NAMED:
        return _load_named(wanted, folders)
    raise _missing(name, wanted, folders)


def _load_named(name: str, folders: Sequence[Path]) -> Dataset:
    """A named list of domains, with those of its sets that are there."""
    parts, missing = domains.choose(name, (found.name for found in available(folders)))
    if len(parts) < 2:
        needed = "; ".join(f"{part}: {_content(part)}" for part in missing)
        raise DataError(
            f"{name} needs at least two of its data sets {choices(domains.NAMED[name])}; found: {choices(parts)}. "
            f"Looked in: {_looked(folders)}. Put there, or in folders named with --data-dir or {VARIABLE}: {needed}"
        )
    all_of = len(domains.NAMED[name])
    left_out = f"{name} here is {len(parts)} of its {all_of} domains ({', '.join(parts)}); not found: "
    notes = [left_out + ", ".join(missing)] if missing else []
    return domains.join(name, [load(part, folders) for part in parts], domains.SIZE, notes)


def canonical(name: str) -> str:
    """The one name behind the usual spellings: lower case, hyphens, known aliases."""
    name = name.lower().replace("_", "-")
    return ALIASES.get(name, name)


def _is_path(name: str) -> bool:
    return os.sep in name or "/" in name or name.endswith((".npz", ".mat")) or name in (".", "..")


def _load_path(path: Path) -> Dataset:
    if not path.exists():
        raise DataError(f"{path} does not exist; give an existing file or folder, or a dataset's name")
    if path.suffix == ".mat":
        path = path.parent
    for source in _sources():
        names = [canonical(name) for name in source.find(path)]
        if len(names) > 1:
            raise DataError(
                f"{path} holds several datasets ({choices(names)}); name one of them with --data-dir {path}"
            )
        if names:
            return source.read(path, names[0])
    kinds = "; ".join(source.summary for source in _sources() if source.listed and not source.builtin)
    raise DataError(f"{path} is not a dataset of a known kind. Known kinds: {kinds}")


def _sources() -> list[Source]:
    """Sources that are only there to refuse come last."""
    return sorted(SOURCES.working().values(), key=lambda source: not source.listed)


def _places(dirs: Sequence[Path]) -> Iterator[tuple[Found, Source]]:
    sources = _sources()
    for source in sources:
        for name in source.builtin:
            yield Found(name, source.kind, None), source
    for folder in dirs:
        for path in _walk(folder, DEPTH):
            for source in sources:
                for name in source.find(path):
                    yield Found(canonical(name), source.kind, path), source


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """The folder and what is in it, to the given depth; folders that may not be read are passed over."""
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
    known = [found.name for found in available(dirs)]
    return DataError(
        f"no dataset {name!r} was found.{did_you_mean(wanted, [*known, *ALIASES])} Looked in: "
        f"{_looked(dirs)}. Put there {_content(wanted)}, or name other folders with --data-dir or "
        f"{VARIABLE}. Found now: {choices(known)}"
    )


def _looked(dirs: Sequence[Path]) -> str:
    looked = ", ".join(f"{d}{'' if d.is_dir() else ' (does not exist)'}" for d in dirs)
    return looked or "no folder (none was given)"


def _content(wanted: str) -> str:
    """What a data folder must hold for a data set to be found."""
    return WANTED.get(wanted, f"{wanted}.npz, {wanted}.packed.npz or a folder {wanted}/ with MNIST-style IDX files")
