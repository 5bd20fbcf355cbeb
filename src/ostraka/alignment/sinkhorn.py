"""Entropic optimal transport (Cuturi, NeurIPS 2013) by the library POT, an extra: this file alone imports it."""

import warnings

import torch
from torch import Tensor

from ostraka.errors import ConfigError, OstrakaError


def sinkhorn(cost: Tensor, blur: float) -> Tensor:
    """The plan [n, m] for `cost` [n, m] with equal masses on either side; `blur` in units of the mean cost."""
    try:
        import ot
    except ImportError as error:
        raise ConfigError(
            "Sinkhorn's transport needs the library POT; install ostraka[ot], or set transport=exact"
        ) from error
    scale = float(cost.mean())
    n, m = cost.shape
    if scale == 0:
        return torch.full((n, m), 1 / (n * m), dtype=torch.float64)
    masses = [torch.full((size,), 1 / size, dtype=torch.float64).numpy() for size in (n, m)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that it has not converged; the rows are normalised in any case
        plan = ot.sinkhorn(*masses, (cost / scale).numpy(), blur, numItermax=500, stopThr=1e-6)
    found = torch.from_numpy(plan)
    if not found.isfinite().all() or (found.sum(dim=1) <= 0).any():
        raise OstrakaError(f"Sinkhorn's transport with blur {blur} left the range of numbers; give a larger one")
    return found
