"""The dataset inside the package: 4,000 + 1,000 images of Fashion-MNIST (MIT, Zalando; see the
folder's NOTICE)."""

from importlib.resources import as_file
from importlib.resources import files as files_of
from pathlib import Path

from ostraka.data.dataset import Dataset
from ostraka.data.sources import npz
from ostraka.data.sources.source import Source, Summary
from ostraka.registry import SOURCES

FOLDER, FILE = "bundled", "embedded-fashion-mnist-4k.npz"


def read(path: Path, name: str) -> Dataset:
    """The bundled subset; `path` is not used."""
    with as_file(files_of("ostraka.data.sources").joinpath(FOLDER)) as folder:
        return npz.read(folder / FILE, name)


def files(path: Path, name: str) -> list[Path]:
    """The file inside the package and its sidecar."""
    with as_file(files_of("ostraka.data.sources").joinpath(FOLDER)) as folder:
        return npz.files(folder / FILE, name)


def peek(path: Path, name: str) -> Summary:
    """As of any .npz file."""
    with as_file(files_of("ostraka.data.sources").joinpath(FOLDER)) as folder:
        return npz.peek(folder / FILE, name)


SOURCES.add("bundled")(
    Source(
        "bundled",
        "the subset of Fashion-MNIST in this package",
        read,
        builtin=("fashion-4k",),
        files=files,
        peek=peek,
    )
)
