"""The public data sets that can be fetched: where they lie, their digests and who states them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

TORCHVISION = "torchvision's source (torchvision/datasets)"
GZIP = b"\x1f\x8b"
STARTS = {".gz": GZIP, ".bz2": b"BZh", ".zip": b"PK", ".mat": b"MATLAB"}
"""How files begin whose names end so."""


@final
@dataclass(frozen=True)
class Remote:
    """A file: its name, the folders it lies in (the first is tried first), its MD5, how it begins.

    MD5 is what the sources state. It notices every accident and any file but one that its own
    author prepared to have a twin.
    """

    name: str
    folders: tuple[str, ...]
    md5: str
    starts: bytes
    megabytes: float
    """About; twice as much is refused."""
    stated_by: str = TORCHVISION


@final
@dataclass(frozen=True)
class PublicSet:
    """A data set: its files, what becomes of them, and what the reader must then find."""

    name: str
    files: tuple[Remote, ...]
    form: Literal["as they are", "cifar", "emnist", "usps"]
    where: str
    """The folder or file in a data folder that the reader takes."""
    read_as: str
    """The name that the reader gives it."""
    train: int
    test: int


def _files(
    folders: str, *rows: tuple[str, str, float], stated_by: str = TORCHVISION
) -> tuple[Remote, ...]:
    """Files that lie together: the name, the MD5 and the megabytes of each."""
    return tuple(
        Remote(name, tuple(folders.split()), md5, STARTS[Path(name).suffix], size, stated_by)
        for name, md5, size in rows
    )


_LISTED = (
    PublicSet(  # http://yann.lecun.com/exdb/mnist/
        "mnist",
        _files(
            "https://ossci-datasets.s3.amazonaws.com/mnist http://yann.lecun.com/exdb/mnist",
            ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9.9),
            ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", 0.03),
            ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", 1.65),
            ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", 0.005),
        ),
        "as they are",
        "mnist",
        "mnist",
        60_000,
        10_000,
    ),
    PublicSet(  # https://github.com/zalandoresearch/fashion-mnist
        "fashion-mnist",
        _files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26.4),
            ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", 0.03),
            ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", 4.4),
            ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", 0.0052),
        ),
        "as they are",
        "fashion-mnist",
        "fashion-mnist",
        60_000,
        10_000,
    ),
    PublicSet(  # https://www.cs.toronto.edu/~kriz/cifar.html
        "cifar10",
        _files(
            "https://www.cs.toronto.edu/~kriz",
            ("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170),
            stated_by="the data set's own page",
        ),
        "cifar",
        "cifar-10-batches-bin",
        "cifar10",
        50_000,
        10_000,
    ),
    PublicSet(  # http://ufldl.stanford.edu/housenumbers/
        "svhn",
        _files(
            "http://ufldl.stanford.edu/housenumbers",
            ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", 182),
            ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", 64),
        ),
        "as they are",
        "svhn",
        "svhn",
        73_257,
        26_032,
    ),
    PublicSet(  # https://www.nist.gov/itl/products-and-services/emnist-dataset
        "emnist",
        _files(
            "https://biometrics.nist.gov/cs_links/EMNIST "
            "https://www.itl.nist.gov/iaui/vip/cs_links/EMNIST",
            ("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e", 562),
        ),
        "emnist",
        "emnist",
        "emnist-letters",
        124_800,
        20_800,
    ),
    PublicSet(  # https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#usps
        "usps",
        _files(
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass",
            ("usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197", 6.6),
            ("usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118", 1.9),
        ),
        "usps",
        "usps.npz",
        "usps",
        7_291,
        2_007,
    ),
)

SETS: Mapping[str, PublicSet] = {one.name: one for one in _LISTED}
