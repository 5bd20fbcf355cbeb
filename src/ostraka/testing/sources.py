"""The contract of data sources, checked on an example that the author gives."""

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from ostraka.core.samples import Samples
from ostraka.data.dataset import Dataset
from ostraka.data.sources.source import Source
from ostraka.errors import DataError
from ostraka.testing.expect import difference, expect, hoped

Example = Path | None


def check_source(source: Source, example: str | Path | None = None) -> None:
    """Raise a ContractBroken if `source` fails any of CHECKS.

    Takes as long as reading the example a few times. `example` is a small file or folder that the
    source reads; it is copied, never changed. A source whose data sets are all built in needs none.
    """
    path = None if example is None else Path(example)
    nothing = path is None and not source.builtin and "no example was given"
    advice = "give the path of a small file or folder"
    expect(_name(source), "there is something to read", nothing, advice)
    for check in CHECKS:
        check(source, path)


def check_find(source: Source, example: Example) -> None:
    """`find` names what is there, the same every time, and nothing in what is not of its kind."""
    what = "find passes over files of other kinds"
    with TemporaryDirectory() as folder:
        empty, notes, missing = (Path(folder, name) for name in ("empty", "notes.txt", "missing"))
        empty.mkdir()
        notes.write_text("not a data set\n")
        for stranger in (empty, notes, missing):
            with hoped(_name(source), what, "return an empty list"):
                names = source.find(stranger)
            done = bool(names) and f"it found {names} in {stranger.name}"
            expect(_name(source), what, done, "look at names and suffixes first")
    if example is not None:
        names = _names(source, example)
        nothing = not names and f"it found nothing in {example}"
        expect(_name(source), "find names the example", nothing, "return its name in a list")
        other = names != _names(source, example) and "it did not"
        what, advice = "find gives the same names every time", "take them from the files alone"
        expect(_name(source), what, other, advice)


def check_find_is_light(source: Source, example: Example) -> None:
    """`find` looks at names: it changes nothing, and a damaged file does not stop it.

    It is asked about every file.
    """
    if example is None:
        return
    with TemporaryDirectory() as folder:
        copy = _copy(example, folder)
        before = _state(copy)
        _names(source, copy)
        change = _state(copy) != before and "a file was changed, added or removed"
        expect(_name(source), "find changes nothing", change, "only look at names")
        for file in _files(copy):
            file.write_bytes(b"")
        advice = "look at names only; read says what is wrong with the content"
        with hoped(_name(source), "find does not stop at a damaged file", advice):
            source.find(copy)


def check_read(source: Source, example: Example) -> None:
    """`read` gives samples of one shape, whole labels for every class, finite inputs and
    information for run files.

    A source that is not listed is there to refuse: its `read` gives a DataError,
    whatever it is asked for.
    """
    if not source.listed and example is not None:
        what = "a source that is not listed refuses with a DataError"
        advice = "leave listed=True to offer its data sets"
        with hoped(_name(source), what, "say why such files are not read", DataError):
            source.read(example, _names(source, example)[0])
            expect(_name(source), what, "it read the example", advice)
    for path, name in _readable(source, example):
        data = _read(source, path, name)
        advice = "let ostraka.data.dataset.assemble make the Dataset"
        expect(_name(source), f"{name} is fit to train on", _problem(data), advice)
        other = data.name != name and f"it is called {data.name}"
        advice = "use the name that read got"
        expect(_name(source), f"the data set is called {name}", other, advice)
        advice = "use text, numbers, lists and dicts"
        with hoped(_name(source), "info can be written as JSON", advice):
            json.dumps(dict(data.info))


def check_same_data(source: Source, example: Example) -> None:
    """The same bytes give the same data, wherever the file lies."""
    for path, name in _readable(source, example):
        first, second = _read(source, path, name), _read(source, path, name)
        _expect_same(source, first, second, "reading twice gives the same data")
        if path is not None:
            with TemporaryDirectory() as folder:
                copied = _read(source, _copy(path, folder), name)
                _expect_same(source, first, copied, "a copy gives the same data")


def check_damage(source: Source, example: Example) -> None:
    """A file that is missing, empty or cut short gives a DataError,
    never other samples or another error.
    """
    places = [(path, name) for path, name in _readable(source, example) if path is not None]
    for path, name in places:
        whole = _read(source, path, name)
        for (index, file), case in product(enumerate(_files(path)), DAMAGE):
            if source.loose and case == "is missing":
                continue
            what = f"read refuses {name} with a DataError when {file.name} {case}"
            advice = "raise a DataError that names the file and says what to do"
            with TemporaryDirectory() as folder:
                copy = _copy(path, folder)
                DAMAGE[case](_files(copy)[index])
                with hoped(_name(source), what, advice):
                    try:
                        data = source.read(copy, name)
                    except DataError:
                        continue
                _expect_same(source, whole, data, what)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "is missing": Path.unlink,
    "is empty": lambda file: file.write_bytes(b""),
    "is cut short": lambda file: file.write_bytes(
        file.read_bytes()[: file.stat().st_size // 2 + 1]
    ),
}
"""One byte more than half: half of a file of equal records could be a whole number of them."""


CHECKS: tuple[Callable[[Source, Example], None], ...] = (
    check_find,
    check_find_is_light,
    check_read,
    check_same_data,
    check_damage,
)
"""All checks, those with the plainest message first."""


def _name(source: Source) -> str:
    return f"the source {source.kind!r}"


def _copy(example: Path, folder: str) -> Path:
    """The example under the same name, with what lies beside a file
    under the same stem (a sidecar).
    """
    target = Path(folder, example.name)
    if example.is_dir():
        shutil.copytree(example, target)
    else:
        for file in example.parent.glob(f"{example.stem}.*"):
            shutil.copy(file, folder)
    return target


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _state(path: Path) -> list[tuple[str, int, int]]:
    return [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in _files(path)]


def _names(source: Source, path: Path) -> list[str]:
    with hoped(_name(source), "find names what is in the example"):
        return list(source.find(path))


def _readable(source: Source, example: Example) -> list[tuple[Path | None, str]]:
    """What can be read: a path and a name.

    A source that is not listed has nothing: it only refuses.
    """
    if not source.listed:
        return []
    found = [] if example is None else [(example, name) for name in _names(source, example)]
    return [*found, *((None, name) for name in source.builtin)]


def _read(source: Source, path: Path | None, name: str) -> Dataset:
    with hoped(_name(source), f"read gives the data set {name}"):
        data = source.read(path or Path(), name)
    odd = not isinstance(data, Dataset) and f"it gave {type(data).__name__}"
    expect(_name(source), "read gives a Dataset", odd, "use ostraka.data.dataset.assemble")
    return data


def _problem(data: Dataset) -> str | None:
    """The first thing that would disturb a training."""
    for part, samples in (("training", data.train), ("test", data.test)):
        wrong = _samples_problem(samples, len(data.classes))
        if wrong:
            return f"{part} samples: {wrong}"
    if data.train.shape != data.test.shape:
        return f"training samples have the shape {data.train.shape}, test samples {data.test.shape}"
    if not data.train.counts(len(data.classes)).all():
        return "a class has no training sample"
    if data.test.view.augment != "none":
        return "test samples would be augmented"
    if len(set(data.classes)) != len(data.classes):
        return "two classes have the same name"
    sides = ((data.columns, data.train), (data.test_columns, data.test))
    for columns, samples in sides:
        for name, values in columns.items():
            if len(values) != len(samples.x):
                return f"column {name!r} has {len(values)} values for {len(samples.x)} rows"
    return None


def _samples_problem(samples: Samples, classes: int) -> str | None:
    if len(samples) == 0:
        return "there are none"
    if samples.x.dtype not in (torch.uint8, torch.float32):
        return f"stored as {samples.x.dtype}; uint8 or float32 is needed"
    if samples.y is None or samples.y.dtype != torch.int64:
        return "labels are missing or are not int64"
    if int(samples.labels.min()) < 0 or int(samples.labels.max()) >= classes:
        return f"labels are not all from 0 to {classes - 1}"
    return None if samples.inputs().isfinite().all() else "an input is infinite or NaN"


def _expect_same(source: Source, a: Dataset, b: Dataset, what: str) -> None:
    advice = "make the data of the file's bytes alone, and check how many there are"
    for part, one, two in (("train", a.train, b.train), ("test", a.test, b.test)):
        change = difference(one.inputs(), two.inputs(), f"{part}.x")
        change = change or difference(one.labels, two.labels, f"{part}.y")
        expect(_name(source), what, change, advice)
    columns = ((values, b.columns.get(name)) for name, values in a.columns.items())
    differ = any(other is None or not np.array_equal(values, other) for values, other in columns)
    advice = "make the columns of the file's bytes alone"
    expect(_name(source), what, differ and "a column differs", advice)
