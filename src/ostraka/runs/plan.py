"""From a configuration to the things of a run: data, parties, task, method."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ostraka.core import settings
from ostraka.core.method import Method
from ostraka.core.net import Recipe
from ostraka.core.party import Parties
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, numpy_rng
from ostraka.core.task import Commons, Task
from ostraka.data.dataset import Dataset, first_per_class, known_split
from ostraka.data.partition import Partition, parse, partition
from ostraka.data.sources import data_dirs, load
from ostraka.errors import ConfigError, DataError
from ostraka.registry import NETS
from ostraka.runs.config import Config, build_method, resolve

PARTIES = 10
"""Parties where neither the user nor the data gives a number."""


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs, ready to train."""

    config: Config
    name: str
    method: Method[Any, Any, Any]
    task: Task
    parties: Parties
    partition: Partition
    counts: np.ndarray
    """Samples of every party and class [parties, classes]."""
    test: Samples
    validation: Samples | None
    fingerprint: str
    """Stands for the data, its division and the task: equal for runs whose parties see the same."""


@dataclass(frozen=True)
class Division:
    """Data and who holds which of it."""

    data: Dataset
    partition: Partition
    counts: np.ndarray
    """Samples of every party and class [parties, classes]."""
    held: Samples | None
    """The server's validation samples."""
    shared: Samples | None
    """Labelled samples that all parties may use."""


def divide(config: Config) -> Division:
    """Load the data of a configuration and divide it among the parties."""
    data = _load(config.data, tuple(data_dirs(config.data_dir)))
    data = known_split(data, _known(config, data)) if config.known is not None or config.known_classes else data
    everything = _training_rows(config, data)
    validation = _hold_back(everything, everything, config.validation, "validation", config.seed)
    shared = _hold_back(np.setdiff1d(everything, validation), everything, config.shared, "shared", config.seed)
    rows = np.setdiff1d(everything, np.concatenate([validation, shared]))
    labels, classes = _labels(data), len(data.classes)
    parties = config.parties or (0 if parse(config.partition).counts_parties else PARTIES)
    divided = partition(
        config.partition, labels, parties, config.seed, rows=rows, columns=data.columns, classes=classes
    )
    held = Samples(data.train.x, data.train.y, torch.as_tensor(validation), data.test.view)
    common = Samples(data.train.x, data.train.y, torch.as_tensor(shared), data.train.view)
    counts = divided.table(labels, classes)
    return Division(data, divided, counts, held if len(held) else None, common if len(common) else None)


def make_plan(config: Config) -> Plan:
    """Check a configuration as a whole and prepare its run; nothing is trained or written."""
    method, config = build_method(config), resolve(config)
    division = divide(config)
    data, divided = division.data, division.partition
    everyone = Parties.of(data.train, [torch.as_tensor(p) for p in divided.parties], divided.names)
    public, test = _public(config, data)
    commons = Commons(public=public, shared=division.shared, prior=_prior(division) if method.needs.prior else None)
    task = Task(data.classes, data.train.shape, _recipe(config, data), commons)
    task.build(unknown=False)  # a net that cannot take these samples must fail now, not at every party
    method.needs.check(config.method, task, division.held is not None)
    return Plan(
        config=config,
        name=config.method,
        method=method,
        task=task,
        parties=everyone.pooled() if method.pooled else everyone,
        partition=divided,
        counts=division.counts,
        test=test,
        validation=division.held,
        fingerprint=_fingerprint(data, everyone, task),
    )


@lru_cache(maxsize=2)
def _load(name: str, dirs: tuple[Path, ...]) -> Dataset:
    """The cells of a grid read their data once."""
    return load(name, dirs)


def pick_device(name: str) -> str:
    """`auto` as what this machine has; a device that is not there is an error."""
    have = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return "cuda" if have["cuda"] else "mps" if have["mps"] else "cpu"
    if not have[name]:
        raise ConfigError(f"this machine has no {name} device; use --device auto or cpu")
    return name


def _known(config: Config, data: Dataset) -> list[int]:
    if config.known_classes:
        return list(config.known_classes)
    assert config.known is not None
    if not 1 <= config.known <= len(data.classes):
        raise ConfigError(
            f"known is {config.known}; {config.data} has {len(data.classes)} classes: give 1 to {len(data.classes)}"
        )
    return list(range(config.known))


def _labels(data: Dataset) -> np.ndarray:
    assert data.train.y is not None
    return data.train.y.numpy()


def _training_rows(config: Config, data: Dataset) -> np.ndarray:
    """Rows of the full training set that this run uses."""
    if config.train_per_class is not None:
        if config.train_per_class < 1:
            raise ConfigError(f"train_per_class is {config.train_per_class}; it must be at least 1")
        return first_per_class(data.train, config.train_per_class, len(data.classes)).numpy()
    return np.arange(len(data.train.x)) if data.train.rows is None else data.train.rows.numpy()


def _hold_back(rows: np.ndarray, everything: np.ndarray, share: float, name: str, seed: int) -> np.ndarray:
    """Some of `rows` that no party gets: a share of everything, random, ascending."""
    held = numpy_rng(seed, name).permutation(rows)[: round(len(everything) * share)]
    if share and not len(held):
        raise DataError(f"a {name} share of {share} of {len(everything)} samples is empty; give a larger one")
    return np.sort(held)


def _prior(division: Division) -> torch.Tensor:
    """Target label shares: in a simulation those of all parties' data together."""
    counts = torch.as_tensor(division.counts.sum(axis=0), dtype=torch.float64)
    return (counts / counts.sum()).float()


def _public(config: Config, data: Dataset) -> tuple[Samples | None, Samples]:
    """Public and test samples, which never overlap (FedOV's protocol: the first half of the test set is public)."""
    if config.public is None:
        return None, data.test
    if config.public == "half-test":
        order, half = torch.arange(len(data.test)), len(data.test) // 2
        return data.test.take(order[:half]).unlabelled(), data.test.take(order[half:])
    other = _load(config.public, tuple(data_dirs(config.data_dir))).train
    if other.shape != data.train.shape:
        raise DataError(
            f"public samples {config.public!r} have shape {other.shape}, those of {config.data!r} {data.train.shape}; "
            "they must be the same"
        )
    return other.unlabelled(), data.test


def _recipe(config: Config, data: Dataset) -> Recipe:
    name, shape = config.net.name, data.train.shape
    if name == "auto":
        name = "simple-cnn" if len(shape) == 3 and min(shape[1:]) >= 16 else "mlp"
    return Recipe(NETS.canonical(name), dict(config.net.options))


def _fingerprint(data: Dataset, parties: Parties, task: Task) -> str:
    """A hash of the training values in use, their division, and the task."""
    digest = hashlib.blake2b(digest_size=16)
    view = settings.values_of(data.train.view)
    digest.update(
        repr((data.classes, data.train.shape, task.net.name, sorted(task.net.options.items()), view)).encode()
    )
    digest.update(str(data.info.get("sha256", "")).encode())
    digest.update(parties.rows.numpy().tobytes())
    digest.update(repr(parties.ends).encode())
    digest.update(_labels(data)[parties.rows.numpy()].tobytes())
    return digest.hexdigest()


def party_seed(config: Config, round_index: int, party: int) -> int:
    """The seed of one party in one round: never depends on workers or order."""
    return derive(config.seed, "round", round_index, "party", party)
