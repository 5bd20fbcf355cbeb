"""Terms beside an objective, by hand: the anchor, the drift correction, and class weights."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from ostraka.core.fit import Budget, fit
from ostraka.core.learning import Penalty
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.private import Noise
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError
from ostraka.methods.fedir import ClassWeighted, importance
from ostraka.methods.fedprox import anchored
from ostraka.methods.scaffold import corrected
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.dias import DIAS

RNG = torch.Generator()


@dataclass(frozen=True)
class Nothing(Objective):
    """A loss of 3 that no weight changes."""

    chunk: ClassVar[int] = 7

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return torch.tensor(3.0)


def test_a_part_of_a_batch_is_of_its_kind() -> None:
    whole = Batch(torch.arange(3.0), torch.arange(3), kind="table").adding(
        twice=torch.arange(6)[::2]
    )
    part = whole.cut(1, 3)
    assert (part.kind, part.x.tolist(), part.y.tolist()) == ("table", [1.0, 2.0], [1, 2])
    assert part.extra["twice"].tolist() == [2, 4]


def small_net() -> Net:
    return Recipe("mlp", {"hidden": [2]}).build_net((2,), 2, False, seed=1)


def gradients(net: Net, penalty: Penalty) -> tuple[float, dict[str, Tensor]]:
    batch = Batch(torch.ones(2, 2), torch.tensor([0, 1]))
    loss = Nothing().loss(net, batch, RNG) + penalty(net)
    loss.backward()
    return loss.item(), {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


def test_the_anchor_pulls_back() -> None:
    """Every weight is 2 above the anchor and mu = 0.5: the term is 0.25 * 4 * count,
    each gradient 0.5 * 2 = 1.
    """
    net = small_net()
    anchor = {name: p.detach() - 2 for name, p in net.named_parameters()}
    count = sum(p.numel() for p in net.parameters())
    loss, found = gradients(net, anchored(anchor, mu=0.5))
    assert loss == pytest.approx(3 + 0.25 * 4 * count)
    assert len(found) == len(anchor)
    assert all(torch.allclose(gradient, torch.ones_like(gradient)) for gradient in found.values())


def test_the_correction_is_added_to_the_gradient() -> None:
    """<c, w> has the gradient c, to the bit; a tensor without a correction gets none."""
    net = small_net()
    correction = {"last.bias": torch.tensor([0.25, -3.0])}
    loss, found = gradients(net, corrected(correction))
    assert loss == pytest.approx(
        3 + float((net.get_parameter("last.bias").detach() * correction["last.bias"]).sum())
    )
    assert found.keys() == {"last.bias"}
    assert torch.equal(found["last.bias"], correction["last.bias"])


class PenalisedDIAS(DIAS):
    """The term added to the loss by hand."""

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        return super().loss(net, batch, rng) + corrected({"last.bias": torch.ones(2)})(net)


def test_a_penalty_is_added_to_every_loss_and_nothing_else_changes() -> None:
    """To the bit, with an objective that trains a helper too."""
    samples, budget = Samples(torch.rand(9, 2), torch.arange(9) % 2), Budget(epochs=2, batch=4)
    penalty = corrected({"last.bias": torch.ones(2)})
    by_fit = fit(small_net(), None, samples, DIAS(), budget, 0, penalty=penalty)
    by_hand = fit(small_net(), None, samples, PenalisedDIAS(), budget, 0)
    assert by_fit.losses == by_hand.losses
    for name, tensor in by_hand.params.items():
        assert torch.equal(tensor, by_fit.params[name])


def test_a_private_training_takes_no_penalty() -> None:
    samples, noise = Samples(torch.rand(4, 2), torch.arange(4) % 2), Noise(1.0, 1.0)
    with pytest.raises(ConfigError, match="takes no penalty"):
        fit(small_net(), None, samples, CrossEntropy(), Budget(), 0, noise=noise, penalty=len)  # type: ignore[arg-type]


def test_importance_by_hand() -> None:
    """p = (1/2, 1/4, 1/4), q = (1/4, 3/4, 0): weights 2, 1/3,
    and 0 for the class that the party lacks.
    """
    weights = importance(torch.tensor([0.5, 0.25, 0.25]), torch.tensor([1, 3, 0]))
    assert weights.tolist() == pytest.approx([2.0, 1 / 3, 0.0])


def test_weights_are_normalised_within_a_batch() -> None:
    """Samples of classes 0, 1, 1 with weights 2, 1, 1: (2 l_0 + l_1 + l_2) / 4.

    Twice the weights change nothing.
    """
    net, batch = small_net(), Batch(torch.randn(3, 2), torch.tensor([0, 1, 1]))
    single = [CrossEntropy().loss(net, batch.cut(i, i + 1), RNG).item() for i in range(3)]
    expected = (2 * single[0] + single[1] + single[2]) / 4
    for scale in (1.0, 2.0):
        objective = ClassWeighted(scale * torch.tensor([2.0, 1.0]))
        assert objective.loss(net, batch, RNG).item() == pytest.approx(expected, rel=1e-5)


def test_equal_weights_are_cross_entropy_and_no_weight_is_no_loss() -> None:
    net, batch = small_net(), Batch(torch.randn(3, 2), torch.tensor([0, 1, 1]))
    plain = CrossEntropy(smoothing=0.1).loss(net, batch, RNG).item()
    assert ClassWeighted(torch.full((2,), 0.3), 0.1).loss(net, batch, RNG).item() == pytest.approx(
        plain, rel=1e-5
    )
    assert ClassWeighted(torch.zeros(2)).loss(net, batch, RNG).item() == 0.0
