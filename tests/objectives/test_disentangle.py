"""FedPD's masks: importance by hand and against finite differences,
thresholds, and what changes them.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net, Recipe, params_of
from ostraka.core.objective import Batch
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.objectives.disentangle import importances, top_mask
from ostraka.objectives.proser import HIDDEN_LOGIT, Proser, proser_loss

SECOND_ONLY = Proser(w_second=1.0, w_mix=0.0)


class Two(Net):
    """Logits (a x, b x, c x) of one number x."""

    def __init__(self) -> None:
        super().__init__(2, True)
        self.row = nn.Linear(1, 3, bias=False)

    def early(self, x: Tensor) -> Tensor:
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        logits: Tensor = self.row(embedding)
        return logits


def test_importance_by_hand() -> None:
    """One sample x = 1 of class 0, logits w = (1, 2, 0).

    With softmax p, dL_close/dw = p - (1, 0, 0). In L_open the true class is hidden and unknown is
    the answer: with q the softmax of (2, 0), it is (0, q_1, q_2 - 1).
    """
    net, w = Two(), torch.tensor([1.0, 2.0, 0.5])
    net.row.weight.data = w[:, None].clone()
    samples = Samples(torch.ones(1, 1), torch.tensor([0]))
    close, open_ = importances(net, ["row.weight"], samples, SECOND_ONLY, 8, torch_rng(0))
    p, q = w.softmax(0), w[1:].softmax(0)
    first = torch.tensor([p[0] - 1, p[1], p[2]])
    second = torch.tensor([0.0, q[0], q[1] - 1])
    torch.testing.assert_close(close["row.weight"][:, 0], (first * w).abs())
    torch.testing.assert_close(open_["row.weight"][:, 0], (second * w).abs())
    close, open_ = importances(
        net, ["row.weight"], samples, SECOND_ONLY, 8, torch_rng(0), kind="gradient"
    )
    torch.testing.assert_close(close["row.weight"][:, 0], first.abs())
    torch.testing.assert_close(open_["row.weight"][:, 0], second.abs())


def test_importance_is_the_change_of_the_loss_when_a_small_weight_is_removed() -> None:
    """Equation 2, which equation 3 approximates: the losses written out here, a weight set to 0."""
    net = Recipe("mlp", {"hidden": [6]}).build_net((4,), 3, True, 0)
    samples = Samples(torch.randn(20, 4, generator=torch_rng(1)), torch.arange(20) % 3)
    net.first.weight.data[2, 1] = 1e-3

    def losses() -> list[Tensor]:
        with torch.no_grad():
            logits = net(samples.x)
            hidden = logits.scatter(1, samples.labels[:, None], HIDDEN_LOGIT)
            return [
                F.cross_entropy(logits, samples.labels),
                F.cross_entropy(hidden, torch.full((20,), 3)),
            ]

    found = importances(
        net.double(), ["first.weight"], _double(samples), SECOND_ONLY, 20, torch_rng(0)
    )
    samples = _double(samples)
    before = losses()
    net.first.weight.data[2, 1] = 0.0
    for values, old, new in zip(found, before, losses(), strict=True):
        assert float(values["first.weight"][2, 1]) == pytest.approx(abs(float(old - new)), rel=2e-2)


def _double(samples: Samples) -> Samples:
    class Exact(Samples):
        def inputs(self, index: object = None, rng: object = None) -> Tensor:
            return self.x if index is None else self.x[index]  # type: ignore[index]

    return Exact(samples.x.double(), samples.y)


def test_batches_are_averaged_by_their_size_in_absolute_value() -> None:
    """Opposite gradients of two samples do not cancel between batches, but they do inside one."""
    net = Two()
    net.row.weight.data = torch.ones(3, 1)
    samples = Samples(torch.tensor([[1.0], [-1.0]]), torch.tensor([0, 0]))
    apart, _ = importances(net, ["row.weight"], samples, SECOND_ONLY, 1, torch_rng(0))
    joined, _ = importances(net, ["row.weight"], samples, SECOND_ONLY, 2, torch_rng(0))
    torch.testing.assert_close(apart["row.weight"][:, 0], torch.tensor([2 / 3, 1 / 3, 1 / 3]))
    torch.testing.assert_close(joined["row.weight"], torch.zeros(3, 1))
    three = Samples(torch.tensor([[1.0], [1.0], [4.0]]), torch.tensor([0, 0, 0]))
    mean, _ = importances(net, ["row.weight"], three, SECOND_ONLY, 2, torch_rng(0))
    torch.testing.assert_close(mean["row.weight"][:, 0], torch.tensor([4 / 3, 2 / 3, 2 / 3]))


def test_the_last_batch_alone() -> None:
    net = Two()
    net.row.weight.data = torch.ones(3, 1)
    samples = Samples(torch.tensor([[1.0], [4.0]]), torch.tensor([0, 0]))
    found = {
        round(
            float(
                importances(
                    net,
                    ["row.weight"],
                    samples,
                    SECOND_ONLY,
                    1,
                    torch_rng(s),
                    mask_from="last-batch",
                )[0]["row.weight"][0, 0]
            ),
            4,
        )
        for s in range(20)
    }
    assert found == {round(2 / 3, 4), round(8 / 3, 4)}


def test_mixing_counts_in_the_open_part_only_and_the_network_is_left_as_it_was() -> None:
    net = Recipe("digits", {"width": 0.05}).build_net((1, 8, 8), 3, True, 0)
    before = params_of(net)
    samples = Samples(torch.randn(12, 1, 8, 8, generator=torch_rng(1)), torch.arange(12) % 3)
    names = [layer.weight for layer in net.anatomy()]
    without = importances(net, names, samples, SECOND_ONLY, 12, torch_rng(0))
    mixed = importances(net, names, samples, Proser(1.0, 1.0), 12, torch_rng(0))
    alone = importances(net, names, samples, Proser(0.0, 0.0), 12, torch_rng(0))
    torch.testing.assert_close(mixed[0], without[0])
    assert all(not torch.allclose(mixed[1][name], without[1][name]) for name in names)
    assert all(not alone[1][name].any() for name in names)
    assert all(torch.equal(tensor, before[name]) for name, tensor in params_of(net).items())
    assert all(p.grad is None for p in net.parameters())


def test_masks_take_the_largest_of_each_layer_or_of_all() -> None:
    values = {"a": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "b": torch.tensor([10.0, 20.0])}
    assert top_mask(values, 0.5)["a"].tolist() == [[False, False], [True, True]]
    assert top_mask(values, 0.5)["b"].tolist() == [False, True]
    network = top_mask(values, 0.5, "network")
    assert (network["a"].tolist(), network["b"].tolist()) == (
        [[False, False], [False, True]],
        [True, True],
    )
    assert top_mask(values, 0.25)["a"].tolist() == [[False, False], [False, True]]
    assert all(mask.all() for mask in top_mask(values, 1.0).values())


def test_weights_of_no_importance_are_in_no_mask() -> None:
    assert top_mask({"a": torch.tensor([0.0, 0.0, 0.0, 1.0])}, 0.5)["a"].tolist() == [
        False,
        False,
        False,
        True,
    ]
    assert top_mask({"a": torch.tensor([0.0, 1.0])}, 1.0)["a"].tolist() == [False, True]
    assert not top_mask({"a": torch.zeros(5)}, 0.9)["a"].any()


def test_importance_is_that_of_the_losses_as_they_are_trained() -> None:
    """One batch through the late layers together, as PROSER trains, gives the same gradients."""
    objective, names = Proser(0.7, 0.3), ["conv1.weight", "conv3.weight", "fc2.weight"]
    net = Recipe("digits", {"width": 0.1}).build_net((1, 8, 8), 4, True, 3).eval()
    x, y = torch.rand(9, 1, 8, 8, generator=torch_rng(1)), torch.arange(9) % 4
    close, open_ = importances(net, names, Samples(x, y), objective, 9, torch_rng(5))

    rng = torch_rng(5)
    rows = torch.randperm(9, generator=rng)
    part = Batch(x[rows], y[rows])
    logits, mixed = objective.outputs(net, part, rng)
    assert len(mixed) > 0
    closed = F.cross_entropy(logits, part.y)
    opened = proser_loss(logits, part.y, mixed, 0.7, 0.3) - closed
    weights = [net.get_parameter(name) for name in names]
    for loss, found in ((closed, close), (opened, open_)):
        gradients = torch.autograd.grad(loss, weights, retain_graph=True)
        for name, weight, gradient in zip(names, weights, gradients, strict=True):
            torch.testing.assert_close(
                found[name], (weight * gradient).abs().detach(), rtol=1e-3, atol=1e-7
            )
