"""OpenMax: the Weibull fit, the statistics, how they average, and the answer by hand."""

from math import exp, log

import pytest
import torch
from scipy.stats import weibull_min

from ostraka.core.net import Net
from ostraka.core.objective import Batch
from ostraka.core.params import average
from ostraka.core.predictor import closed_scores
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.openmax import OpenMax, fit_weibull, measure
from tests.objectives.passing_net import Passing


def told(
    objective: OpenMax, share: list[float], means: list[list[float]], tails: list[list[float]]
) -> Net:
    """A network whose statistics are given: shift, scale and shape of every tail."""
    net = Passing(len(share))
    objective.attach(net)
    shares = torch.tensor(share)
    parts = torch.tensor([[t, log(scale), 1 / shape] for t, scale, shape in tails])
    own = {
        "share": shares,
        "means": torch.tensor(means) * shares[:, None],
        "tails": parts * shares[:, None],
    }
    net.load_state_dict({f"objective.{k}": v for k, v in own.items()}, strict=False)
    return net


@pytest.mark.parametrize(("shape", "scale"), [(0.7, 3.0), (1.0, 0.01), (2.5, 40.0), (30.0, 1.2)])
def test_the_fit_finds_a_known_distribution(shape: float, scale: float) -> None:
    values = weibull_min.rvs(shape, scale=scale, size=20_000, random_state=1)
    found = fit_weibull(torch.tensor(values))
    assert float(found[0]) == pytest.approx(shape, rel=0.03)
    assert float(found[1]) == pytest.approx(scale, rel=0.03)


@pytest.mark.parametrize("size", [3, 20])
def test_the_fit_is_the_likeliest(size: int) -> None:
    values = weibull_min.rvs(1.7, scale=5, size=size, random_state=2)
    shape, _, scale = weibull_min.fit(values, floc=0)
    found = fit_weibull(torch.tensor(values))
    assert float(found[0]) == pytest.approx(shape, rel=1e-3)
    assert float(found[1]) == pytest.approx(scale, rel=1e-3)


def test_equal_values_give_the_steepest_curve() -> None:
    shape, scale = fit_weibull(torch.full((5,), 2.0))
    assert float(shape) == pytest.approx(1000, rel=1e-3)
    assert float(scale) == pytest.approx(2.0, rel=1e-3)


def test_the_answer_by_hand() -> None:
    """Logits (4, 1, -1), means (3, 0, 0), (0, 3, 0), (0, 0, 3), tails: shift 1,
    scale 2, shape 1; alpha 2.

    ||v - mu_1|| = sqrt(1 + 1 + 1), w_1 = 1 - exp(-(sqrt(3) - 1)/2), c_1 = 2/2 w_1 4;
    ||v - mu_2|| = sqrt(16 + 4 + 1), w_2 = 1 - exp(-(sqrt(21) - 1)/2), c_2 = 1/2 w_2 1;
    the third is not among the two.
    """
    objective = OpenMax(alpha=2)
    net = told(objective, [0.2, 0.3, 0.5], (3 * torch.eye(3)).tolist(), [[1, 2, 1]] * 3)
    scores = objective.scores(net, torch.tensor([[4.0, 1.0, -1.0]]))
    first, second = 4 * (1 - exp(-(3**0.5 - 1) / 2)), 0.5 * (1 - exp(-(21**0.5 - 1) / 2))
    assert scores.known[0].tolist() == pytest.approx([4 - first, 1 - second, -1], rel=1e-5)
    assert scores.unknown.item() == pytest.approx(
        first + second - max(4 - first, 1 - second), rel=1e-5
    )
    assert scores.logits()[0, -1].item() == pytest.approx(first + second, rel=1e-5)
    assert scores.threshold == 0


def test_a_far_away_input_that_softmax_is_sure_of_is_unknown() -> None:
    """The case OpenMax was made for: huge logits in the right direction, far beyond every mean."""
    objective = OpenMax()
    net = told(objective, [0.5, 0.5], [[5, 0], [0, 5]], [[1, 1, 2]] * 2)
    x = torch.tensor([[5.0, 0.5], [50.0, 0.0]])
    scores, plain = objective.scores(net, x), closed_scores(net(x))
    assert scores.unknown[0] < 0 < scores.unknown[1]
    assert plain.unknown[1] < plain.unknown[0]


def test_negative_logits_are_left_alone() -> None:
    objective = OpenMax()
    net = told(objective, [0.5, 0.5], [[9, 9], [9, 9]], [[0, 1, 2]] * 2)
    scores = objective.scores(net, torch.tensor([[-1.0, -2.0]]))
    assert scores.known.tolist() == [[-1.0, -2.0]]
    assert scores.unknown.item() == 1.0  # nothing is lost: 0 against the best logit, -1


def test_statistics_by_hand() -> None:
    """Class 0: five right samples on a line and a wrong one, tail 3; class 1:
    two right samples, too few.
    """
    right = torch.tensor([[10.0, 0], [11, 0], [12, 0], [13, 0], [19, 0]])
    logits = torch.cat([right, torch.tensor([[0.0, 5], [0, 3], [0, 4]])])
    found = measure(logits, torch.tensor([0, 0, 0, 0, 0, 0, 1, 1]), tail=3)
    assert found["share"].tolist() == [5 / 8, 0]
    assert (found["means"] / 0.625)[0].tolist() == [13, 0]
    # distances 3, 2, 1, 0, 6: the tail is 6, 3, 2
    shape, _, scale = weibull_min.fit([5.0, 2.0, 1.0], floc=0)
    assert (found["tails"] / 0.625)[0].tolist() == pytest.approx(
        [1, log(scale), 1 / shape], rel=1e-3
    )
    assert found["means"][1].tolist() == [0, 0]
    assert found["tails"][1].tolist() == [0, 0, 0]


def test_a_tail_is_at_most_a_fifth_of_a_class() -> None:
    """25 samples on a line have a tail of 5 whatever is asked beyond.

    With 250, a tail of 20 is one of 20.
    """
    line = torch.stack([torch.arange(250.0) + 1000, torch.zeros(250)], dim=1)
    for count, tail, size in [(25, 20, 5), (25, 4, 4), (250, 20, 20)]:
        found = measure(line[:count], torch.zeros(count, dtype=torch.long), tail)
        distances = (line[:count, 0] - line[:count, 0].mean()).abs().sort(descending=True).values
        assert found["tails"][0, 0].item() == pytest.approx(distances[size - 1].item() - 1)


def test_means_of_parties_are_means_over_all_their_samples() -> None:
    """Parties of 6, 40 and 5 samples with other classes; weighted by size as FedAvg does."""
    rng = torch.Generator().manual_seed(0)
    sizes, kinds = (6, 40, 5), ((0, 1), (0, 1, 2), (2,))
    labels = [torch.tensor(k)[torch.arange(n) % len(k)] for n, k in zip(sizes, kinds, strict=True)]
    logits = [torch.randn(len(y), 3, generator=rng) + 6 * torch.eye(3)[y] for y in labels]
    merged = average(
        [(measure(v, y, 20), float(len(y))) for v, y in zip(logits, labels, strict=True)]
    )
    everything, y = torch.cat(logits), torch.cat(labels)
    for label in range(3):
        expected = everything[y == label].mean(dim=0)
        torch.testing.assert_close(merged["means"][label] / merged["share"][label], expected)


def test_averaging_equal_parties_changes_no_answer() -> None:
    objective, x = OpenMax(), torch.randn(20, 2, generator=torch.Generator().manual_seed(1)) * 5
    net = told(objective, [0.5, 0.25], [[5, 0], [0, 5]], [[1, 2, 3], [2, 1, 5]])
    before = objective.scores(net, x)
    net.load_state_dict(average([(net.state_dict(), 3.0), (net.state_dict(), 5.0)]))
    torch.testing.assert_close(objective.scores(net, x).unknown, before.unknown)
    # and a party that measured nothing does not change it either
    blank = {
        k: torch.zeros_like(v) if k.startswith("objective") else v
        for k, v in net.state_dict().items()
    }
    net.load_state_dict(average([(net.state_dict(), 3.0), (blank, 5.0)]))
    torch.testing.assert_close(
        objective.scores(net, x).unknown, before.unknown, rtol=1e-4, atol=1e-5
    )


def test_a_class_that_nobody_measured_is_not_vouched_for() -> None:
    objective = OpenMax()
    net = told(objective, [0.5, 0.0], [[5, 0], [0, 5]], [[1, 1, 2]] * 2)
    scores = objective.scores(net, torch.tensor([[5.0, 0.0], [0.0, 5.0]]))
    assert scores.unknown[0] < 0 < scores.unknown[1]
    nothing = told(objective, [0.0, 0.0], [[0, 0]] * 2, [[0, 1, 1]] * 2)
    assert objective.scores(nothing, torch.tensor([[5.0, 1.0]])).unknown.isfinite().all()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_parties_of_few_samples_give_numbers(count: int) -> None:
    objective, net = OpenMax(), Passing(3)
    objective.attach(net)
    samples = Samples(torch.eye(3)[[0] * count] * 4, torch.zeros(count, dtype=torch.long))
    net.load_state_dict(objective.statistics(net, samples), strict=False)
    assert all(tensor.isfinite().all() for tensor in net.state_dict().values())
    assert (net.get_buffer("objective.share")[0] > 0) == (count >= 3)
    scores = objective.scores(
        net, 10 * torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    )
    assert scores.known.isfinite().all()
    assert scores.unknown.isfinite().all()


def test_training_is_plain_cross_entropy() -> None:
    net, batch = Passing(3), Batch(torch.randn(7, 3), torch.arange(7) % 3)
    rng = torch.Generator()
    assert torch.equal(OpenMax().loss(net, batch, rng), CrossEntropy().loss(net, batch, rng))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="'tail' is 2; it must be at least 3"):
        OpenMax(tail=2)
    with pytest.raises(ConfigError, match="'alpha' is 0"):
        OpenMax(alpha=0)
