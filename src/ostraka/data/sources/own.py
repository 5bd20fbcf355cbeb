"""Own data as it lies in folders: images and recordings with a sub-folder for each class, tables.

Finding them looks at a few names only; reading them is the work of `ostraka.data.own`, which is
loaded when it is needed.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from ostraka.data.dataset import Dataset
from ostraka.data.own.folder import IMAGES, PARTS, SOUNDS
from ostraka.data.own.readers import TABLES
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import DataError
from ostraka.registry import SOURCES

CLASSES = 2
"""Sub-folders with samples that make a folder a data set."""

LOOKED = 1000
"""Entries of a folder that are looked at before it is passed over."""


def read(path: Path, name: str) -> Dataset:
    """The data set at a path."""
    from ostraka.data.own.dataset import read_dataset

    return read_dataset(path, name)


def _peek_folder(path: Path, name: str, image: bool) -> Summary:
    from ostraka.data.own.look import summary_of_folder

    return summary_of_folder(path, image)


def _peek_table(path: Path, name: str) -> Summary:
    from ostraka.data.own.look import summary_of_table

    return summary_of_table(path)


def _find_folder(path: Path, ends: Sequence[str]) -> list[str]:
    """The name of a folder with samples in two sub-folders or more."""
    return [_called(path)] if len(_classes(path, ends)) == CLASSES else []


def _classes(path: str | Path, ends: Sequence[str]) -> list[os.DirEntry[str]]:
    """The first sub-folders with samples, of the part to train on if there are parts."""
    inside = [entry for entry in _some(path) if entry.is_dir()]
    train = [entry for entry in inside if entry.name.lower() == "train"]
    if train and all(entry.name.lower() in PARTS for entry in inside):
        inside = [entry for entry in _some(train[0].path) if entry.is_dir()]
    return list(islice((entry for entry in inside if _holds(entry.path, ends)), CLASSES))


def check_folder(path: Path) -> None:
    """Refuse a folder whose samples are all of one class, with what may have been meant."""
    found = _classes(path, (*IMAGES, *SOUNDS))
    if len(found) != 1:
        return
    inner = _classes(found[0].path, (*IMAGES, *SOUNDS))
    raise DataError(
        f"{path} holds samples of one class only ({found[0].name}); a run needs two classes or "
        "more, each in a sub-folder of its own. "
        + (
            f"If the folders in {found[0].name} are the classes, give {found[0].path}"
            if len(inner) == CLASSES
            else f"A single party can train on one class: ostraka train {path} --task FILE"
        )
    )


def _find_table(path: Path) -> list[str]:
    """The name of a table, or of a folder with a table called train."""
    if path.suffix.lower() in TABLES and path.is_file():
        return [_called(path)]
    tables = [path / f"train{end}" for end in TABLES]
    return [_called(path)] if any(table.is_file() for table in tables) else []


def _table_files(path: Path, name: str) -> list[Path]:
    """Tables, and the JSON file that says how to read them."""
    if path.is_file():
        return [file for file in (path, path.with_suffix(".json")) if file.is_file()]
    there = [path / f"{part}{end}" for part in ("train", "test") for end in TABLES]
    return [file for file in (*there, path.with_name(f"{path.name}.json")) if file.is_file()]


def _called(path: Path) -> str:
    """Its name; that of a part comes behind the name of the whole."""
    part = path.stem.lower() in PARTS and path.parent.name
    return f"{path.parent.name}-{path.stem}" if part else path.name if path.is_dir() else path.stem


def _holds(folder: str, ends: Sequence[str]) -> bool:
    """Whether one of the first entries of a folder, or of its first sub-folder, is a sample."""
    entries = list(_some(folder))
    if any(entry.name.lower().endswith(tuple(ends)) for entry in entries):
        return True
    deeper = next((entry.path for entry in entries if entry.is_dir(follow_symlinks=False)), None)
    return deeper is not None and any(
        entry.name.lower().endswith(tuple(ends)) for entry in _some(deeper)
    )


def _some(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """The first entries of a folder; none of what is no folder, or may not be looked into."""
    try:
        with os.scandir(folder) as entries:
            yield from islice((one for one in entries if not one.name.startswith(".")), LOOKED)
    except (OSError, ValueError):
        return


for kind, ends, words in (
    ("image", IMAGES, "images (PNG, JPEG, TIFF, BMP)"),
    ("sound", SOUNDS, "recordings (WAV)"),
):
    SOURCES.add(f"{kind}-folder")(
        Source(
            f"{kind} folder",
            f"a folder of {words}, a sub-folder for each class",
            read,
            partial(_find_folder, ends=ends),
            peek=partial(_peek_folder, image=kind == "image"),
            yields=True,
            loose=True,
        )
    )
SOURCES.add("table")(
    Source(
        "table",
        "NAME.csv, NAME.tsv or NAME.parquet with a column label, class or target",
        read,
        _find_table,
        files=_table_files,
        peek=_peek_table,
        yields=True,
    )
)
