"""Which reader a path is for."""

from collections.abc import Callable

from ostraka.data.own import arrays
from ostraka.data.own.asked import Asked
from ostraka.data.own.collection import Collection
from ostraka.errors import DataError, choices

Reader = Callable[[Asked], Collection]

BY_END: dict[str, Reader] = {".npz": arrays.read}
"""Readers of single files, by how their names end."""


def reader_of(asked: Asked) -> Reader:
    """The reader for what lies at the path."""
    path = asked.path
    if not path.exists():
        raise DataError(f"{path} does not exist; give an existing file or folder")
    reader = BY_END.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise DataError(
            f"{path} is of no kind that is read as own data; what is read: {choices(BY_END)}"
        )
    return reader
