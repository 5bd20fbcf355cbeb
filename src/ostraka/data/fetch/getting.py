"""A public data set from the web to a data folder, read once to prove it."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from ostraka.data.dataset import Dataset
from ostraka.data.fetch.download import PATIENT, Patience, Tell, download
from ostraka.data.fetch.sets import SETS, PublicSet, Remote
from ostraka.data.fetch.unpack import unpack_cifar, unpack_emnist, unpack_usps
from ostraka.data.fetch.web import check_address
from ostraka.data.sources.advice import VARIABLE
from ostraka.data.sources.find import load
from ostraka.errors import ConfigError, DataError, choices, did_you_mean

UNPACK: Mapping[str, Callable[[Sequence[Path], Path], Path]] = {
    "cifar": unpack_cifar,
    "emnist": unpack_emnist,
    "usps": unpack_usps,
}
USUAL = "data"
"""The folder, where neither the command nor the environment names one."""
PARTS = ".fetched"
"""Where archives lie until they are unpacked; data folders that begin with a dot are not read."""


@final
@dataclass(frozen=True)
class Got:
    """A data set that is there now."""

    name: str
    read_as: str
    path: Path
    fresh: bool
    """Whether it was fetched now; else it was there."""
    shape: tuple[int, ...]
    classes: int
    train: int
    test: int
    checked: str

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "path": str(self.path), "shape": list(self.shape)}


def folder_for(option: Path | None) -> Path:
    """Where to: the option, else the first folder of OSTRAKA_DATA, else `data`."""
    if option is not None:
        return option.expanduser()
    listed = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    return Path(listed[0] if listed else USUAL).expanduser()


def find_set(name: str) -> PublicSet:
    """The public data set of that name."""
    if name not in SETS:
        raise ConfigError(
            f"there is no data set {name!r} to get.{did_you_mean(name, SETS)} There are: "
            f"{choices(SETS, name)}"
        )
    return SETS[name]


def get(
    wanted: PublicSet,
    folder: Path,
    mirror: str | None = None,
    tell: Tell = lambda name, here, total: None,
    patience: Patience = PATIENT,
) -> Got:
    """Fetch a data set into `folder`, unless it is there; `mirror` is a place on the web with files
    of the same names, tried in place of the usual ones."""
    if mirror is not None:
        check_address(mirror)
    if (found := _there(wanted, folder)) is not None:
        return _proved(wanted, folder, found, fresh=False)
    own = folder / wanted.where if wanted.form == "as they are" else folder / PARTS / wanted.name
    paths = [own / file.name for file in wanted.files]
    for file, path in zip(wanted.files, paths, strict=True):
        if not path.is_file():
            _fetch(file, path, (mirror,) if mirror else file.folders, tell, patience)
    if wanted.form != "as they are":
        UNPACK[wanted.form](paths, folder)
        shutil.rmtree(own, ignore_errors=True)
    found = _there(wanted, folder)
    if found is None:
        raise DataError(f"{wanted.name} was fetched, but is not found in {folder}; look into it")
    return _proved(wanted, folder, found, fresh=True)


def _fetch(
    file: Remote, path: Path, folders: Sequence[str], tell: Tell, patience: Patience
) -> None:
    """From the first place that has it."""
    failures: list[DataError] = []
    for place in folders:
        try:
            download(f"{place.rstrip('/')}/{file.name}", path, file, tell, patience)
            return
        except DataError as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    raise DataError(" | ".join(map(str, failures))) from failures[-1]


def _there(wanted: PublicSet, folder: Path) -> Dataset | None:
    """The data set as the reader finds it in the folder; None where files are missing."""
    path = folder / wanted.where
    if wanted.form == "as they are":
        complete = all((path / file.name).is_file() for file in wanted.files)
    else:
        complete = path.exists() and not (folder / PARTS / wanted.name).is_dir()
    if not complete:
        return None
    return load(str(path)) if path.is_file() else load(wanted.read_as, [path])


def _proved(wanted: PublicSet, folder: Path, found: Dataset, fresh: bool) -> Got:
    """The data set, if it has as many samples as it must."""
    train, test = len(found.train), len(found.test)
    if (train, test) != (wanted.train, wanted.test):
        raise DataError(
            f"{wanted.read_as} in {folder} has {train:,} training and {test:,} test samples; the "
            f"public one has {wanted.train:,} and {wanted.test:,}: move it away and get it again"
        )
    stated = wanted.files[0].stated_by
    checked = (
        f"MD5 of every file as {stated} states it, and read once"
        if fresh
        else "found there, and read once"
    )
    return Got(
        wanted.name, wanted.read_as, folder / wanted.where, fresh,
        found.train.shape, len(found.classes), train, test, checked,
    )  # fmt: skip
