"""A look at unlabelled samples, by which a vote estimates which members to trust."""

import torch
from torch import Tensor

from ostraka.core.predictor import Predictor
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng

MOST = 1000
"""Samples that are looked at, at most."""


def after_looking(predictor: Predictor, samples: Samples, chunk: int = 1000) -> Predictor:
    """The predictor with member trust estimated from the inputs of at most MOST of the samples.

    They are drawn at random, not taken from the beginning (samples may be sorted by class), and by
    their content, so that the order of the samples does not matter. Only those who name the samples
    call this: evaluation and predictions never do.
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
