"""Which unit of one network stands for which unit of another:
optimal transport between the rows of two matrices.

Both sides have the same number of units, each with the same mass, and the cost of a pair
is the squared Euclidean distance of its rows. The optimum is then an assignment (exact
transport gives nothing else), which linear assignment finds. Sinkhorn's entropic
transport (Cuturi, NeurIPS 2013; by the library POT, an extra) is a choice; it mixes units.

A map tells, for every unit of the target, what takes its place: a permutation `[n]` of whole
numbers (the unit that does) or a matrix `[n, n]` of shares whose rows sum to 1.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ostraka.errors import ConfigError, OstrakaError

Map = Tensor

TIE = 1e-12
"""Differences of cost below about this share of the largest cost
(times the number of units) count as ties.
"""

ASTRAY = 0.01
"""Above this share of mass on the wrong unit,
the plan is not the one asked for, and the user is told.
"""


class Transport(ABC):
    """A way to solve the transport problem."""

    @abstractmethod
    def solve(self, moving: Tensor, target: Tensor, prefer: Map | None = None) -> Map:
        """The map of the rows of `moving` [n, d] onto those of `target` [n, d].

        Where the cost leaves a choice (rows of zeros on either side above all), the map `prefer`
        decides, then the identity.
        """


@final
@dataclass(frozen=True)
class Exact(Transport):
    """The assignment of least cost."""

    def solve(self, moving: Tensor, target: Tensor, prefer: Map | None = None) -> Map:
        """A permutation."""
        # takes as long to load as all methods together
        from scipy.optimize import linear_sum_assignment

        cost = distances(moving, target)
        units = len(cost)
        # A bonus too small to outweigh a real difference;
        # all of the identity's together weigh less than one of prefer.
        bonus = torch.eye(units, dtype=cost.dtype)
        if prefer is not None:
            bonus += (units + 1) * matrix(prefer).to(cost.dtype)
        scale = float(cost.max()) or 1.0
        _, columns = linear_sum_assignment((cost - TIE * scale * bonus).numpy())
        return torch.from_numpy(columns).to(torch.int64)


@final
@dataclass(frozen=True)
class Entropic(Transport):
    """Sinkhorn's transport: `blur` is the weight of the entropy, in units of the mean cost.

    Rows of zeros take no part: a zero row of the target takes its
    line of `prefer`, or stays as it is.
    """

    blur: float

    def __post_init__(self) -> None:
        if not 0 < self.blur < float("inf"):
            raise ConfigError(
                f"the blur of Sinkhorn's transport is {self.blur}; it must be above 0"
            )

    def solve(self, moving: Tensor, target: Tensor, prefer: Map | None = None) -> Map:
        """A matrix of shares."""
        same = torch.eye(len(target), dtype=torch.float64)
        shares = same if prefer is None else matrix(prefer).clone()
        rows, columns = (side.ne(0).any(dim=1).nonzero().squeeze(1) for side in (target, moving))
        if len(rows) == 0 or len(columns) == 0:
            return shares
        cost = distances(moving[columns], target[rows])
        found = torch.zeros(len(rows), len(shares), dtype=torch.float64)
        found[:, columns] = sinkhorn(cost, self.blur)
        shares[rows] = found / found.sum(dim=1, keepdim=True)
        return shares


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


def distances(moving: Tensor, target: Tensor) -> Tensor:
    """Squared distances [rows of the target, rows of `moving`] in double precision."""
    a, b = target.double(), moving.double()
    squares = a.square().sum(dim=1, keepdim=True) + b.square().sum(dim=1)
    return (squares - 2 * a @ b.t()).clamp(min=0)


def matrix(way: Map) -> Tensor:
    """A map as a matrix of shares."""
    if way.dim() == 2:
        return way.double()
    return torch.eye(len(way), dtype=torch.float64).index_select(0, way)


def moved(tensor: Tensor, way: Map, dim: int) -> Tensor:
    """`tensor` with the units along `dim` mapped.

    Where that is longer, in equal runs, one for each unit.
    """
    units, length = len(way), tensor.shape[dim]
    if length % units:
        raise ConfigError(
            f"{length} values do not fall into equal runs for {units} units; fix the net's anatomy"
        )
    runs = tensor.unflatten(dim, (units, length // units))
    if way.dim() == 1:
        picked: Tensor = runs.index_select(dim, way.to(tensor.device))
        return picked.flatten(dim, dim + 1)
    mixed: Tensor = torch.tensordot(way.to(tensor), runs, dims=([1], [dim]))
    return mixed.movedim(0, dim).flatten(dim, dim + 1)
