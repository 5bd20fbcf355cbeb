"""FedOS's objective: its loss by hand, natively and by torch; what it adds to a party's samples."""

from dataclasses import replace
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor

from ostraka.core.fit import Budget, fit
from ostraka.core.net import Net, Params
from ostraka.core.objective import Batch, Objective
from ostraka.core.samples import Samples, View
from ostraka.core.seeds import torch_rng
from ostraka.errors import ConfigError, DataError, NeedError
from ostraka.nets.generator import draw_images
from ostraka.nets.lenet5 import lenet5
from ostraka.nets.native.library import available, disabled
from ostraka.objectives.fedos import Kept, UnknownClass
from ostraka.objectives.open_voting import DESTROYED, OpenVoting
from ostraka.testing.stage import untrained_generator
from tests.core.test_fit import Killed, Killer
from tests.objectives.passing_net import Passing

RNG = torch.Generator()
GENERATOR = replace(untrained_generator(), low=0.0)
GIVEN = UnknownClass().drawing_from(GENERATOR)


def own_samples(count: int = 10, side: int = 8) -> Samples:
    rng = torch_rng(0)
    x = torch.randint(0, 256, (count, 1, side, side), generator=rng, dtype=torch.uint8)
    view = View(scale=1 / 255, mean=(0.3,), std=(0.2,))
    return Samples(x, torch.arange(count) % 2, view=view)


def lenet() -> Net:
    torch.manual_seed(0)
    net = lenet5((1, 28, 28), 2, True)
    net.shape = (1, 28, 28)
    return net


@pytest.mark.parametrize(
    ("terms", "loss"),
    [
        # class 0 has logits (log 3, 0, 0): p = 3/5; class 1 and unknown have (0, 0, 0): p = 1/3
        ("sum", (log(5 / 3) + log(3)) / 2 + 2 * log(3)),
        ("weighted-mean", (log(5 / 3) + log(3) + 2 * log(3) + 2 * log(3)) / 6),
    ],
)
def test_the_loss_by_hand(terms: Any, loss: float) -> None:
    """Two own and two generated samples, W_U = 2."""
    x = torch.zeros(4, 3)
    x[2, 0] = log(3)
    batch = Batch(x, torch.tensor([2, 1, 0, 2]))
    found = UnknownClass(w_unknown=2.0, terms=terms).loss(Passing(2), batch, RNG)
    assert found.item() == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("terms", ["sum", "weighted-mean"])
@pytest.mark.parametrize("labels", [[0, 1], [2, 2]])
def test_a_batch_of_one_side_has_one_term(terms: Any, labels: list[int]) -> None:
    found = UnknownClass(terms=terms).loss(
        Passing(2), Batch(torch.zeros(2, 3), torch.tensor(labels)), RNG
    )
    assert found.item() == pytest.approx(log(3))


@pytest.mark.skipif(not available(), reason="no native kernel here")
@pytest.mark.parametrize("terms", ["sum", "weighted-mean"])
@pytest.mark.parametrize("labels", [[2, 0, 1, 2, 0], [0, 1, 1, 0, 1], [2, 2, 2, 2, 2]])
def test_natively_and_by_torch_the_same(terms: Any, labels: list[int]) -> None:
    objective = UnknownClass(w_unknown=1.7, terms=terms)
    batch = Batch(torch.randn(5, 1, 28, 28, generator=torch_rng(1)), torch.tensor(labels))
    found = []
    for native in (True, False):
        net = lenet()
        if native:
            loss = objective.loss(net, batch, RNG)
            loss.backward()
        else:
            with disabled():
                loss = objective.loss(net, batch, RNG)
                loss.backward()
        found.append([loss.detach(), *(p.grad for p in net.parameters())])
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_what_is_trained_on() -> None:
    """round(0.6 * 9) = 5 generated samples behind the party's own, stored as bytes, labelled with
    the number behind the last class, and seen by the same view.
    """
    own = own_samples(12).take(torch.arange(9))
    both = GIVEN.material(Passing(2), own, seed=3, epoch=0)
    assert both.labels.tolist() == [*own.labels.tolist(), 2, 2, 2, 2, 2]
    assert torch.equal(both.stored(slice(0, 9)), own.stored())
    assert both.x.dtype == torch.uint8
    assert both.x[9:].float().std() > 0
    assert both.view == own.view


def test_once_or_anew() -> None:
    """Once: the same in every epoch, and in every round of one seed. Anew: others in each epoch,
    again the same for the same seed.
    """

    def drawn(objective: Objective, seed: int, epoch: int) -> list[int]:
        made = objective.material(Passing(2), own_samples(), seed, epoch).x[10:]
        return made.flatten().tolist()

    assert drawn(GIVEN, 1, 0) == drawn(GIVEN, 1, 1) != drawn(GIVEN, 2, 0)
    assert drawn(GIVEN.drawing_by(9), 1, 0) == drawn(GIVEN.drawing_by(9), 2, 5)
    anew = UnknownClass(draw="epoch").drawing_from(GENERATOR)
    assert anew.renews
    assert not GIVEN.renews
    assert drawn(anew, 1, 0) == drawn(anew, 1, 0) != drawn(anew, 1, 1)


def test_what_is_kept_is_bounded() -> None:
    kept, made = Kept(most_bytes=20), list[str]()

    def make(key: str, count: int = 8) -> None:
        def fresh() -> Tensor:
            made.append(key)
            return torch.zeros(count, dtype=torch.uint8)

        kept.get(key, fresh)

    for key in ("a", "b", "a", "c", "a", "b"):
        make(key)
    assert made == ["a", "b", "c", "b"], "b was unused for longest when c came"
    assert kept.bytes == 16
    make("large", 21)
    assert kept.bytes <= 20


@pytest.mark.parametrize("kill_at", [1, 2, 3])
def test_interrupted_inside_an_epoch_it_goes_on_with_the_same_samples(kill_at: int) -> None:
    """Batches of 4 out of 16: a kill in the second epoch needs that epoch's generated samples."""
    objective = UnknownClass(draw="epoch").drawing_from(GENERATOR)
    budget = Budget(epochs=2, batch=4, lr=0.1)

    def trained(progress: Any) -> Params:
        torch.manual_seed(0)
        net = lenet()
        return fit(net, None, own_samples(10, 28), objective, budget, 1, progress).params

    straight, kept = trained(None), dict[str, bytes]()
    with pytest.raises(Killed):
        trained(Killer(kept, kill_at))
    resumed = trained(Killer(kept, 99))
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_every_epoch_is_trained_on_its_own_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, usual = list[int](), UnknownClass.material

    def material(self: UnknownClass, net: Net, own: Samples, seed: int, epoch: int) -> Samples:
        asked.append(epoch)
        return usual(self, net, own, seed, epoch)

    monkeypatch.setattr(UnknownClass, "material", material)
    budget = Budget(epochs=3, batch=8)
    for draw, epochs in (("once", [0]), ("epoch", [0, 1, 2])):
        objective = replace(UnknownClass(), draw=draw).drawing_from(GENERATOR)
        asked.clear()
        fit(lenet(), None, own_samples(10, 28), objective, budget, 1)
        assert asked == epochs


def test_it_learns_to_say_unknown_to_what_is_generated() -> None:
    """After training, generated samples score more unknown than the party's own."""
    dim = replace(GENERATOR, high=0.3)
    bright = Samples(
        torch.full((60, 1, 28, 28), 200, dtype=torch.uint8), torch.zeros(60, dtype=torch.long)
    )
    bright = replace(bright, view=View(scale=1 / 255))
    objective, net = UnknownClass().drawing_from(dim), lenet()
    fit(net, None, bright, objective, Budget(epochs=20, batch=32, lr=0.01), 0)
    own = objective.scores(net, bright.inputs(slice(0, 5)))
    made = objective.material(net, bright, 0, 0).take(slice(60, 65))
    strange = objective.scores(net, made.inputs())
    assert (strange.open == -1).all()
    assert (own.open == 0).all()
    assert (strange.closed < 2).all(), "the closed answer is never unknown"


def test_each_epoch_has_its_own_material() -> None:
    anew = UnknownClass(draw="epoch").drawing_from(GENERATOR)
    assert anew.renews
    assert len(anew.material(Passing(2), own_samples(), 0, 0)) == 16


def test_no_generated_samples_need_no_generator() -> None:
    none = UnknownClass(f_unknown=0.0)
    assert none.draws_from == ""
    assert not replace(none, draw="epoch").renews
    own = own_samples()
    assert none.material(Passing(2), own, 0, 0) is own
    none.check_samples("table", (4,))


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(NeedError, match="which it was not given; a run gives it"):
        UnknownClass().material(Passing(2), own_samples(), 0, 0)
    with pytest.raises(DataError, match="a generator makes images, and these samples are of"):
        UnknownClass().check_samples("table", (4,))
    with pytest.raises(DataError, match="at least 8x8"):
        UnknownClass().check_samples("image", (1, 6, 8))
    with pytest.raises(ConfigError, match="terms"):
        UnknownClass(terms="mean")  # type: ignore[arg-type]


def test_outliers_of_a_generator_are_seen_as_the_partys_samples_are() -> None:
    """In place of destroyed samples: one for each, in the same view."""
    objective = OpenVoting(outliers="generator", steps=1).drawing_from(GENERATOR)
    own = own_samples()
    batch = Batch(own.inputs(), own.labels, view=own.view)
    made = objective.prepare(batch, torch_rng(5)).extra[DESTROYED]
    assert made.shape == batch.x.shape
    drawn = draw_images(GENERATOR, 10, (1, 8, 8), torch_rng(5))
    assert torch.allclose(made * 0.2 + 0.3, drawn, atol=1e-5)
    assert OpenVoting(outliers="generator:mine.safetensors").draws_from == "mine.safetensors"
    assert objective.draws_from == "auto"
    assert OpenVoting(outliers="generator:ready").draws_from == "ready"
    assert OpenVoting(outliers="generator", w_destroyed=0, w_adversarial=0).draws_from == ""
    with pytest.raises(DataError, match="a generator makes images"):
        OpenVoting(outliers="generator").check_samples("table", (9,))
    with pytest.raises(ConfigError, match="unknown destruction"):
        OpenVoting(outliers="generators")
