"""Own data as data sets of a run: tables, and folders of images or recordings with a sub-folder for
each class.

Sub-folders (or tables) called train and test are the two parts. Where there is no test part, a
share of every class is set aside for it, drawn once: the same data is divided the same way always.
What a form says stands in a JSON file beside the data (`pets.json` for the folder `pets`). Finding
data looks at a few names only.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ostraka.core.kind import Kind
from ostraka.core.samples import Samples
from ostraka.data.dataset import Dataset
from ostraka.data.own.collection import Collection, in_both, note
from ostraka.data.own.folder import IMAGES, PARTS, SAMPLES, SOUNDS, chosen, list_folder, parts_of
from ostraka.data.own.form import Asked, Form, Part
from ostraka.data.own.readers import TABLES, read_asked
from ostraka.data.sources.files import sidecar, with_sidecar
from ostraka.data.sources.source import Source, Summary
from ostraka.errors import ConfigError, DataError
from ostraka.registry import SOURCES

SHARE = 0.2
"""Of the samples, for testing, where there is no test part."""

SEED = 20
"""By which they are drawn."""

OTHERWISE = ("sub-folders train and test", "arrays x_train, y_train, x_test and y_test")
"""What gives a test part: in a folder or beside a table, and in a .npz file."""

ABOUT = ("source", "origin", "licence", "subset")
"""Further entries of the JSON file, which go into `Dataset.info`."""

CLASSES = 2
"""Sub-folders with samples that make a folder a data set."""

LOOKED = 1000
"""Entries of a folder that are looked at before it is passed over."""

LARGE = 2**24
"""Bytes of a table that is not read to tell its size."""


def read_dataset(path: Path, name: str, label: str | None = None) -> Dataset:
    """The data set at a path; `label` names the column of a table that holds the classes."""
    form, skip_broken, info = _beside(path)
    form = replace(form, label=label or form.label)
    train = read_asked(Asked(path, form, True, "train", skip_broken))
    notes = list(train.notes)
    if _has_test(path):
        test = read_asked(Asked(path, train.form, True, "test", skip_broken))
        rows = in_both(test.samples, train.samples).tolist()
        notes += [f"test: {note}" for note in test.notes]
        notes += _shared([test.items[row] for row in rows])
        samples = train.samples, test.for_classes(train.classes)
    else:
        samples, said = _divided(train, path)
        notes += said
    return Dataset(
        name,
        train.classes,
        *samples,
        info={"kind": f"own {train.form.kind}", **info, "digest": train.digest, "notes": notes},
    )


def _beside(path: Path) -> tuple[Form, bool, dict[str, Any]]:
    """The form that stands in the JSON file beside the data, whether broken files are left out,
    and what else is told there."""
    place = path.with_name(f"{path.name}.folder") if path.is_dir() else path
    told = sidecar(place)
    skip = told.pop("skip_broken", False)
    info = {key: told.pop(key) for key in ABOUT if key in told}
    if path.suffix == ".npz":  # these two are for the reader of arrays
        told = {key: told[key] for key in told if key not in ("class_names", "sha256")}
    where = place.with_suffix(".json")
    try:
        if not isinstance(skip, bool):
            raise ConfigError(f"skip_broken is {skip!r}; it is true or false")
        return Form.of(told), skip, info
    except ConfigError as error:
        raise DataError(f"{where}: {error}") from None


def _has_test(path: Path) -> bool:
    """Whether the data has a test part."""
    if not path.is_dir():
        return False
    return "test" in parts_of(path) or any((path / f"test{end}").is_file() for end in TABLES)


def _divided(train: Collection, path: Path) -> tuple[tuple[Samples, Samples], list[str]]:
    rest, held = train.samples.split(SHARE, SEED)
    if not len(held):
        raise DataError(
            f"{path} has {len(train)} samples of {len(train.classes)} classes, too few to set "
            f"{SHARE:.0%} of each class aside for testing; give samples for it in a sub-folder "
            "test beside train"
        )
    said = (
        f"{path.name} has no test part: {len(held):,} of {len(train):,} samples ({SHARE:.0%} of "
        f"each class, drawn once) are for testing; {OTHERWISE[path.suffix == '.npz']} divide it "
        "otherwise"
    )
    rows = held.row_numbers[in_both(held, rest)].tolist()
    return (rest.compact(), held.compact()), [said, *_shared([train.items[row] for row in rows])]


def _shared(names: Sequence[str]) -> list[str]:
    """A note on test samples that are training samples, too."""
    same = "the same content as a training sample"
    done = "if they are the same samples, figures are too good"
    return note(names, "test sample has", "test samples have", same, done)


def peek_table(path: Path, name: str) -> Summary:
    """A small table is read."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    if sum(file.stat().st_size for file in files) > LARGE:
        raise DataError("a large table; it is not read to tell its size")
    data = read_dataset(path, path.name)
    return Summary(data.train.shape, len(data.classes), len(data.train), len(data.test))


def _peek_folder(path: Path, name: str, kind: Kind) -> Summary:
    """The names of the files tell, and the header of the first."""
    form, _, _ = _beside(path)
    shape, train = _peek_part(path, "train", form, kind)
    if _has_test(path):
        test = sum(_peek_part(path, "test", form, kind)[1].values())
        return Summary(shape, len(train), sum(train.values()), test)
    held = sum(round(count * SHARE) for count in train.values())
    return Summary(shape, len(train), sum(train.values()) - held, held)


def _peek_part(
    path: Path, part: Part, form: Form, kind: Kind
) -> tuple[tuple[int, ...], Counter[str]]:
    asked = Asked(path, form, True, part)
    files, labels, _ = chosen(list_folder(asked), asked, kind)
    shape = form.shape
    if shape is None and kind == "image":
        from ostraka.data.own.images import natural_shape, strict_decoder

        with strict_decoder():
            shape = natural_shape(files[0])
    elif shape is None:
        from ostraka.data.own.sound import SHAPE

        shape = SHAPE
    return shape, Counter(labels)


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
        return with_sidecar(path)
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


KINDS: dict[Kind, str] = {"image": "images (PNG, JPEG, TIFF, BMP)", "sound": "recordings (WAV)"}

for kind, words in KINDS.items():
    SOURCES.add(f"{kind}-folder")(
        Source(
            f"{kind} folder",
            f"a folder of {words}, a sub-folder for each class",
            read_dataset,
            partial(_find_folder, ends=SAMPLES[kind][1]),
            peek=partial(_peek_folder, kind=kind),
            yields=True,
            loose=True,
        )
    )
SOURCES.add("table")(
    Source(
        "table",
        "NAME.csv, NAME.tsv or NAME.parquet with a column label, class or target",
        read_dataset,
        _find_table,
        files=_table_files,
        peek=peek_table,
        yields=True,
    )
)
