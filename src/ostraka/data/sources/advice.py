"""What to do about data that is not there, or that is of a kind that is not read."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from ostraka.data.own.folder import IMAGES, SOUNDS
from ostraka.errors import DataError

VARIABLE = "OSTRAKA_DATA"

WANTED = {
    "cifar10": "the folder cifar-10-batches-bin (CIFAR-10, binary version), or cifar10.npz",
    "cifar100": "the folder cifar-100-binary (CIFAR-100, binary version), or cifar100.npz",
    "synthdigits": "synthdigits.npz (or its look-alike, synthdigits-like.npz or "
    "synthdigits-like.packed.npz)",
    "svhn": "a folder with train_32x32.mat and test_32x32.mat, or svhn.npz",
    "emnist-letters": "emnist-letters.npz, or a folder with "
    "emnist-letters-train-images-idx3-ubyte.gz and the rest",
}
"""What must lie in a data folder for the sets whose files have names of their own."""

TABLES = {".txt": ",", ".data": ","}
"""Tables as text, and what separates their columns."""

ENDS = """.json .jsonl .feather .arrow .xlsx .xls .ods .arff .h5 .hdf5 .db .npy .pkl .pickle .pt
    .pth .safetensors .zip .tar .gz .tgz .7z .gif .webp .mp3 .flac"""

OTHERS = (*ENDS.split(), *IMAGES, *SOUNDS)
"""Other kinds of files that a user may well have, and that are not read."""


def content(wanted: str) -> str:
    """What a data folder must hold for a data set to be found."""
    return WANTED.get(
        wanted,
        f"{wanted}.npz, {wanted}.packed.npz or a folder {wanted}/ with MNIST-style IDX files",
    )


def fetched(names: Sequence[str]) -> str:
    """The command that downloads those of the data sets that have a public address."""
    from ostraka.data.fetch.sets import SETS  # its package reads data by the sources

    public = " ".join(name for name in names if name in SETS)
    return f"Download it with: ostraka data get {public}. " if public else ""


def looked(dirs: Sequence[Path]) -> str:
    """The folders that were looked into."""
    return (
        ", ".join(f"{d}{'' if d.is_dir() else ' (does not exist)'}" for d in dirs)
        or "no folder (none was given)"
    )


def check_local(name: str) -> None:
    """Refuse an address: data comes from files."""
    if "://" in name:
        raise DataError(
            f"{name} is an address; a run downloads nothing. `ostraka data get` fetches some "
            "public sets (mnist, ...); fetch other data yourself, put it into a folder and name "
            f"that with --data-dir or {VARIABLE} (ostraka list data shows what is found there), or "
            "give the file's path"
        )
    if not name.strip():
        raise DataError(
            "the name of the data is empty; ostraka list data shows the data sets there are"
        )


def is_unread(name: str) -> bool:
    """Whether a name ends like a kind of file that is not read."""
    return PurePath(name).suffix.lower() in (*TABLES, *OTHERS)


def unread(name: str, kinds: Iterable[str]) -> DataError:
    """What to say of such a file: which kinds are read, and how a table becomes one of them."""
    if PurePath(name).suffix.lower() in (*IMAGES, *SOUNDS):
        return DataError(
            f"{name} is one sample, which is no data set; give a folder with a sub-folder for each "
            "class"
        )
    stem, suffix = PurePath(name).stem, PurePath(name).suffix.lower()
    lines = [
        f"table = numpy.genfromtxt({name!r}, delimiter={TABLES[suffix]!r}, skip_header=1)  # "
        "numbers; the last is y"
        if suffix in TABLES
        else f"table = ...  # {PurePath(name).name} as an array of numbers, one row per sample; "
        "the last column is y",
        f'numpy.savez("{stem}.npz", x=table[:, :-1], y=table[:, -1].astype(int))',
    ]
    return DataError(
        f"{name}: {suffix} files are not read. What is read: {'; '.join(kinds)}. A table becomes "
        "one with these "
        "lines of Python (labels are whole numbers from 0; images are stacked to an array uint8 "
        "[N, H, W, C]):\n  " + "\n  ".join(["import numpy", *lines])
    )
