"""SSB: the score that softmax throws away, smoothing by hand,
and augmentation of training samples only.
"""

from dataclasses import replace

import pytest
import torch

from ostraka.core.augmentation import augmentation
from ostraka.core.fit import Budget, fit
from ostraka.core.net import Recipe
from ostraka.core.objective import Batch
from ostraka.core.predictor import closed_scores
from ostraka.core.samples import Samples
from ostraka.errors import ConfigError, DataError
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.objectives.ssb import MaxLogit
from tests.objectives.passing_net import Passing


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_weak_answer_is_unknown_even_where_softmax_is_sure() -> None:
    """Logits (1, -6, -6) and (9, 4, 4): the first has the larger probability,
    the second the larger logit.
    """
    x = torch.tensor([[1.0, -6.0, -6.0], [9.0, 4.0, 4.0]])
    scores, plain = MaxLogit().scores(Passing(3), x), closed_scores(x)
    assert scores.unknown.tolist() == [-1.0, -9.0]
    assert plain.unknown[0] < plain.unknown[1]
    assert torch.equal(scores.known, x)
    assert scores.threshold == float("inf")


def test_the_loss_is_smoothed_cross_entropy() -> None:
    batch = Batch(torch.randn(5, 3, generator=rng()), torch.tensor([0, 1, 2, 0, 1]))
    target = 0.7 * torch.eye(3)[batch.y] + 0.1
    expected = -(target * batch.x.log_softmax(dim=1)).sum(dim=1).mean()
    torch.testing.assert_close(MaxLogit(smoothing=0.3).loss(Passing(3), batch, rng()), expected)
    assert torch.equal(
        MaxLogit().loss(Passing(3), batch, rng()), CrossEntropy().loss(Passing(3), batch, rng())
    )


def test_images_are_augmented_and_rows_are_not() -> None:
    images = Batch(torch.rand(16, 1, 8, 8, generator=rng()), torch.zeros(16, dtype=torch.long))
    changed = MaxLogit().prepare(images, rng(1))
    assert torch.equal(changed.x, augmentation("rand-augment")(images.x, rng(1)))
    assert torch.equal(MaxLogit(augment="none").prepare(images, rng(1)).x, images.x)
    rows = Batch(torch.rand(16, 8, generator=rng()), images.y, kind="table")
    assert torch.equal(MaxLogit().prepare(rows, rng(1)).x, rows.x)
    sound = replace(images, kind="sound")
    assert torch.equal(MaxLogit().prepare(sound, rng(1)).x, changed.x)


def test_an_augmentation_that_does_not_suit_the_samples_is_refused_beforehand() -> None:
    flips = MaxLogit(augment="pad-crop-flip:pad=2")
    flips.check_samples("image", (3, 32, 32))
    for kind in ("table", "sound"):
        with pytest.raises(
            DataError, match=rf"kind image; these are of the kind {kind}. .*: .*none"
        ):
            flips.check_samples(kind, (8,))
        MaxLogit().check_samples(kind, (8,))


@pytest.mark.parametrize("labels", [[1], [1, 1, 1]])
def test_one_sample_and_one_class_train_the_same_way_twice(labels: list[int]) -> None:
    samples = Samples(torch.rand(len(labels), 1, 16, 16, generator=rng()), torch.tensor(labels))
    runs = []
    for _ in range(2):
        net = Recipe("mlp").build_net((1, 16, 16), 3, unknown=False, seed=0)
        runs.append(fit(net, None, samples, MaxLogit(), Budget(epochs=3, batch=2), seed=1).params)
    assert all(
        torch.equal(runs[0][name], runs[1][name]) and runs[0][name].isfinite().all()
        for name in runs[0]
    )


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="'smoothing' is 2"):
        MaxLogit(smoothing=2.0)
    with pytest.raises(ConfigError, match="Did you mean 'rand-augment'"):
        MaxLogit(augment="rand-augmnt")
