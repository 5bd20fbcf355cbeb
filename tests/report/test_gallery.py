"""Pictures of samples, whatever their range."""

from pathlib import Path

import pytest
import torch

from ostraka.core.samples import Samples, View
from ostraka.report import gallery


def test_standardised_samples_fill_the_range_of_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, torch.Tensor] = {}
    monkeypatch.setattr(gallery, "_draw", lambda columns, path: drawn.update(columns))
    x = torch.arange(2 * 100.0).view(2, 1, 10, 10) + 50
    samples = Samples(x, torch.tensor([0, 1]), view=View(mean=(149.5,), std=(57.7,)))
    gallery.draw_gallery(samples, Path("x.png"), count=2)
    assert drawn["sample"].min().item() == 0.0
    assert drawn["sample"].max().item() == pytest.approx(1.0)
    assert drawn["sample"][0, 0, 0, 1].item() == pytest.approx(1 / 199, rel=1e-4)  # values 50 to 249, evenly
