"""The data of a run, and who holds which of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ostraka.core.samples import Samples, View
from ostraka.core.seeds import numpy_rng
from ostraka.data.dataset import DOMAIN, Array, Dataset, first_per_class, known_split
from ostraka.data.domains import first_of_each, positions
from ostraka.data.local_test import draw, join, judged_by
from ostraka.data.own.collection import some
from ostraka.data.partitions.divide import Partition, partition
from ostraka.data.partitions.given import By, Domain
from ostraka.data.partitions.spec import format_spec, parse
from ostraka.data.sources import data_dirs, load
from ostraka.data.standardise import standardise
from ostraka.errors import ConfigError, DataError, PartitionError
from ostraka.runs.config import Config, label_of
from ostraka.runs.record import RunDir, own_division

PARTIES = 10
"""Parties where neither the user nor the data gives a number."""


@dataclass(frozen=True)
class Exam:
    """Samples that a result is judged by, and where in them each domain lies."""

    samples: Samples
    domains: Mapping[str, Tensor] = field(default_factory=dict)
    """By the domain's name; empty where the data has none."""

    @classmethod
    def of(cls, samples: Samples, column: Array | None) -> "Exam":
        """With the domains that `column` has for every stored row."""
        return cls(samples, positions(samples, column))

    def __len__(self) -> int:
        return len(self.samples)

    def to(self, device: str) -> "Exam":
        """The same exam on another device."""
        return replace(self, samples=self.samples.to(device))


@dataclass(frozen=True)
class Division:
    """Data and who holds which of it."""

    data: Dataset
    partition: Partition
    counts: np.ndarray
    """Samples of every party and class [parties, classes]."""
    held: Exam | None
    """The server's validation samples."""
    shared: Samples | None
    """Labelled samples that all parties may use."""
    notes: tuple[str, ...] = ()
    """What must be said beside this data."""
    shown: tuple[str, ...] = ()
    """What must be said of how networks see it."""


def divide(config: Config, begun: RunDir | None = None) -> Division:
    """Load the data of a configuration and divide it among the parties, or as the run in `begun`
    has divided it."""
    data, said = _loaded(config)
    data = (
        known_split(data, _known(config, data))
        if config.known is not None or config.known_classes
        else data
    )
    data = _augmented(config, data)
    everything, notes = _training_rows(config, data)
    notes = [*data.info.get("notes", ()), *said, *notes]
    validation = _hold_back(everything, everything, config.validation, "validation", config.seed)
    shared = _hold_back(
        np.setdiff1d(everything, validation), everything, config.shared, "shared", config.seed
    )
    rows = np.setdiff1d(everything, np.concatenate([validation, shared]))
    labels, classes = labels_of(data), len(data.classes)
    parties = config.parties or (0 if parse(config.partition).counts_parties else PARTIES)
    spec = config.partition if begun is None else own_division(begun, config)
    try:
        divided = partition(
            spec, labels, parties, config.seed, rows=rows, columns=data.columns, classes=classes
        )
    except PartitionError as error:
        raise PartitionError(
            f"{error}{_held_back(config, len(everything), len(rows), parties)}"
        ) from error
    divided = replace(divided, spec=format_spec(parse(config.partition)))
    if config.local_test:
        divided = draw(divided, config.local_test, config.seed)
        data = judged_by(data, divided.tests, config.seed)
        notes.append(_told_of_test(config, divided, len(data.test)))
    used = np.sort(np.concatenate([*divided.parties, shared]))
    data, shown = standardise(data, torch.as_tensor(used), config.standardise)
    held = Samples(data.train.x, data.train.y, torch.as_tensor(validation), data.test.view)
    common = Samples(data.train.x, data.train.y, torch.as_tensor(shared), data.train.view)
    counts = divided.table(labels, classes)
    notes += _untrained(data.classes, counts)
    return Division(
        data=data,
        partition=divided,
        counts=counts,
        held=Exam.of(held, data.columns.get(DOMAIN)) if len(held) else None,
        shared=common if len(common) else None,
        notes=tuple(notes),
        shown=tuple(shown),
    )


def shown_as(division: Division, view: View) -> Division:
    """The division with its samples standardised as in `view`, whatever they are like here.

    Networks that stay as they are must go on seeing what they have learnt to see.
    """
    data, held, shared = division.data, division.held, division.shared
    if (data.test.view.mean, data.test.view.std) == (view.mean, view.std):
        return division

    def seen(samples: Samples) -> Samples:
        return replace(samples, view=replace(samples.view, mean=view.mean, std=view.std))

    return replace(
        division,
        data=replace(data, train=seen(data.train), test=seen(data.test)),
        held=held and replace(held, samples=seen(held.samples)),
        shared=shared and seen(shared),
        shown=("samples are standardised as those of the start were",),
    )


def _loaded(config: Config) -> tuple[Dataset, list[str]]:
    """The data, its test samples among the training samples if the parties' samples are the test,
    and what is to be said of that."""
    data = load_for(config, config.data)
    if not config.local_test:
        return data, []
    data, lost = join(data)
    rule = parse(config.partition)
    wanted = DOMAIN if isinstance(rule, Domain) else rule.column if isinstance(rule, By) else None
    if wanted in lost:
        raise DataError(
            f"{config.data} has the column {wanted!r} for its training samples alone, and with "
            f"local_test {config.local_test:g} its test samples are divided too: bring the column "
            "for both, divide in another way, or leave local_test out"
        )
    return data, [
        f"the column {name!r} was left out: the data's test samples, which are divided too, have "
        "none"
        for name in lost
    ]


def _told_of_test(config: Config, divided: Partition, total: int) -> str:
    """What the test set is, where it is not the data's own."""
    drawn = sum(len(rows) for rows in divided.tests)
    strangers = f" and {total - drawn} of unknown classes" if total > drawn else ""
    return (
        f"the test set is {drawn} of the parties' own samples, a share of {config.local_test:g} of "
        f"each party's{strangers}; the data's own test samples were divided too"
    )


def _augmented(config: Config, data: Dataset) -> Dataset:
    """The data with its training samples changed at random as the configuration wants it."""
    if config.augment == "auto":
        return data
    view = replace(data.train.view, augment=config.augment)
    return replace(data, train=replace(data.train, view=view))


def load_for(config: Config, name: str) -> Dataset:
    """The data set called `name`, from the folders of a configuration."""
    dirs = tuple(data_dirs(config.data_dir))
    return load_once(name, dirs, Path.cwd(), label_of(config, name))


@lru_cache(maxsize=2)
def load_once(name: str, dirs: tuple[Path, ...], cwd: Path, label: str | None) -> Dataset:
    """The cells of a grid read their data once; in another working folder relative names mean other
    files."""
    return load(name, dirs, label)


def _known(config: Config, data: Dataset) -> list[int]:
    if config.known_classes:
        return list(config.known_classes)
    assert config.known is not None
    if not 1 <= config.known <= len(data.classes):
        raise ConfigError(
            f"known is {config.known}; {config.data} has {len(data.classes)} classes: give 1 to "
            f"{len(data.classes)}"
        )
    return list(range(config.known))


def labels_of(data: Dataset) -> np.ndarray:
    """The labels of all stored training rows."""
    assert data.train.y is not None
    return data.train.y.numpy()


def _training_rows(config: Config, data: Dataset) -> tuple[np.ndarray, list[str]]:
    """Rows of the full training set that this run uses, and what is to be said of them."""
    if config.train_per_class is not None:
        if config.train_per_class < 1:
            raise ConfigError(f"train_per_class is {config.train_per_class}; it must be at least 1")
        if DOMAIN in data.columns:
            rows, notes = first_of_each(data, config.train_per_class)
            return rows.numpy(), notes
        return first_per_class(data.train, config.train_per_class, len(data.classes)).numpy(), []
    return data.train.row_numbers.numpy(), []


def _hold_back(
    rows: np.ndarray, everything: np.ndarray, share: float, name: str, seed: int
) -> np.ndarray:
    """Some of `rows` that no party gets: a share of everything, random, ascending."""
    held = numpy_rng(seed, name).permutation(rows)[: round(len(everything) * share)]
    if share and not len(held):
        raise DataError(
            f"a {name} share of {share} of {len(everything)} samples is empty; give a larger one"
        )
    return np.sort(held)


def _held_back(config: Config, total: int, left: int, parties: int) -> str:
    """What to add to a division that failed, where samples were held back before it."""
    if total == left:
        return ""
    shares = [
        f"{name} {getattr(config, name):g}"
        for name in ("validation", "shared")
        if getattr(config, name)
    ]
    return (
        f". Held back ({', '.join(shares)}): {total - left} of {total} training samples; {left} "
        "are left for "
        f"{f'{parties} ' if parties else 'the '}parties: hold back less"
    )


def _untrained(classes: tuple[str, ...], counts: np.ndarray) -> list[str]:
    """A note on classes that no party can learn, although they are in the test."""
    missing = [classes[c] for c in np.flatnonzero(counts.sum(axis=0) == 0)]
    told = f"no party holds a training sample of {len(missing)} of {len(classes)} classes: "
    return [told + some(missing)] if missing else []
