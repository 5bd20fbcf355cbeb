"""What all sides of a run may see, and the samples that it is judged by."""

from dataclasses import replace

import torch
from torch import Tensor

from ostraka.core.equip import share_of
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.data.dataset import Dataset
from ostraka.errors import DataError
from ostraka.nets.generator import draw_stored
from ostraka.runs.config import Config
from ostraka.runs.division import Division, Exam, load_for
from ostraka.runs.generator import READY, load_generator
from ostraka.runs.start import HALF_TEST

GENERATOR = "generator"
"""Public samples that are drawn from a generator: generator, or generator:FILE."""
DRAWN = 5000
"""How many of them."""


def public_and_test(config: Config, data: Dataset) -> tuple[Samples | None, Exam]:
    """Public and test samples, which never overlap (FedOV's protocol: the first half of the test
    set is public)."""
    whole = Exam.of(data.test, data.test_domains)
    if config.public is None:
        return None, whole
    drawn = public_generator(config)
    if drawn:
        return _generated(config, data, drawn), whole
    if config.public != HALF_TEST:
        return _from_elsewhere(config, data).unlabelled(), whole
    # domains lie one after the other: half of each, or some would be all public and others not at
    # all
    parts = whole.domains or {"": torch.arange(len(data.test))}
    first = torch.cat([index[: len(index) // 2] for index in parts.values()])
    second = torch.cat([index[len(index) // 2 :] for index in parts.values()])
    return data.test.take(first).unlabelled(), Exam.of(data.test.take(second), data.test_domains)


def public_generator(config: Config) -> str:
    """The generator whose samples are public: "ready" or a file; empty: they are others."""
    name, _, file = (config.public or "").partition(":")
    return (file or READY) if name == GENERATOR else ""


def _generated(config: Config, data: Dataset, name: str) -> Samples:
    """Samples of a generator, stored and seen as those of the data are."""
    train = data.train
    if data.kind != "image":
        raise DataError(
            f"a generator makes images, and {config.data} holds samples of the kind {data.kind}; "
            "give other public samples"
        )
    rng = torch_rng(config.seed, "public", GENERATOR)
    view = replace(train.view, augment="none")
    made = draw_stored(load_generator(name), DRAWN, train.shape, view, train.x.dtype, rng)
    return Samples(made, view=view)


def _from_elsewhere(config: Config, data: Dataset) -> Samples:
    """The training samples of another data set, to be seen as those of this one are."""
    assert config.public is not None
    found = load_for(config, config.public)
    other = found.train
    if found.kind != data.kind:
        raise DataError(
            f"public samples {config.public!r} are of the kind {found.kind}, those of "
            f"{config.data!r} of the kind {data.kind}; they must be the same"
        )
    if other.shape != data.train.shape:
        raise DataError(
            f"public samples {config.public!r} have shape {other.shape}, those of {config.data!r} "
            f"{data.train.shape}; "
            "they must be the same"
        )
    if other.x.dtype != data.train.x.dtype:
        raise DataError(
            f"public samples {config.public!r} are stored as {other.x.dtype}, those of "
            f"{config.data!r} as "
            f"{data.train.x.dtype}; whether they have the same range cannot be told: store both "
            "alike"
        )
    if config.local_test and torch.equal(other.x, data.train.x[: len(other.x)]):
        raise DataError(
            f"public samples {config.public!r} are those that are divided among the parties, and "
            f"with local_test {config.local_test:g} some of them are the test; give other public "
            f"samples, such as {HALF_TEST}"
        )
    # The task's networks see all samples in one way, by the mean and deviation of what they are
    # trained on: so what is stored in other units (scikit-learn's 17 levels) is brought to theirs.
    seen = data.train.view
    return replace(other.in_unit(seen.unit), view=replace(seen, augment=other.view.augment))


def shared_with_all(config: Config, division: Division, share: float) -> Samples | None:
    """The labelled samples of the commons: all that were held back, or, with a `share`, one draw
    of that share of the parties' mean size (`Needs.share`)."""
    shared, mean = division.shared, float(division.counts.sum(axis=1).mean())
    if shared is None or not share:
        return shared
    if not round(share * mean):
        raise DataError(
            f"one shared set of {share:g} times the parties' mean size ({mean:g}; 0: not known "
            "before they join) has no sample. Set a larger beta, or let every party draw its own "
            "(--set sets=each)"
        )
    words = f"a party has {mean:g} samples on average"
    return shared.take(share_of(shared, share, mean, words, torch_rng(config.seed, "share")))


def prior_of(division: Division) -> Tensor:
    """Target label shares: in a simulation those of all parties' data together."""
    counts = torch.as_tensor(division.counts.sum(axis=0), dtype=torch.float64)
    return (counts / counts.sum()).float()
