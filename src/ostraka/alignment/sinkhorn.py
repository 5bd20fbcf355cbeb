"""Entropic optimal transport (Cuturi, NeurIPS 2013) by the library POT, an extra:
this file alone imports it.
"""

import warnings

import torch
from torch import Tensor

from ostraka.errors import ConfigError, OstrakaError

ASTRAY = 0.01
"""Above this share of mass on the wrong unit,
the plan is not the one asked for, and the user is told.
"""


def sinkhorn(cost: Tensor, blur: float) -> Tensor:
    """The plan [n, m] for `cost` [n, m] with equal masses on either side.

    `blur` in units of the mean cost.
    """
    try:
        import ot
    except ImportError as error:
        raise ConfigError(
            "Sinkhorn's transport needs the library POT; "
            "install ostraka[ot], or set transport=exact"
        ) from error
    scale = float(cost.mean())
    n, m = cost.shape
    if scale == 0:
        return torch.full((n, m), 1 / (n * m), dtype=torch.float64)
    masses = [torch.full((size,), 1 / size, dtype=torch.float64).numpy() for size in (n, m)]
    plan = ot.sinkhorn(
        *masses, (cost / scale).numpy(), blur, numItermax=500, stopThr=1e-6, warn=False
    )
    found = torch.from_numpy(plan)
    if not found.isfinite().all() or (found.sum(dim=1) <= 0).any():
        raise OstrakaError(
            f"Sinkhorn's transport with blur {blur} left the range of numbers; give a larger one"
        )
    astray = float((found.sum(dim=0) - 1 / m).abs().sum()) / 2
    if astray > ASTRAY:
        warnings.warn(
            f"Sinkhorn's transport with blur {blur} has not converged: {astray:.1%} of the mass "
            "is out of place; give a larger blur, or set transport=exact",
            stacklevel=2,
        )
    return found
