"""Folders that were read once: their samples are kept in one file for the next time.

The file says of which names, sizes, times and form it was made, and holds a digest of all that it
says; what does not fit is made anew. It lies in the cache of the user (`XDG_CACHE_HOME`, else
`~/.cache`), in the folder ostraka, which nobody else may read. Without room for it, or with
`OSTRAKA_CACHE=off`, everything works as before, but slower.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ostraka.core.digest import digest_of
from ostraka.core.samples import Samples, View
from ostraka.core.settings import build, values_of
from ostraka.data.own.collection import Collection
from ostraka.data.own.folder import File
from ostraka.data.own.form import Asked, Form

LEAST = 200
"""Files that a folder must have; fewer are read faster than anybody notices."""

VARIABLE = "OSTRAKA_CACHE"

MAGIC = b"ostraka samples1"
START = len(MAGIC) + 32 + 8
"""Where the head begins: behind the magic, a digest and the length of the head."""

ALIGNED = 64
"""The values begin at a multiple of it."""


def cached(
    asked: Asked, files: Sequence[File], version: str, make: Callable[[], Collection]
) -> Collection:
    """What `make` gives for these files, from the cache if it was kept there."""
    if not asked.cache or len(files) < LEAST or os.environ.get(VARIABLE, "").lower() == "off":
        return make()
    how = [version, asked.form.values(), asked.labelled, asked.which, asked.skip_broken]
    key = digest_of([how, [[file.path, file.size, file.mtime_ns] for file in files]])
    name = f"{digest_of([how, os.path.realpath(asked.path)])}.samples"
    found, notes = _kept(name, key)
    if found is not None:
        return found
    made = make()
    return replace(made, notes=(*made.notes, *notes, *_keep(name, key, made)))


def cache_folder() -> Path:
    """Where samples are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "ostraka"


def _kept(name: str, key: str) -> tuple[Collection | None, list[str]]:
    """What was kept under this name, if it is whole and of this key, and what is to be said."""
    place = cache_folder() / name
    try:
        content = np.fromfile(place, np.uint8)
    except OSError:  # nothing was kept, or nobody may read it: then nothing is known of it
        return None, []
    try:
        return _collection(content, key), []
    except (ValueError, KeyError, TypeError):
        return None, [f"{place} was damaged; it was made anew"]


def _keep(name: str, key: str, made: Collection) -> list[str]:
    """Keep a collection, so that a reader sees a whole file or none; what is to be said of it."""
    head = {
        "key": key,
        "name": made.name,
        "classes": made.classes,
        "labels": None if made.samples.y is None else made.samples.y.tolist(),
        "items": made.items,
        "form": made.form.values(),
        "view": values_of(made.samples.view),
        "notes": made.notes,
        "digest": made.digest,
        "shape": tuple(made.samples.x.shape),
        "dtype": str(made.samples.x.numpy().dtype),
    }
    text = json.dumps(head).encode()
    text += b" " * (-(START + len(text)) % ALIGNED)
    values = made.samples.x.contiguous().flatten().view(torch.uint8).numpy().data
    folder, beside = cache_folder(), f"{name}.{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(folder / beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(number, "wb") as f:
            f.write(MAGIC + _digest(text, values) + len(text).to_bytes(8, "little") + text)
            f.write(values)
        os.replace(folder / beside, folder / name)
    except OSError as error:
        with suppress(OSError):  # where nothing can be written there may be nothing to remove
            (folder / beside).unlink()
        return [
            f"what was read could not be kept in {folder} ({error.strerror}) and will be read "
            f"again the next time; free some space there, or set {VARIABLE}=off"
        ]
    return []


def _digest(text: Any, values: Any) -> bytes:
    digest = blake2b(text, digest_size=32)
    digest.update(values)
    return digest.digest()


def _collection(content: Any, key: str) -> Collection | None:
    """What a file holds, if its content fits the digest in it; None: it is of another key."""
    front = content[:START].tobytes()
    length = int.from_bytes(front[-8:], "little")
    text, values = content[START : START + length], content[START + length :]
    if front[: len(MAGIC)] != MAGIC or front[len(MAGIC) : -8] != _digest(text.data, values.data):
        raise ValueError("its content does not fit the digest in it")
    head = json.loads(text.tobytes())
    if head["key"] != key:
        return None
    x = torch.from_numpy(values.view(head["dtype"]).reshape(head["shape"]))
    y = None if head["labels"] is None else torch.tensor(head["labels"], dtype=torch.int64)
    return Collection(
        head["name"],
        tuple(head["classes"]),
        Samples(x, y, view=build(View, head["view"])),
        tuple(head["items"]),
        Form.of(head["form"]),
        tuple(head["notes"]),
        head["digest"],
    )
