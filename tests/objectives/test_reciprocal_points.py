"""RPL and ARPL: losses by hand, gradients against the formula written out,
and which way their scores point.
"""

from math import log

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.learner import build_net
from ostraka.core.net import Net, Recipe
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import closed_scores
from ostraka.core.task import Task
from ostraka.errors import ConfigError
from ostraka.objectives.rpl import ARPL, RPL, ConfusingARPL, decided, points_of

RNG = torch.Generator()


class Plane(Net):
    """Its embedding is its input, a point of the plane."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__(classes, unknown=False)
        self.shape = (2,)
        self.last = nn.Linear(2, classes)

    def early(self, x: Tensor) -> Tensor:
        return x

    def embed_late(self, hidden: Tensor) -> Tensor:
        return hidden

    def head(self, embedding: Tensor) -> Tensor:
        return self.last(embedding)


def placed(objective: Objective, points: list[list[float]], radius: float = 0.0) -> Net:
    net = Plane(len(points))
    objective.attach(net)
    own = points_of(net)
    with torch.no_grad():
        own.points.copy_(torch.tensor(points).unsqueeze(1).expand_as(own.points))
        own.radius.fill_(radius)
    return net


def test_rpl_by_hand() -> None:
    """f = (2, 0), P_0 = (0, 0), P_1 = (2, 2): d = (4/2, 4/2), so CE = log 2; d_y - R = 2 - 0.5."""
    net = placed(RPL(), [[0, 0], [2, 2]], radius=0.5)
    batch = Batch(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    assert RPL(w_radius=0.4).loss(net, batch, RNG).item() == pytest.approx(log(2) + 0.4 * 1.5**2)
    assert RPL(w_radius=0.0).loss(net, batch, RNG).item() == pytest.approx(log(2))


def test_arpl_by_hand() -> None:
    """The same place: f.P = (0, 4), so d = (2 - 0, 2 - 4) and CE = log(1 + e^-4);
    2 is 1.5 beyond R = 0.5.
    """
    net = placed(ARPL(), [[0, 0], [2, 2]], radius=0.5)
    batch = Batch(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    close = torch.tensor(-4.0).exp().log1p().item()
    assert ARPL(w_radius=0.4).loss(net, batch, RNG).item() == pytest.approx(close + 0.4 * 1.5)
    assert ARPL(w_radius=0.4, margin=1.0).loss(net, batch, RNG).item() == pytest.approx(
        close + 0.4 * 2.5
    )
    assert ARPL(temperature=2.0, w_radius=0).loss(net, batch, RNG).item() == pytest.approx(
        torch.tensor(-2.0).exp().log1p().item()
    )


def test_arpl_only_bounds_the_distance_from_above() -> None:
    """Within the radius, RPL still pulls outwards and ARPL does nothing."""
    batch = Batch(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    for objective, expected in ((RPL(w_radius=1.0), 9.0), (ARPL(w_radius=1.0), 0.0)):
        net = placed(objective, [[0, 0], [2, 2]], radius=5.0)
        without = type(objective)(w_radius=0.0).loss(net, batch, RNG)
        assert (objective.loss(net, batch, RNG) - without).item() == pytest.approx(expected)


@pytest.mark.parametrize("points", [1, 3])
def test_rpl_equals_the_formula_written_out(points: int) -> None:
    task = Task(("a", "b", "c"), (5,), Recipe("mlp", {"hidden": [7, 6]}))
    objective = RPL(points=points, temperature=0.5)
    net = build_net(task, objective, seed=1)
    batch = Batch(torch.randn(8, 5), torch.arange(8) % 3)
    own, f = points_of(net), net.embed(batch.x)
    distance = torch.stack([(f - p).square().mean(dim=1) for p in own.points.flatten(0, 1)], dim=1)
    distance = distance.view(8, 3, points).mean(dim=2)
    expected = F.cross_entropy(distance / 0.5, batch.y)
    expected = expected + 0.1 * (distance[range(8), batch.y] - own.radius).square().mean()
    loss = objective.loss(net, batch, RNG)
    torch.testing.assert_close(loss, expected)
    names = [n for n, _ in net.named_parameters() if not n.startswith("last")]
    wanted = torch.autograd.grad(expected, [net.get_parameter(n) for n in names])
    for name, gradient in zip(
        names, torch.autograd.grad(loss, [net.get_parameter(n) for n in names]), strict=True
    ):
        torch.testing.assert_close(gradient, wanted[names.index(name)], rtol=1e-3, atol=1e-6)
        assert gradient.abs().sum() > 0, name


@pytest.mark.parametrize(
    "objective", [RPL(), ARPL(), ConfusingARPL()], ids=lambda o: type(o).__name__
)
def test_near_the_reciprocal_points_is_unknown(objective: Objective) -> None:
    """Points at (1, 0) and (0, 1): class 0 lies towards -x, class 1 towards -y.

    Softmax is sure of a place between.
    """
    net = placed(objective, [[1, 0], [0, 1]])
    with torch.no_grad():
        net.get_submodule("last").weight.copy_(torch.tensor([[-1.0, 0], [0, -1]]))
        net.get_submodule("last").bias.zero_()
    x = torch.tensor([[-6.0, 0.0], [0.0, -6.0], [1.0, -1.0], [1.0, -9.0]])
    scores, plain = objective.scores(net, x), closed_scores(net(x))
    assert scores.closed.tolist() == [0, 1, 1, 1]
    assert scores.unknown[2] > scores.unknown[:2].max()
    assert scores.unknown[3] < scores.unknown[2]
    assert scores.threshold == float("inf")
    assert scores.logits()[:, :-1].softmax(dim=1).sum(dim=1).tolist() == pytest.approx([1] * 4)
    assert plain.unknown[2] < -0.85  # softmax is sure of what lies at the reciprocal points


def test_points_depend_on_the_seed_and_leave_the_network_as_it_was() -> None:
    task = Task(("a", "b"), (1, 28, 28), Recipe("lenet5", {"norm": "batch"}))
    nets = [build_net(task, ARPL(), seed) for seed in (1, 1, 2)]
    points = [points_of(net).points for net in nets]
    assert torch.equal(points[0], points[1])
    assert not torch.equal(points[0], points[2])
    assert points[0].shape == (2, 1, 84)
    assert nets[0].training
    assert nets[0].get_buffer("norm1.num_batches_tracked") == 0


@pytest.mark.parametrize("objective", [RPL(), ARPL()], ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("labels", [[1], [1, 1, 1]])
def test_one_sample_and_one_class_have_a_loss(objective: Objective, labels: list[int]) -> None:
    net = placed(objective, [[1, 0], [0, 1]])
    loss = objective.loss(net, Batch(torch.randn(len(labels), 2), torch.tensor(labels)), RNG)
    loss.backward()
    assert loss.isfinite()
    assert points_of(net).points.grad is not None


def test_decided_by_hand() -> None:
    assert decided(torch.zeros(3, 4)).item() == pytest.approx(1 / 4)
    assert decided(torch.tensor([[50.0, 0.0]])).item() == pytest.approx(1)
    half = torch.tensor([[log(3), 0.0]])  # shares 3/4 and 1/4
    assert decided(half).item() == pytest.approx(0.75**0.75 * 0.25**0.25)


def test_wrong_settings_are_refused() -> None:
    for make, words in [
        (lambda: RPL(points=0), "'points' is 0"),
        (lambda: RPL(w_radius=-1.0), "'w_radius' is -1"),
        (lambda: ARPL(temperature=0.0), "'temperature' is 0"),
        (lambda: ConfusingARPL(beta=-1.0), "'beta' is -1"),
        (lambda: ConfusingARPL(gan_lr=0.0), "'gan_lr' is 0"),
        (lambda: ConfusingARPL(width=0), "'width' is 0"),
    ]:
        with pytest.raises(ConfigError, match=words):
            make()
    bare = Plane()
    bare.shape = ()
    with pytest.raises(ConfigError, match="shape of its samples"):
        RPL().attach(bare)
