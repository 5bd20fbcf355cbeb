"""Many files, read in parallel."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ostraka.data.own.collection import SHOWN, listed
from ostraka.data.own.folder import File
from ostraka.data.sources.files import free_memory, in_units
from ostraka.errors import DataError

T = TypeVar("T")

AT_ONCE = 64
"""Files that a thread reads before it tells."""

MOST_THREADS = 16

REMEDY = (
    ". To leave out what cannot be read: --skip-broken (ostraka train, ostraka task init), or for "
    'a run {"skip_broken": true} in the JSON file beside the data'
)


def each(
    files: Sequence[File], work: Callable[[int, File], T], skip_broken: bool
) -> tuple[list[T | None], list[str]]:
    """What `work` gives for every file and its position, in order, and notes.

    Files for which it raises a DataError end the reading, which stops soon after there are more
    than a message lists; with `skip_broken` they have None in their place and are counted in a
    note. Decoders release the interpreter's lock, so that threads
    are enough.
    """

    wrong: dict[int, str] = {}

    def batch(start: int) -> list[T | None]:
        found: list[T | None] = []
        for at in range(start, min(start + AT_ONCE, len(files))):
            if len(wrong) > SHOWN and not skip_broken:
                break
            try:
                found.append(work(at, files[at]))
            except DataError as error:
                wrong[at] = str(error)
                found.append(None)
        return found

    threads = min(MOST_THREADS, os.cpu_count() or 1, 1 + len(files) // AT_ONCE)
    with ThreadPoolExecutor(threads) as pool:
        results = [one for part in pool.map(batch, range(0, len(files), AT_ONCE)) for one in part]
    if not wrong:
        return results, []
    first = wrong[min(wrong)]
    if len(wrong) == len(files) and (skip_broken or len(files) > 1):
        raise DataError(f"none of {len(files)} files can be read; the first: {first}")
    names = listed([files[at].name for at in sorted(wrong)], "file", "files")
    if skip_broken:
        return results, [f"{names} could not be read, left out; the first: {first}"]
    if len(wrong) == 1:
        raise DataError(f"{first}{REMEDY}")
    least = "at least " if len(wrong) > SHOWN else ""
    raise DataError(f"{least}{names} cannot be read; the first: {first}{REMEDY}")


def check_memory(owner: object, count: int, size: int, remedy: str) -> None:
    """Refuse `count` samples of `size` bytes each if they would not fit into memory."""
    free = free_memory()
    if count * size > free:
        raise DataError(
            f"{owner}: {count:,} samples of {in_units(size)} take {in_units(count * size)}, more "
            f"than the {in_units(free)} of free memory; {remedy}"
        )
