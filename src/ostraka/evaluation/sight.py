"""What a predictor is shown, without labels, before it is evaluated."""

import torch
from torch import Tensor

from ostraka.core.predictor import Predictor
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng

MOST = 1000
"""Samples that are shown at the most."""


def after_looking(predictor: Predictor, samples: Samples, chunk: int = 1000) -> Predictor:
    """The predictor after it has looked at MOST of the samples to be answered,
    of all domains together.

    Evaluation is then transductive in this sense: inputs, never labels, of test samples decide how
    far each member is trusted. They are drawn at random, not taken from the beginning (a test set
    may be sorted by class), and by their content, so that the order of the samples does not matter.
    `ballot.batch=false` turns it off.
    """
    if not predictor.looks:
        return predictor
    return predictor.seeing(samples.stored(drawn(samples, chunk)))


def drawn(samples: Samples, chunk: int = 1000) -> Tensor:
    """Positions of at most MOST samples, drawn by their content:
    in any order of the samples the same ones.
    """
    keys = [_keys(part.inputs()) for part in samples.chunks(chunk)]
    return torch.cat(keys).argsort(stable=True)[:MOST]


def _keys(x: Tensor) -> Tensor:
    """A number for each input that says nothing of its class:
    the far digits of a random projection.
    """
    flat = x.flatten(1).double()
    # summed row by row: the product of matrices may round by a row's place in the chunk
    direction = torch.rand(flat.shape[1], generator=torch_rng(0, "sight"), dtype=torch.float64).to(
        flat.device
    )
    return ((flat * direction).sum(dim=1) * 1e3).remainder(1.0)
