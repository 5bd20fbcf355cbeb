"""Many files, read in parallel."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ostraka.data.own.collection import listed
from ostraka.data.own.folder import File
from ostraka.data.sources.files import free_memory, in_units
from ostraka.errors import DataError

T = TypeVar("T")

AT_ONCE = 64
"""Files that a thread reads before it tells."""

MOST_THREADS = 16


def each(
    files: Sequence[File], work: Callable[[int, File], T], skip_broken: bool
) -> tuple[list[T | None], list[str]]:
    """What `work` gives for every file and its position, in order, and notes.

    A file for which it raises a DataError ends the reading, or, with `skip_broken`, has None in
    its place and is counted in a note. Decoders release the interpreter's lock, so that threads
    are enough.
    """

    def batch(start: int) -> list[tuple[T | None, str]]:
        found: list[tuple[T | None, str]] = []
        for at in range(start, min(start + AT_ONCE, len(files))):
            try:
                found.append((work(at, files[at]), ""))
            except DataError as error:
                if not skip_broken:
                    raise
                found.append((None, str(error)))
        return found

    threads = min(MOST_THREADS, os.cpu_count() or 1, 1 + len(files) // AT_ONCE)
    with ThreadPoolExecutor(threads) as pool:
        results = [one for part in pool.map(batch, range(0, len(files), AT_ONCE)) for one in part]
    wrong = [(file.name, why) for file, (_, why) in zip(files, results, strict=True) if why]
    if wrong and len(wrong) == len(files):
        raise DataError(f"none of {len(files)} files can be read; the first: {wrong[0][1]}")
    return [value for value, _ in results], [_left_out(wrong)] if wrong else []


def _left_out(wrong: Sequence[tuple[str, str]]) -> str:
    names = listed([name for name, _ in wrong], "file", "files")
    return f"{names} could not be read, left out; the first: {wrong[0][1]}"


def check_memory(owner: object, count: int, size: int, remedy: str) -> None:
    """Refuse `count` samples of `size` bytes each if they would not fit into memory."""
    free = free_memory()
    if count * size > free:
        raise DataError(
            f"{owner}: {count:,} samples of {in_units(size)} take {in_units(count * size)}, more "
            f"than the {in_units(free)} of free memory; {remedy}"
        )
