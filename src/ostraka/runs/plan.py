"""From a configuration to the things of a run: data, parties, task, method."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ostraka.core import settings
from ostraka.core.fit import Budget
from ostraka.core.method import Method
from ostraka.core.net import Recipe
from ostraka.core.party import Parties
from ostraka.core.samples import Samples
from ostraka.core.seeds import derive, numpy_rng
from ostraka.core.task import Commons, Task
from ostraka.data.dataset import DOMAIN, Dataset, first_per_class, known_split
from ostraka.data.domains import first_of_each, positions
from ostraka.data.fingerprint import Fingerprint, fingerprint, values_of_training
from ostraka.data.partition import Partition, format_spec, parse, partition
from ostraka.data.sources import data_dirs, load
from ostraka.data.standardise import standardise, with_statistics_of
from ostraka.engines.guard import leave_if_imported_by_a_worker
from ostraka.errors import ConfigError, DataError, NeedError, PartitionError
from ostraka.registry import NETS
from ostraka.runs.config import Config, build_engine, build_method, resolve
from ostraka.runs.memory import check_network
from ostraka.runs.record import RunDir, own_division
from ostraka.runs.start import HALF_TEST, Start, check_start, find_start, pinned

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
    start: Start | None = None
    """Where the first model comes from, if it is not a random one."""
    domains: dict[str, torch.Tensor] = field(default_factory=dict)
    """Where in the test samples each domain lies; empty where the data has none."""
    validation_domains: dict[str, torch.Tensor] = field(default_factory=dict)
    """The same of the validation samples."""
    domain_counts: np.ndarray | None = None
    """As `counts`, by domain [parties, domains, classes]."""
    notes: tuple[str, ...] = ()
    """What must be said beside the figures."""
    prints: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Fingerprints of the data in use, by name."""

    @property
    def marks(self) -> dict[str, Any]:
        """What a folder of this run keeps, to notice changed data or another division."""
        return {"data": dict(self.prints), "partition": self.partition.digest}

    @property
    def classes_held(self) -> list[int]:
        """Classes of every party that trains: with pooled data, of the one that has it all."""
        return _held(self.counts.sum(axis=0, keepdims=True) if self.method.pooled else self.counts)

    @property
    def mix(self) -> dict[int, torch.Tensor]:
        """Every party's counts by class, or, where the data has domains, by domain and class; by the party's number."""
        counts = self.counts if self.domain_counts is None else self.domain_counts
        return dict(enumerate(torch.as_tensor(counts)))


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
    notes: tuple[str, ...] = ()
    """What must be said beside this data."""
    shown: tuple[str, ...] = ()
    """What must be said of how networks see it."""


def divide(config: Config, begun: RunDir | None = None) -> Division:
    """Load the data of a configuration and divide it among the parties, or as the run in `begun` has divided it."""
    data = _load(config.data, tuple(data_dirs(config.data_dir)), Path.cwd())
    data = (
        known_split(data, _known(config, data))
        if config.known is not None or config.known_classes
        else data
    )
    everything, notes = _training_rows(config, data)
    notes = [*data.info.get("notes", ()), *notes]
    validation = _hold_back(everything, everything, config.validation, "validation", config.seed)
    shared = _hold_back(
        np.setdiff1d(everything, validation), everything, config.shared, "shared", config.seed
    )
    rows = np.setdiff1d(everything, np.concatenate([validation, shared]))
    labels, classes = _labels(data), len(data.classes)
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
        held=held if len(held) else None,
        shared=common if len(common) else None,
        notes=tuple(notes),
        shown=tuple(shown),
    )


def make_plan(config: Config, begun: RunDir | None = None) -> Plan:
    """Check a configuration as a whole and prepare its run; nothing is trained or written.

    With `begun`, the folder of a run to go on with, its own record of who holds what is used.
    """
    leave_if_imported_by_a_worker()
    build_engine(config)  # a wrong setting of it is said now
    start = find_start(config)
    method, config = build_method(config), pinned(resolve(config), start)
    division = divide(config, begun)
    data, divided = division.data, division.partition
    everyone = Parties.of(data.train, [torch.as_tensor(p) for p in divided.parties], divided.names)
    public, test = public_and_test(config, data)
    domains = positions(test, data.test_domains)
    nets = {"start": start.params} if start else {}
    prior = _prior(division) if method.needs.prior else None
    commons = Commons(public=public, shared=division.shared, nets=nets, prior=prior)
    recipe = _recipe(config, data)
    task = Task(data.classes, data.train.shape, recipe, commons, data.test.view)
    check_network(task, config, method, len(everyone))
    method.needs.check(config.method, task)
    _check_rate(config)
    if start:
        check_start(start, config, method, task)
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
        start=start,
        domains=domains,
        validation_domains=positions(division.held, data.columns.get(DOMAIN))
        if division.held
        else {},
        domain_counts=_domain_counts(division, tuple(domains)) if domains else None,
        notes=(
            *division.notes,
            *division.shown,
            *_cut_short(method, everyone, _held(division.counts)),
        ),
        prints={
            name: _print(name, tuple(data_dirs(config.data_dir)), Path.cwd())
            for name in data_names(config)
        },
    )


@lru_cache(maxsize=2)
def _load(name: str, dirs: tuple[Path, ...], cwd: Path) -> Dataset:
    """The cells of a grid read their data once; in another working folder relative names mean other files."""
    return load(name, dirs)


@lru_cache(maxsize=4)
def _print(name: str, dirs: tuple[Path, ...], cwd: Path) -> Fingerprint:
    return fingerprint(_load(name, dirs, cwd), name, dirs)


def data_names(config: Config) -> list[str]:
    """The data sets that a run reads."""
    return [config.data, *([config.public] if config.public not in (None, HALF_TEST) else [])]


def _check_rate(config: Config) -> None:
    """Refuse a source of the threshold that the run will not have."""
    if config.rate_from == "validation" and not config.validation:
        raise NeedError(
            "rate_from is validation, but the server holds no samples back; give --validation 0.05"
        )
    if config.rate_from == "public" and config.public is None:
        raise NeedError(
            "rate_from is public, but there are no public samples; give --public, for example half-test"
        )


def pick_device(name: str) -> str:
    """`auto` as what this machine has; a device that is not there is an error."""
    have = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
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


def _domain_counts(division: Division, domains: tuple[str, ...]) -> np.ndarray:
    """Samples of every party, domain of the test and class."""
    data, divided = division.data, division.partition
    marks, labels = np.asarray(data.columns[DOMAIN]).astype(str), _labels(data)
    own = [
        replace(divided, parties=tuple(rows[marks[rows] == d] for rows in divided.parties))
        for d in domains
    ]
    return np.stack([part.table(labels, len(data.classes)) for part in own], axis=1)


def _training_rows(config: Config, data: Dataset) -> tuple[np.ndarray, list[str]]:
    """Rows of the full training set that this run uses, and what is to be said of them."""
    if config.train_per_class is not None:
        if config.train_per_class < 1:
            raise ConfigError(f"train_per_class is {config.train_per_class}; it must be at least 1")
        if DOMAIN in data.columns:
            rows, notes = first_of_each(data, config.train_per_class)
            return rows.numpy(), notes
        return first_per_class(data.train, config.train_per_class, len(data.classes)).numpy(), []
    return np.arange(len(data.train.x)) if data.train.rows is None else data.train.rows.numpy(), []


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
        f". Held back ({', '.join(shares)}): {total - left} of {total} training samples; {left} are left for "
        f"{f'{parties} ' if parties else 'the '}parties: hold back less"
    )


def _untrained(classes: tuple[str, ...], counts: np.ndarray) -> list[str]:
    """A note on classes that no party can learn, although they are in the test."""
    missing = [classes[c] for c in np.flatnonzero(counts.sum(axis=0) == 0)]
    if not missing:
        return []
    named = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return [
        f"no party holds a training sample of {len(missing)} of {len(classes)} classes: {named}"
    ]


def _prior(division: Division) -> torch.Tensor:
    """Target label shares: in a simulation those of all parties' data together."""
    counts = torch.as_tensor(division.counts.sum(axis=0), dtype=torch.float64)
    return (counts / counts.sum()).float()


def public_and_test(config: Config, data: Dataset) -> tuple[Samples | None, Samples]:
    """Public and test samples, which never overlap (FedOV's protocol: the first half of the test set is public)."""
    if config.public is None:
        return None, data.test
    if config.public == HALF_TEST:
        # domains lie one after the other: half of each, or some would be all public and others not at all
        parts = positions(data.test, data.test_domains) or {"": torch.arange(len(data.test))}
        first = torch.cat([index[: len(index) // 2] for index in parts.values()])
        second = torch.cat([index[len(index) // 2 :] for index in parts.values()])
        return data.test.take(first).unlabelled(), data.test.take(second)
    other = _load(config.public, tuple(data_dirs(config.data_dir)), Path.cwd()).train
    if other.shape != data.train.shape:
        raise DataError(
            f"public samples {config.public!r} have shape {other.shape}, those of {config.data!r} {data.train.shape}; "
            "they must be the same"
        )
    if other.x.dtype != data.train.x.dtype:
        raise DataError(
            f"public samples {config.public!r} are stored as {other.x.dtype}, those of {config.data!r} as "
            f"{data.train.x.dtype}; whether they have the same range cannot be told: store both alike"
        )
    # A mean and deviation belong to what the networks are trained on: they must see these samples in the same way.
    seen = replace(other, view=with_statistics_of(other.view, data.train.view))
    return seen.unlabelled(), data.test


def _recipe(config: Config, data: Dataset) -> Recipe:
    name, shape = config.net.name, data.train.shape
    if name == "auto":
        name = "simple-cnn" if len(shape) == 3 and min(shape[1:]) >= 16 else "mlp"
    return Recipe(NETS.canonical(name), dict(config.net.options))


def _held(counts: np.ndarray) -> list[int]:
    """Classes of which each party [parties, classes] has samples."""
    held: list[int] = (counts > 0).sum(axis=1).tolist()
    return held


def steps_of(local: Budget, sizes: Sequence[int], classes: Sequence[int]) -> list[int]:
    """Optimiser steps of parties that hold so many samples of so many classes."""
    return [
        local.total(ceil(size / local.batch), held)
        for size, held in zip(sizes, classes, strict=True)
    ]


def _cut_short(
    method: Method[Any, Any, Any], parties: Parties, classes: Sequence[int]
) -> list[str]:
    """A note where epochs that the user asked for (they are not the default) will not all be trained."""
    usual = {spec.name: spec.default for spec in fields(method)}.get("local")
    local = getattr(method, "local", None)
    if (
        not isinstance(local, Budget)
        or not isinstance(usual, Budget)
        or local.epochs == usual.epochs
    ):
        return []
    if local.steps is not None:
        return []
    sizes = [ref.size for ref in parties.roster()]
    steps = steps_of(local, sizes, classes)
    passes = [count / ceil(size / local.batch) for count, size in zip(steps, sizes, strict=True)]
    cut = [done for done in passes if done < local.epochs]
    if not cut:
        return []
    ends = [
        f"local.{name} is {getattr(local, name)}"
        for name in ("most_steps", "class_steps")
        if getattr(local, name)
    ]
    return [
        f"{len(cut)} of {len(sizes)} parties end before their {local.epochs} epochs, the first after {min(cut):.1f}: "
        f"{' and '.join(ends)}; 0 lets them all train to the end"
    ]


def _fingerprint(data: Dataset, parties: Parties, task: Task) -> str:
    """A hash of the training values in use, their division, and the task."""
    digest = hashlib.blake2b(digest_size=16)
    view = settings.values_of(data.train.view)
    digest.update(
        repr(
            (data.classes, data.train.shape, task.net.name, sorted(task.net.options.items()), view)
        ).encode()
    )
    digest.update(values_of_training(data).encode())
    digest.update(parties.rows.numpy().tobytes())
    digest.update(repr(parties.ends).encode())
    digest.update(_labels(data)[parties.rows.numpy()].tobytes())
    return digest.hexdigest()


def party_seed(config: Config, round_index: int, party: int) -> int:
    """The seed of one party in one round: never depends on workers or order."""
    return derive(config.seed, "round", round_index, "party", party)
