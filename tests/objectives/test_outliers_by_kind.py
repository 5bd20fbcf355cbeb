"""Members of one class that learn from their own outliers what they do not know: rows and sound."""

from dataclasses import replace

import pytest
import torch

from ostraka.core.fit import Budget, fit
from ostraka.core.net import Recipe
from ostraka.core.predictor import open_scores
from ostraka.core.samples import Samples, View
from ostraka.evaluation.metrics import auroc
from ostraka.objectives.adversarial import enhance
from ostraka.objectives.open_voting import OpenVoting


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def groups(count, seed):
    """Two groups of standardised rows: own ones around (1, 0, 1, 0, ...), others on the other side
    of the mean.
    """
    centre = torch.tensor([1.0, 0.0]).repeat(5)
    spread = 0.4 * torch.randn(2, count, 10, generator=rng(seed))
    return spread[0] + centre, spread[1] - centre


def tones(count, seed):
    """Recordings of a tone that rises through 12 bands, own ones, or falls, others."""
    frame = torch.arange(16.0)
    start = torch.rand(2, count, 1, generator=rng(seed)) * 3
    place = start + torch.stack([frame, 15 - frame])[:, None] * 0.55
    heard = (-((torch.arange(12.0) - place[..., None]) ** 2) / 2).exp()
    rising, falling = (heard - heard.mean()) / heard.std()
    return rising[:, None], falling[:, None]


def doubt(kind, made, outliers):
    """How well (AUROC) a member that has seen only own samples tells others from own ones."""
    own, _ = made(200, 1)
    samples = Samples(own, torch.zeros(len(own), dtype=torch.long), view=View(kind=kind))
    objective = OpenVoting(outliers=outliers, steps=2, size=0.005)
    net = Recipe("mlp", {"hidden": [32]}).build_net(own.shape[1:], 2, unknown=True, seed=0)
    params = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    net.load_state_dict(fit(net, params, samples, objective, Budget(epochs=25), seed=3).params)
    asked = torch.cat(made(200, 2))
    with torch.no_grad():
        unknown = open_scores(net.eval()(asked)).unknown
    return auroc(unknown, torch.arange(400) >= 200)


@pytest.mark.parametrize(("kind", "made"), [("table", groups), ("sound", tones)])
def test_the_default_outliers_stand_for_what_was_never_seen(kind, made):
    assert doubt(kind, made, "auto") > 0.98


def test_a_mix_of_two_rows_of_one_class_is_not_unknown():
    """Why `mixup` is in no default mix: rows between own rows are the most known of all, so others
    seem better known.
    """
    assert doubt("table", groups, "mixup") < 0.3


def test_backwards_is_learned_from_reversed_recordings():
    assert doubt("sound", tones, "reverse") > 0.98


def test_enhancement_is_in_units_of_standardised_features():
    """Every feature moves by the step, wherever it lies: no range of pixels holds it back."""
    net = Recipe("mlp", {"hidden": [8]}).build_net((10,), 2, unknown=True, seed=0)
    own, _ = groups(30, 1)
    rows = 3 * own
    moved = (enhance(net, rows, steps=1, size=0.05) - rows).abs()
    assert rows.max() > 3
    assert rows.min() < -1
    torch.testing.assert_close(moved, torch.full_like(moved, 0.05), atol=1e-5, rtol=0)
    bounded = replace(OpenVoting(), clamp=(-2.0, 2.0)).clamp
    assert enhance(net, rows, steps=1, size=0.05, clamp=bounded).abs().max() == 2
