"""Own data as a data set of a run: a part to train on, and a part to test with.

Sub-folders (or tables) called train and test are the two parts. Where there is no test part, a
share of every class is set aside for it, drawn once: the same data is divided the same way always.
What a form says stands in a JSON file beside the data (`pets.json` for the folder `pets`).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ostraka.core.samples import Samples
from ostraka.data.dataset import Dataset
from ostraka.data.own.collection import Collection, in_both, listed
from ostraka.data.own.folder import parts_of
from ostraka.data.own.form import Asked, Form
from ostraka.data.own.readers import TABLES, read_asked
from ostraka.data.sources.files import sidecar
from ostraka.errors import ConfigError, DataError

SHARE = 0.2
"""Of the samples, for testing, where there is no test part."""

SEED = 20
"""By which they are drawn."""

OTHERWISE = ("sub-folders train and test", "arrays x_train, y_train, x_test and y_test")
"""What gives a test part: in a folder or beside a table, and in a .npz file."""

ABOUT = ("source", "origin", "licence", "subset")
"""Further entries of the JSON file, which go into `Dataset.info`."""


def read_dataset(path: Path, name: str, label: str | None = None) -> Dataset:
    """The data set at a path; `label` names the column of a table that holds the classes."""
    form, skip_broken, info = beside(path)
    form = replace(form, label=label or form.label)
    train = read_asked(Asked(path, form, True, "train", skip_broken))
    notes = list(train.notes)
    if has_test(path):
        test = read_asked(Asked(path, train.form, True, "test", skip_broken))
        notes += [f"test: {note}" for note in test.notes] + _overlap(train, test)
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


def beside(path: Path) -> tuple[Form, bool, dict[str, Any]]:
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


def has_test(path: Path) -> bool:
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
    note = (
        f"{path.name} has no test part: {len(held):,} of {len(train):,} samples ({SHARE:.0%} of "
        f"each class, drawn once) are for testing; {OTHERWISE[path.suffix == '.npz']} divide it "
        "otherwise"
    )
    return (rest.compact(), held.compact()), [note, *_same(train, rest, held)]


def _same(train: Collection, rest: Samples, held: Samples) -> list[str]:
    shared = in_both(held, rest)
    names = [train.items[row] for row in held.row_numbers[shared].tolist()]
    return _told(names)


def _overlap(train: Collection, test: Collection) -> list[str]:
    return _told([test.items[at] for at in in_both(test.samples, train.samples).tolist()])


def _told(names: list[str]) -> list[str]:
    if not names:
        return []
    same = "the same content as a training sample"
    return [
        listed(names, "test sample has", "test samples have", same)
        + "; if they are the same samples, figures are too good"
    ]
