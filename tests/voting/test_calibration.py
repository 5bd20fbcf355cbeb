"""What a party measures on its own samples."""

import torch

from ostraka.core.net import Recipe
from ostraka.core.samples import Samples
from ostraka.objectives.open_voting import OpenVoting
from ostraka.voting.calibration import _places, log_odds, measure, typicality


def test_doubt_is_the_mean_log_odds_of_own_samples() -> None:
    torch.manual_seed(0)
    net = Recipe("mlp", {"hidden": [8, 4]}).build_net((6,), 3, True, seed=1)
    samples = Samples(torch.randn(20, 6), torch.arange(20) % 2)
    numbers = measure(net, OpenVoting(outliers="none"), samples, typicality=False)
    with torch.no_grad():
        expected = log_odds(net(samples.inputs())).mean().item()
    assert abs(numbers["doubt"] - expected) < 1e-6
    assert set(numbers) == {"doubt"}


def test_own_samples_are_usual_and_far_ones_are_not() -> None:
    """Two clouds: own samples have typicality 0 on average;
    10 standard deviations away it is far below.
    """
    torch.manual_seed(0)
    labels = torch.arange(400) % 2
    cloud = torch.randn(400, 5) + 8.0 * labels.unsqueeze(1)
    places = _places(cloud, labels, classes=3)
    standing = typicality(cloud, places)
    own = standing[torch.arange(400), labels]
    assert abs(own.mean().item()) < 0.1
    assert typicality(cloud[:1] + 50.0, places)[0, :2].max().item() < own.min().item() - 5
    assert standing[:, 2].abs().max().item() == 0, (
        "a class that the party does not have says nothing"
    )


def test_distance_is_mahalanobis() -> None:
    """Against the textbook formula, one sample and class at a time,
    with the shrunk pooled covariance.
    """
    torch.manual_seed(2)
    labels = torch.arange(60) % 2
    cloud = torch.randn(60, 4) @ torch.randn(4, 4) + labels.unsqueeze(1)
    places = _places(cloud, labels, classes=2)
    means = [cloud[labels == c].mean(0) for c in (0, 1)]
    rest = torch.cat([cloud[labels == c] - means[c] for c in (0, 1)])
    covariance = rest.T @ rest / 60
    shrunk = 0.9 * covariance + 0.1 * covariance.trace() / 4 * torch.eye(4)
    x = torch.randn(4)
    for c in (0, 1):
        gap = x - means[c]
        distance = (gap @ torch.linalg.solve(shrunk, gap)).sqrt()
        gaps = [v - means[c] for v in cloud[labels == c]]
        usual = torch.stack([(g @ torch.linalg.solve(shrunk, g)).sqrt() for g in gaps])
        expected = -(distance - usual.mean()) / (usual.std() + 0.2)
        torch.testing.assert_close(
            typicality(x.unsqueeze(0), places)[0, c], expected, rtol=1e-3, atol=1e-3
        )


def test_from_five_samples_a_class_has_its_place() -> None:
    """Four say too little of where it lies; one more is enough."""
    labels = torch.tensor([0] * 4 + [1] * 5 + [2] * 6)
    cloud = torch.randn(15, 3, generator=torch.Generator().manual_seed(0))
    assert _places(cloud, labels, classes=4)["placed"].tolist() == [False, True, True, False]
