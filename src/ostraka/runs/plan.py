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
from ostraka.core.equip import equipped, generator_of
from ostraka.core.fit import Budget
from ostraka.core.kind import Kind
from ostraka.core.method import Method
from ostraka.core.net import Recipe
from ostraka.core.objective import Objective
from ostraka.core.party import Parties
from ostraka.core.seeds import derive
from ostraka.core.task import Commons, Task
from ostraka.data.dataset import DOMAIN, Dataset
from ostraka.data.fingerprint import Fingerprint, fingerprint, values_of_training
from ostraka.data.partitions.divide import Partition
from ostraka.data.sources import data_dirs
from ostraka.engines.guard import leave_if_imported_by_a_worker
from ostraka.errors import ConfigError, NeedError
from ostraka.registry import NETS
from ostraka.runs.commons import prior_of, public_and_test, public_generator, shared_with_all
from ostraka.runs.config import Config, NetChoice, build_engine, build_method, label_of, resolve
from ostraka.runs.division import Division, Exam, divide, labels_of, load_once, shown_as
from ostraka.runs.generator import load_generator, told_of
from ostraka.runs.memory import check_network
from ostraka.runs.record import RunDir
from ostraka.runs.start import HALF_TEST, Start, check_start, find_start, pinned


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
    test: Exam
    validation: Exam | None
    fingerprint: str
    """Stands for the data, its division and the task: equal for runs whose parties see the same."""
    start: Start | None = None
    """Where the first model comes from, if it is not a random one."""
    domain_counts: np.ndarray | None = None
    """As `counts`, by domain [parties, domains, classes]."""
    notes: tuple[str, ...] = ()
    """What must be said beside the figures."""
    prints: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Fingerprints of the data in use, by name."""

    @property
    def marks(self) -> dict[str, Any]:
        """What a folder of this run keeps, to notice changed data or another division."""
        marks = {"data": dict(self.prints), "partition": self.partition.digest}
        return {**marks, **({"generator": self.generators} if self.generators else {})}

    @property
    def generators(self) -> str:
        """The hashes of the generators that samples are drawn from; empty: there are none."""
        own, public = self.task.commons.generator, public_generator(self.config)
        hashes = ["" if own is None else own.sha256]
        return " ".join([*hashes, *([load_generator(public).sha256] if public else [])])

    @property
    def counts_at_work(self) -> np.ndarray:
        """`counts` of the parties that train: with pooled data, of the one that has it all."""
        return self.counts.sum(axis=0, keepdims=True) if self.method.pooled else self.counts

    @property
    def classes_held(self) -> list[int]:
        """Classes of every party that trains."""
        return _held(self.counts_at_work)

    @property
    def trainings(self) -> list[int]:
        """How many networks each of them trains in a round."""
        return [
            self.method.trainings(self.task, torch.as_tensor(counts))
            for counts in self.counts_at_work
        ]

    @property
    def steps(self) -> list[int | None]:
        """Optimiser steps of each of those trainings."""
        return [self.method.steps(torch.as_tensor(counts)) for counts in self.counts_at_work]

    @property
    def mix(self) -> dict[int, torch.Tensor]:
        """Every party's counts by class, or, where the data has domains, by domain and class; by
        the party's number."""
        counts = self.counts if self.domain_counts is None else self.domain_counts
        return dict(enumerate(torch.as_tensor(counts)))


def make_plan(
    config: Config, begun: RunDir | None = None, division: Division | None = None
) -> Plan:
    """Check a configuration as a whole and prepare its run; nothing is trained or written.

    With `begun`, the folder of a run to go on with, its own record of who holds what is used. A
    `division` takes the place of that which the configuration asks for.
    """
    leave_if_imported_by_a_worker()
    build_engine(config).get_ready()  # a wrong setting of it is said now
    start = find_start(config)
    method, config = build_method(config), pinned(resolve(config), start)
    division = division or divide(config, begun)
    if start and method.adds_classes:
        division = shown_as(division, start.view)
    data, divided = division.data, division.partition
    everyone = Parties.of(data.train, [torch.as_tensor(p) for p in divided.parties], divided.names)
    public, test = public_and_test(config, data)
    nets = {"start": start.params} if start else {}
    prior = prior_of(division) if method.needs.prior else None
    source = generator_of(method)
    generator = load_generator(source) if source else None
    method = method if generator is None else equipped(method, generator)
    shared = shared_with_all(config, division, method.needs.share)
    said = told_of(generator, source, config.data, data) if generator else []
    commons = Commons(public, shared, nets, prior, generator)
    recipe = recipe_of(config.net, data.kind, data.train.shape)
    task = Task(data.classes, data.train.shape, recipe, commons, data.test.view)
    check_network(task, config, method, len(everyone))
    method.needs.check(config.method, task)
    check_objectives(method, task)
    _check_sources(config)
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
        domain_counts=_domain_counts(division, tuple(test.domains)) if test.domains else None,
        notes=(
            *division.notes,
            *said,
            *division.shown,
            *_cut_short(method, everyone, _held(division.counts)),
            *method.notes(task, torch.as_tensor(division.counts)),
        ),
        prints={
            name: _print(
                name, tuple(data_dirs(config.data_dir)), Path.cwd(), label_of(config, name)
            )
            for name in data_names(config)
        },
    )


@lru_cache(maxsize=4)
def _print(name: str, dirs: tuple[Path, ...], cwd: Path, label: str | None) -> Fingerprint:
    return fingerprint(load_once(name, dirs, cwd, label), name, dirs)


def data_names(config: Config) -> list[str]:
    """The data sets that a run reads."""
    public = config.public
    own = public is None or public == HALF_TEST or bool(public_generator(config))
    return [config.data, *([] if public is None or own else [public])]


def check_objectives(method: Method[Any, Any, Any], task: Task) -> None:
    """Refuse an objective that does not suit the samples."""
    for _, _, value in settings.walk(method):
        if isinstance(value, Objective):
            value.check_samples(task.kind, task.shape)


def _check_sources(config: Config) -> None:
    """Refuse samples for the threshold or for a look that the run will not have."""
    for name, other in (("rate_from", "told"), ("look", "test")):
        source = getattr(config, name)
        if source == "validation" and not config.validation:
            raise NeedError(
                f"{name} is validation, but the server holds no samples back; "
                "give --validation 0.05"
            )
        if source == "public" and public_generator(config):
            raise NeedError(
                f"{name} is public, but the public samples are generated, and of no known class; "
                f"give --{name.replace('_', '-')} validation or {other}"
            )
        if source == "public" and config.public is None:
            raise NeedError(
                f"{name} is public, but there are no public samples; give --public, for example "
                "half-test"
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


def _domain_counts(division: Division, domains: tuple[str, ...]) -> np.ndarray:
    """Samples of every party, domain of the test and class."""
    data, divided = division.data, division.partition
    marks, labels = np.asarray(data.columns[DOMAIN]).astype(str), labels_of(data)
    own = [
        replace(divided, parties=tuple(rows[marks[rows] == d] for rows in divided.parties))
        for d in domains
    ]
    return np.stack([part.table(labels, len(data.classes)) for part in own], axis=1)


def recipe_of(choice: NetChoice, kind: Kind, shape: Sequence[int]) -> Recipe:
    """The network that was chosen for samples of a kind and shape, `auto` as one of them."""
    name = choice.name
    if name == "auto":
        large = kind != "table" and min(shape[1:]) >= 16
        name = "simple-cnn" if large else "mlp"
    return Recipe(NETS.canonical(name), dict(choice.options))


def _held(counts: np.ndarray) -> list[int]:
    """Classes of which each party [parties, classes] has samples."""
    held: list[int] = (counts > 0).sum(axis=1).tolist()
    return held


def _cut_short(
    method: Method[Any, Any, Any], parties: Parties, classes: Sequence[int]
) -> list[str]:
    """A note where epochs that the user asked for (they are not the default) will not all be
    trained."""
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
    if not all(sizes):  # the parties have their own data: nobody knows yet how much
        return []
    passes = [
        local.steps_on(size, held) / ceil(size / local.width(size))
        for size, held in zip(sizes, classes, strict=True)
    ]
    cut = [done for done in passes if done < local.epochs]
    if not cut:
        return []
    ends = [
        f"local.{name} is {getattr(local, name)}"
        for name in ("most_steps", "class_steps")
        if getattr(local, name)
    ]
    return [
        f"{len(cut)} of {len(sizes)} parties end before their {local.epochs} epochs, the first "
        f"after {min(cut):.1f}: "
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
    digest.update(labels_of(data)[parties.rows.numpy()].tobytes())
    if task.commons.generator is not None:
        digest.update(task.commons.generator.sha256.encode())
    return digest.hexdigest()


def party_seed(config: Config, round_index: int, party: int) -> int:
    """The seed of one party in one round: never depends on workers or order."""
    return derive(config.seed, "round", round_index, "party", party)
