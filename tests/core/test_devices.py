"""What is moved to a device, and whose generators are kept: proved without one,
by counting and by the meta device.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core import seeds
from ostraka.core.fit import Budget, fit
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.party import Parties
from ostraka.core.predictor import Scores
from ostraka.core.progress import NoProgress
from ostraka.core.samples import Samples
from ostraka.core.seeds import random_states, seeded, set_random_states
from ostraka.core.task import Commons, Task
from ostraka.core.update import Update
from ostraka.store import codec
from ostraka.testing.stage import Killed, Killer
from tests.core.toy_nets import Layered

CUDA, META = torch.device("cuda"), torch.device("meta")


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many numbers every move to the meta device took along."""
    counts: list[int] = []
    usual = torch.Tensor.to

    def to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        found = usual(tensor, *args, **kwargs)
        if found.device == META:
            counts.append(tensor.numel())
        return found

    monkeypatch.setattr(torch.Tensor, "to", to)
    return counts


def test_a_party_takes_its_own_rows_along_and_no_others(moved: list[int]) -> None:
    """Three of a thousand samples of 2 x 5: 30 numbers and 3 labels, not 10,000 and 1,000."""
    everything = Samples(torch.rand(1000, 2, 5), torch.arange(1000))
    parties = Parties.of(everything, [torch.tensor([7, 1, 5]), torch.arange(10, 1000)])
    party = parties[0].at_work(NoProgress(), "meta")
    assert moved == [30, 3]
    assert (party.samples.x.device, party.samples.labels.device) == (META, META)
    assert (len(party.samples), party.samples.rows) == (3, None)


def test_samples_that_are_there_already_are_left_alone() -> None:
    samples = Samples(torch.rand(4, 2), torch.arange(4), rows=torch.tensor([2]))
    assert samples.to("cpu") is samples
    far = samples.to("meta")
    assert far.to("meta") is far


def test_compact_samples_are_the_same_samples() -> None:
    samples = Samples(torch.arange(10.0)[:, None], torch.arange(10), rows=torch.tensor([4, 0, 4]))
    compact = samples.compact()
    assert compact.inputs().flatten().tolist() == [4, 0, 4]
    assert compact.labels.tolist() == [4, 0, 4]
    assert len(compact.x) == 3
    assert compact.compact() is compact
    assert samples.unlabelled().compact().y is None


def test_a_task_takes_the_samples_of_its_commons_along(moved: list[int]) -> None:
    public = Samples(torch.rand(50, 2), rows=torch.arange(3))
    shared = Samples(torch.rand(4, 2), torch.arange(4))
    commons = Commons(public, shared, prior=torch.ones(2))
    task = Task(("a", "b"), (2,), Recipe("mlp"), commons)
    there = task.to("meta").commons
    assert moved == [6, 8, 4]
    assert there.public is not None
    assert there.shared is not None
    assert (there.public.x.device, there.shared.labels.device) == (META, META)
    assert there.prior is commons.prior
    assert task.to("cpu") == task
    assert replace(task, commons=Commons()).to("meta").commons == Commons()


class Card:
    """A device that is none: a generator of its own, as torch.cuda has one."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(1)

    def get_rng_state(self) -> Tensor:
        return self.generator.get_state()

    def set_rng_state(self, state: Tensor) -> None:
        self.generator.set_state(state)

    def draw(self) -> float:
        return float(torch.rand((), generator=self.generator))


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    """Every device has this generator beside the CPU's."""
    made = Card()
    monkeypatch.setattr(seeds, "device_module", lambda device: made)
    return made


def test_states_are_those_of_the_cpu_and_of_the_device(card: Card) -> None:
    before = random_states(CUDA)
    drawn = card.draw(), float(torch.rand(()))
    assert before.keys() == {"cpu", "cuda"}
    set_random_states(before, CUDA)
    assert (card.draw(), float(torch.rand(()))) == drawn


def test_states_of_another_device_are_left_out(card: Card) -> None:
    """A run that went on elsewhere: the CPU's generator is all that both have."""
    states = {"cpu": torch.get_rng_state()}
    expected = Card().draw()
    set_random_states(states, CUDA)
    assert card.draw() == expected


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_some_devices_have_no_generator_of_their_own(device: str) -> None:
    assert random_states(torch.device(device)).keys() == {"cpu"}


def test_a_devices_generator_is_torchs() -> None:
    assert seeds.device_module(CUDA) is torch.cuda
    assert seeds.device_module(torch.device("mps")) is torch.mps


def test_seeding_leaves_the_devices_generator_as_it_was(card: Card) -> None:
    expected = Card().draw()
    with seeded(3, "anything", device=CUDA):
        card.draw()
    assert card.draw() == expected


class Noisy(Objective):
    """Draws from the device's own generator, as dropout does there."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return F.cross_entropy(net(batch.x), batch.y) * self.card.draw()

    def scores(self, net: Net, x: Tensor) -> Scores: ...


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_interrupted_training_goes_on_with_the_devices_generator(card: Card, limit: int) -> None:
    samples = Samples(torch.rand(12, 3), torch.arange(12) % 2)

    def train(progress: Any) -> bytes:
        card.generator.manual_seed(1)
        net, budget = Layered(nn.Identity()), Budget(epochs=4, batch=3)
        return codec.encode(fit(net, None, samples, Noisy(card), budget, 0, progress).params)

    straight, saved = train(None), dict[str, bytes]()
    with pytest.raises(Killed):
        train(Killer(saved, limit))
    assert train(Killer(saved, 1000)) == straight


def test_an_optimisers_saved_tensors_go_where_its_parameters_are() -> None:
    weight = nn.Parameter(torch.zeros(2, device="meta"))
    update = Update([weight], "adam", 0.9, 0.0)
    update.load({"0": {"exp_avg": torch.ones(2), "step": torch.ones(())}})
    assert {tensor.device for tensor in update.buffers[0].values()} == {META}
