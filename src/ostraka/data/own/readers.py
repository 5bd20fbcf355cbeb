"""Which reader a path is for; readers are imported when needed, as some load large libraries."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ostraka.core.kind import Kind
from ostraka.data.dataset import Array
from ostraka.data.own.cache import cached
from ostraka.data.own.collection import Collection, collection
from ostraka.data.own.folder import SAMPLES, File, Listing, chosen, list_folder
from ostraka.data.own.form import Asked, Form
from ostraka.errors import DataError

TABLES = (".csv", ".tsv", ".parquet")
ARRAYS = (".npz",)
"""How the names of files end that hold many samples."""

READ = (
    "folders of images (PNG, JPEG, TIFF, BMP) or recordings (WAV) with a sub-folder for each class,"
    " tables (.csv, .tsv, .parquet) with a column for the class, and .npz files"
)

Reading = Callable[[Asked, Sequence[File]], tuple[Array, list[int], Form, list[str]]]
"""Values of files that are a sample each, which of them could be read, the form, and notes."""


def read_asked(asked: Asked) -> Collection:
    """What lies at the path."""
    path = asked.path
    try:
        if path.is_dir():
            return _folder(asked)
        if not path.exists():
            raise DataError(f"{path} does not exist; give an existing file or folder")
        if not path.is_file():  # opening a pipe would wait for ever
            raise DataError(f"{path} is neither a file nor a folder; what is read: {READ}")
        return _file(asked)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; give what you may read"
        ) from None
    except ValueError as error:
        if "null" not in str(error):  # what Python says of a name with a NUL byte in it
            raise
        raise DataError(f"{str(path)!r} cannot be read: {error}") from None


def _file(asked: Asked) -> Collection:
    end = asked.path.suffix.lower()
    for kind, (what, ends) in SAMPLES.items():
        if end in ends and asked.labelled:
            raise DataError(
                f"{asked.path} is one {what[:-1]} and has no label; give a folder with a "
                "sub-folder for each class"
            )
        if end in ends:
            return _samples(asked, _reading(kind)[0], [File.at(asked.path)], None, [])
    if end in TABLES:
        from ostraka.data.own.tables import read as read_table

        return read_table(asked)
    if end in ARRAYS:
        from ostraka.data.own.arrays import read as read_array

        return read_array(asked)
    raise DataError(
        f"{asked.path}: {end or 'files without an ending'} cannot be read; read are {READ}"
    )


def _folder(asked: Asked) -> Collection:
    table = _table_in(asked)
    if table is not None:
        return _file(replace(asked, path=table))
    listing = list_folder(asked)
    kind = _kind(asked, listing)
    reading, version = _reading(kind)
    files, labels, notes = chosen(listing, asked, kind)
    return cached(asked, files, version, lambda: _samples(asked, reading, files, labels, notes))


def _reading(kind: Kind) -> tuple[Reading, str]:
    """What reads files of a kind, and its version."""
    if kind == "image":
        from ostraka.data.own import images

        return images.read, images.VERSION
    from ostraka.data.own import sound

    return sound.read, sound.VERSION


def _samples(
    asked: Asked,
    reading: Reading,
    files: Sequence[File],
    labels: Sequence[str] | None,
    notes: Sequence[str],
) -> Collection:
    """Files that are a sample each, without those that cannot be read."""
    x, kept, form, said = reading(asked, files)
    return collection(
        asked.path.name,
        x if len(kept) == len(x) else x[kept],
        None if labels is None else [labels[at] for at in kept],
        [files[at].name for at in kept],
        form,
        [*notes, *said],
    )


def _table_in(asked: Asked) -> Path | None:
    """The table of the part that is asked for, in a folder of tables called train and test."""
    there = {end: asked.path / f"{asked.which}{end}" for end in TABLES}
    found = [path for path in there.values() if path.is_file()]
    if len(found) > 1:
        raise DataError(
            f"{asked.path} holds {' and '.join(path.name for path in found)}; give one of them"
        )
    return found[0] if found else None


def _kind(asked: Asked, listing: Listing) -> Kind:
    counts = {
        kind: sum(file.end in ends for file in listing.files) for kind, (_, ends) in SAMPLES.items()
    }
    wanted = asked.form.kind
    if wanted is not None and counts.get(wanted):
        return wanted
    if counts["image"] and counts["sound"]:
        raise DataError(
            f"{asked.path} holds {counts['image']} images and {counts['sound']} recordings; say "
            "which kind shall be read (kind = image or sound), or give folders of one kind"
        )
    for kind, count in counts.items():
        if count:
            asked.form.check_kind(kind, str(asked.path))
            return kind
    tables = [file.name for file in listing.files if file.end in TABLES + ARRAYS]
    if tables:
        raise DataError(
            f"{asked.path} is a folder with {len(tables)} tables; give the file itself: "
            f"{asked.path / tables[0]}"
        )
    raise DataError(
        f"{asked.path} holds nothing that is read ({len(listing.files)} files of other kinds); "
        f"read are {READ}"
    )
