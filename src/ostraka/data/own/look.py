"""How large own data is, without reading all of it."""

from collections import Counter
from pathlib import Path

from ostraka.data.own.dataset import SHARE, beside, has_test, read_dataset
from ostraka.data.own.folder import IMAGES, SOUNDS, chosen, list_folder
from ostraka.data.own.form import Asked, Form, Part
from ostraka.data.sources.source import Summary
from ostraka.errors import DataError

LARGE = 2**24
"""Bytes of a table that is not read to tell its size."""


def summary_of_table(path: Path) -> Summary:
    """A small table is read."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    if sum(file.stat().st_size for file in files) > LARGE:
        raise DataError("a large table; it is not read to tell its size")
    data = read_dataset(path, path.name)
    return Summary(data.train.shape, len(data.classes), len(data.train), len(data.test))


def summary_of_folder(path: Path, image: bool) -> Summary:
    """The names of the files tell, and the header of the first."""
    form, _, _ = beside(path)
    shape, train = _part(path, "train", form, image)
    if has_test(path):
        test = sum(_part(path, "test", form, image)[1].values())
        return Summary(shape, len(train), sum(train.values()), test)
    held = sum(round(count * SHARE) for count in train.values())
    return Summary(shape, len(train), sum(train.values()) - held, held)


def _part(path: Path, part: Part, form: Form, image: bool) -> tuple[tuple[int, ...], Counter[str]]:
    asked = Asked(path, form, True, part)
    ends, what = (IMAGES, "images") if image else (SOUNDS, "recordings")
    files, labels, _ = chosen(list_folder(asked), asked, ends, what)
    shape = form.shape
    if shape is None and image:
        from ostraka.data.own.decoding import natural_shape, strict_decoder

        with strict_decoder():
            shape = natural_shape(files[0])
    elif shape is None:
        from ostraka.data.own.sound import SHAPE

        shape = SHAPE
    return shape, Counter(labels)
