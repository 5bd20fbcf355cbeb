"""A party's own samples, from wherever it has them."""

from pathlib import Path
from typing import Any

from ostraka.data.own import Collection, Form, read
from ostraka.data.own.arrays import held
from ostraka.errors import DataError

OwnData = str | Path | Collection | tuple[Any, Any]
"""A folder or file, samples that were read from one, or arrays: samples and their labels."""


def collected(data: OwnData, form: Form, skip_broken: bool = False) -> Collection:
    """Labelled samples, as `form` wants them; with `skip_broken` without the files that cannot be
    read."""
    if isinstance(data, str | Path):
        return read(data, form, labelled=True, skip_broken=skip_broken)
    if isinstance(data, Collection):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        return held(*data, form)
    raise DataError(
        f"a {type(data).__name__} was given as data; give the path of a folder or file, a "
        "Collection, or two arrays (x, y)"
    )
